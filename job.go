package lowwater

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/status"
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

// JobStatus is what a running job looks like at one moment; see package status.
type JobStatus = status.Job

// The parts of a JobStatus, from the whole to the detail.
type (
	VertexStatus   = status.Vertex
	SubtaskStatus  = status.Subtask
	OperatorStatus = status.Operator
	SplitStatus    = status.Split
	LateCount      = status.LateCount
	LateSample     = status.LateSample
)

// ErrStopTimeout is returned when a graceful stop took longer than WithStopTimeout
// and the job was cancelled instead.
var ErrStopTimeout = job.ErrStopTimeout

// Job is a running job. Its methods may be called from any goroutine.
type Job struct {
	job  *job.Job
	name string
	// served is closed when the REST server that ends with the job has; nil if there is
	// none.
	served   chan struct{}
	restAddr string
}

// Wait blocks until the job has ended and returns what Execute would.
func (j *Job) Wait() error {
	err := j.job.Wait()
	if j.served != nil {
		<-j.served
	}
	if err != nil {
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
