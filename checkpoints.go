package lowwater

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/status"
)

// Defaults of checkpoints, Flink's where it has them; RetainCheckpoints' is larger, so
// that there is another one should the newest be damaged.
const (
	DefaultCheckpointTimeout   = 10 * time.Minute
	DefaultRetainedCheckpoints = 3
)

// CheckpointOption is a setting of WithCheckpoints.
type CheckpointOption func(*job.CheckpointOptions) error

// WithCheckpoints has the job take a checkpoint of all its state every interval, 0 for
// on request only, and store it at url: a directory, as a path or file:// URL, or an
// object store in builds with its driver (docs/checkpoints.md). After a failure the job
// goes on from the last one, so that no record is lost, and with a sink that
// commits on checkpoints none counts twice.
//
// One process at a time may use a url. If it holds checkpoints of an earlier run, say
// what they mean: ResumeLatest or StartFresh.
//
// Unless WithRestart says otherwise, a job with checkpoints restarts after failures as
// Flink's does: after 1 s, then ever later up to 1 min.
func WithCheckpoints(url string, interval time.Duration, options ...CheckpointOption) Option {
	return func(e *Environment) {
		o := &job.CheckpointOptions{
			URL: url, Interval: interval,
			Timeout: DefaultCheckpointTimeout, MaxConcurrent: 1, Retain: DefaultRetainedCheckpoints,
		}
		if url == "" {
			e.fail("WithCheckpoints: the url is empty: give a directory")
		}
		if interval < 0 || interval > 0 && interval < 10*time.Millisecond {
			e.fail("WithCheckpoints: interval %v: must be 0 or at least 10ms", interval)
		}
		for _, option := range options {
			if option == nil {
				e.fail("WithCheckpoints: an option is nil")
				continue
			}
			if err := option(o); err != nil {
				e.fail("WithCheckpoints: %w", err)
			}
		}
		if o.AlignmentTimeout > 0 && o.MaxConcurrent > 1 {
			e.fail("WithCheckpoints: AlignedCheckpointTimeout and MaxConcurrentCheckpoints exclude each other: barriers that overtake records must be alone")
		}
		if o.CommitLater && o.MaxConcurrent > 1 {
			e.fail("WithCheckpoints: CommitOneCheckpointLater and MaxConcurrentCheckpoints exclude each other: it must be known which checkpoint is the one before")
		}
		e.options.Checkpoints = o
	}
}

// CheckpointTimeout sets how long a checkpoint may take before it has failed; the
// default is 10 minutes.
func CheckpointTimeout(d time.Duration) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.Timeout = d; d <= 0 {
			return fmt.Errorf("CheckpointTimeout(%v): must be positive", d)
		}
		return nil
	}
}

// MinPauseBetweenCheckpoints sets the least time between the end of a checkpoint and the
// next trigger; the default is 0.
func MinPauseBetweenCheckpoints(d time.Duration) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.MinPause = d; d < 0 {
			return fmt.Errorf("MinPauseBetweenCheckpoints(%v): must not be negative", d)
		}
		return nil
	}
}

// MaxConcurrentCheckpoints sets how many checkpoints may be under way at a time; the
// default is 1.
func MaxConcurrentCheckpoints(n int) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.MaxConcurrent = n; n < 1 {
			return fmt.Errorf("MaxConcurrentCheckpoints(%d): must be positive", n)
		}
		return nil
	}
}

// TolerableCheckpointFailures sets how many checkpoints may fail in a row before the job
// does; the default is Flink's, 0.
func TolerableCheckpointFailures(n int) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.TolerableFailures = n; n < 0 {
			return fmt.Errorf("TolerableCheckpointFailures(%d): must not be negative", n)
		}
		return nil
	}
}

// RetainCheckpoints sets how many completed checkpoints are kept; the default is 3.
// Savepoints are never removed.
func RetainCheckpoints(n int) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.Retain = n; n < 1 {
			return fmt.Errorf("RetainCheckpoints(%d): must be positive", n)
		}
		return nil
	}
}

// CommitOneCheckpointLater has the output of exactly-once sinks become visible when not
// only the checkpoint that covers it has completed but also the next one. Should the newest
// checkpoint be damaged when the job has to go on from it, the one before is
// used, and no output is repeated. Without this option the output between the two,
// which is visible already, comes a second time. The price is one interval of latency.
func CommitOneCheckpointLater() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.CommitLater = true
		return nil
	}
}

// AlignedCheckpointTimeout sets how long after its trigger a checkpoint waits until its
// barriers have come to an operator on all channels. After that they overtake the records
// ahead of them, which become part of the checkpoint, so that back pressure
// does not hold it up. The default is 0: barriers wait. Operators with a broadcast input
// always wait, and so do savepoints and the last checkpoint of a job.
func AlignedCheckpointTimeout(d time.Duration) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.AlignmentTimeout = d; d < 0 {
			return fmt.Errorf("AlignedCheckpointTimeout(%v): must not be negative", d)
		}
		return nil
	}
}

// ResumeLatest has the job go on from the newest checkpoint in the store that is whole,
// and start anew if there is none. Damaged ones are logged.
func ResumeLatest() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.Restore.Latest = true
		return o.Restore.Validate()
	}
}

// ResumeFrom has the job go on from one checkpoint or savepoint, by path or URL.
func ResumeFrom(path string) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.Restore.Path = path; path == "" {
			return errors.New("ResumeFrom: the path is empty")
		}
		return o.Restore.Validate()
	}
}

// StartFresh has the job start without state although the store holds checkpoints.
func StartFresh() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.Restore.Fresh = true
		return o.Restore.Validate()
	}
}

// AllowNonRestoredState accepts a checkpoint with state that the job has no operator, or
// no state, for. That state is lost.
func AllowNonRestoredState() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.Restore.AllowNonRestoredState = true
		return nil
	}
}

// RestartPolicy says whether and when a job that failed runs again, from its last
// checkpoint or, without checkpoints, from the start: FixedDelay, FailureRate or
// ExponentialDelay.
type RestartPolicy = job.RestartPolicy

// The restart policies; see their fields.
type (
	FixedDelay       = job.FixedDelay
	FailureRate      = job.FailureRate
	ExponentialDelay = job.ExponentialDelay
)

// DefaultRestart is the policy of jobs with checkpoints, Flink's default.
var DefaultRestart RestartPolicy = ExponentialDelay{
	Initial: time.Second, Max: time.Minute, Multiplier: 1.5, ResetAfter: time.Hour, Jitter: 0.1,
}

// WithRestart sets what happens after a failure; nil means that the job fails for good.
// The default is nil for jobs without checkpoints and DefaultRestart for others.
func WithRestart(p RestartPolicy) Option {
	return func(e *Environment) {
		if p != nil {
			if err := p.Validate(); err != nil {
				e.fail("WithRestart: %w", err)
			}
		}
		e.restart, e.noRestart = p, p == nil
	}
}

// checkCheckpoints reports what the job has that goes with checkpoints only, or not with
// them.
func (e *Environment) checkCheckpoints() error {
	var errs []error
	for _, n := range e.graph.Nodes {
		switch {
		case n.ExactlyOnce && e.options.Checkpoints == nil:
			errs = append(errs, fmt.Errorf("sink %q (%s) is exactly-once, which takes checkpoints: add WithCheckpoints to the environment", n.Name, n.Where))
		case n.Source != nil && n.Source.Codec == nil && e.options.Checkpoints != nil:
			errs = append(errs, fmt.Errorf("source %q (%s) cannot store its position, which checkpoints take: its connector must implement connector.SplitCodec", n.Name, n.Where))
		}
	}
	return errors.Join(errs...)
}

// Checkpoint takes a checkpoint now and returns its path.
func (j *Job) Checkpoint(ctx context.Context) (path string, err error) { return j.job.Checkpoint(ctx) }

// Savepoint takes a savepoint into the directory at url, "" for the job's own, and
// returns its path. Savepoints are never removed; ResumeFrom goes on from them.
func (j *Job) Savepoint(ctx context.Context, url string) (path string, err error) {
	return j.job.Savepoint(ctx, url)
}

// StopWithSavepoint stops the job gracefully with a savepoint as its last checkpoint. With
// drain the input ends first: the final watermark fires all open windows, so that the
// savepoint is of use only if the input is not gone on with.
func (j *Job) StopWithSavepoint(ctx context.Context, url string, drain bool) (path string, err error) {
	return j.job.StopWithSavepoint(ctx, url, drain)
}

// Checkpoints returns what became of the job's checkpoints; ok is false if it takes none.
func (j *Job) Checkpoints() (c status.Checkpoints, ok bool) { return j.job.Checkpoints() }
