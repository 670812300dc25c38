// Package snapshottest takes snapshots in memory, for tests of what has state. How
// parts are dealt out over another number of subtasks is the same as for stored
// checkpoints: package snapshot's.
//
// It is not for storing anything.
package snapshottest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// Snapshot is the snapshot of one operator in one subtask. As a snapshot.Writer it
// is safe for concurrent use.
type Snapshot struct {
	checkpoint int64
	// files are the shared ones, nil if there can be none.
	files *Files

	mu    sync.Mutex
	parts map[string]*part
	later []func(context.Context) error
	// running is the background function that Step has let run in part.
	running *background
}

// Take has op take a snapshot. What op leaves for later is still to be done with Step
// or Finish.
func Take(checkpoint int64, op func(snapshot.Writer) error) (*Snapshot, error) {
	s := &Snapshot{checkpoint: checkpoint, parts: map[string]*part{}}
	if err := op(s); err != nil {
		return nil, err
	}
	return s, nil
}

// TakeIncremental is Take for a snapshot that may refer to shared files, which is one of a
// number of snapshots that have files in common.
func TakeIncremental(checkpoint int64, files *Files, op func(snapshot.Writer) error) (*Snapshot, error) {
	s := &Snapshot{checkpoint: checkpoint, files: files, parts: map[string]*part{}}
	if err := op(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Checkpoint implements snapshot.Writer.
func (s *Snapshot) Checkpoint() int64 { return s.checkpoint }

// Part implements snapshot.Writer.
func (s *Snapshot) Part(p snapshot.Part) (snapshot.PartWriter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.parts[p.Name]; ok {
		return nil, fmt.Errorf("snapshottest: there are two parts %q", p.Name)
	}
	w := &part{part: p}
	s.parts[p.Name] = w
	return w, nil
}

// Later implements snapshot.Writer.
func (s *Snapshot) Later(f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later = append(s.later, f)
}

// Incremental implements snapshot.Writer.
func (s *Snapshot) Incremental() bool { return s.files != nil }

// Share implements snapshot.Writer.
func (s *Snapshot) Share(name string, size int64, open func() (io.ReadCloser, error)) error {
	if s.files == nil {
		return fmt.Errorf("snapshottest: shared file %q of a snapshot that stands alone", name)
	}
	return s.files.share(name, size, open)
}

// Step lets the background functions go on, one after the other, until the next call of
// their context's Err, and reports whether there is more to do. A function that looks
// at its context between two blocks, and not while it holds a lock, thus stops at
// every block, and a test decides what happens in between. Between two Steps nothing
// runs in the background.
func (s *Snapshot) Step() (more bool, err error) {
	if s.running == nil {
		f := s.next()
		if f == nil {
			return false, nil
		}
		s.running = start(f)
	} else {
		s.running.goOn <- nil
	}
	ended, err := s.running.wait()
	if ended {
		s.running = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running != nil || len(s.later) > 0, err
}

func (s *Snapshot) next() func(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.later) == 0 {
		return nil
	}
	f := s.later[0]
	s.later = s.later[1:]
	return f
}

// Finish lets all background functions run to their end. It returns their first error,
// or one that names a part that was not closed.
func (s *Snapshot) Finish() error {
	for more := true; more; {
		var err error
		if more, err = s.Step(); err != nil {
			s.Abort()
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.parts {
		if !p.closed {
			return fmt.Errorf("snapshottest: part %q is not closed", name)
		}
	}
	return nil
}

// Abort gives the snapshot up: the function under way sees its context end, those that
// have not begun are called with a context that has ended, as in a task.
func (s *Snapshot) Abort() {
	if s.running != nil {
		s.running.goOn <- context.Canceled
		s.running.wait() // it stands still no more: from here on Err answers at once
		s.running = nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for f := s.next(); f != nil; f = s.next() {
		_ = f(ctx) // whatever it says, the snapshot is gone
	}
}

// Entries returns what has been written to a part so far, with copies of the data; ok is
// false if there is no such part.
func (s *Snapshot) Entries(name string) (entries []snapshot.Entry, ok bool) {
	s.mu.Lock()
	p, ok := s.parts[name]
	s.mu.Unlock()
	if !ok {
		return nil, false
	}
	return slices.Clone(p.entries), true
}

// Size returns the number of bytes in all entries so far.
func (s *Snapshot) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := 0
	for _, p := range s.parts {
		for _, e := range p.entries {
			size += len(e.Data)
		}
	}
	return size
}

// Readers returns what the subtasks of an operator are restored from after those with
// the given snapshots, one for each subtask, in their order. The snapshots must be
// finished. Share.Unclaimed tells what an operator did not ask for.
func Readers(taken []*Snapshot, parallelism, maxParallelism int) ([]*snapshot.Share, error) {
	written := make([]map[string]snapshot.Written, len(taken))
	checkpoint := int64(0)
	files := &Files{}
	for i, s := range taken {
		checkpoint = s.checkpoint
		if s.files != nil {
			files = s.files
		}
		written[i] = map[string]snapshot.Written{}
		for name, p := range s.parts {
			if !p.closed {
				return nil, fmt.Errorf("snapshottest: part %q of subtask %d is not closed", name, i)
			}
			written[i][name] = p
		}
	}
	readers := make([]*snapshot.Share, parallelism)
	for subtask := range readers {
		first, last := groups(subtask, parallelism, maxParallelism)
		var err error
		readers[subtask], err = snapshot.Deal(checkpoint, written, files.open, snapshot.Target{
			Subtask: subtask, Parallelism: parallelism, FirstGroup: first, LastGroup: last,
		})
		if err != nil {
			return nil, err
		}
	}
	return readers, nil
}

// groups returns the first and last key group of a subtask (spec windows 5.1). Package
// keyed, which owns the formula, is above this one; a test compares the two.
func groups(subtask, parallelism, maxParallelism int) (first, last int) {
	first = (subtask*maxParallelism + parallelism - 1) / parallelism
	last = ((subtask+1)*maxParallelism - 1) / parallelism
	return first, last
}

// part is a part while it is written, and what it is read from.
type part struct {
	part    snapshot.Part
	entries []snapshot.Entry
	closed  bool
}

func (p *part) Append(group int, entry []byte) error {
	switch {
	case p.closed:
		return fmt.Errorf("snapshottest: part %q is closed", p.part.Name)
	case p.part.Kind != snapshot.Keyed && group != 0:
		return fmt.Errorf("snapshottest: part %q is %v and gets an entry for key group %d", p.part.Name, p.part.Kind, group)
	}
	p.entries = append(p.entries, snapshot.Entry{Group: group, Data: append([]byte{}, entry...)})
	return nil
}

func (p *part) Close() error {
	if p.closed {
		return fmt.Errorf("snapshottest: part %q is closed twice", p.part.Name)
	}
	p.closed = true
	return nil
}

func (p *part) Part() snapshot.Part { return p.part }

func (p *part) Len() int64 { return int64(len(p.entries)) }

func (p *part) Groups(first, last int) iter.Seq2[snapshot.Entry, error] {
	sorted := slices.DeleteFunc(slices.Clone(p.entries), func(e snapshot.Entry) bool { return e.Group < first || e.Group > last })
	slices.SortStableFunc(sorted, func(a, b snapshot.Entry) int { return cmp.Compare(a.Group, b.Group) })
	return visit(sorted)
}

func (p *part) Run(from, to int64) iter.Seq2[snapshot.Entry, error] { return visit(p.entries[from:to]) }

// visit reuses one buffer, so that a reader that keeps an entry's data is found out.
func visit(entries []snapshot.Entry) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		var buf []byte
		for _, e := range entries {
			for i := range buf {
				buf[i] = 0xdd
			}
			buf = append(buf[:0], e.Data...)
			if !yield(snapshot.Entry{Group: e.Group, Data: buf}, nil) {
				return
			}
		}
	}
}
