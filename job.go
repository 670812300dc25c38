package lowwater

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
)

// OperatorError is an error of one operator or of the user function in it. Its
// Err is a *Panic if user code panicked.
type OperatorError = operator.Error

// Panic is a panic in user code as an error; %+v of the OperatorError around it
// prints the stack.
type Panic = operator.Panic

// Warning is something legal but surprising that was found in a job's plan before
// it started.
type Warning = graph.Warning

// JobStatus is what a running job looks like at one moment: every vertex, subtask,
// operator and split with its watermark and counters.
type JobStatus = job.Status

// The parts of a JobStatus, from the whole to the detail.
type (
	VertexStatus   = job.VertexStatus
	SubtaskStatus  = job.SubtaskStatus
	OperatorStatus = job.OperatorStatus
	SplitStatus    = job.SplitStatus
	LateCount      = job.LateCount
	LateSample     = job.LateSample
)

// SplitState says how a split takes part in event time.
type SplitState = metric.SplitState

// Active splits hold the watermark back, idle ones do not; paused ones are ahead of their
// alignment group; finished ones were read to their end.
const (
	SplitActive   = metric.SplitActive
	SplitIdle     = metric.SplitIdle
	SplitPaused   = metric.SplitPaused
	SplitFinished = metric.SplitFinished
)

// IdleReason says what declared a split idle: a timeout or the broker's knowledge.
type IdleReason = metric.IdleReason

const (
	NotIdle       = metric.NotIdle
	IdleByTimeout = metric.IdleByTimeout
	IdleByBroker  = metric.IdleByBroker
)

// ErrStopTimeout is returned when a graceful stop took longer than WithStopTimeout
// and the job was cancelled instead.
var ErrStopTimeout = job.ErrStopTimeout

// Job is a running job. Its methods may be called from any goroutine.
type Job struct {
	job  *job.Job
	name string
}

// Wait blocks until the job has ended and returns what Execute would.
func (j *Job) Wait() error {
	if err := j.job.Wait(); err != nil {
		return fmt.Errorf("job %q: %w", j.name, err)
	}
	return nil
}

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.job.Done() }

// Stop asks the job to stop gracefully and returns at once; see Execute.
func (j *Job) Stop() { j.job.Stop() }

// Cancel ends the job at once: records under way are dropped.
func (j *Job) Cancel() { j.job.Cancel() }

// Status returns the job's numbers as of now.
func (j *Job) Status() JobStatus { return j.job.Status() }

// Warnings returns what the plan checks found before the start.
func (j *Job) Warnings() []Warning { return j.job.Warnings() }
