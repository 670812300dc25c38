package keyed

import (
	"iter"
	"math"
	"slices"

	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// The states with TTL (spec windows 5.3). Their cells hold the times of last
// access beside the values, so that a snapshot does, too.

// expiry is a TTL. The zero value is none.
type expiry struct {
	afterMillis   int64
	onRead        bool
	returnExpired bool
}

func newExpiry(ttl state.TTL) expiry {
	return expiry{
		afterMillis:   ttl.After.Milliseconds(),
		onRead:        ttl.Update == state.OnReadAndWrite,
		returnExpired: ttl.Visibility == state.ReturnExpiredIfNotCleanedUp,
	}
}

func (e expiry) none() bool { return e.afterMillis == 0 }

// expired reports whether what was last accessed then is gone now.
func (e expiry) expired(then, now int64) bool {
	return then <= math.MaxInt64-e.afterMillis && then+e.afterMillis <= now
}

// dated is a value with the time of its last access.
type dated[V any] struct {
	at    int64
	value V
}

// aging is the store of one value per key that expires as a whole.
type aging[K comparable, V any] struct {
	store[K, dated[V]]
	expiry
	sweep
}

func newAging[K comparable, V any](b *Backend[K], name string, ttl expiry, kind layoutOf) (aging[K, V], error) {
	s, err := newStore(b, name, func() (*cells[K, dated[V]], error) {
		el, err := datedElement[V](ttl)
		if err != nil {
			return nil, err
		}
		return singleCells[K](kind, el), nil
	})
	if !ttl.returnExpired {
		s.seen = func(c *dated[V], now int64) bool { return !ttl.expired(c.at, now) }
	}
	return aging[K, V]{store: s, expiry: ttl}, err
}

// read returns the value, if it can be seen.
func (s *aging[K, V]) read() (v V, ok bool) {
	c := s.get()
	if c == nil {
		return v, false
	}
	if !s.expired(c.at, s.backend.now) {
		if s.onRead {
			c.at = s.backend.now
		}
		return c.value, true
	}
	if s.returnExpired {
		v = c.value
	}
	s.Clear()
	return v, s.returnExpired
}

// write returns where the value is, as a new one if there was none or it has
// expired.
func (s *aging[K, V]) write() (v *V, created bool) {
	c, created := s.create()
	if !created && s.expired(c.at, s.backend.now) {
		*c = dated[V]{}
		created = true
	}
	c.at = s.backend.now
	return &c.value, created
}

func (s *aging[K, V]) cleanUp(budget int) {
	s.cleanUpDisk(budget)
	for s.start(s.len()); budget > 0 && s.rest > 0; budget-- {
		s.rest--
		if s.expired(s.table.entry(uint32(s.rest)).Value.at, s.backend.now) {
			s.deleteAt(s.rest)
		}
	}
}

// sweep is a walk over numbered entries from the last down to the first, some at
// a time. In this order a deletion moves an entry that was seen into the gap.
type sweep struct{ rest int }

// start starts a walk over n entries, if none is under way.
func (w *sweep) start(n int) {
	if w.rest == 0 || w.rest > n {
		w.rest = n
	}
}

type agingValue[K comparable, V any] struct{ aging[K, V] }

func (s *agingValue[K, V]) Get() (v V, ok bool) { return s.read() }

func (s *agingValue[K, V]) Set(v V) {
	c, _ := s.write()
	*c = v
}

type agingReducing[K comparable, V any] struct {
	aging[K, V]
	combine func(a, b V) V
}

func (s *agingReducing[K, V]) Get() (v V, ok bool) { return s.read() }

func (s *agingReducing[K, V]) Add(v V) {
	c, created := s.write()
	if !created {
		v = s.combine(*c, v)
	}
	*c = v
}

type agingAggregating[K comparable, In, Acc, Out any] struct {
	aging[K, Acc]
	agg window.Aggregator[In, Acc, Out]
}

func (s *agingAggregating[K, In, Acc, Out]) Get() (out Out, ok bool) {
	acc, ok := s.read()
	if !ok {
		return out, false
	}
	return s.agg.Result(acc), true
}

func (s *agingAggregating[K, In, Acc, Out]) Add(v In) {
	c, created := s.write()
	if created {
		*c = s.agg.New()
	}
	*c = s.agg.Add(*c, v)
}

// datedList is a list with the time of each element's last access.
type datedList[V any] struct {
	values []V
	times  []int64
}

// drop removes the first n elements.
func (l *datedList[V]) drop(n int) {
	clear(l.values[:n])
	l.values, l.times = l.values[n:], l.times[n:]
}

type agingList[K comparable, V any] struct {
	store[K, datedList[V]]
	expiry
	sweep
}

func newAgingList[K comparable, V any](b *Backend[K], name string, ttl expiry) (*agingList[K, V], error) {
	s, err := newStore(b, name, func() (*cells[K, datedList[V]], error) {
		el, err := datedElement[V](ttl)
		if err != nil {
			return nil, err
		}
		return listCells[K](el, listElements[datedList[V], dated[V]]{
			len: func(c *datedList[V]) int { return len(c.values) },
			at: func(c *datedList[V], i int, scratch *dated[V]) *dated[V] {
				*scratch = dated[V]{c.times[i], c.values[i]}
				return scratch
			},
			lives: func(c *datedList[V], i int, now int64) bool { return !ttl.expired(c.times[i], now) },
			add: func(c *datedList[V], v dated[V]) {
				c.values, c.times = append(c.values, v.value), append(c.times, v.at)
			},
		}), nil
	})
	if !ttl.returnExpired {
		s.seen = func(c *datedList[V], now int64) bool {
			return slices.ContainsFunc(c.times, func(at int64) bool { return !ttl.expired(at, now) })
		}
	}
	return &agingList[K, V]{store: s, expiry: ttl}, err
}

// Get leaves out what has expired, unless that can be seen: then the list stays
// whole until all of it has.
func (s *agingList[K, V]) Get() []V {
	c := s.get()
	if c == nil {
		return nil
	}
	now, live := s.backend.now, 0
	for i, at := range c.times {
		if s.expired(at, now) {
			continue
		}
		if s.onRead {
			at = now
		}
		c.times[i] = at
		if !s.returnExpired {
			c.values[live], c.times[live] = c.values[i], at
		}
		live++
	}
	values := c.values
	switch {
	case live == 0:
		s.Clear()
		if !s.returnExpired {
			return nil
		}
	case !s.returnExpired:
		clear(c.values[live:])
		c.values, c.times = c.values[:live], c.times[:live]
		values = c.values
	}
	return values
}

func (s *agingList[K, V]) Add(v V) {
	c, _ := s.create()
	c.values, c.times = append(c.values, v), append(c.times, s.backend.now)
}

func (s *agingList[K, V]) AddAll(vs []V) {
	for _, v := range vs {
		s.Add(v)
	}
}

func (s *agingList[K, V]) Set(vs []V) {
	if len(vs) == 0 {
		s.Clear()
		return
	}
	c, _ := s.create()
	c.values, c.times = replace(c.values, vs), c.times[:0]
	for range vs {
		c.times = append(c.times, s.backend.now)
	}
}

// cleanUp removes elements from the front of lists. What was added later was
// accessed later, unless the clock was set back; then a read removes it.
func (s *agingList[K, V]) cleanUp(budget int) {
	s.cleanUpDisk(budget)
	for s.start(s.len()); budget > 0 && s.rest > 0; budget-- {
		s.rest--
		c := &s.table.At(s.rest).Value
		n := 0
		for n < len(c.times) && budget > 0 && s.expired(c.times[n], s.backend.now) {
			n++
			budget--
		}
		if n == len(c.times) {
			s.deleteAt(s.rest)
		} else {
			c.drop(n)
		}
	}
}

type agingMap[K, MK comparable, MV any] struct {
	store[K, entries[MK, dated[MV]]]
	mapKeys[MK]
	expiry
	// sweep is over the keys, inner over the entries of the one it is at.
	sweep
	inner sweep
	all   iter.Seq2[MK, MV]
}

func newAgingMap[K, MK comparable, MV any](b *Backend[K], name string, keys mapKeys[MK], ttl expiry) (*agingMap[K, MK, MV], error) {
	cells, err := newStore(b, name, func() (*cells[K, entries[MK, dated[MV]]], error) {
		el, err := datedElement[MV](ttl)
		if err != nil {
			return nil, err
		}
		return mapCells[K](&keys, el)
	})
	if !ttl.returnExpired {
		cells.seen = func(c *entries[MK, dated[MV]], now int64) bool {
			for i := range c.len() {
				if !ttl.expired(c.peek(i).Value.at, now) {
					return true
				}
			}
			return false
		}
	}
	s := &agingMap[K, MK, MV]{store: cells, mapKeys: keys, expiry: ttl}
	s.all = s.each
	return s, err
}

func (s *agingMap[K, MK, MV]) Get(key MK) (v MV, ok bool) {
	c := s.get()
	if c == nil {
		return v, false
	}
	i := c.index(&s.mapKeys, key)
	if i < 0 {
		return v, false
	}
	_, v, ok = s.visit(c, i)
	return v, ok
}

// visit reads entry i of the current key's map, and removes it if it has
// expired.
func (s *agingMap[K, MK, MV]) visit(c *entries[MK, dated[MV]], i int) (key MK, v MV, ok bool) {
	e := c.at(i)
	key, v = e.Key, e.Value.value
	if !s.expired(e.Value.at, s.backend.now) {
		if s.onRead {
			e.Value.at = s.backend.now
		}
		return key, v, true
	}
	if c.deleteAt(i); c.len() == 0 {
		s.Clear()
	}
	if !s.returnExpired {
		var none MV
		return key, none, false
	}
	return key, v, true
}

func (s *agingMap[K, MK, MV]) Contains(key MK) bool {
	_, ok := s.Get(key)
	return ok
}

func (s *agingMap[K, MK, MV]) Put(key MK, v MV) {
	c, _ := s.create()
	*c.put(&s.mapKeys, key) = dated[MV]{s.backend.now, v}
}

func (s *agingMap[K, MK, MV]) Remove(key MK) {
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

func (s *agingMap[K, MK, MV]) IsEmpty() bool { return s.get() == nil }

func (s *agingMap[K, MK, MV]) All() iter.Seq2[MK, MV] { return s.all }

func (s *agingMap[K, MK, MV]) each(yield func(MK, MV) bool) {
	for i := 0; ; {
		c := s.get()
		if c == nil || i >= c.len() {
			return
		}
		key, v, ok := s.visit(c, i)
		if ok && !yield(key, v) {
			return
		}
		if c := s.get(); c != nil && i < c.len() && s.same(c.at(i).Key, key) {
			i++ // else it was removed, and another is in its place
		}
	}
}

func (s *agingMap[K, MK, MV]) cleanUp(budget int) {
	s.cleanUpDisk(budget)
	for s.start(s.len()); budget > 0 && s.rest > 0; {
		c := &s.table.At(s.rest - 1).Value
		for s.inner.start(c.len()); budget > 0 && s.inner.rest > 0; budget-- {
			s.inner.rest--
			if s.expired(c.at(s.inner.rest).Value.at, s.backend.now) {
				c.deleteAt(s.inner.rest)
			}
		}
		if s.inner.rest > 0 {
			return
		}
		if s.rest--; c.len() == 0 {
			s.deleteAt(s.rest)
		}
	}
}
