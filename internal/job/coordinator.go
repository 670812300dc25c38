package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/task"
	"github.com/lowwater/lowwater/status"
)

// errGivenUp is why a checkpoint ends that nobody needs any more.
var errGivenUp = errors.New("the run has ended")

// coordinator triggers the checkpoints of one run and completes them when all tasks have
// written their parts. One goroutine, loop, decides everything; tasks reach it by
// events.
type coordinator struct {
	run     *run
	job     *checkpoints
	options CheckpointOptions
	events  chan any
	// requests are asked for by people and by the job itself.
	requests chan *request

	// mu guards open, which tasks look into when a barrier arrives.
	mu   sync.Mutex
	open map[int64]*attempt

	// What follows is the loop's.

	queue []*request
	// triggering is set while barriers are being handed to the sources.
	triggering bool
	// failed counts the failures since the last success.
	failed int
	// nextAt is when the loop looks again if nothing happens before.
	nextAt time.Time
	// triggeredAt and endedAt are those of the last checkpoint.
	triggeredAt, endedAt time.Time
	finished             map[*runningTask]bool
	// ending is the checkpoint that ends the run, once it has been asked for; it is not
	// tried again before retryAt. draining waits for the tasks to finish.
	ending   *request
	draining *request
	retryAt  time.Time
	over     bool
	// lastFailed is the latest checkpoint that has failed.
	lastFailed int64
	// work is what triggers and publishes in the background.
	work sync.WaitGroup
}

// retryEnding is how long the checkpoint that ends a run is not tried again.
const retryEnding = time.Second

// request asks for a checkpoint.
type request struct {
	kind checkpoint.Kind
	// target is the directory of a savepoint, "" for the store's own.
	target string
	// stop ends the run with the checkpoint; final is the one behind the end of input.
	stop, final bool
	// again is the second of two that end the run.
	again bool
	// drain ends the input first, as if the sources had come to their ends.
	drain bool
	// answer, if not nil, has room for the one answer.
	answer chan answer
}

type answer struct {
	path string
	err  error
}

func (q *request) reply(a answer) {
	if q.answer != nil {
		q.answer <- a
		q.answer = nil
	}
}

// attempt is one checkpoint under way.
type attempt struct {
	request *request
	barrier *exchange.Barrier
	store   *checkpoint.Pending
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timeout *time.Timer
	// previous is the newest completed checkpoint at the trigger.
	previous int64
	// triggered is set when all sources have the barrier, sources is then their state.
	triggered bool
	sources   map[string][]byte
	left      map[*runningTask]bool
	report    status.Checkpoint
	// path is where it has been published.
	path string
}

// The events of the loop, beside requests.
type (
	triggered struct {
		a       *attempt
		sources map[string][]byte
		err     error
	}
	acknowledged struct {
		id      int64
		task    *runningTask
		segment checkpoint.SegmentInfo
		times   task.Times
		err     error
	}
	completed struct {
		a   *attempt
		err error
	}
	expired      struct{ id int64 }
	taskFinished struct{ task *runningTask }
)

func newCoordinator(r *run) *coordinator {
	c := &coordinator{
		run: r, job: r.job.checkpoints, options: *r.job.options.Checkpoints,
		events: make(chan any, 64), requests: make(chan *request),
		open: map[int64]*attempt{}, finished: map[*runningTask]bool{},
	}
	return c
}

// tell hands an event to the loop, unless the run ends before.
func (c *coordinator) tell(event any) {
	select {
	case c.events <- event:
	case <-c.run.ctx.Done():
	}
}

// ask hands a request to the loop.
func (c *coordinator) ask(ctx context.Context, q *request) error {
	select {
	case c.requests <- q:
		return nil
	case <-c.run.ctx.Done():
		return errors.New("the job has no tasks running at the moment")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loop runs until the run's context ends.
func (c *coordinator) loop() {
	c.triggeredAt = time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.run.ctx.Done():
			c.work.Wait() // what is published after the next run has begun would not fit it
			c.giveUp()
			return
		case <-timer.C:
		case q := <-c.requests:
			c.request(q)
		case e := <-c.events:
			c.event(e)
		}
		c.next(time.Now())
		timer.Reset(max(0, time.Until(c.nextAt)))
	}
}

// giveUp ends everything that is still open: the run is over.
func (c *coordinator) giveUp() {
	for _, a := range c.attempts() {
		if a.path == "" {
			c.remove(a, errGivenUp)
			c.job.note(a.failed(errGivenUp))
			continue
		}
		if c.published(a); a.request != c.ending { // the end is not what was asked for
			a.request.reply(answer{path: a.path})
		}
	}
	for _, q := range c.queue {
		q.reply(answer{err: errGivenUp})
	}
	c.queue = nil
}

func (c *coordinator) request(q *request) {
	ends := q.stop || q.drain
	switch {
	case c.over || ends && (c.ending != nil || c.draining != nil):
		q.reply(answer{err: errors.New("the job is ending already")})
		return
	case ends && q.kind == checkpoint.KindSavepoint:
		if err := c.tryTarget(q); err != nil {
			q.reply(answer{err: fmt.Errorf("the job goes on, because the savepoint cannot be stored: %w", err)})
			return
		}
	}
	switch {
	case q.drain:
		c.draining = q
		c.run.drain()
		return
	case q.stop:
		c.ending = q
	}
	c.queue = append(c.queue, q)
}

// tryTarget finds out whether a savepoint can be stored, before any input ends for it.
func (c *coordinator) tryTarget(q *request) error {
	p, err := c.job.store.Begin(0, q.kind, q.target)
	if err != nil {
		return err
	}
	_, err = p.Segment("attempt", 0)
	return errors.Join(err, p.Abort())
}

// next triggers what is due. Requests go before periodic checkpoints, and one at a time.
func (c *coordinator) next(now time.Time) {
	if c.triggering || c.over || len(c.open) >= c.options.MaxConcurrent {
		c.nextAt = now.Add(time.Hour) // an event will come first
		return
	}
	if len(c.queue) > 0 {
		q := c.queue[0]
		if q == c.ending && now.Before(c.retryAt) {
			c.nextAt = c.retryAt
			return
		}
		c.queue = c.queue[1:]
		c.trigger(q)
		return
	}
	if c.ending != nil || c.options.Interval == 0 {
		c.nextAt = now.Add(time.Hour)
		return
	}
	c.nextAt = c.triggeredAt.Add(c.options.Interval)
	if pause := c.endedAt.Add(c.options.MinPause); pause.After(c.nextAt) {
		c.nextAt = pause
	}
	if !c.nextAt.After(now) {
		c.trigger(&request{kind: checkpoint.KindCheckpoint})
	}
}

// trigger begins a checkpoint. The sources are told in a goroutine of its own, because a
// source that is blocked takes its time to listen.
func (c *coordinator) trigger(q *request) {
	now := time.Now()
	id := c.job.next()
	c.triggeredAt = now
	b := &exchange.Barrier{Checkpoint: id, Triggered: now, Stop: q.stop}
	if q.kind == checkpoint.KindCheckpoint && !q.stop && !q.final {
		b.AlignmentTimeout = c.options.AlignmentTimeout
	}
	a := &attempt{request: q, barrier: b, previous: c.job.newestCompleted(), left: map[*runningTask]bool{}, report: c.report(q, b)}
	a.ctx, a.cancel = context.WithCancelCause(c.run.ctx)
	var err error
	if a.store, err = c.job.store.Begin(id, q.kind, q.target); err != nil {
		c.fail(a, err)
		return
	}
	for _, t := range c.run.tasks {
		a.left[t] = true
	}
	a.timeout = time.AfterFunc(c.options.Timeout, func() { c.tell(expired{id}) })
	c.mu.Lock()
	c.open[id] = a
	c.mu.Unlock()
	c.job.note(a.report)
	c.triggering = true
	c.work.Go(func() {
		sources, err := c.run.trigger(a.ctx, b)
		c.tell(triggered{a, sources, err})
	})
}

func (c *coordinator) event(e any) {
	switch e := e.(type) {
	case triggered:
		c.triggering = false
		if c.attempt(e.a.barrier.Checkpoint) == nil {
			return
		}
		if e.err != nil {
			c.fail(e.a, e.err)
			return
		}
		e.a.triggered, e.a.sources = true, e.sources
		c.completeIfDone(e.a)
	case acknowledged:
		c.acknowledge(e)
	case completed:
		c.completed(e)
	case expired:
		if a := c.attempt(e.id); a != nil && a.store != nil { // else it is being published
			c.fail(a, fmt.Errorf("not complete after %v: waiting for %s", c.options.Timeout, a.waitingFor()))
		}
	case taskFinished:
		c.finished[e.task] = true
		if len(c.finished) < len(c.run.tasks) || c.ending != nil {
			return
		}
		if c.ending = c.draining; c.ending == nil {
			c.ending = &request{kind: checkpoint.KindCheckpoint}
		}
		c.ending.final = true
		c.queue = append(c.queue, c.ending)
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
	c.completeIfDone(a)
}

// completeIfDone publishes a checkpoint of which all parts are written.
func (c *coordinator) completeIfDone(a *attempt) {
	if len(a.left) > 0 || !a.triggered {
		return
	}
	store := a.store
	a.store = nil // from here on it is Complete's
	manifest := c.manifest(a)
	c.work.Go(func() {
		var err error
		a.path, err = store.Complete(manifest)
		c.tell(completed{a, err})
	})
}

func (c *coordinator) completed(e completed) {
	a := e.a
	if c.attempt(a.barrier.Checkpoint) == nil {
		return
	}
	if e.err != nil {
		c.fail(a, e.err)
		return
	}
	c.failed = 0
	before := c.job.newestCompleted()
	c.published(a)
	c.tellAborted()
	rely := a.barrier.Checkpoint
	if c.options.CommitLater {
		rely = before
	}
	for _, t := range c.run.tasks {
		t.task.Completed(rely)
	}
	a.request.reply(answer{path: a.path})
	switch ends := a.request == c.ending; {
	case ends && c.options.CommitLater && !a.request.again:
		// Another one of the same state, so that what this one holds can be relied on.
		c.ending = &request{kind: checkpoint.KindCheckpoint, stop: a.request.stop, final: a.request.final, again: true}
		c.queue = append(c.queue, c.ending)
	case ends:
		c.release()
	}
}

// published takes note of a checkpoint that is stored.
func (c *coordinator) published(a *attempt) {
	c.remove(a, nil)
	a.report.State, a.report.Path = status.CheckpointCompleted, a.path
	c.job.completed(a.report)
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

// release lets the tasks end.
func (c *coordinator) release() {
	c.over = true
	for _, t := range c.run.tasks {
		t.task.Release()
	}
}

// fail ends a checkpoint without success. A request that was asked for is answered; the
// one that ends the run is tried again. Savepoints that fail say nothing about the job's
// own checkpoints, so they do not count, as in Flink. A run that was taken over ends.
func (c *coordinator) fail(a *attempt, err error) {
	id := a.barrier.Checkpoint
	c.remove(a, err)
	c.job.note(a.failed(err))
	c.lastFailed = max(c.lastFailed, id)
	c.tellAborted()
	if errors.Is(err, context.Canceled) && c.run.ctx.Err() != nil {
		return
	}
	if errors.Is(err, checkpoint.ErrTakenOver) {
		a.request.reply(answer{err: err})
		c.run.fail(err)
		return
	}
	if a.request.kind == checkpoint.KindSavepoint && a.request != c.ending {
		c.run.log.Warn("a savepoint has failed", "checkpoint", id, "error", err)
		a.request.reply(answer{err: err})
		return
	}
	c.failed++
	c.run.log.Warn("a checkpoint has failed", "checkpoint", id, "error", err, "in a row", c.failed, "tolerated", c.options.TolerableFailures)
	if c.failed > c.options.TolerableFailures {
		err = fmt.Errorf("checkpoint %d: %w (%d failed in a row, %d are tolerated)", id, err, c.failed, c.options.TolerableFailures)
		a.request.reply(answer{err: err})
		c.run.fail(err)
		return
	}
	if a.request == c.ending {
		c.retryAt = time.Now().Add(retryEnding)
		c.queue = slices.Insert(c.queue, 0, a.request)
		return
	}
	a.request.reply(answer{err: err})
}

// remove closes an attempt, and what it has stored so far unless it is complete.
func (c *coordinator) remove(a *attempt, cause error) {
	c.mu.Lock()
	delete(c.open, a.barrier.Checkpoint)
	c.mu.Unlock()
	a.cancel(cause)
	if a.timeout != nil {
		a.timeout.Stop()
	}
	if cause != nil && a.store != nil {
		a.store.Abort()
	}
	c.endedAt = time.Now()
}

// stop asks for the checkpoint that ends the run.
func (c *coordinator) stop() {
	go func() { _ = c.ask(c.run.ctx, &request{kind: checkpoint.KindCheckpoint, stop: true}) }()
}
