package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/task"
	"github.com/lowwater/lowwater/status"
)

// run is the job from one start of its tasks to their end. After a failure the next run
// is built from nothing but the graph and a checkpoint.
type run struct {
	job     *Job
	log     *slog.Logger
	plan    *graph.Plan
	tasks   []*runningTask
	sources []*sourceRun
	splits  operator.SplitRegistry
	// alignment is nil if no source is aligned.
	alignment *alignment
	// coordinator is nil if the job takes no checkpoints.
	coordinator *coordinator
	restored    *restored
	// restoring counts the tasks that have yet to take up what they are restored from.
	restoring atomic.Int64
	// notOpened says that the first error came before the operators of its task were open.
	// It is set when wait has ended.
	notOpened bool
	// results is how the tasks end.
	results chan ended
	// over is closed when wait has ended; err, set before, says why the run has not come to
	// its end, nil if it has.
	over chan struct{}
	err  error

	// ctx is the tasks'; it ends when the job is cancelled or has failed.
	ctx    context.Context
	cancel context.CancelFunc
	// broken holds the first error of the coordinators.
	broken chan error
}

// newRun connects to the sources, reads what the run is restored from, plans if it is
// the first run, and deploys. Nothing runs yet.
func (j *Job) newRun(ctx context.Context) (*run, error) {
	r := &run{job: j, log: j.log, broken: make(chan error, 1), over: make(chan struct{})}
	if err := safely(func() error { return r.build(ctx) }); err != nil {
		if r.cancel != nil {
			r.cancel()
		}
		r.closeSources()
		return nil, errors.Join(err, r.restored.close())
	}
	j.current.Store(r)
	return r, nil
}

func (r *run) build(ctx context.Context) (err error) {
	j := r.job
	if j.checkpoints != nil {
		if r.restored, err = j.checkpoints.restore(); err != nil {
			return err
		}
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	if j.plan == nil {
		if j.plan, err = j.graph.Plan(); err != nil {
			return err
		}
		j.warnings = j.graph.Check()
	}
	r.plan = j.plan
	for _, s := range r.sources {
		if err := s.assign(); err != nil {
			return err
		}
	}
	r.ctx, r.cancel = context.WithCancel(j.ctx)
	if j.checkpoints != nil {
		r.coordinator = newCoordinator(r)
	}
	if err := r.deploy(); err != nil || j.checkpoints == nil {
		return err
	}
	return j.checkpoints.markStart(r.restored)
}

// launch starts the tasks.
func (r *run) launch() {
	r.results = make(chan ended, len(r.tasks))
	for _, t := range r.tasks {
		go t.run(r.results)
	}
	r.job.life.enter(status.Running)
}

// wait waits for all tasks. The error is the first real one, nil if the input ended or
// the job was stopped or cancelled.
func (r *run) wait() error {
	defer close(r.over)
	coordinators := r.coordinate()
	w := waiting{run: r, left: map[*runningTask]bool{}}
	for _, t := range r.tasks {
		w.left[t] = true
	}
	w.forAll(r.results)
	r.cancel()
	w.stopping.Wait()
	coordinators.Wait()
	r.closeSources()
	r.closeRestored()
	if r.err = w.first; r.err == nil && w.cancelled {
		r.err = errCancelled
	}
	return w.first
}

// errCancelled is why a run has not come to its end if nothing has failed.
var errCancelled = errors.New("the job was cancelled")

// closeRestored closes what the run was restored from, which nobody reads any more.
func (r *run) closeRestored() {
	if err := r.restored.close(); err != nil {
		r.log.Warn("closing the checkpoint that was restored failed", "error", err)
	}
}

// waiting is what a run knows while it waits for the tasks.
type waiting struct {
	run   *run
	left  map[*runningTask]bool
	first error
	// cancelled says that a task has been ended before its end.
	cancelled bool
	stopping  sync.WaitGroup
}

func (w *waiting) forAll(results <-chan ended) {
	r := w.run
	stop, cancelled := r.job.stopping, r.ctx.Done()
	var overdue, deadline <-chan time.Time
	for len(w.left) > 0 {
		select {
		case e := <-results:
			w.ended(e)
		case err := <-r.broken:
			w.fail(err, -1, 0)
		case <-cancelled:
			cancelled = nil
			timer := time.NewTimer(overdueAfter)
			defer timer.Stop()
			overdue = timer.C
		case <-overdue:
			w.logOverdue()
		case <-deadline:
			w.fail(fmt.Errorf("%w: %v", ErrStopTimeout, r.job.options.StopTimeout), -1, 0)
			deadline = nil
		case <-stop:
			stop = nil
			timer := time.NewTimer(r.job.options.StopTimeout)
			defer timer.Stop()
			deadline = timer.C
			r.stop(&w.stopping)
		}
	}
}

func (w *waiting) ended(e ended) {
	delete(w.left, e.task)
	switch err := e.err; {
	case err == nil:
		e.task.life.enter(status.Finished)
	case w.run.cancelled(err):
		e.task.life.enter(status.Canceled)
		w.cancelled = true
	default:
		e.task.life.enter(status.Failed)
		if w.first == nil {
			w.run.notOpened = !e.task.task.Opened()
		}
		w.fail(err, e.task.vertex.ID, e.task.subtask)
	}
}

func (w *waiting) fail(err error, vertex, subtask int) {
	j := w.run.job
	j.failures.add(status.Failure{At: time.Now(), Err: err, Vertex: vertex, Subtask: subtask})
	if w.first == nil {
		w.first = err
		j.life.enter(status.Failing)
	} else {
		w.run.log.Error("failed after the job's first error", "error", err)
	}
	w.run.cancel()
}

// overdueAfter is how long a cancelled job may take before it is said what it waits for.
const overdueAfter = 10 * time.Second

// logOverdue names the subtasks that do not end: Go cannot end a function from outside.
func (w *waiting) logOverdue() {
	for t := range w.left {
		w.run.log.Warn("the job is cancelled and waits for user code that does not return: end it when its context does",
			"operators", t.vertex.Name, "subtask", t.subtask)
	}
}

// fail ends the run with an error of a coordinator.
func (r *run) fail(err error) {
	select {
	case r.broken <- err:
	default:
	}
}

// stop asks the sources to end, with a last checkpoint if the job takes any. A task whose
// mailbox is full does not hold up the others: each request waits in a goroutine that ends
// with its task.
func (r *run) stop(wg *sync.WaitGroup) {
	if r.coordinator != nil {
		wg.Go(r.coordinator.stop)
		return
	}
	for _, t := range r.tasks {
		if t.isSource {
			wg.Go(func() { t.task.Stop(context.Background()) })
		}
	}
}

// cancelled reports whether err is nothing but the consequence of an earlier error or
// of Cancel. The same error before that is the task's own: an operator that
// returns context.Canceled by itself has ended, and so must the job.
func (r *run) cancelled(err error) bool {
	return r.ctx.Err() != nil && (errors.Is(err, exchange.ErrCancelled) || errors.Is(err, context.Canceled))
}

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
