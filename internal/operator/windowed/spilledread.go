package windowed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/window"
)

// runReader merges the runs of one key after the other.
type runReader[K comparable, A any] struct {
	decodeKey func([]byte, *K) ([]byte, error)
	decode    func([]byte, *A) ([]byte, error)
	scans     runScans
	// at is what the runs of the current key begin with on disk, behind the number of their
	// pane. hash and key are what that says.
	at   []byte
	hash uint64
	key  K
	// some says that there are contents of the current key, and acc is what they come to so
	// far. part is the first of the panes that are read of which they have no entry of the table.
	some bool
	acc  A
	part int
	next A // scratch space
}

// each calls visit for every key of some panes with all its contents, put together in the
// order of the panes: those of the keys on disk first.
func (s *spilling[K, T, A]) each(parts []*pane[K, A], visit func(hash uint64, key K, acc *A) error) error {
	for len(s.marked) < len(parts) {
		s.marked = append(s.marked, nil)
	}
	for n, p := range parts {
		s.marked[n] = append(s.marked[n][:0], make([]uint64, (p.keys.Len()+63)/64)...)
	}
	if err := s.eachOnDisk(parts, visit); err != nil {
		return err
	}
	for n, p := range parts {
		i := 0
		for e := range p.keys.All() {
			if s.marked[n][i/64]>>(i&63)&1 == 0 {
				if err := s.visitEntry(parts, n, e, visit); err != nil {
					return err
				}
			}
			i++
		}
	}
	return nil
}

// visitEntry calls visit for a key that is in the table of pane n, and in those of panes
// behind it at most.
func (s *spilling[K, T, A]) visitEntry(parts []*pane[K, A], n int, e *keyed.Entry[K, A], visit func(hash uint64, key K, acc *A) error) error {
	r := &s.runs
	for m := n + 1; m < len(parts); m++ {
		more := s.entry(parts, m, e.Hash, e.Key)
		if more == nil {
			continue
		}
		if !r.some {
			r.acc, r.some = s.fold.Merge(s.fold.New(), e.Value), true
		}
		r.acc = s.fold.Merge(r.acc, *more)
	}
	if !r.some {
		return visit(e.Hash, e.Key, &e.Value)
	}
	if err := visit(e.Hash, e.Key, &r.acc); err != nil {
		return err
	}
	s.pool.release(r.take())
	return nil
}

// entry returns the contents of a key in the table of pane n, which it marks, nil if there are none.
func (s *spilling[K, T, A]) entry(parts []*pane[K, A], n int, hash uint64, key K) *A {
	keys := parts[n].keys
	if keys.Len() == 0 {
		return nil
	}
	i := keys.Index(hash, key)
	if i < 0 {
		return nil
	}
	s.marked[n][i/64] |= 1 << (i & 63)
	return &keys.At(i).Value
}

// eachOnDisk calls visit for the keys that have runs, and marks their entries in the tables.
func (s *spilling[K, T, A]) eachOnDisk(parts []*pane[K, A], visit func(hash uint64, key K, acc *A) error) (err error) {
	if s.onDisk == 0 {
		return nil
	}
	r := &s.runs
	view := s.store.View()
	defer func() { err = errors.Join(err, r.scans.close(), view.Close()) }()
	for n, p := range parts {
		if p.spilled.onDisk > 0 {
			if err := r.scans.add(view, n, p.spilled.prefix(nil)); err != nil {
				return err
			}
		}
	}
	for len(r.scans) > 0 {
		first := &r.scans[0]
		if head := first.head(); !bytes.Equal(head, r.at) {
			if err := s.visitRead(parts, visit); err != nil {
				return err
			}
			if err := r.begin(head); err != nil {
				return err
			}
		}
		s.mergeEntries(parts, first.part)
		if err := s.mergeRun(first.entry.Value); err != nil {
			return err
		}
		if err := r.scans.advance(); err != nil {
			return err
		}
	}
	return s.visitRead(parts, visit)
}

// begin makes the key whose runs begin with head the current one.
func (r *runReader[K, A]) begin(head []byte) error {
	r.at, r.hash, r.part = append(r.at[:0], head...), binary.BigEndian.Uint64(head), 0
	if _, err := r.decodeKey(head[diskKeyHead-diskKeyPane:], &r.key); err != nil {
		return fmt.Errorf("key of a window on disk: %w", err)
	}
	return nil
}

// mergeEntries adds the entries of the current key in the tables of the panes before pane n.
func (s *spilling[K, T, A]) mergeEntries(parts []*pane[K, A], n int) {
	for r := &s.runs; r.part < n; r.part++ {
		more := s.entry(parts, r.part, r.hash, r.key)
		if more == nil {
			continue
		}
		if !r.some {
			r.acc, r.some = s.fold.New(), true
		}
		r.acc = s.fold.Merge(r.acc, *more)
	}
}

// mergeRun adds the next run of the current key.
func (s *spilling[K, T, A]) mergeRun(value []byte) error {
	r := &s.runs
	to := &r.next
	if !r.some {
		to, r.some = &r.acc, true
	}
	var none A
	if *to = none; s.pool.releaser != nil {
		*to = s.fold.New() // which decoding fills
	}
	s.numbers.SpillReads.Add(1)
	if _, err := r.decode(value, to); err != nil {
		return fmt.Errorf("contents of a window on disk: %w", err)
	}
	if to == &r.next {
		r.acc = s.fold.Merge(r.acc, r.next)
		s.pool.release(r.next)
	}
	return nil
}

// take returns what the contents of the current key have come to. There is no current key then.
func (r *runReader[K, A]) take() A {
	var none A
	var noKey K
	acc := r.acc
	r.some, r.at, r.key, r.acc, r.next = false, r.at[:0], noKey, none, none
	return acc
}

// visitRead calls visit for the current key, if there is one, with all its contents.
func (s *spilling[K, T, A]) visitRead(parts []*pane[K, A], visit func(hash uint64, key K, acc *A) error) error {
	r := &s.runs
	if !r.some {
		return nil
	}
	s.mergeEntries(parts, len(parts))
	if err := visit(r.hash, r.key, &r.acc); err != nil {
		return err
	}
	s.pool.release(r.take())
	return nil
}

// bringBack moves the runs of a key into its entry in the table, acc.
func (s *spilling[K, T, A]) bringBack(p *pane[K, A], hash uint64, key K, acc *A) error {
	if p.spilled.onDisk == 0 {
		return nil
	}
	if err := s.appendKey(p, hash, &key); err != nil {
		return err
	}
	n, err := s.mergeRunsAt(s.key)
	if err != nil || n == 0 {
		return err
	}
	runs := s.runs.take()
	p.spilled.records += s.contents.elements(&runs)
	last := *acc
	*acc = s.fold.Merge(runs, last)
	s.pool.release(last)
	s.count(&p.spilled, -n)
	return s.batch.Commit()
}

// mergeRunsAt makes the n runs that begin with at on disk those of the current key, and adds
// their removal to the batch.
func (s *spilling[K, T, A]) mergeRunsAt(at []byte) (n int, err error) {
	view := s.store.View()
	defer func() { err = errors.Join(err, view.Close()) }()
	for e, err := range view.From(at, at) {
		if err != nil {
			return n, err
		}
		if err := errors.Join(s.mergeRun(e.Value), s.batch.Delete(e.Key)); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// drop removes what is on disk of a pane.
func (s *spilling[K, T, A]) drop(p *pane[K, A]) error {
	if p.spilled.onDisk == 0 {
		return nil
	}
	s.count(&p.spilled, -p.spilled.onDisk)
	s.numbers.DiskBytes.Set(s.store.DiskBytes())
	return errors.Join(s.batch.DeletePrefix(p.spilled.prefix(nil)), s.batch.Commit())
}

// snapshotRuns adds what is on disk of panes to a snapshot. It does not change while it is
// written. s may be nil.
func (s *spilling[K, T, A]) snapshotRuns(w snapshot.Writer, live []*pane[K, A]) error {
	if s == nil || s.onDisk == 0 {
		return nil
	}
	if w.Incremental() {
		return s.snapshotImage(w, live)
	}
	part, err := w.Part(s.part(runsPart))
	if err != nil {
		return err
	}
	var panes []diskPane
	for _, p := range live {
		if p.spilled.onDisk > 0 {
			panes = append(panes, diskPane{p.window, p.spilled.prefix(nil)})
		}
	}
	view := s.store.View()
	w.Later(func(ctx context.Context) (err error) {
		defer func() { err = errors.Join(err, view.Close()) }()
		return writeRuns(ctx, view, panes, part, s.keys.Group)
	})
	return nil
}

// diskPane is a window, and what its keys begin with on disk.
type diskPane struct {
	window window.TimeWindow
	prefix []byte
}

func writeRuns(ctx context.Context, view *spill.View, panes []diskPane, part snapshot.PartWriter, group func(hash uint64) int) error {
	var entry []byte
	n := 0
	for _, p := range panes {
		for e, err := range view.From(p.prefix, p.prefix) {
			if err != nil {
				return err
			}
			if n%runsPerLook == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			n++
			entry = appendRun(entry[:0], p.window, e)
			if err := part.Append(group(hashOnDisk(e.Key)), entry); err != nil {
				return err
			}
		}
	}
	return part.Close()
}

// appendRun appends the entry of a snapshot that an entry of a run is.
func appendRun(dst []byte, of window.TimeWindow, e spill.Entry) []byte {
	dst = append(appendWindow(dst, of), 0)
	return append(append(dst, e.Key[diskKeyHead:len(e.Key)-diskKeyTail]...), e.Value...)
}

// runsPerLook is how many runs are written between two looks at whether the snapshot was
// given up.
const runsPerLook = 1024

// entriesPerSettle is how many entries are restored between two looks at the budget.
const entriesPerSettle = 256

// restored counts an entry that was added to a pane, and reports whether it is time to look
// at the budget.
func (s *spilling[K, T, A]) restored(p *pane[K, A], acc *A) (due bool) {
	p.spilled.records += s.contents.elements(acc)
	s.restoring++
	return s.restoring%entriesPerSettle == 0
}

// fireSpilled is fire for a pane that is on disk in part.
func (o *panes[K, T, A]) fireSpilled(p *pane[K, A]) error {
	return o.spilled.each([]*pane[K, A]{p}, func(_ uint64, key K, acc *A) error {
		return o.emit(key, p.window, o.onTime(), acc)
	})
}
