package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/status"
)

// attempt is one checkpoint under way.
type attempt struct {
	request *request
	barrier *exchange.Barrier
	phase   phase
	// store is where it is written. It is set when placed is closed, and nil if there is
	// no place.
	store   *checkpoint.Pending
	placed  chan struct{}
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout *time.Timer
	// previous is the newest completed checkpoint at the trigger.
	previous int64
	sources  map[string][]byte
	left     map[*runningTask]bool
	report   status.Checkpoint
	// path is where it has been published; the goroutine that publishes it sets it.
	path string
}

// phase says what a checkpoint under way is waiting for.
type phase int

const (
	beginning  phase = iota // the store has been asked for a place
	triggering              // the sources are being given the barrier
	writing                 // the tasks write their parts
	publishing              // the store makes it complete
)

// begin begins a checkpoint.
func (c *coordinator) begin(q *request) {
	now := time.Now()
	id := c.job.next()
	c.triggeredAt = now
	b := &exchange.Barrier{Checkpoint: id, Triggered: now, Stop: q.stop}
	if q.kind == checkpoint.KindCheckpoint && !q.stop && !q.final {
		b.AlignmentTimeout = c.options.AlignmentTimeout
	}
	a := &attempt{
		request: q, barrier: b, placed: make(chan struct{}), previous: c.job.newestCompleted(),
		left: map[*runningTask]bool{}, report: c.report(q, b),
	}
	a.ctx, a.cancel = context.WithCancelCause(c.run.ctx)
	for _, t := range c.run.tasks {
		a.left[t] = true
	}
	a.timeout = time.AfterFunc(c.options.Timeout, func() { c.tell(expired{id}) })
	c.mu.Lock()
	c.open[id] = a
	c.mu.Unlock()
	c.job.note(a.report)
	c.starting = a
	c.work.Go(func() {
		var err error
		a.store, err = c.job.store.Begin(id, q.kind, q.target)
		close(a.placed)
		c.tell(begun{a, err})
	})
}

// begun has the barriers handed to the sources, in a goroutine of its own, because a
// source that is blocked takes its time to listen.
func (c *coordinator) begun(e begun) {
	a := e.a
	switch {
	case c.attempt(a.barrier.Checkpoint) == nil:
	case e.err != nil:
		c.fail(a, e.err)
	default:
		a.phase = triggering
		a.request.inputEnded = a.request.inputEnded || a.request.stop
		c.work.Go(func() {
			sources, err := c.run.trigger(a.ctx, a.barrier)
			c.tell(triggered{a, sources, err})
		})
	}
}

func (c *coordinator) triggered(e triggered) {
	c.starting = nil
	switch a := e.a; {
	case c.attempt(a.barrier.Checkpoint) == nil:
	case e.err != nil:
		c.fail(a, e.err)
	default:
		a.phase, a.sources = writing, e.sources
		c.publishIfDone(a)
	}
}

func (c *coordinator) attempt(id int64) *attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

func (c *coordinator) attempts() (all []*attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.open {
		all = append(all, a)
	}
	return all
}

func (c *coordinator) acknowledge(e acknowledged) {
	a := c.attempt(e.id)
	switch {
	case a == nil:
		return
	case e.err != nil:
		c.fail(a, fmt.Errorf("%s, subtask %d: %w", e.task.vertex.Name, e.task.subtask, e.err))
		return
	}
	delete(a.left, e.task)
	a.acknowledged(e)
	c.job.note(a.report)
	c.publishIfDone(a)
}

// publishIfDone publishes a checkpoint of which all parts are written. Publications come
// one after the other, in the order of checkpoints.
func (c *coordinator) publishIfDone(a *attempt) {
	if len(a.left) > 0 || a.phase != writing {
		return
	}
	a.phase = publishing
	manifest := c.manifest(a)
	before, done := c.publication, make(chan struct{})
	c.publication = done
	c.work.Go(func() {
		defer close(done)
		<-before
		if a.ctx.Err() != nil { // given up while it waited
			c.abort(a)
			return
		}
		c.tell(published{a, c.publish(a, manifest)})
	})
}

// publish makes a checkpoint complete. If the run ends with it, and the store would not
// find it as its latest, it is noted as what to go on from before anything is committed.
func (c *coordinator) publish(a *attempt, manifest checkpoint.Manifest) error {
	path, err := a.store.Complete(manifest)
	if err != nil {
		return err
	}
	if q := a.request; q.ends() && q.target != "" {
		if err := c.job.moveStart(checkpoint.Start{After: manifest.ID, From: a.store.Address()}); err != nil {
			return fmt.Errorf("savepoint %s is stored, but not that it is what to go on from: %w", path, err)
		}
	}
	a.path = path
	return nil
}

func (c *coordinator) published(e published) {
	a := e.a
	switch {
	case c.attempt(a.barrier.Checkpoint) == nil && e.err == nil:
		c.run.log.Warn("a checkpoint that took too long and counts as failed has been stored after all", "checkpoint", a.barrier.Checkpoint, "path", a.path)
		return
	case c.attempt(a.barrier.Checkpoint) == nil:
		return
	case e.err != nil:
		c.fail(a, e.err)
		return
	}
	c.failed = 0
	before := c.job.newestCompleted()
	c.completed(a)
	c.retain()
	c.tellAborted()
	rely := a.barrier.Checkpoint
	if c.options.CommitLater {
		rely = before
	}
	if !a.request.intermediate() {
		for _, t := range c.run.tasks {
			t.task.Completed(rely)
		}
	}
	a.request.reply(answer{path: a.path})
	switch ends := a.request == c.ending; {
	case ends && c.options.CommitLater && !a.request.again:
		// Another one of the same state, so that what this one holds can be relied on.
		c.ending = &request{kind: checkpoint.KindCheckpoint, stop: a.request.stop, final: a.request.final, again: true, inputEnded: true}
		c.queue = append(c.queue, c.ending)
	case ends:
		c.release()
	}
}

// completed takes note of a checkpoint that is stored.
func (c *coordinator) completed(a *attempt) {
	c.remove(a, nil)
	a.report.State, a.report.Path = status.CheckpointCompleted, a.path
	c.job.note(a.report)
	if !a.request.intermediate() {
		c.job.completed(a.report)
	}
	c.retainAgain = true
}

// retain has old checkpoints removed, unless that is under way; then it is done again.
func (c *coordinator) retain() {
	if c.retaining {
		return
	}
	c.retaining, c.retainAgain = true, false
	c.work.Go(func() {
		c.job.retain()
		c.tell(retained{})
	})
}

// tellAborted tells the tasks which checkpoints have failed, but not before the ones that
// were triggered earlier have ended: tasks give those up, too.
func (c *coordinator) tellAborted() {
	id := c.lastFailed
	for _, a := range c.attempts() {
		id = min(id, a.barrier.Checkpoint-1)
	}
	for _, t := range c.run.tasks {
		t.task.Aborted(id)
	}
}

// remove closes an attempt. What has been stored of it so far is removed if there is a
// cause. If that is being published, whether it is stored is seen when the store answers.
func (c *coordinator) remove(a *attempt, cause error) {
	c.mu.Lock()
	delete(c.open, a.barrier.Checkpoint)
	c.mu.Unlock()
	a.cancel(cause)
	a.timeout.Stop()
	if c.starting == a && a.phase == beginning {
		c.starting = nil // the next one need not wait for the store
	}
	if cause != nil && a.phase != publishing {
		c.work.Go(func() { c.abort(a) })
	}
	c.endedAt = time.Now()
}

// abort removes what has been stored of a checkpoint that is not published.
func (c *coordinator) abort(a *attempt) {
	<-a.placed
	if a.store == nil {
		return
	}
	if err := a.store.Abort(); err != nil {
		c.run.log.Warn("what a failed checkpoint has left is removed later", "error", err)
	}
}

// waitingFor says what a checkpoint has yet to wait for; of subtasks the first few.
func (c *coordinator) waitingFor(a *attempt) string {
	switch a.phase {
	case beginning, publishing:
		if a.request.target != "" {
			return "the savepoint's directory, which does not answer"
		}
		return fmt.Sprintf("the checkpoint store %s, which does not answer", c.job.store.Path())
	case triggering:
		return "the sources to take the barrier"
	}
	const most = 4
	var names []string
	for t := range a.left {
		names = append(names, fmt.Sprintf("%s, subtask %d", t.vertex.Name, t.subtask))
	}
	slices.Sort(names)
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, "; ")
}
