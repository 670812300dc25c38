package keyed

import "iter"

// store is a table with one cell of a state for each key that has one.
type store[K comparable, C any] struct {
	backend *Backend[K]
	name    string
	table   *Table[K, C]
	// cell is the current key's cell, nil if it has none, as long as use is the
	// backend's.
	cell *C
	use  uint64
	// lost takes what is written without a current key.
	lost C
}

func newStore[K comparable, C any](b *Backend[K], name string) store[K, C] {
	return store[K, C]{backend: b, name: name, table: NewTable[K, C]()}
}

// get returns the cell of the current key, nil if it has none. It is valid
// until the state is changed.
func (s *store[K, C]) get() *C {
	if s.use != s.backend.use || s.use == 0 {
		s.find()
	}
	return s.cell
}

func (s *store[K, C]) find() {
	b := s.backend
	s.cell = nil
	if s.use = b.use; s.use == 0 {
		b.misused(s.name)
		return
	}
	s.cell = s.table.Get(b.hash, b.key)
}

// create returns the cell of the current key, made if need be.
func (s *store[K, C]) create() (c *C, created bool) {
	b := s.backend
	if s.cell != nil && s.use == b.use {
		return s.cell, false
	}
	if s.use = b.use; s.use == 0 {
		b.misused(s.name)
		var none C
		s.lost = none
		return &s.lost, true
	}
	s.cell, created = s.table.Upsert(b.hash, b.key)
	return s.cell, created
}

// Clear removes the cell of the current key.
func (s *store[K, C]) Clear() {
	b := s.backend
	if s.cell, s.use = nil, b.use; s.use == 0 {
		b.misused(s.name)
		return
	}
	s.table.Delete(b.hash, b.key)
}

// deleteAt removes the cell of any key.
func (s *store[K, C]) deleteAt(i int) {
	s.table.DeleteAt(i)
	s.cell, s.use = nil, 0
}

func (s *store[K, C]) len() int { return s.table.Len() }

func (s *store[K, C]) keyAt(i int) (hash uint64, key K) {
	e := s.table.At(i)
	return e.Hash, e.Key
}

func (s *store[K, C]) touch(hashes []uint64) { s.table.Touch(hashes) }

// cleanUp does nothing where nothing expires.
func (s *store[K, C]) cleanUp(int) {}

// inGroups visits the cells of the keys in a range of key groups, for a
// snapshot.
func (s *store[K, C]) inGroups(r GroupRange, maxParallelism int) iter.Seq[*Entry[K, C]] {
	return func(yield func(*Entry[K, C]) bool) {
		for e := range s.table.All() {
			if r.Contains(KeyGroup(e.Hash, maxParallelism)) && !yield(e) {
				return
			}
		}
	}
}

// restore puts a cell of a snapshot back.
func (s *store[K, C]) restore(hash uint64, key K, cell C) {
	c, _ := s.table.Upsert(hash, key)
	*c = cell
	s.cell, s.use = nil, 0
}
