package keyed

import (
	"context"
	"errors"
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
// Neither waits for the other: each claims the entries that it writes one by one, and
// has an Encoder of its own. The subtask waits only if it wants to change something
// near the very entry that the goroutine is reading, or if it is far ahead of the disk.
//
// The operator begins it with NewSnapshot, adds parts, tables and timers, and ends
// with Start:
//
//	s := keyed.NewSnapshot(w)
//	part, err := s.Part(snapshot.Part{Name: "panes", ...})
//	s.Table(t, func(to *keyed.Encoder, e *keyed.Entry[K, V]) error {
//		to.Data = append(to.Data, ...)
//		to.End(part, group)
//		return nil
//	})
//	s.Start()
//
// The functions that write are called by both goroutines at a time, so they keep what they
// need while they write in the Encoder, or by its Side. They must not change the entries.
type Snapshot struct {
	w         snapshot.Writer
	parts     []snapshot.PartWriter
	immutable []immutable
	images    atomic.Uint64

	// reading is the place that the goroutine reads, 0 for none. What is read is claimed,
	// or never changed, while this says so.
	reading atomic.Uint64
	// wanted says that the subtask waits for reading to change.
	wanted atomic.Bool
	// filled says that there is something in full.
	filled atomic.Bool
	// over says that nothing more is read: all is encoded, or the snapshot failed or was
	// given up.
	over atomic.Bool

	// mu is held by the subtask while it encodes an entry, and by the goroutine only to
	// take what the subtask has encoded.
	mu   sync.Mutex
	task *Encoder
	// full are entries of the subtask that wait for the goroutine to put them into their
	// parts, which may have to wait for a disk; waiting is their size in bytes.
	full    []encoded
	waiting int
	// spare are empty ones for the subtask.
	spare []encoded
	// changed is signalled when the goroutine has taken what is in full, or has left the
	// place that is wanted.
	changed sync.Cond
	// err is why the snapshot failed.
	err error

	// These belong to the goroutine: its Encoder, what is still to be encoded, and what it
	// has taken from the subtask.
	own   *Encoder
	queue []blocks
	taken []encoded
}

// blocks is something that is written block by block.
type blocks interface {
	// place tells where the next block is; it is never 0.
	place() uint64
	// next writes the next block, and reports whether there may be more.
	next(to *Encoder) (bool, error)
}

// errSuperseded is the error of a snapshot whose successor began before it was over.
var errSuperseded = errors.New("the next snapshot of the same state began before this one was written")

// errOver stands for the error of a snapshot that is over.
var errOver = errors.New("the snapshot is over")

// errPanicked is the error of a snapshot whose writing panicked.
var errPanicked = errors.New("encoding the state panicked")

const (
	// handOverFrom is how many bytes of entries are put into parts at a time.
	handOverFrom = 64 << 10
	// maxEncoded is how many bytes may wait for the goroutine before the subtask does.
	maxEncoded = 64 << 20
)

// NewSnapshot returns a snapshot without contents.
func NewSnapshot(w snapshot.Writer) *Snapshot {
	s := &Snapshot{w: w}
	s.changed.L = &s.mu
	s.task, s.own = &Encoder{snapshot: s}, &Encoder{snapshot: s, side: 1}
	return s
}

// PartNumber is a part of a Snapshot.
type PartNumber int

// Part begins a part, for the functions that write. It is closed when all is written.
func (s *Snapshot) Part(p snapshot.Part) (PartNumber, error) {
	w, err := s.w.Part(p)
	if err != nil {
		return 0, err
	}
	s.parts = append(s.parts, w)
	return PartNumber(len(s.parts) - 1), nil
}

// immutable is something that does not change while it is written.
type immutable struct {
	part  PartNumber
	write func(context.Context, snapshot.PartWriter) error
	close func() error
}

// addImmutable has write write into a part of this snapshot, after all that the subtask might
// change has been written. close is called when the snapshot has ended in any way.
func (s *Snapshot) addImmutable(part PartNumber, write func(context.Context, snapshot.PartWriter) error, close func() error) {
	s.immutable = append(s.immutable, immutable{part, write, close})
}

// Table is Encoder.Table, for use before Start.
func (s *Snapshot) Table[K comparable, V any](t *Table[K, V], write func(*Encoder, *Entry[K, V]) error) {
	s.task.Table(t, write)
}

// Add is Encoder.Add, for use before Start.
func (s *Snapshot) Add(next func(*Encoder) (more bool, err error)) { s.task.Add(next) }

// Image is Encoder.Image, for use before Start.
func (s *Snapshot) Image(from, to int, write func(to *Encoder, i uint32) error) *Image {
	return s.task.Image(from, to, write)
}

// Start hands the writing to a goroutine of its own. Afterwards only the functions that
// write may add something, with their Encoder. Once something has been added it must be
// called, also if that of something else has failed: the subtask writes what it changes, and
// counts on the goroutine to take it. After an error the goroutine only ends the snapshot.
func (s *Snapshot) Start() { s.w.Later(s.write) }

// Over reports whether nothing more is read of what was added, so that it may be changed
// by other ways than those that write first. It is for the subtask.
func (s *Snapshot) Over() bool { return s.over.Load() }

// write writes everything that the subtask has not.
func (s *Snapshot) write(ctx context.Context) (err error) {
	defer func() { // also when user code panics
		for _, m := range s.immutable {
			err = errors.Join(err, m.close())
		}
	}()
	return s.writeAll(ctx)
}

func (s *Snapshot) writeAll(ctx context.Context) error {
	defer func() {
		if !s.over.Load() { // user code has panicked
			s.fail(errPanicked)
		}
	}()
	for more := true; more; {
		var err error
		if more, err = s.writeBlock(ctx.Err()); err != nil {
			return err
		}
	}
	s.own.encoded, s.taken = encoded{}, nil // tables may know the snapshot for long
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

// writeBlock encodes the next block, or ends the snapshot if it was given up. It reports
// whether there may be more.
func (s *Snapshot) writeBlock(givenUp error) (more bool, err error) {
	if err = givenUp; err == nil && len(s.queue) > 0 {
		err = s.encodeBlock()
	}
	if err == nil && (len(s.own.Data) >= handOverFrom || s.filled.Load() || len(s.queue) == 0) {
		err = s.put()
	}
	if err != nil {
		return false, s.fail(err)
	}
	return len(s.queue) > 0, nil
}

func (s *Snapshot) encodeBlock() error {
	b := s.queue[0]
	// In this order: either the subtask sees that something is read, or it is seen here that
	// nothing must be.
	s.reading.Store(b.place())
	defer s.leave()
	if s.over.Load() {
		return errOver
	}
	more, err := b.next(s.own)
	if !more {
		s.queue[0] = nil
		s.queue = s.queue[1:]
	}
	s.queue = append(s.queue, s.own.added...)
	s.own.added = s.own.added[:0]
	return err
}

// leave has the goroutine read nothing.
func (s *Snapshot) leave() {
	s.reading.Store(0)
	if s.wanted.Load() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Signal()
	}
}

// put puts what has been encoded into the parts. If nothing is left to be encoded, the
// snapshot is over.
func (s *Snapshot) put() error {
	if err := s.own.putInto(s.parts); err != nil {
		return err
	}
	if err := s.take(); err != nil {
		return err
	}
	for i := range s.taken {
		if err := s.taken[i].putInto(s.parts); err != nil {
			return err
		}
	}
	return nil
}

// take takes what the subtask has encoded and added.
func (s *Snapshot) take() error {
	if !s.filled.Load() && len(s.queue) > 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, s.task.added...)
	s.task.added = nil
	s.spare = append(s.spare, s.taken...)
	if len(s.queue) == 0 {
		s.handOver()
		s.over.Store(true)
		s.spare = nil
	}
	s.taken, s.full, s.waiting = s.full, nil, 0
	s.filled.Store(false)
	s.changed.Signal()
	return s.err
}

// handOver lets the goroutine have what the subtask has encoded. The caller holds mu.
func (s *Snapshot) handOver() {
	s.waiting += len(s.task.Data)
	s.full = append(s.full, s.task.encoded)
	s.filled.Store(true)
	if n := len(s.spare); n > 0 {
		s.task.encoded = s.spare[n-1]
		s.spare = s.spare[:n-1]
		return
	}
	s.task.encoded = encoded{Data: make([]byte, 0, min(cap(s.task.Data), 2*handOverFrom))}
}

// keep has the subtask write entry i of an image before it is changed.
func (s *Snapshot) keep(m *Image, i uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.over.Load() && s.waiting >= maxEncoded {
		s.changed.Wait()
	}
	if s.over.Load() {
		return
	}
	if place := m.placeOf(i); !m.claim(i) {
		s.await(func() bool { return s.reading.Load() != place })
		return
	}
	err := errPanicked
	defer func() {
		if err != nil {
			s.end(err)
		}
	}()
	err = m.write(s.task, i)
	if len(s.task.Data) >= handOverFrom {
		s.handOver()
	}
}

// await has the subtask wait for what the goroutine reads. The caller holds mu. Waking up
// takes longer than the goroutine needs to go on, unless it does not run at all.
func (s *Snapshot) await(free func() bool) {
	s.wanted.Store(true)
	defer s.wanted.Store(false)
	for range awaitAttempts {
		if free() {
			return
		}
	}
	for !free() {
		s.changed.Wait()
	}
}

// awaitAttempts is about how many attempts take some microseconds.
const awaitAttempts = 1000

// supersede ends a snapshot that is not over because the next one begins.
func (s *Snapshot) supersede() { s.fail(errSuperseded) }

// fail ends the snapshot with an error, unless it is over. It returns why the snapshot
// failed.
func (s *Snapshot) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over.Load() {
		s.end(err)
	} else if s.err == nil { // all is encoded, but not put into parts
		s.err = err
	}
	return s.err
}

// end ends the snapshot. The caller holds mu.
func (s *Snapshot) end(err error) {
	s.err, s.full, s.spare, s.task.encoded = err, nil, nil, encoded{}
	s.over.Store(true)
	s.await(func() bool { return s.reading.Load() == 0 })
	s.changed.Signal()
}
