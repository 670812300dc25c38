package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/task"
)

// errGivenUp is why a checkpoint ends that nobody needs any more.
var errGivenUp = errors.New("the run has ended")

// coordinator triggers the checkpoints of one run and completes them when all tasks have
// written their parts. One goroutine, loop, decides everything and never waits for the
// checkpoint store or for a source: goroutines of its own do, and reach it, as tasks do,
// by events.
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
	// starting is the checkpoint that is being begun or whose barriers are being handed to
	// the sources, nil if there is none.
	starting *attempt
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
	// publication is closed when all publications up to the last one have ended.
	publication chan struct{}
	// retaining is set while old checkpoints are being removed, retainAgain if more have
	// become old since.
	retaining, retainAgain bool
	// work is what the loop does not wait for until the end of the run.
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
	// tried says that its target has been found good.
	tried bool
	// inputEnded says that input has ended for it: the run cannot go on without it.
	inputEnded bool
	// answer, if not nil, has room for the one answer.
	answer chan answer
}

// ends reports whether the run ends with the request.
func (q *request) ends() bool { return q.stop || q.drain }

// intermediate reports whether it asks for a savepoint with which the run does not end.
// Such a one belongs to the user, who may put it anywhere and remove it at any time, so
// nothing is committed on the strength of it, as in Flink (FLIP-203): the next checkpoint
// commits what it has prepared, or the run that is restored from it.
func (q *request) intermediate() bool { return q.kind == checkpoint.KindSavepoint && !q.ends() }

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

// The events of the loop, beside requests.
type (
	targetTried struct {
		request *request
		err     error
	}
	begun struct {
		a   *attempt
		err error
	}
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
	published struct {
		a   *attempt
		err error
	}
	expired      struct{ id int64 }
	retained     struct{}
	taskFinished struct{ task *runningTask }
)

func newCoordinator(r *run) *coordinator {
	c := &coordinator{
		run: r, job: r.job.checkpoints, options: *r.job.options.Checkpoints,
		events: make(chan any, 64), requests: make(chan *request),
		open: map[int64]*attempt{}, finished: map[*runningTask]bool{}, publication: make(chan struct{}),
	}
	close(c.publication)
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
			c.end()
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

// end waits for all that is under way and ends what is still open: the run is over. What
// would be published after the next run has begun would not fit that.
func (c *coordinator) end() {
	c.waitForWork()
	for _, a := range c.attempts() {
		if a.path == "" {
			c.remove(a, errGivenUp)
			c.job.note(a.failed(errGivenUp))
			continue
		}
		c.completed(a)
		a.request.reply(answer{path: a.path})
	}
	for _, q := range c.queue {
		q.reply(answer{err: errGivenUp})
	}
	c.queue = nil
	c.work.Wait()
	if c.retainAgain {
		c.job.retain()
	}
}

// waitForWork says so if it takes long.
func (c *coordinator) waitForWork() {
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	overdue := time.NewTimer(overdueAfter)
	defer overdue.Stop()
	select {
	case <-done:
	case <-overdue.C:
		c.run.log.Warn("the run has ended and waits for the checkpoint store, which does not answer", "store", c.job.store.Path())
		<-done
	}
}

func (c *coordinator) request(q *request) {
	switch {
	case c.over || q.ends() && (c.ending != nil || c.draining != nil):
		q.reply(answer{err: errors.New("the job is ending already")})
	case q.ends() && q.kind == checkpoint.KindSavepoint && !q.tried:
		c.work.Go(func() { c.tell(targetTried{q, c.tryTarget(q)}) })
	case q.drain:
		c.draining, q.inputEnded = q, true
		c.drain()
	default:
		if q.stop {
			c.ending = q
		}
		c.queue = append(c.queue, q)
	}
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
	if c.starting != nil || c.over || len(c.open) >= c.options.MaxConcurrent {
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
		c.begin(q)
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
		c.begin(&request{kind: checkpoint.KindCheckpoint})
	}
}

func (c *coordinator) event(e any) {
	switch e := e.(type) {
	case targetTried:
		c.targetTried(e)
	case begun:
		c.begun(e)
	case triggered:
		c.triggered(e)
	case acknowledged:
		c.acknowledge(e)
	case published:
		c.published(e)
	case expired:
		if a := c.attempt(e.id); a != nil {
			c.fail(a, fmt.Errorf("not complete after %v: waiting for %s", c.options.Timeout, c.waitingFor(a)))
		}
	case retained:
		if c.retaining = false; c.retainAgain {
			c.retain()
		}
	case taskFinished:
		c.taskFinished(e)
	}
}

func (c *coordinator) targetTried(e targetTried) {
	if e.err != nil {
		e.request.reply(answer{err: fmt.Errorf("the job goes on, because the savepoint cannot be stored: %w", e.err)})
		return
	}
	e.request.tried = true
	c.request(e.request)
}

// taskFinished asks for the last checkpoint once the input of all tasks has ended.
func (c *coordinator) taskFinished(e taskFinished) {
	c.finished[e.task] = true
	if len(c.finished) < len(c.run.tasks) || c.ending != nil {
		return
	}
	if c.ending = c.draining; c.ending == nil {
		c.ending = &request{kind: checkpoint.KindCheckpoint}
	}
	c.ending.final, c.ending.inputEnded = true, true
	c.queue = append(c.queue, c.ending)
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
	q, id := a.request, a.barrier.Checkpoint
	c.remove(a, err)
	c.job.note(a.failed(err))
	c.lastFailed = max(c.lastFailed, id)
	c.tellAborted()
	if errors.Is(err, context.Canceled) && c.run.ctx.Err() != nil {
		return
	}
	if errors.Is(err, checkpoint.ErrTakenOver) {
		q.reply(answer{err: err})
		c.run.fail(err)
		return
	}
	if q.kind == checkpoint.KindSavepoint && !q.inputEnded {
		c.run.log.Warn("a savepoint has failed", "checkpoint", id, "error", err)
		c.giveUp(q, err)
		return
	}
	c.failed++
	c.run.log.Warn("a checkpoint has failed", "checkpoint", id, "error", err, "in a row", c.failed, "tolerated", c.options.TolerableFailures)
	if c.failed > c.options.TolerableFailures {
		err = fmt.Errorf("checkpoint %d: %w (%d failed in a row, %d are tolerated)", id, err, c.failed, c.options.TolerableFailures)
		if q.kind == checkpoint.KindSavepoint {
			err = fmt.Errorf("the job's input had ended for a savepoint that has failed, so it goes on from its last checkpoint if it is to be restarted: %w", err)
		}
		q.reply(answer{err: err})
		c.run.fail(err)
		return
	}
	if q == c.ending {
		c.retryAt = time.Now().Add(retryEnding)
		c.queue = slices.Insert(c.queue, 0, q)
		return
	}
	q.reply(answer{err: err})
}

// giveUp ends a savepoint that has failed before any input ended for it: the job goes on.
func (c *coordinator) giveUp(q *request, err error) {
	if q == c.ending {
		c.ending = nil
		err = fmt.Errorf("the job goes on, because the savepoint cannot be stored: %w", err)
	}
	q.reply(answer{err: err})
	if q.stop && c.run.job.stopped() { // which was refused, because the job was ending already
		c.request(&request{kind: checkpoint.KindCheckpoint, stop: true})
	}
}

// drain ends all sources as if their input had ended.
func (c *coordinator) drain() {
	for _, t := range c.run.tasks {
		if t.isSource {
			c.work.Go(func() { t.task.Drain(c.run.ctx) })
		}
	}
}

// stop asks for the checkpoint that ends the run.
func (c *coordinator) stop() {
	_ = c.ask(c.run.ctx, &request{kind: checkpoint.KindCheckpoint, stop: true}) // else it is ending
}
