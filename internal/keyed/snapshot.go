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
	w snapshot.Writer

	// mu is held while a block or an entry is encoded.
	mu sync.Mutex
	// blocks are all that is to be encoded; the first done of them are. What is encoded
	// may add some.
	blocks []blocks
	done   int
	// encoded are the entries that wait for the goroutine to put them into their parts,
	// which may have to wait for a disk. The subtask does not, unless there are very many.
	encoded encodedEntries
	drained sync.Cond
	parts   []snapshot.PartWriter
	// immutable are written last, without the lock.
	immutable []immutable
	// err is why the snapshot failed.
	err error

	// wanted says that the subtask waits for mu.
	wanted atomic.Bool
	// over says that nothing more is read: all is encoded, or the snapshot failed or was
	// given up.
	over atomic.Bool
}

// blocks is something that is written block by block.
type blocks interface {
	// next writes the next block, and reports whether there may be more. A block is small
	// enough for the subtask to wait for it.
	next() (bool, error)
}

// blocksFunc is blocks of one function.
type blocksFunc func() (bool, error)

func (f blocksFunc) next() (bool, error) { return f() }

// errSuperseded is the error of a snapshot whose successor began before it was over.
var errSuperseded = errors.New("the next snapshot of the same state began before this one was written")

// errPanicked is the error of a snapshot whose writing panicked.
var errPanicked = errors.New("encoding the state panicked")

// NewSnapshot returns a snapshot without contents.
func NewSnapshot(w snapshot.Writer) *Snapshot {
	s := &Snapshot{w: w}
	s.drained.L = &s.mu
	return s
}

// Part begins a part, for the functions that write. It is closed when all is written.
func (s *Snapshot) Part(p snapshot.Part) (snapshot.PartWriter, error) {
	w, err := s.w.Part(p)
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, w)
	return &partEntries{s, len(s.parts) - 1}, nil
}

// partEntries takes the entries of one part.
type partEntries struct {
	to     *Snapshot
	number int
}

func (p *partEntries) Append(group int, entry []byte) error {
	e := &p.to.encoded
	e.data = append(e.data, entry...)
	e.refs = append(e.refs, entryRef{p.number, group, len(e.data)})
	return nil
}

// Close does nothing: the snapshot closes its parts.
func (p *partEntries) Close() error { return nil }

// encodedEntries are entries one behind the other.
type encodedEntries struct {
	data []byte
	refs []entryRef
}

// entryRef is an entry: its part, its key group, and where it ends.
type entryRef struct{ part, group, end int }

const (
	// handOverFrom is how many bytes of entries the goroutine puts into parts at a time.
	handOverFrom = 64 << 10
	// maxEncoded is how many bytes may wait for it before the subtask does.
	maxEncoded = 64 << 20
)

// putInto empties e.
func (e *encodedEntries) putInto(parts []snapshot.PartWriter) error {
	from := 0
	for _, ref := range e.refs {
		if err := parts[ref.part].Append(ref.group, e.data[from:ref.end]); err != nil {
			return err
		}
		from = ref.end
	}
	e.data, e.refs = e.data[:0], e.refs[:0]
	return nil
}

// Add adds something that is written by calls of next, each for a block, until it reports
// that there is no more. A block is small enough for the subtask to wait for it. What next
// reads is for the caller to guard, with Before.
func (s *Snapshot) Add(next func() (more bool, err error)) {
	s.blocks = append(s.blocks, blocksFunc(next))
}

// immutable is something that does not change while it is written.
type immutable struct {
	part  int
	write func(context.Context, snapshot.PartWriter) error
	close func() error
}

// addImmutable has write write into a part of this snapshot, after all that the subtask might
// change has been written. close is called when the snapshot has ended in any way.
func (s *Snapshot) addImmutable(part snapshot.PartWriter, write func(context.Context, snapshot.PartWriter) error, close func() error) {
	s.immutable = append(s.immutable, immutable{part.(*partEntries).number, write, close})
}

// Start hands the writing to a goroutine of its own. Afterwards only the functions that
// write may add something.
func (s *Snapshot) Start() { s.w.Later(s.write) }

// write writes everything that the subtask has not.
func (s *Snapshot) write(ctx context.Context) error {
	err := s.writeAll(ctx)
	for _, m := range s.immutable {
		err = errors.Join(err, m.close())
	}
	return err
}

func (s *Snapshot) writeAll(ctx context.Context) error {
	var entries encodedEntries
	defer func() {
		if !s.over.Load() { // user code has panicked
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fail(errPanicked)
		}
	}()
	for more := true; more; {
		var err error
		if more, err = s.writeBlock(ctx.Err(), &entries); err != nil {
			return err
		}
		if err := entries.putInto(s.parts); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fail(err)
			return err
		}
	}
	for _, m := range s.immutable {
		if err := m.write(ctx, s.parts[m.part]); err != nil {
			return err
		}
	}
	var err error
	for _, part := range s.parts {
		err = errors.Join(err, part.Close())
	}
	return err
}

// writeBlock encodes the next block, or ends the snapshot if it was given up, and takes the
// entries that are to be put into parts now. It reports whether there may be more.
func (s *Snapshot) writeBlock(givenUp error, entries *encodedEntries) (more bool, err error) {
	// The subtask goes first, and never has to wake this goroutine.
	for s.wanted.Load() || !s.mu.TryLock() {
		runtime.Gosched()
	}
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, s.err
	case givenUp != nil:
		s.fail(givenUp)
		return false, givenUp
	case s.done == len(s.blocks):
		s.over.Store(true)
		s.handOver(entries)
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
	if len(s.encoded.data) >= handOverFrom {
		s.handOver(entries)
	}
	return true, nil
}

// handOver swaps the entries that wait with none.
func (s *Snapshot) handOver(entries *encodedEntries) {
	*entries, s.encoded = s.encoded, *entries
	s.drained.Signal()
}

// Before lets the subtask write something before it changes it. write is not called if the
// snapshot is over.
func (s *Snapshot) Before(write func() error) {
	s.lock()
	defer s.mu.Unlock()
	for !s.over.Load() && len(s.encoded.data) >= maxEncoded {
		s.drained.Wait()
	}
	if s.over.Load() {
		return
	}
	if err := write(); err != nil {
		s.fail(err)
	}
}

// Over reports whether nothing more is read of what was added, so that it may be changed
// by other ways than those that write first.
func (s *Snapshot) Over() bool { return s.over.Load() }

// lock locks mu for the subtask. The goroutine lets go of it soon: waking up takes longer
// than to wait for that, unless it does not run at all.
func (s *Snapshot) lock() {
	if s.mu.TryLock() {
		return
	}
	s.wanted.Store(true)
	defer s.wanted.Store(false)
	for range lockAttempts {
		if s.mu.TryLock() {
			return
		}
	}
	s.mu.Lock()
}

// lockAttempts is about how many attempts take some microseconds.
const lockAttempts = 1000

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
	s.err, s.encoded = err, encodedEntries{}
	s.over.Store(true)
	s.drained.Signal()
}
