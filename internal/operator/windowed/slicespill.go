package windowed

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/window"
)

// sliceSpilling moves slices and sums of slices to disk: each is a pane with runs of its own.
//
// A window with a part on disk is not put together in a table. The runs of all its parts are
// walked at once, in the order of their keys, and what the tables have of a key is looked up.
// Sums are made in the same way, and written as one run: so on disk as in memory a firing
// reads some log2 of the number of slices per key.
//
// Most entries of a window's slices are cold when it fires. So those of a part that is on disk
// in part are written then, too, and memory is for new records and for parts that are in it as
// a whole.
type sliceSpilling[K comparable, T, A any] struct {
	*spilling[K, T, A]
	late lateKey[K, A]
}

// lateKey is what was read of the key of a late record. Windows that it makes fire share most
// of their parts, and each is read once.
type lateKey[K comparable, A any] struct {
	view *spill.View
	scan *spill.Scan
	read map[*pane[K, A]]onDisk[A]
}

// onDisk is what the runs of a key in a pane come to, if there are any.
type onDisk[A any] struct {
	some bool
	acc  A
}

// spills implements Spills. What depends on the order of arrival has no slices, unless it keeps
// its records, with their numbers.
func (o *sliced[K, T, A]) spills() bool { return true }

// openSpilling prepares for a budget, if there is one.
func (o *sliced[K, T, A]) openSpilling() error {
	s, err := o.newSpilling(&o.slices.pool)
	if s != nil && err == nil {
		o.slices.spilled = &sliceSpilling[K, T, A]{spilling: s, late: lateKey[K, A]{read: map[*pane[K, A]]onDisk[A]{}}}
	}
	return err
}

// close removes what is on disk. s may be nil.
func (s *sliceSpilling[K, T, A]) close() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.doneWithKey(), s.spilling.close())
}

// settle moves contents to disk if there is no room for them, after so many more records. That
// is looked at once in as many records as there are panes, which must all be looked at.
func (o *sliced[K, T, A]) settle(records int) error {
	s := &o.slices
	if o.unsettled += records; o.unsettled < len(s.live)+len(s.ids) {
		return nil
	}
	o.unsettled = 0
	s.panes = s.between(s.panes[:0], math.MinInt64, math.MaxInt64)
	for _, id := range s.ids {
		s.panes = append(s.panes, s.sums[id])
	}
	err := s.spilled.settle(s.panes)
	clear(s.panes)
	return err
}

// fits reports whether a table with all that panes hold has room beside them. It always has
// if there is no budget: s is nil then.
func (s *sliceSpilling[K, T, A]) fits(parts []*pane[K, A]) bool {
	if s == nil {
		return true
	}
	needed := s.inMemory
	for _, p := range parts {
		if p.spilled.onDisk > 0 {
			return false
		}
		needed += s.bytes(p)
	}
	return needed <= s.budget
}

// made notes that p is a new sum in memory. s may be nil.
func (s *sliceSpilling[K, T, A]) made(p *pane[K, A]) error {
	if s == nil || p.keys.Len() == 0 {
		return nil
	}
	if _, err := s.weigh(p, p.keys.At(p.keys.Len()-1)); err != nil {
		return err
	}
	s.inMemory += s.bytes(p)
	return nil
}

// sum makes p, a new pane, the sum of others, on disk.
func (s *sliceSpilling[K, T, A]) sum(p *pane[K, A], parts []*pane[K, A]) error {
	if err := s.writeOut(parts); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	written := 0
	s.beginRun(&p.spilled)
	err := s.each(parts, func(hash uint64, key K, acc *A) error {
		written++
		return s.write(p, hash, &key, acc)
	})
	if err == nil {
		err = s.endRun(&p.spilled, written)
	}
	if err != nil {
		return fmt.Errorf("sum of slices %v: %w", p.window, err)
	}
	s.numbers.DiskBytes.Set(s.store.DiskBytes())
	return nil
}

// writeOut moves to disk what is in memory of panes that are on disk in part.
func (s *sliceSpilling[K, T, A]) writeOut(parts []*pane[K, A]) error {
	for _, p := range parts {
		for p.spilled.onDisk > 0 && p.keys.Len() > 0 {
			if err := s.spillSome(p, s.bytes(p)); err != nil {
				return fmt.Errorf("slices %v: %w", p.window, err)
			}
		}
	}
	return nil
}

// fireSpilled is fire for a window whose parts are on disk, or have no room for a table with all
// of them.
func (o *sliced[K, T, A]) fireSpilled(w window.TimeWindow, parts []*pane[K, A]) error {
	if err := o.slices.spilled.writeOut(parts); err != nil {
		return fmt.Errorf("window %v: %w", w, err)
	}
	var failed error // is the function's, to which nothing is added
	err := o.slices.spilled.each(parts, func(hash uint64, key K, acc *A) error {
		if !o.resumed.fired(w.MaxTimestamp(), hash) {
			failed = o.emit(key, w, o.onTime(), acc)
		}
		return failed
	})
	if err != nil && failed == nil {
		return fmt.Errorf("window %v: %w", w, err)
	}
	return err
}

// spilledSumOf is sumOf where parts may be on disk. It makes no sums, for which all keys would
// have to be read.
func (s *sliceStore[K, T, A]) spilledSumOf(lo, hi int64, hash uint64, key K) (A, error) {
	s.parts = s.parts[:0]
	if s.ordered {
		s.parts = s.between(s.parts, lo, hi)
	} else {
		for lo < hi {
			level := levelOf(lo, hi)
			s.parts = s.existing(s.parts, level, lo>>level)
			lo += 1 << level
		}
	}
	acc := s.fold.New()
	for _, part := range s.parts {
		read, err := s.spilled.lateRuns(part, hash, &key)
		if err != nil {
			return acc, fmt.Errorf("slices %v, key %v: %w", part.window, key, err)
		}
		if read.some {
			acc = s.fold.Merge(acc, read.acc)
		}
		if v := part.keys.Get(hash, key); v != nil {
			acc = s.fold.Merge(acc, *v)
		}
	}
	return acc, nil
}

// existing appends the slices of the sum with that id, by the largest sums of them that there are.
func (s *sliceStore[K, T, A]) existing(dst []*pane[K, A], level uint8, number int64) []*pane[K, A] {
	if p := s.sums[sumID{level, number}]; p != nil {
		return append(dst, p)
	}
	from := s.position(number << level)
	to := s.position((number + 1) << level)
	switch to - from {
	case 0:
		return dst
	case 1:
		return append(dst, s.live[from].pane)
	}
	return s.existing(s.existing(dst, level-1, 2*number), level-1, 2*number+1)
}

// lateRuns returns what is on disk of a late record's key in a pane, which doneWithKey gives up.
func (s *sliceSpilling[K, T, A]) lateRuns(p *pane[K, A], hash uint64, key *K) (read onDisk[A], err error) {
	if p.spilled.onDisk == 0 {
		return read, nil
	}
	l := &s.late
	read, ok := l.read[p]
	if ok {
		return read, nil
	}
	if err := s.appendKey(p, hash, key); err != nil {
		return read, err
	}
	if l.view == nil {
		l.view = s.store.View()
	}
	if l.scan == nil {
		l.scan, err = l.view.Scan(s.key)
	} else {
		l.scan.Restart(s.key)
	}
	for err == nil {
		var e spill.Entry
		if e, ok, err = l.scan.Next(); err != nil || !ok {
			break
		}
		err = s.mergeRun(e.Value)
	}
	if err != nil {
		return read, err
	}
	read.some = s.runs.some
	read.acc = s.runs.take()
	l.read[p] = read
	return read, nil
}

// doneWithKey ends the reading of a late record's key. s may be nil.
func (s *sliceSpilling[K, T, A]) doneWithKey() (err error) {
	if s == nil || s.late.view == nil {
		return nil
	}
	l := &s.late
	for _, read := range l.read {
		if read.some {
			s.pool.release(read.acc)
		}
	}
	clear(l.read)
	if l.scan != nil {
		err = l.scan.Close()
	}
	err = errors.Join(err, l.view.Close())
	l.view, l.scan = nil, nil
	return err
}

// dropped takes a pane that is gone out of the account, and removes what is on disk of it. s may
// be nil.
func (s *sliceSpilling[K, T, A]) dropped(p *pane[K, A]) error {
	if s == nil {
		return nil
	}
	s.inMemory = max(0, s.inMemory-s.bytes(p))
	return s.drop(p)
}

// snapshotRuns adds what is on disk of slices to a snapshot, if anything.
func (o *sliced[K, T, A]) snapshotRuns(w snapshot.Writer) error {
	s := &o.slices
	if s.spilled == nil {
		return nil
	}
	s.panes = s.between(s.panes[:0], math.MinInt64, math.MaxInt64)
	return s.spilled.snapshotRuns(w, s.panes)
}
