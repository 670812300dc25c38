package task

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// Checkpoints is where a task brings its snapshots: the coordinator as one task sees it.
// The task calls it from its goroutine.
type Checkpoints interface {
	// Begin is called when a barrier is aligned. An error fails the checkpoint, not the
	// task; a checkpoint that has been given up is a nil Snapshot.
	Begin(b *exchange.Barrier) (Snapshot, error)
	// Decline fails a checkpoint that the task takes no part in.
	Decline(b *exchange.Barrier, cause error)
	// Finished tells that the task's input has ended and all its output is on its way.
	// From then on it waits for Release, so that a last checkpoint can cover the end.
	Finished()
}

// Snapshot is what one task writes at one checkpoint.
type Snapshot interface {
	// Context ends when the checkpoint is given up.
	Context() context.Context
	// Writer returns the writer of the operator at that place in Config.Nodes. What
	// the operator wants done later goes to later.
	Writer(node int, later func(func(context.Context) error)) (snapshot.Writer, error)
	// Done ends the snapshot. It is called once, by any goroutine; with an error the
	// snapshot is void and so is the checkpoint.
	Done(err error, times Times)
}

// Times says what a checkpoint cost a task.
type Times struct {
	// StartDelay is the time from the trigger to the first barrier, Alignment that from
	// there to the last.
	StartDelay, Alignment time.Duration
	// Sync is how long the task stood still, Async how long its snapshot was written
	// in the background.
	Sync, Async time.Duration
	// Overtaken says that the barrier did not wait for all channels, OvertakenRecords how
	// many records it has overtaken.
	Overtaken        bool
	OvertakenRecords int64
}

// notices are what a task is told and need not queue: only the latest counts.
type notices struct {
	mu                 sync.Mutex
	completed, aborted int64
	release            bool
	wake               chan struct{}
}

func newNotices() notices { return notices{wake: make(chan struct{}, 1)} }

func (n *notices) set(f func()) {
	n.mu.Lock()
	f()
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Completed tells the task that a checkpoint is stored, Aborted that it and those
// before it are not waited for any more, Release that the task may end. None blocks.
func (t *Task) Completed(checkpoint int64) {
	t.notices.set(func() { t.notices.completed = max(t.notices.completed, checkpoint) })
}

// Aborted: see Completed.
func (t *Task) Aborted(checkpoint int64) {
	t.notices.set(func() { t.notices.aborted = max(t.notices.aborted, checkpoint) })
}

// Release: see Completed.
func (t *Task) Release() { t.notices.set(func() { t.notices.release = true }) }

// heed acts on the notices.
func (t *Task) heed() error {
	t.notices.mu.Lock()
	completed, aborted := t.notices.completed, t.notices.aborted
	t.released = t.notices.release
	t.notices.mu.Unlock()
	if t.input != nil {
		t.input.alignment.end(aborted)
	}
	if r := t.recording; r != nil && r.barrier.Checkpoint <= aborted {
		t.endRecording(errNotRecorded)
	}
	if completed <= t.completed {
		return nil
	}
	t.completed = completed
	for _, l := range t.chain.links {
		listener, ok := is[operator.CheckpointListener](t, l)
		if !ok {
			continue
		}
		if err := t.chain.call(l, func() error { return listener.CheckpointCompleted(completed) }); err != nil {
			return err
		}
	}
	return nil
}

// is returns a link's operator, or the source, as an I.
func is[I any](t *Task, l *link) (i I, ok bool) {
	if l.op == nil {
		i, ok = t.source.(I)
	} else {
		i, ok = l.op.(I)
	}
	return i, ok
}

// Drain asks a source task to end as if its input had: with the final watermark.
func (t *Task) Drain(ctx context.Context) {
	t.Post(ctx, func() error { t.draining = true; return nil })
}

// Trigger has a source task begin a checkpoint. It waits while the mailbox is full, and
// reports false if ctx or the task ended before.
func (t *Task) Trigger(ctx context.Context, b *exchange.Barrier) bool {
	return t.Post(ctx, func() error { return t.takeCheckpoint(b, 0) })
}

// barrier takes a barrier from a channel.
func (t *Task) barrier(m exchange.Message) error {
	a := &t.input.alignment
	complete, took := a.arrive(m.Barrier, m.Channel, len(t.input.logical))
	if !complete {
		return nil
	}
	return t.takeCheckpoint(m.Barrier, took)
}

// takeCheckpoint is called between batches, when everything before the barrier has been
// processed. The barrier goes out before state is looked at, so that the tasks
// behind can begin.
func (t *Task) takeCheckpoint(b *exchange.Barrier, aligned time.Duration) error {
	began := time.Now()
	if r := t.recording; r != nil && r.barrier != b {
		t.endRecording(errNotRecorded)
	}
	possible := t.canSnapshot(b)
	for _, l := range t.chain.links {
		if p, ok := is[operator.BeforeBarrier](t, l); ok {
			if err := t.chain.call(l, func() error { return p.PrepareBarrier(b.Checkpoint) }); err != nil {
				return err
			}
		}
	}
	for _, w := range t.writers {
		if err := w.Broadcast(exchange.Message{Kind: exchange.BarrierKind, Barrier: b}); err != nil {
			return err
		}
	}
	if !possible {
		t.endRecording(errNotRecorded)
		t.cfg.Checkpoints.Decline(b, errStillWriting)
	} else if err := t.snapshot(b, Times{StartDelay: began.Add(-aligned).Sub(b.Triggered), Alignment: aligned}, began); err != nil {
		return err
	}
	if b.Stop {
		t.stopped, t.silent = true, true
		t.clock.quiesce()
	}
	return nil
}

// snapshot takes the operators' snapshots and has them written in the background. What
// goes wrong fails the checkpoint; a panic ends the job, as everywhere.
func (t *Task) snapshot(b *exchange.Barrier, times Times, began time.Time) error {
	s, err := t.cfg.Checkpoints.Begin(b)
	if err != nil || s == nil {
		t.endRecording(errNotRecorded)
		return nil // the coordinator knows
	}
	var later []func(context.Context) error
	panicked := true
	defer func() {
		if panicked { // what operators hold for the background must be let go
			for _, f := range later {
				_ = runLater(s.Context(), f, errPanicked)
			}
		}
	}()
	err = t.snapshotAll(s, func(f func(context.Context) error) { later = append(later, f) })
	panicked = false
	times.Sync = time.Since(began)
	written, overtaken := make(chan struct{}), t.recording
	t.written, t.writing = written, s.Context()
	go func() {
		defer close(written)
		began := time.Now()
		for _, f := range later {
			err = errors.Join(err, runLater(s.Context(), f, err))
		}
		if overtaken != nil {
			<-overtaken.done
			err = errors.Join(err, overtaken.err)
			times.Overtaken, times.OvertakenRecords = true, overtaken.records
		}
		times.Async = time.Since(began)
		s.Done(err, times)
	}()
	return nil
}

// errPanicked is why a snapshot is not written that was begun.
var errPanicked = errors.New("an operator panicked in its snapshot")

// runLater runs one function in the background, even after an error of another, so
// that every operator learns that its snapshot has ended.
func runLater(ctx context.Context, f func(context.Context) error, before error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = operator.NewPanic(v)
		}
	}()
	if before != nil {
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(before)
		ctx = cancelled
	}
	return f(ctx)
}

func (t *Task) snapshotAll(s Snapshot, later func(func(context.Context) error)) error {
	var errs []error
	for i, l := range t.chain.links {
		stateful, ok := is[operator.Stateful](t, l)
		w, err := s.Writer(i, later)
		if err == nil && ok {
			err = t.chain.call(l, func() error { return stateful.Snapshot(w) })
		}
		if err == nil {
			err = t.writeEventTime(i, w)
		}
		if err == nil && i == 0 && t.recording != nil {
			err = t.recording.begin(w)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// endWriting ends all work on snapshots, when the task ends.
func (t *Task) endWriting() {
	t.endRecording(errNotRecorded)
	t.awaitWritten()
}

// errStillWriting is why a task takes no part in a checkpoint.
var errStillWriting = errors.New("the snapshot of an earlier checkpoint, which has ended, is still being written: the store, or the local disk, does not answer")

// unwindTime is how long after the trigger of a checkpoint a task waits for the snapshot of
// one that had ended before. As a rule that takes no time.
const unwindTime = time.Second

// canSnapshot waits until the last snapshot has been written, of which there is one at a
// time. It reports false if that one's checkpoint has been given up and it hangs: it may for
// ever, and records do not wait for it.
func (t *Task) canSnapshot(b *exchange.Barrier) bool {
	if t.written == nil {
		return true
	}
	select {
	case <-t.written:
	case <-t.writing.Done():
		unwound := time.Now()
		if !t.hangs {
			unwound = b.Triggered.Add(unwindTime)
		}
		timer := time.NewTimer(time.Until(unwound))
		defer timer.Stop()
		select {
		case <-t.written:
		case <-timer.C:
		}
	}
	select {
	case <-t.written:
		t.written, t.hangs = nil, false
	default:
		t.hangs = true
	}
	return !t.hangs
}

// awaitWritten waits until the last snapshot has been written.
func (t *Task) awaitWritten() {
	if t.written != nil {
		<-t.written
		t.written = nil
	}
}

// linger keeps a task that has nothing more to send in the way of the barriers until it
// is released.
func (t *Task) linger() error {
	t.clock.quiesce()
	t.cfg.Checkpoints.Finished()
	var in <-chan exchange.Message
	if t.input != nil {
		in = t.input.inbox.C()
	}
	for {
		if err := t.serve(); err != nil {
			return err
		}
		if t.released {
			return nil
		}
		if t.input != nil {
			if m, ok := t.input.alignment.next(); ok {
				if err := t.receive(m); err != nil {
					return err
				}
				continue
			}
		}
		if err := t.wait(idle, in, nil); err != nil {
			return err
		}
	}
}

// Event time survives a restart: an operator goes on with the watermark that it had at the
// barrier, so that what was late stays late, also if it is chained otherwise then. The part
// holds, for each subtask, the combined watermark and those of the logical inputs, 8 bytes
// each; a source has the one that it has emitted. Its version says what the operator was.
const (
	headTimes    = 1
	chainedTimes = 2
)

func timesVersion(i int) int {
	if i == 0 {
		return headTimes
	}
	return chainedTimes
}

func (t *Task) writeEventTime(i int, w snapshot.Writer) error {
	p, err := w.Part(snapshot.Part{Name: snapshot.EventTimePart, Kind: snapshot.Union, Version: timesVersion(i)})
	if err != nil {
		return err
	}
	var entry []byte
	for _, w := range t.eventTime(i) {
		entry = binary.LittleEndian.AppendUint64(entry, uint64(w))
	}
	return errors.Join(p.Append(0, entry), p.Close())
}

// eventTime returns what a link's part holds.
func (t *Task) eventTime(i int) []int64 {
	l := t.chain.links[i]
	switch {
	case i > 0:
		e := t.chain.edgeTo(l)
		w := max(e.floor, e.gate.LastWatermark())
		return []int64{w, w}
	case t.input == nil:
		return []int64{l.output.watermark}
	}
	combined, inputs := t.input.eventTime()
	return append([]int64{combined}, inputs...)
}

// findSameInput notes which links get what the same subtask got when the checkpoint was taken:
// a head that was one, and what is and was chained to such a link. A source, or what is behind one,
// has the event time of some splits, which another subtask's input may be behind.
func (t *Task) findSameInput() {
	t.restored[0].sameInput = true
	for i, n := range t.cfg.Nodes {
		link := &t.restored[i]
		if p := link.eventTime; p != nil && p.Part().Version != timesVersion(i) {
			link.sameInput = false
		}
		for _, o := range n.Outputs {
			if o.Writer == nil {
				t.restored[o.Node].sameInput = link.sameInput
			}
		}
	}
}

// restoreEventTime returns the watermarks that a link had, nil if there are none. With
// another parallelism, or another input, the lowest ones of all subtasks are taken.
func (t *Task) restoreEventTime(i int) (times []int64, err error) {
	l, p := t.chain.links[i], t.restored[i].eventTime
	if p == nil {
		return nil, nil
	}
	want := 2
	if i == 0 && t.input == nil {
		want = 1
	} else if i == 0 {
		want = 1 + len(t.input.valves)
	}
	var bySubtask [][]int64
	for e, err := range p.Entries() {
		if err != nil {
			return nil, l.rt.WithName(err)
		}
		times, err := decodeEventTime(e.Data, want)
		if err != nil {
			return nil, l.rt.WithName(err)
		}
		bySubtask = append(bySubtask, times)
	}
	if len(bySubtask) == l.rt.Parallelism && t.restored[i].sameInput {
		return bySubtask[l.rt.Subtask], nil
	}
	for _, other := range bySubtask {
		if times == nil {
			times = other
		}
		for i := range times {
			times[i] = min(times[i], other[i])
		}
	}
	return times, nil
}

func decodeEventTime(data []byte, want int) ([]int64, error) {
	if len(data) != 8*want {
		return nil, fmt.Errorf("restore: the checkpoint holds the event time of %d inputs, the operator has %d: "+
			"it is not the same operator; give the new one another uid", len(data)/8-1, want-1)
	}
	var times []int64
	for c := range slices.Chunk(data, 8) {
		times = append(times, int64(binary.LittleEndian.Uint64(c)))
	}
	return times, nil
}

// resume makes times a link's event time and tells the operators.
func (t *Task) resume(i int, times []int64) error {
	if i == 0 && t.input != nil {
		t.input.restore(times[0], times[1:])
	}
	if times[0] == eventtime.MinTimestamp {
		return nil
	}
	for _, l := range t.chain.links {
		l.rt.Resuming = true
		defer func() { l.rt.Resuming = false }()
	}
	l := t.chain.links[i]
	switch {
	case i > 0:
		e := t.chain.edgeTo(l)
		e.floor = times[0]
		return e.gate.Watermark(times[0])
	case t.input == nil:
		l.output.floor = times[0]
		return l.output.Watermark(times[0])
	}
	return t.chain.watermark(l, times[0])
}
