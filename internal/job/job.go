// Package job deploys a graph on this machine and owns its life: it connects to
// the sources, starts a task per subtask, triggers checkpoints, restarts from them
// after a failure, and stops gracefully or at once.
//
// It does not look at records or event time; tasks and operators do.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/spill"
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
	// StateDir is where keyed state beyond the graph's StateMemory goes, empty for the
	// system's directory for temporary files.
	StateDir string
	// Checkpoints is nil if the job takes none.
	Checkpoints *CheckpointOptions
	// Restart decides what happens after a failure; nil means that the job fails.
	Restart RestartStrategy
}

// Job is a graph that runs, over all its restarts.
type Job struct {
	name    string
	started time.Time
	log     *slog.Logger
	options Options
	graph   *graph.Graph
	// plan and warnings are made by the first run and hold for all.
	plan     *graph.Plan
	warnings []graph.Warning
	life     life
	failures failures
	restarts atomic.Int64
	// current is the run that the job is in, or was in last.
	current atomic.Pointer[run]
	// checkpoints is nil if the job takes none.
	checkpoints *checkpoints

	// ctx ends when the job is cancelled.
	ctx    context.Context
	cancel context.CancelFunc
	// stopping is closed when the job is to stop gracefully.
	stopping chan struct{}
	stopOnce sync.Once

	// done is closed when all tasks have ended; err is set before.
	done chan struct{}
	err  error
}

// Start connects to the sources, plans and deploys. It returns once all tasks are
// started; errors up to there, such as an unknown topic, are returned at once. When
// ctx ends the job stops gracefully, as by Stop.
func Start(ctx context.Context, g *graph.Graph, options Options) (*Job, error) {
	j := &Job{
		name:     g.Name,
		log:      options.Logger,
		options:  options,
		graph:    g,
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
	j.life.enter(status.Created)
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if g.StateMemory > 0 {
		if err := spill.CheckDir(options.StateDir); err != nil {
			return nil, err
		}
	}
	// The tasks outlive ctx: its end is a request to stop, not to drop everything.
	j.ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r, err := j.prepare(ctx)
	if err != nil {
		j.cancel()
		return nil, err
	}
	for _, w := range j.warnings {
		j.log.Warn(w.Message, "code", w.Code, "operator", w.Operator, "at", w.Where, "fix", w.Fix())
	}
	if each := g.StatePerSubtask(); each > 0 {
		j.log.Info("keyed state has a memory budget; what is more goes to disk, except for what the plan names: timers, interval joins, sorting, aggregators in order of arrival",
			"bytes", g.StateMemory, "bytesEachSubtask", each, "directory", cmp.Or(options.StateDir, os.TempDir()))
	}
	j.started = time.Now()
	r.launch()
	go func() {
		unlisten := context.AfterFunc(ctx, j.Stop)
		defer unlisten()
		j.supervise(r)
	}()
	return j, nil
}

// prepare opens the checkpoint store, if there is one, and makes the first run.
func (j *Job) prepare(ctx context.Context) (*run, error) {
	if j.options.Checkpoints == nil {
		return j.newRun(ctx)
	}
	var err error
	if j.checkpoints, err = openCheckpoints(ctx, j); err != nil {
		return nil, err
	}
	r, err := j.newRun(ctx)
	if err != nil {
		return nil, errors.Join(err, j.checkpoints.close())
	}
	return r, nil
}

// supervise waits for the run and goes on until the job ends, over all restarts. A job whose
// checkpoints are another's by now is not restarted: the two would take them from each other.
func (j *Job) supervise(r *run) {
	err := r.wait()
	if err != nil && r.notOpened {
		if j.checkpoints != nil {
			j.checkpoints.unmarkStart()
		}
		j.end(err) // the job never ran, and would most likely fail again
		return
	}
	for err != nil && !errors.Is(err, checkpoint.ErrTakenOver) && j.ctx.Err() == nil && !j.stopped() && j.options.Restart != nil {
		delay, again := j.options.Restart.Next(time.Now())
		if !again {
			err = fmt.Errorf("%w (%s)", err, j.options.Restart.Exhausted())
			break
		}
		j.log.Error("the job has failed and will be restarted", "error", err, "after", delay)
		j.life.enter(status.Restarting)
		if !j.pause(delay) {
			if j.ctx.Err() != nil {
				err = nil // it was cancelled
			} else {
				err = fmt.Errorf("stopped while it waited to be restarted, so what was under way has not reached the sinks: %w", err)
			}
			break
		}
		if r, err = j.newRun(j.ctx); err != nil {
			if j.ctx.Err() != nil {
				err = nil
				break
			}
			j.failures.add(status.Failure{At: time.Now(), Err: err, Vertex: -1})
			continue
		}
		j.restarts.Add(1)
		r.launch()
		err = r.wait()
	}
	j.end(err)
}

// pause waits for d, or until the job is to end, and reports whether it goes on.
func (j *Job) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-j.ctx.Done():
	case <-j.stopping:
	}
	return false
}

func (j *Job) end(err error) {
	j.cancel()
	if j.checkpoints != nil {
		err = errors.Join(err, j.checkpoints.close())
	}
	switch j.err = err; {
	case err != nil:
		j.life.enter(status.Failed)
	case j.life.read().State == status.Cancelling:
		j.life.enter(status.Canceled)
	default:
		j.life.enter(status.Finished)
	}
	close(j.done)
}

// Stop asks the job to end gracefully: sources stop reading, what is under way is
// processed and reaches the sinks, and no final watermark is sent, so open windows stay
// closed to the world. A job with checkpoints ends with one. Stop returns at once; see
// Wait.
func (j *Job) Stop() { j.stopOnce.Do(func() { close(j.stopping) }) }

func (j *Job) stopped() bool {
	select {
	case <-j.stopping:
		return true
	default:
		return false
	}
}

// Cancel ends the job without waiting for records under way.
func (j *Job) Cancel() {
	j.life.enter(status.Cancelling)
	j.cancel()
}

// Done is closed when the job has ended and all its goroutines are gone.
func (j *Job) Done() <-chan struct{} { return j.done }

// Wait blocks until the job has ended and returns its first error: nil if its
// input ended or it was stopped gracefully or cancelled. A job that is stopped while it
// waits for its restart has not stopped gracefully: it ends with what it failed with.
func (j *Job) Wait() error {
	<-j.done
	return j.err
}

// Warnings returns what the plan checks found.
func (j *Job) Warnings() []graph.Warning { return j.warnings }
