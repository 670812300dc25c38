package keyed

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/snapshot"
)

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
	// cells is how cells are stored, nil if they are not.
	cells *cells[K, C]
	// spilled is what is on disk, nil without a budget.
	spilled *spilled[K, C]
	// seen reports whether something in a cell can be read; nil if all that is there can.
	seen func(c *C, now int64) bool
}

// newStore returns an empty store. storage says how its cells are stored, if they are.
func newStore[K comparable, C any](b *Backend[K], name string, storage func() (*cells[K, C], error)) (store[K, C], error) {
	s := store[K, C]{backend: b, name: name, table: NewTable[K, C]()}
	var err error
	if b.keys != nil {
		if s.cells, err = storage(); err == nil {
			err = s.limit(storage)
		}
	}
	return s, err
}

// newPlain returns the store of a state without TTL of one value per key.
func newPlain[K comparable, V any](b *Backend[K], name string, kind layoutOf) (store[K, V], error) {
	return newStore(b, name, func() (*cells[K, V], error) {
		el, err := plainElement[V]()
		if err != nil {
			return nil, err
		}
		return singleCells[K](kind, el), nil
	})
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
	if s.spilled != nil {
		s.cell = s.lookup(b.hash, b.key)
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
	if s.spilled != nil {
		s.cell, created = s.obtain(b.hash, b.key)
	} else {
		s.cell, created = s.table.Upsert(b.hash, b.key)
	}
	return s.cell, created
}

// Clear removes the cell of the current key.
func (s *store[K, C]) Clear() {
	b := s.backend
	if s.cell, s.use = nil, b.use; s.use == 0 {
		b.misused(s.name)
		return
	}
	if s.spilled != nil {
		s.remove(b.hash, b.key)
		return
	}
	s.table.Delete(b.hash, b.key)
}

// deleteAt removes the cell of any key.
func (s *store[K, C]) deleteAt(i int) {
	s.removeAt(i)
	s.cell, s.use = nil, 0
}

func (s *store[K, C]) len() int { return s.table.Len() }

func (s *store[K, C]) keyAt(i int) (hash uint64, key K) {
	e := s.table.entry(uint32(i))
	return e.Hash, e.Key
}

func (s *store[K, C]) hasValueAt(i int) bool { return s.hasValue(&s.table.entry(uint32(i)).Value) }

func (s *store[K, C]) hasValue(c *C) bool { return s.seen == nil || s.seen(c, s.backend.now) }

func (s *store[K, C]) touch(hashes []uint64) { s.table.Touch(hashes) }

// cleanUp does nothing where nothing expires.
func (s *store[K, C]) cleanUp(int) {}

// isBeingWritten reports whether a snapshot may still read cells.
func (s *store[K, C]) isBeingWritten() bool {
	return s.table.image != nil && !s.table.image.snapshot.Over()
}

// snapshot adds the state to a snapshot, as a part of its own.
func (s *store[K, C]) snapshot(to *Snapshot) error {
	storage, cells := &s.backend.storage, s.cells
	part, err := s.backend.keys.Part(to, snapshot.Part{
		Name: storage.part(s.name), Kind: storage.Kind, Version: int(cells.layout), Schemas: cells.schemas,
	})
	if err != nil {
		return err
	}
	w := &cellWriter[K]{part, s.backend.now}
	to.Table(s.table, func(to *Encoder, e *Entry[K, C]) error {
		if err := cells.write(w, to, e); err != nil {
			return fmt.Errorf("state %q, key %v: %w", s.name, e.Key, err)
		}
		return nil
	})
	return s.snapshotDisk(to, part)
}

// restore fills the empty state from a part.
func (s *store[K, C]) restore(p snapshot.PartReader) error {
	decode, err := s.stored(p.Part())
	if err != nil {
		return err
	}
	return s.backend.keys.Read(p, func(hash uint64, key K, rest []byte) error {
		c, err := s.place(hash, key)
		if err != nil {
			return err
		}
		return decode(rest, c)
	})
}

// restoreDisk adds cells that were on disk, except for those in which all had expired by
// livesAt.
func (s *store[K, C]) restoreDisk(p snapshot.PartReader, livesAt int64) error {
	decode, err := s.stored(p.Part())
	if err != nil {
		return err
	}
	return s.backend.keys.Read(p, func(hash uint64, key K, rest []byte) error {
		var cell C
		if err := decode(rest, &cell); err != nil || !s.cells.lives(&cell, livesAt) {
			return err
		}
		c, err := s.place(hash, key)
		if err == nil {
			*c = cell
		}
		return err
	})
}

// place returns the cell of a key that is being restored.
func (s *store[K, C]) place(hash uint64, key K) (*C, error) {
	if s.spilled == nil {
		c, _ := s.table.Upsert(hash, key)
		return c, s.backend.err
	}
	s.backend.uses++
	s.backend.watch() // what is restored may be more than the budget
	c, _ := s.obtain(hash, key)
	return c, s.backend.err
}

// stored returns how cells are read that were stored in a part.
func (s *store[K, C]) stored(part snapshot.Part) (decode func(data []byte, c *C) error, err error) {
	if stored := layoutOf(part.Version); stored.kind() != s.cells.layout.kind() {
		return nil, fmt.Errorf("it was stored as %v state with schema %v and is now declared as %v state with schema %v: "+
			"give the new state another name, or declare it as it was",
			stored, part.Schemas["value"], s.cells.layout, s.cells.schemas["value"])
	}
	return s.cells.decoder(part, s.backend.now)
}
