package keyed

import (
	"iter"
	"slices"

	"github.com/lowwater/lowwater/window"
)

// The states without TTL. Each is its store with the methods of its kind.

type valueState[K comparable, V any] struct{ store[K, V] }

func (s *valueState[K, V]) Get() (v V, ok bool) {
	if c := s.get(); c != nil {
		return *c, true
	}
	return v, false
}

func (s *valueState[K, V]) Set(v V) {
	c, _ := s.create()
	*c = v
}

type reducingState[K comparable, V any] struct {
	store[K, V]
	combine func(a, b V) V
}

func (s *reducingState[K, V]) Get() (v V, ok bool) {
	if c := s.get(); c != nil {
		return *c, true
	}
	return v, false
}

func (s *reducingState[K, V]) Add(v V) {
	c, created := s.create()
	if !created {
		v = s.combine(*c, v)
	}
	*c = v
}

type aggregatingState[K comparable, In, Acc, Out any] struct {
	store[K, Acc]
	agg window.Aggregator[In, Acc, Out]
}

func (s *aggregatingState[K, In, Acc, Out]) Get() (out Out, ok bool) {
	if c := s.get(); c != nil {
		return s.agg.Result(*c), true
	}
	return out, false
}

func (s *aggregatingState[K, In, Acc, Out]) Add(v In) {
	c, created := s.create()
	if created {
		*c = s.agg.New()
	}
	*c = s.agg.Add(*c, v)
}

type listState[K comparable, V any] struct{ store[K, []V] }

func newList[K comparable, V any](b *Backend[K], name string) (*listState[K, V], error) {
	s, err := newStore(b, name, func() (*cells[K, []V], error) {
		el, err := plainElement[V]()
		if err != nil {
			return nil, err
		}
		return listCells[K](el, listElements[[]V, V]{
			len:   func(c *[]V) int { return len(*c) },
			at:    func(c *[]V, i int, _ *V) *V { return &(*c)[i] },
			add:   func(c *[]V, v V) { *c = append(*c, v) },
			lives: func(*[]V, int, int64) bool { return true },
			fixed: !IsShared[V](),
		}), nil
	})
	return &listState[K, V]{s}, err
}

func (s *listState[K, V]) Get() []V {
	if c := s.get(); c != nil {
		return *c
	}
	return nil
}

func (s *listState[K, V]) Add(v V) {
	c, _ := s.create()
	*c = append(*c, v)
}

func (s *listState[K, V]) AddAll(vs []V) {
	if len(vs) > 0 {
		c, _ := s.create()
		*c = append(*c, vs...)
	}
}

func (s *listState[K, V]) Set(vs []V) {
	if len(vs) == 0 {
		s.Clear()
		return
	}
	c, _ := s.create()
	if s.isBeingWritten() { // maybe still the list as it was
		*c = slices.Clone(vs)
		return
	}
	*c = replace(*c, vs)
}

// replace makes list a copy of vs, which may be a part of it.
func replace[V any](list, vs []V) []V {
	old := list
	list = append(list[:0], vs...)
	if len(list) < len(old) {
		clear(old[len(list):])
	}
	return list
}

type mapState[K, MK comparable, MV any] struct {
	store[K, entries[MK, MV]]
	mapKeys[MK]
	// all is each, bound once.
	all iter.Seq2[MK, MV]
}

func newMap[K, MK comparable, MV any](b *Backend[K], name string, keys mapKeys[MK]) (*mapState[K, MK, MV], error) {
	cells, err := newStore(b, name, func() (*cells[K, entries[MK, MV]], error) {
		el, err := plainElement[MV]()
		if err != nil {
			return nil, err
		}
		return mapCells[K](&keys, el)
	})
	s := &mapState[K, MK, MV]{store: cells, mapKeys: keys}
	s.all = s.each
	return s, err
}

func (s *mapState[K, MK, MV]) Get(key MK) (v MV, ok bool) {
	if c := s.get(); c != nil {
		if i := c.index(&s.mapKeys, key); i >= 0 {
			return c.at(i).Value, true
		}
	}
	return v, false
}

func (s *mapState[K, MK, MV]) Contains(key MK) bool {
	_, ok := s.Get(key)
	return ok
}

func (s *mapState[K, MK, MV]) Put(key MK, v MV) {
	c, _ := s.create()
	*c.put(&s.mapKeys, key) = v
}

func (s *mapState[K, MK, MV]) Remove(key MK) {
	c := s.get()
	if c == nil {
		return
	}
	if i := c.index(&s.mapKeys, key); i >= 0 {
		if c.deleteAt(i); c.len() == 0 {
			s.Clear()
		}
	}
}

func (s *mapState[K, MK, MV]) IsEmpty() bool { return s.get() == nil }

func (s *mapState[K, MK, MV]) All() iter.Seq2[MK, MV] { return s.all }

func (s *mapState[K, MK, MV]) each(yield func(MK, MV) bool) {
	for i := 0; ; {
		c := s.get()
		if c == nil || i >= c.len() {
			return
		}
		e := *c.at(i)
		if !yield(e.Key, e.Value) {
			return
		}
		if c := s.get(); c != nil && i < c.len() && s.same(c.at(i).Key, e.Key) {
			i++ // else it was removed, and another is in its place
		}
	}
}
