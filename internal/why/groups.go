package why

import "iter"

// groups are values by key, in the order in which the keys came. Findings must not depend
// on the order of a map, which is another one each time.
type groups[K comparable, V any] struct {
	keys []K
	of   map[K][]V
}

func (g *groups[K, V]) add(key K, value V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if _, known := g.of[key]; !known {
		g.keys = append(g.keys, key)
	}
	g.of[key] = append(g.of[key], value)
}

func (g *groups[K, V]) all() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.keys {
			if !yield(key, g.of[key]) {
				return
			}
		}
	}
}
