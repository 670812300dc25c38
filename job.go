package lowwater

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/status"
)

// OperatorError is an error of one operator or of the user function in it; find it with
// errors.As. Its fields are the operator's name (Operator), its UID, the file and line that
// made it (Where), the number of the Subtask, -1 if it failed before there were any, and
// the cause (Err), which is a *Panic if user code panicked.
type OperatorError = operator.Error

// Panic is a panic in user code as an error: what the code panicked with (Value), the file
// and line (Where, empty if unknown) and the Stack; %+v of the OperatorError around it
// prints that. If Value is an error, errors.Is and errors.As find it.
type Panic = operator.Panic

// Warning is something legal but surprising that was found in a job's plan before it
// started: a Code, which stays the same over versions, the Operator and Where in the
// author's code, a Message, and what to do about it, the best first (Fixes).
type Warning = graph.Warning

// JobStatus is what a running job looks like at one moment; see package status.
type JobStatus = status.Job

// The parts of a JobStatus, from the whole to the detail; their docs are in package status.
type (
	VertexStatus   = status.Vertex
	SubtaskStatus  = status.Subtask
	OperatorStatus = status.Operator
	SplitStatus    = status.Split
	LateCount      = status.LateCount
	LateSample     = status.LateSample
)

// ErrStopTimeout is in the error of a job, for errors.Is, whose graceful stop took longer
// than WithStopTimeout, so that it was cancelled instead. Records under way may not have
// reached the sinks.
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

// Wait blocks until the job has ended and returns what Execute would. It may be called any
// number of times.
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

// Done returns a channel that is closed when the job has ended and its goroutines are gone.
func (j *Job) Done() <-chan struct{} { return j.job.Done() }

// Stop asks the job to stop gracefully, with a last checkpoint if it takes any, and returns
// at once; see Execute. Stopping it again does nothing.
func (j *Job) Stop() { j.job.Stop() }

// Cancel ends the job at once: records under way are dropped, and there is no last
// checkpoint. It does not wait for the end; Wait then returns nil.
func (j *Job) Cancel() { j.job.Cancel() }

// Status returns the job's numbers as of now, or as of its end.
func (j *Job) Status() JobStatus { return j.job.Status() }

// Warnings returns what the plan checks found before the start. The caller must not change
// the slice.
func (j *Job) Warnings() []Warning { return j.job.Warnings() }
