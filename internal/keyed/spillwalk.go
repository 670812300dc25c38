package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
)

// This file has the walks over what is on disk of a state: for EachKey, for snapshots that
// stand alone, and to remove what has expired.

// eachOnDisk calls visit for the keys that have a value on disk now, as they are at the
// beginning.
func (s *store[K, C]) eachOnDisk(visit func(hash uint64, key K) error) error {
	return s.visitDisk(func(encoded, cell []byte) error {
		if s.seen != nil {
			var c C
			if err := s.spilled.decode(cell, &c); err != nil {
				return err
			}
			if !s.hasValue(&c) {
				return nil
			}
		}
		var key K
		if _, err := s.spilled.decodeKey(encoded, &key); err != nil {
			return err
		}
		return visit(s.backend.keys.hash(key), key)
	})
}

// visitDisk calls visit for what is on disk now: keys, as they are encoded, and cells.
func (s *store[K, C]) visitDisk(visit func(key, cell []byte) error) (err error) {
	if s.spilled == nil || s.spilled.filter.Len() == 0 {
		return nil
	}
	view := s.spilled.shared.store.View()
	defer func() { err = errors.Join(err, view.Close()) }()
	prefix := s.spilled.prefix()
	for e, err := range view.From(prefix, prefix) {
		if err != nil {
			return err
		}
		if err := visit(e.Key[diskKeyHead:], e.Value); err != nil {
			return err
		}
	}
	return nil
}

// snapshotDisk adds what is on disk now to the part of the state, in a snapshot that stands
// alone.
func (s *store[K, C]) snapshotDisk(to *Snapshot, part *KeyedPart[K]) error {
	sp := s.spilled
	if sp == nil || sp.filter.Len() == 0 || to.w.Incremental() {
		return nil
	}
	// A decoder of its own: the other one is the subtask's.
	decode, err := s.cells.decoder(snapshot.Part{Version: int(s.cells.layout), Schemas: s.cells.schemas}, 0)
	if err != nil {
		return err
	}
	w := diskWriter[C]{lives: s.cells.lives, decode: decode, dated: s.cells.layout.isDated(), now: s.backend.now}
	view, prefix := sp.shared.store.View(), sp.prefix()
	to.addImmutable(part.part, func(ctx context.Context, to snapshot.PartWriter) error {
		return w.write(ctx, view.From(prefix, prefix), to)
	}, view.Close)
	return nil
}

// diskWriter writes what is on disk into a snapshot, except for cells in which all has
// expired.
type diskWriter[C any] struct {
	lives  func(c *C, now int64) bool
	decode func(data []byte, c *C) error
	dated  bool
	now    int64
	entry  []byte
}

func (w *diskWriter[C]) write(ctx context.Context, entries iter.Seq2[spill.Entry, error], to snapshot.PartWriter) error {
	n := 0
	for e, err := range entries {
		if err != nil {
			return err
		}
		if n++; n%entriesPerLook == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.dated {
			var c C
			if err := w.decode(e.Value, &c); err != nil {
				return err
			}
			if !w.lives(&c, w.now) {
				continue
			}
		}
		w.entry = append(append(w.entry[:0], e.Key[diskKeyHead:]...), e.Value...)
		if err := to.Append(int(binary.BigEndian.Uint16(e.Key[2:])), w.entry); err != nil {
			return err
		}
	}
	return nil
}

// entriesPerLook is how many entries are written between two looks at whether the snapshot
// was given up.
const entriesPerLook = 1024

// diskSweep is a walk over the cells on disk, which removes expired ones.
type diskSweep struct {
	// due is how many cells are to be looked at.
	due int
	// at is the key to go on from.
	at []byte
}

// sweepAtATime is how many cells are looked at together.
const sweepAtATime = 1024

// cleanUpDisk is cleanUp for what is on disk.
func (s *store[K, C]) cleanUpDisk(budget int) {
	sp := s.spilled
	if sp == nil || sp.filter.Len() == 0 || sp.shared.store.Holding() { // a view would wait
		return
	}
	if sp.sweep.due += budget; sp.sweep.due < min(sweepAtATime, sp.filter.Len()) {
		return
	}
	if err := s.sweepDisk(); err != nil {
		s.backend.Fail(fmt.Errorf("state %q: %w", s.name, err))
	}
}

func (s *store[K, C]) sweepDisk() error {
	return errors.Join(s.sweepView(), s.spilled.shared.batch.Commit())
}

// sweepView adds the removal of the next cells that have expired to the batch.
func (s *store[K, C]) sweepView() (err error) {
	sp := s.spilled
	o, sweep := sp.shared, &sp.sweep
	view, prefix := o.store.View(), sp.prefix()
	defer func() { err = errors.Join(err, view.Close()) }()
	from := prefix
	if len(sweep.at) > 0 {
		from = sweep.at
	}
	for e, err := range view.From(prefix, from) {
		if err != nil {
			return err
		}
		if sweep.due <= 0 {
			sweep.at = append(sweep.at[:0], e.Key...)
			return nil
		}
		sweep.due--
		var c C
		if err := sp.decode(e.Value, &c); err != nil {
			return err
		}
		if sp.cells.lives(&c, s.backend.now) {
			continue
		}
		var key K
		if _, err := sp.decodeKey(e.Key[diskKeyHead:], &key); err != nil {
			return err
		}
		sp.filter.Remove(s.backend.keys.hash(key))
		if err := o.batch.Delete(e.Key); err != nil {
			return err
		}
	}
	sweep.at, sweep.due = sweep.at[:0], 0
	return nil
}
