package keyed

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// Snapshot is the snapshot of one operator in one subtask while it is being
// written.
//
// The subtask stops only to begin it. Then a goroutine writes what the operator
// held at that moment, block after block, while the subtask goes on. What the
// subtask wants to change and is not yet written, it writes first, into the same
// parts: write before change. So nothing is copied, and values may hold pointers,
// slices and maps.
//
// The operator begins it with NewSnapshot, adds parts, tables and timers, and ends
// with Start:
//
//	s := keyed.NewSnapshot(w)
//	part, err := s.Part(snapshot.Part{Name: "panes", ...})
//	s.Table(t, func(e *keyed.Entry[K, V]) error { return part.Append(group, bytes) })
//	s.Start()
//
// The functions that write are called by both goroutines, one at a time, so they may
// share a buffer. They must not change the entries.
type Snapshot struct {
	w     snapshot.Writer
	parts []snapshot.PartWriter

	// mu is held while a block or an entry is written.
	mu sync.Mutex
	// blocks are all that is to be written; the first done of them are. What is written
	// may add some.
	blocks []blocks
	done   int
	// wanted says that the subtask waits for mu.
	wanted atomic.Bool
	// over says that nothing more is read: all is written, or the snapshot failed or
	// was given up.
	over atomic.Bool
	// err is the subtask's error, guarded by mu.
	err error
}

// blocks is something that is written block by block.
type blocks interface {
	// next writes the next block, and reports whether there was one. A block is small
	// enough for the subtask to wait for it.
	next() (bool, error)
}

// blocksFunc is blocks of one function.
type blocksFunc func() (bool, error)

func (f blocksFunc) next() (bool, error) { return f() }

// errSuperseded is the error of a snapshot whose successor began before it was over.
var errSuperseded = errors.New("the next snapshot of the same state began before this one was written")

// NewSnapshot returns a snapshot without contents.
func NewSnapshot(w snapshot.Writer) *Snapshot { return &Snapshot{w: w} }

// Part begins a part. It is closed when all is written.
func (s *Snapshot) Part(p snapshot.Part) (snapshot.PartWriter, error) {
	part, err := s.w.Part(p)
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, part)
	return part, nil
}

// Add adds something that is written by calls of next, each for a block, until it reports
// that there is no more. A block is small enough for the subtask to wait for it. What next
// reads is for the caller to guard, with Before.
func (s *Snapshot) Add(next func() (more bool, err error)) {
	s.blocks = append(s.blocks, blocksFunc(next))
}

// Start hands the writing to a goroutine of its own. Afterwards only the functions that
// write may add something.
func (s *Snapshot) Start() { s.w.Later(s.write) }

// Over reports whether nothing more is read of what was added, so that it may be changed
// by other ways than those that write first.
func (s *Snapshot) Over() bool { return s.over.Load() }

// write writes everything that the subtask has not.
func (s *Snapshot) write(ctx context.Context) error {
	for more := true; more; {
		// A mutex would let this goroutine in again and again while the subtask wakes.
		for s.wanted.Load() {
			runtime.Gosched()
		}
		var err error
		if more, err = s.writeBlock(ctx.Err()); err != nil {
			return err
		}
	}
	var err error
	for _, part := range s.parts {
		err = errors.Join(err, part.Close())
	}
	return err
}

// writeBlock writes the next block, or ends the snapshot if it was given up. It reports
// whether there may be more.
func (s *Snapshot) writeBlock(givenUp error) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over.Load():
		return false, s.err
	case givenUp != nil:
		s.fail(givenUp)
		return false, givenUp
	case s.done == len(s.blocks):
		s.over.Store(true)
		return false, nil
	}
	more, err = s.blocks[s.done].next()
	if err != nil {
		s.fail(err)
		return false, err
	}
	if !more {
		s.blocks[s.done] = nil
		s.done++
	}
	return true, nil
}

// Before lets the subtask write something before it changes it. write is not called if the
// snapshot is over.
func (s *Snapshot) Before(write func() error) {
	s.lock()
	defer s.mu.Unlock()
	if s.over.Load() {
		return
	}
	if err := write(); err != nil {
		s.fail(err)
	}
}

// lock locks mu for the subtask.
func (s *Snapshot) lock() {
	if s.mu.TryLock() {
		return
	}
	s.wanted.Store(true)
	s.mu.Lock()
	s.wanted.Store(false)
}

// supersede ends a snapshot that is not over because the next one begins.
func (s *Snapshot) supersede() {
	s.lock()
	defer s.mu.Unlock()
	if !s.over.Load() {
		s.fail(errSuperseded)
	}
}

// fail ends the snapshot. The caller holds mu.
func (s *Snapshot) fail(err error) {
	s.err = err
	s.over.Store(true)
}
