package windowed

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/window"
)

// runReader merges the runs of one key after the other.
type runReader[K comparable, A any] struct {
	decodeKey func([]byte, *K) ([]byte, error)
	decode    func([]byte, *A) ([]byte, error)
	// some says that there are runs of the current key. at is what they begin with on disk,
	// and acc what they come to so far.
	some bool
	at   []byte
	acc  A
	next A // scratch space
}

// each calls visit for every key of a pane with all its contents, those of the keys on
// disk first.
func (s *spilling[K, T, A]) each(p *pane[K, A], visit func(key K, acc *A) error) error {
	s.marked = append(s.marked[:0], make([]uint64, (p.keys.Len()+63)/64)...)
	if err := s.eachOnDisk(p, visit); err != nil {
		return err
	}
	i := 0
	for e := range p.keys.All() {
		if s.marked[i/64]>>(i&63)&1 == 0 {
			if err := visit(e.Key, &e.Value); err != nil {
				return err
			}
		}
		i++
	}
	return nil
}

// eachOnDisk calls visit for the keys that have runs, and marks their entries in the table.
func (s *spilling[K, T, A]) eachOnDisk(p *pane[K, A], visit func(key K, acc *A) error) (err error) {
	r, prefix := &s.runs, p.spilled.prefix(nil)
	view := s.store.View()
	defer func() { err = errors.Join(err, view.Close()) }()
	for e, err := range view.From(prefix, prefix) {
		if err != nil {
			return err
		}
		if head := e.Key[:len(e.Key)-diskKeyTail]; !bytes.Equal(head, r.at) {
			if err := s.visitRead(p, visit); err != nil {
				return err
			}
			r.at = append(r.at[:0], head...)
		}
		if err := s.mergeRun(e.Value); err != nil {
			return err
		}
	}
	return s.visitRead(p, visit)
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

// take returns what the runs of the current key have come to. There is no current key then.
func (r *runReader[K, A]) take() A {
	var none A
	acc := r.acc
	r.some, r.at, r.acc, r.next = false, r.at[:0], none, none
	return acc
}

// visitRead calls visit for the current key, if there is one, with its runs and its entry in
// the table.
func (s *spilling[K, T, A]) visitRead(p *pane[K, A], visit func(key K, acc *A) error) error {
	r := &s.runs
	if !r.some {
		return nil
	}
	var key K
	if _, err := r.decodeKey(r.at[diskKeyHead:], &key); err != nil {
		return fmt.Errorf("key of a window on disk: %w", err)
	}
	r.acc = s.withEntry(p, hashOnDisk(r.at), key, r.acc)
	if err := visit(key, &r.acc); err != nil {
		return err
	}
	s.pool.release(r.take())
	return nil
}

// withEntry returns acc with the key's entry in the table, which it marks.
func (s *spilling[K, T, A]) withEntry(p *pane[K, A], hash uint64, key K, acc A) A {
	i := p.keys.Index(hash, key)
	if i < 0 {
		return acc
	}
	s.marked[i/64] |= 1 << (i & 63)
	return s.fold.Merge(acc, p.keys.At(i).Value)
}

// bringBack moves the runs of a key into its entry in the table, acc.
func (s *spilling[K, T, A]) bringBack(p *pane[K, A], hash uint64, key K, acc *A) error {
	if p.spilled.onDisk == 0 {
		return nil
	}
	if err := s.appendKey(p, hash, &key); err != nil {
		return err
	}
	n := 0
	view := s.store.View()
	var err error
	for e, viewErr := range view.From(s.key, s.key) {
		if err = viewErr; err != nil {
			break
		}
		if err = errors.Join(s.mergeRun(e.Value), s.batch.Delete(e.Key)); err != nil {
			break
		}
		n++
	}
	if err = errors.Join(err, view.Close()); err != nil || n == 0 {
		return err
	}
	runs := s.runs.take()
	p.spilled.records += s.contents.elements(&runs)
	last := *acc
	*acc = s.fold.Merge(runs, last)
	s.pool.release(last)
	s.forget(p, n)
	return s.batch.Commit()
}

// forget notes that n runs of a pane are gone.
func (s *spilling[K, T, A]) forget(p *pane[K, A], n int) {
	p.spilled.onDisk -= n
	s.onDisk -= n
}

// drop removes what is on disk of a pane.
func (s *spilling[K, T, A]) drop(p *pane[K, A]) error {
	if p.spilled.onDisk == 0 {
		return nil
	}
	s.forget(p, p.spilled.onDisk)
	s.numbers.DiskBytes.Set(s.store.DiskBytes())
	return errors.Join(s.batch.DeletePrefix(p.spilled.prefix(nil)), s.batch.Commit())
}

// snapshotRuns adds what is on disk to a snapshot. It does not change while it is written.
func (o *panes[K, T, A]) snapshotRuns(w snapshot.Writer) error {
	s := o.spilled
	if s.onDisk == 0 {
		return nil
	}
	part, err := w.Part(s.part(runsPart))
	if err != nil {
		return err
	}
	var panes []diskPane
	for _, p := range o.live {
		if p.spilled.onDisk > 0 {
			panes = append(panes, diskPane{p.window, p.spilled.prefix(nil)})
		}
	}
	view := s.store.View()
	w.Later(func(ctx context.Context) error {
		return errors.Join(writeRuns(ctx, view, panes, part, s.keys.Group), view.Close())
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
			entry = append(appendWindow(entry[:0], p.window), 0)
			entry = append(append(entry, e.Key[diskKeyHead:len(e.Key)-diskKeyTail]...), e.Value...)
			if err := part.Append(group(hashOnDisk(e.Key)), entry); err != nil {
				return err
			}
		}
	}
	return part.Close()
}

// runsPerLook is how many runs are written between two looks at whether the snapshot was
// given up.
const runsPerLook = 1024

// entriesPerSettle is how many entries are restored between two looks at the budget.
const entriesPerSettle = 256

// restored counts an entry that was added to a pane.
func (s *spilling[K, T, A]) restored(p *pane[K, A], acc *A, live []*pane[K, A]) error {
	p.spilled.records += s.contents.elements(acc)
	if s.restoring++; s.restoring%entriesPerSettle > 0 {
		return nil
	}
	return s.settle(live)
}

// fireSpilled is fire for a pane that is on disk in part.
func (o *panes[K, T, A]) fireSpilled(p *pane[K, A]) error {
	return o.spilled.each(p, func(key K, acc *A) error { return o.emit(key, p.window, o.onTime(), acc) })
}
