// Package job deploys a graph on this machine and owns its life: it connects to
// the sources, starts a task per subtask, stops them gracefully or at once, and
// collects the first real error.
//
// It does not look at records or event time; tasks and operators do.
package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/task"
	"github.com/lowwater/lowwater/status"
)

// ErrStopTimeout is returned when a graceful stop took longer than
// Options.StopTimeout and the job was cancelled instead. Records under way may
// not have reached their sinks.
var ErrStopTimeout = errors.New("the job did not stop in time and was cancelled")

// Options are the settings of one run.
type Options struct {
	Logger *slog.Logger
	// WatermarkInterval is the time between periodic watermarks; 0 means none.
	WatermarkInterval time.Duration
	// StopTimeout is how long a graceful stop may take.
	StopTimeout time.Duration
	// Credits is the number of messages under way on each channel.
	Credits int
	// AlignmentSamples is the number of samples that alignment limits are compared
	// with (spec watermarks 6.2).
	AlignmentSamples int
}

// Job is one run of a graph.
type Job struct {
	name     string
	started  time.Time
	log      *slog.Logger
	options  Options
	plan     *graph.Plan
	warnings []graph.Warning
	tasks    []*runningTask
	sources  []*sourceRun
	splits   operator.SplitRegistry
	life     life
	failures failures
	// alignment is nil if no source is aligned.
	alignment *alignment

	// ctx is the tasks'; it ends when the job is cancelled or has failed.
	ctx    context.Context
	cancel context.CancelFunc
	// broken holds the first error of the coordinators.
	broken chan error
	stop   chan struct{}
	stopMu sync.Once

	// done is closed when all tasks have ended; err is set before.
	done chan struct{}
	err  error
}

// Start connects to the sources, plans and deploys. It returns once all tasks are
// started; errors up to there, such as an unknown topic, are returned at once. When
// ctx ends the job stops gracefully, as by Stop.
func Start(ctx context.Context, g *graph.Graph, options Options) (*Job, error) {
	j := &Job{
		name:    g.Name,
		log:     options.Logger,
		options: options,
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		broken:  make(chan error, 1),
	}
	j.life.enter(status.Created)
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if err := j.connect(ctx, g); err != nil {
		j.closeSources()
		return nil, err
	}
	plan, err := g.Plan()
	if err != nil {
		j.closeSources()
		return nil, err
	}
	for _, s := range j.sources {
		if err := s.assign(); err != nil {
			j.closeSources()
			return nil, err
		}
	}
	j.plan, j.warnings = plan, g.Check()
	for _, w := range j.warnings {
		j.log.Warn(w.Message, "code", w.Code, "operator", w.Operator, "at", w.Where, "fix", w.Fix())
	}
	// The tasks outlive ctx: its end is a request to stop, not to drop everything.
	j.ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	j.deploy()
	j.started = time.Now()
	j.life.enter(status.Running)
	go j.run(ctx)
	return j, nil
}

// run starts the tasks and waits for all of them.
func (j *Job) run(ctx context.Context) {
	results := make(chan ended, len(j.tasks))
	for _, t := range j.tasks {
		go t.run(results)
	}
	coordinators := j.coordinate()
	var first error
	fail := func(err error, vertex, subtask int) {
		j.failures.add(status.Failure{At: time.Now(), Err: err, Vertex: vertex, Subtask: subtask})
		if first == nil {
			first = err
			j.life.enter(status.Failing)
		} else {
			j.log.Error("failed after the job's first error", "error", err)
		}
		j.cancel()
	}
	ctxDone, stop, cancelled := ctx.Done(), j.stop, j.ctx.Done()
	var overdue <-chan time.Time
	left := map[*runningTask]bool{}
	for _, t := range j.tasks {
		left[t] = true
	}
	var stopping sync.WaitGroup
	var deadline <-chan time.Time
	for running := len(j.tasks); running > 0; {
		select {
		case ended := <-results:
			running--
			delete(left, ended.task)
			switch err := ended.err; {
			case err == nil:
				ended.task.life.enter(status.Finished)
			case j.cancelled(err):
				ended.task.life.enter(status.Canceled)
			default:
				ended.task.life.enter(status.Failed)
				fail(err, ended.task.vertex.ID, ended.task.subtask)
			}
			continue
		case err := <-j.broken:
			fail(err, -1, 0)
			continue
		case <-cancelled:
			cancelled = nil
			timer := time.NewTimer(overdueAfter)
			defer timer.Stop()
			overdue = timer.C
			continue
		case <-overdue:
			j.logOverdue(left)
			continue
		case <-deadline:
			fail(fmt.Errorf("%w: %v", ErrStopTimeout, j.options.StopTimeout), -1, 0)
			deadline = nil
			continue
		case <-ctxDone:
		case <-stop:
		}
		ctxDone, stop = nil, nil
		timer := time.NewTimer(j.options.StopTimeout)
		defer timer.Stop()
		deadline = timer.C
		j.stopTasks(&stopping)
	}
	j.cancel()
	stopping.Wait()
	coordinators.Wait()
	j.closeSources()
	switch j.err = first; {
	case first != nil:
		j.life.enter(status.Failed)
	case j.life.read().State == status.Cancelling:
		j.life.enter(status.Canceled)
	default:
		j.life.enter(status.Finished)
	}
	close(j.done)
}

// overdueAfter is how long a cancelled job may take before it is said what it waits for.
const overdueAfter = 10 * time.Second

// logOverdue names the subtasks that do not end: Go cannot end a function from outside.
func (j *Job) logOverdue(left map[*runningTask]bool) {
	for t := range left {
		j.log.Warn("the job is cancelled and waits for user code that does not return: end it when its context does",
			"operators", t.vertex.Name, "subtask", t.subtask)
	}
}

// fail ends the job with an error of a coordinator.
func (j *Job) fail(err error) {
	select {
	case j.broken <- err:
	default:
	}
}

// stopTasks asks the sources to end. A task whose mailbox is full does not hold up
// the others: each request waits in a goroutine that ends with its task.
func (j *Job) stopTasks(wg *sync.WaitGroup) {
	for _, t := range j.tasks {
		if t.isSource {
			wg.Go(func() { t.task.Stop(context.Background()) })
		}
	}
}

// cancelled reports whether err is nothing but the consequence of an earlier error or
// of Cancel. The same error before that is the task's own: an operator that
// returns context.Canceled by itself has ended, and so must the job.
func (j *Job) cancelled(err error) bool {
	return j.ctx.Err() != nil && (errors.Is(err, exchange.ErrCancelled) || errors.Is(err, context.Canceled))
}

// Stop asks the job to end gracefully: sources stop reading, what is under way is
// processed and flushed to the sinks, and no final watermark is sent, so open
// windows stay closed to the world. It returns at once; see Wait.
func (j *Job) Stop() { j.stopMu.Do(func() { close(j.stop) }) }

// Cancel ends the job without waiting for records under way.
func (j *Job) Cancel() {
	j.life.enter(status.Cancelling)
	j.cancel()
}

// Done is closed when the job has ended and all its goroutines are gone.
func (j *Job) Done() <-chan struct{} { return j.done }

// Wait blocks until the job has ended and returns its first error: nil if its
// input ended or it was stopped gracefully or cancelled.
func (j *Job) Wait() error {
	<-j.done
	return j.err
}

// Warnings returns what the plan checks found.
func (j *Job) Warnings() []graph.Warning { return j.warnings }

// runningTask is one subtask and what is known about it.
type runningTask struct {
	vertex   *graph.Vertex
	subtask  int
	isSource bool
	task     *task.Task
	numbers  *numbers
	life     life
}

// ended is a task that has come to its end.
type ended struct {
	task *runningTask
	err  error
}

// run runs the task and reports how it ended, also if user code ends the goroutine.
func (t *runningTask) run(results chan<- ended) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = t.task.Exited()
		}
		results <- ended{t, err}
	}()
	t.life.enter(status.Running)
	err = t.task.Run()
	returned = true
}
