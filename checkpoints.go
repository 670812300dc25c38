package lowwater

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/status"
)

// Defaults of CheckpointTimeout and RetainCheckpoints. The first is Flink's; the second is
// larger, so that there is another checkpoint should the newest be damaged.
const (
	DefaultCheckpointTimeout   = 10 * time.Minute
	DefaultRetainedCheckpoints = 3
)

// CheckpointOption is a setting of WithCheckpoints. Wrong ones are build errors.
type CheckpointOption func(*job.CheckpointOptions) error

// WithCheckpoints has the job take a checkpoint of all its state every interval, which is
// at least 10 ms, or 0 for on request only, and store it at url: a directory, as a path or
// file:// URL, an object store in builds with its driver (docs/checkpoints.md), or
// mem://NAME in the memory of the process, for tests. After a failure the job goes on from
// the last one, so that no record is lost, and with a sink that commits on checkpoints
// none counts twice. The watermarks of splits and operators are part of a checkpoint, so that
// what is late does not depend on where a restart falls. A job whose input ends, and one that
// is stopped gracefully, takes a last one.
//
// One process at a time may use a url. If it holds checkpoints of an earlier run, say
// what they mean: ResumeLatest, ResumeFrom or StartFresh; without one of them the start
// fails. All keys, states and elements of windows must be of types that can be stored (see
// docs/state.md); others fail the job before its first record.
//
// Unless WithRestart says otherwise, a job with checkpoints restarts after failures by
// DefaultRestart.
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
		if o.CommitLater && o.Retain == 1 {
			e.fail("WithCheckpoints: RetainCheckpoints(1) and CommitOneCheckpointLater exclude each other: should the newest checkpoint be damaged, the one before is needed: retain at least 2")
		}
		if o.CommitLater && o.MaxConcurrent > 1 {
			e.fail("WithCheckpoints: CommitOneCheckpointLater and MaxConcurrentCheckpoints exclude each other: it must be known which checkpoint is the one before")
		}
		e.options.Checkpoints = o
	}
}

// CheckpointTimeout sets how long a checkpoint may take before it has failed; the
// default is DefaultCheckpointTimeout, 10 minutes. d must be positive. One that the store
// was making complete at that moment, and does so after all, is one to go on from like
// any other.
func CheckpointTimeout(d time.Duration) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.Timeout = d; d <= 0 {
			return fmt.Errorf("CheckpointTimeout(%v): must be positive", d)
		}
		return nil
	}
}

// MinPauseBetweenCheckpoints sets the least time between the end of a checkpoint and the
// next trigger by interval; the default is 0. d must not be negative. Checkpoints on
// request do not wait for it.
func MinPauseBetweenCheckpoints(d time.Duration) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.MinPause = d; d < 0 {
			return fmt.Errorf("MinPauseBetweenCheckpoints(%v): must not be negative", d)
		}
		return nil
	}
}

// MaxConcurrentCheckpoints sets how many checkpoints may be under way at a time; the
// default is 1, the least. More excludes AlignedCheckpointTimeout and
// CommitOneCheckpointLater.
func MaxConcurrentCheckpoints(n int) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.MaxConcurrent = n; n < 1 {
			return fmt.Errorf("MaxConcurrentCheckpoints(%d): must be positive", n)
		}
		return nil
	}
}

// TolerableCheckpointFailures sets how many checkpoints may fail in a row without the job
// failing; the default is Flink's, 0: the first one fails the job. n must not be negative.
// Savepoints do not count, except one that has stopped the input (StopWithSavepoint).
func TolerableCheckpointFailures(n int) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.TolerableFailures = n; n < 0 {
			return fmt.Errorf("TolerableCheckpointFailures(%d): must not be negative", n)
		}
		return nil
	}
}

// RetainCheckpoints sets how many completed checkpoints are kept, also when the job has
// ended; the default is DefaultRetainedCheckpoints, 3, and the least is 1, or 2 with
// CommitOneCheckpointLater. Savepoints are never removed.
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
// does not hold it up. The default is 0: barriers wait. d must not be negative. Operators
// with a broadcast input always wait, and so do savepoints and the last checkpoint of a
// job.
func AlignedCheckpointTimeout(d time.Duration) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.AlignmentTimeout = d; d < 0 {
			return fmt.Errorf("AlignedCheckpointTimeout(%v): must not be negative", d)
		}
		return nil
	}
}

// ResumeLatest has the job go on from the newest checkpoint in the store that is whole,
// and start anew if the store is empty. Damaged ones are logged; if all are, the start
// fails. If the newest run was told StartFresh or ResumeFrom and ended before its first
// checkpoint, it starts as that one did; if it was stopped with a savepoint in another
// store, from that. A checkpoint of a job with another name and without any uid (DataStream.UID)
// of this one is refused, unless AllowNonRestoredState. ResumeLatest, ResumeFrom and StartFresh exclude each other.
func ResumeLatest() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.Restore.Latest = true
		return o.Restore.Validate()
	}
}

// ResumeFrom has the job go on from one checkpoint or savepoint, by path or URL, which may
// be of another store than the job's own. The start fails if it is missing, damaged, or
// does not fit the job. Operators find their state by their uid (DataStream.UID). Restarts
// of the job go on from its own checkpoints as soon as there are any.
func ResumeFrom(path string) CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		if o.Restore.Path = path; path == "" {
			return errors.New("ResumeFrom: the path is empty")
		}
		return o.Restore.Validate()
	}
}

// StartFresh has the job start without state although the store may hold checkpoints of
// earlier runs. They count towards RetainCheckpoints and are removed in time.
func StartFresh() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.Restore.Fresh = true
		return o.Restore.Validate()
	}
}

// AllowNonRestoredState accepts a checkpoint with state that the job has no operator, or
// no state, for, which otherwise fails the start. That state is lost.
func AllowNonRestoredState() CheckpointOption {
	return func(o *job.CheckpointOptions) error {
		o.Restore.AllowNonRestoredState = true
		return nil
	}
}

// RestartPolicy says whether and when a job that failed runs again, from its last
// checkpoint or, without checkpoints, from the start. It is one of FixedDelay, FailureRate
// and ExponentialDelay, Flink's own; the interface is sealed. Fields that make no sense are a
// build error.
type RestartPolicy = job.RestartPolicy

// FixedDelay is the policy of at most Attempts restarts (an int, at least 1), each Delay (a
// time.Duration, 0 for at once) after the failure.
type FixedDelay = job.FixedDelay

// FailureRate is the policy of restarts while there have been no more than Failures
// failures (an int, at least 1) within Interval (a time.Duration, positive), each Delay (a
// time.Duration, 0 for at once) after the failure.
type FailureRate = job.FailureRate

// ExponentialDelay is the policy of restarts for ever. The first comes Initial after the
// failure (a time.Duration, positive); the delay grows by the factor Multiplier (a float64,
// at least 1) up to Max, and is Initial again after ResetAfter without a failure (both a
// time.Duration; none has a default). Jitter (a float64, from 0 to 1) is the largest part
// of a delay that is added or taken away at random.
type ExponentialDelay = job.ExponentialDelay

// DefaultRestart returns the policy of jobs with checkpoints, Flink's default: after 1 s, then
// ever later by a factor of 1.5 up to 1 min, and from the beginning after an hour without
// failure.
func DefaultRestart() RestartPolicy {
	return ExponentialDelay{
		Initial: time.Second, Max: time.Minute, Multiplier: 1.5, ResetAfter: time.Hour, Jitter: 0.1,
	}
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

// Checkpoint takes a checkpoint now and returns its path when it has completed; output of
// exactly-once sinks becomes visible with it as with any other. It fails if
// the job takes no checkpoints (WithCheckpoints), is between two runs or has ended, or if
// the checkpoint fails. When ctx ends Checkpoint returns, but the checkpoint goes on.
func (j *Job) Checkpoint(ctx context.Context) (path string, err error) { return j.job.Checkpoint(ctx) }

// Savepoint takes a savepoint into the directory at url, "" for the job's own store, and
// returns its path; see Checkpoint for errors. A savepoint that fails does not harm the
// job. Savepoints are never removed; ResumeFrom goes on from them. They make no output of
// exactly-once sinks visible, as in Flink: the next checkpoint does, or the run that is
// resumed from them. A restart goes on from one only if it is in the job's own store and
// newer than all checkpoints.
func (j *Job) Savepoint(ctx context.Context, url string) (path string, err error) {
	return j.job.Savepoint(ctx, url)
}

// StopWithSavepoint stops the job gracefully with a savepoint as its last checkpoint, and
// returns its path; url is as for Savepoint. It makes visible what it covers, and is what
// ResumeLatest goes on from, also if it is in another store than the job's own. It
// returns when all that has become visible; the job may take a moment more to end: see
// Wait. With drain the input ends first: the final watermark fires all open windows and
// event-time timers, so that the savepoint is of use only if the input is not gone on with
// (spec watermarks 8.3).
//
// Errors are those of Checkpoint, and one if the job is ending already. The job goes on if
// the savepoint cannot be begun. Once sources have stopped for it, it counts for
// TolerableCheckpointFailures: within them it is tried again, and past them the run fails,
// so that the job goes on from its last checkpoint, or ends if it is not to be restarted.
// The error says which it was. If the job fails after the savepoint is stored and before
// all output of exactly-once sinks is visible, StopWithSavepoint returns the path and an
// error: the job goes on from the savepoint by its restart policy, or ends.
func (j *Job) StopWithSavepoint(ctx context.Context, url string, drain bool) (path string, err error) {
	return j.job.StopWithSavepoint(ctx, url, drain)
}

// Checkpoints returns what became of the job's checkpoints, the latest 32 in detail; ok is
// false if it takes none.
func (j *Job) Checkpoints() (c status.Checkpoints, ok bool) { return j.job.Checkpoints() }
