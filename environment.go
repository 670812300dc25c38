package lowwater

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/internal/rest"
)

// DefaultWatermarkInterval is the time between two periodic watermarks unless
// WithAutoWatermarkInterval says otherwise, Flink's default (spec watermarks 4.7).
const DefaultWatermarkInterval = 200 * time.Millisecond

// DefaultStopTimeout is how long a graceful stop may take, its last checkpoint included,
// unless WithStopTimeout says otherwise.
const DefaultStopTimeout = 30 * time.Second

// Environment is a job under construction. It is not safe for concurrent use,
// and runs one job: build a new one for the next.
type Environment struct {
	graph    graph.Graph
	options  job.Options
	errs     []error
	executed bool
	// serve returns the server that shows the job, and how to end it; nil means none.
	serve func(*slog.Logger) (server *rest.Server, closeServer func() error, err error)
	// restart is what WithRestart said, noRestart that it said nil.
	restart   RestartPolicy
	noRestart bool
}

// Option is a setting of an Environment. Of options given twice the last counts.
type Option func(*Environment)

// WithParallelism sets the number of subtasks of every operator that does not set its own,
// from 1 to 32768; the default is runtime.GOMAXPROCS(0). Sources without a parallelism of
// their own take no more subtasks than they have splits, and what is chained to them takes
// theirs.
func WithParallelism(n int) Option {
	return func(e *Environment) {
		if n < 1 || n > graph.MaxKeyGroups {
			e.fail("WithParallelism(%d): must be from 1 to %d", n, graph.MaxKeyGroups)
			return
		}
		e.graph.Parallelism = n
	}
}

// WithMaxParallelism sets the number of key groups, which limits the parallelism
// that a job's keyed state can ever be spread over, from 1 to 32768. The default is Flink's,
// derived from the parallelism of each operator (spec windows 5.1); a job that is restored
// takes over the stored number. Another number than the stored one fails the start.
func WithMaxParallelism(n int) Option {
	return func(e *Environment) {
		if n < 1 || n > graph.MaxKeyGroups {
			e.fail("WithMaxParallelism(%d): must be from 1 to %d", n, graph.MaxKeyGroups)
			return
		}
		e.graph.MaxParallelism = n
	}
}

// WithAutoWatermarkInterval sets the time between two periodic watermarks. 0 turns
// them off: periodic generators then emit nothing and idleness is never detected
// (spec watermarks 4.7). Negative ones, and fractions of a millisecond, are a build error.
func WithAutoWatermarkInterval(d time.Duration) Option {
	return func(e *Environment) {
		if d < 0 || d != d.Truncate(time.Millisecond) {
			e.fail("WithAutoWatermarkInterval(%v): must be 0 or whole milliseconds", d)
			return
		}
		e.options.WatermarkInterval = d
	}
}

// WithAlignmentSamples sets how many samples back a source's watermark is compared with
// the limit of its alignment group; 0 means the latest watermark, as in Flink before
// 2.3. The default is Flink's, 3: a source may run ahead for about three update
// intervals before it is stopped (spec watermarks 6.2). n must not be negative.
func WithAlignmentSamples(n int) Option {
	return func(e *Environment) {
		if n < 0 {
			e.fail("WithAlignmentSamples(%d): must be 0 or more", n)
			return
		}
		e.options.AlignmentSamples = n
	}
}

// WithStopTimeout sets how long a graceful stop may take before the job is cancelled
// instead and ends with ErrStopTimeout. d must be positive; the default is
// DefaultStopTimeout.
func WithStopTimeout(d time.Duration) Option {
	return func(e *Environment) {
		if d <= 0 {
			e.fail("WithStopTimeout(%v): must be positive", d)
			return
		}
		e.options.StopTimeout = d
	}
}

// WithStateMemory sets how many bytes of memory the keyed state of functions and the
// contents of tumbling and global windows may take, all subtasks together; 0, the default,
// is no limit. It is divided evenly among the subtasks that have such state or windows, and
// compared with an estimate. What is more goes to temporary files under dir, the system's
// directory for them if it is empty, the state that has not been used for longest first: the
// job is slower then, and says so in its log and status. Results are the same, but the keys
// of a window that was on disk fire in no defined order.
//
// Keys, state, accumulators and records of windows must be types that can be stored, as with
// checkpoints. Windows that overlap or merge, that have a trigger, an evictor or state of
// their own, and those of a window.ArrivalOrdered aggregator stay in memory, as do interval
// joins and timers (docs/state.md); a plan check names the operators that hold such.
//
// Less than 16 KiB, and a budget in a job with nothing that it is for, is a build error; a
// directory that cannot be written to fails the start.
func WithStateMemory(bytes int64, dir string) Option {
	return func(e *Environment) {
		if bytes != 0 && bytes < minStateMemory {
			e.fail("WithStateMemory(%d): must be 0, for no limit, or at least %d bytes for the whole job; 1 GiB is 1<<30", bytes, minStateMemory)
			return
		}
		e.graph.StateMemory, e.options.StateDir = bytes, dir
	}
}

// minStateMemory is below what any job needs, so that less is a mistake about the unit.
const minStateMemory = 16 << 10

// WithLogger sets where the job's warnings and errors go, and what it tells of restarts and
// checkpoints; the default is what slog.Default returns when the environment is made.
func WithLogger(l *slog.Logger) Option {
	return func(e *Environment) {
		if l == nil {
			e.fail("WithLogger: the logger is nil")
			return
		}
		e.options.Logger = l
	}
}

// NewEnvironment returns an empty job. What is wrong with the options is returned by
// Execute, Start or Plan.
func NewEnvironment(options ...Option) *Environment {
	e := &Environment{
		graph: graph.Graph{Parallelism: runtime.GOMAXPROCS(0)},
		options: job.Options{
			Logger:            slog.Default(),
			WatermarkInterval: DefaultWatermarkInterval,
			StopTimeout:       DefaultStopTimeout,
			Credits:           exchange.DefaultCredits,
			AlignmentSamples:  progress.DefaultAlignmentSamples,
		},
	}
	for _, o := range options {
		if o == nil {
			e.fail("NewEnvironment: an option is nil")
			continue
		}
		o(e)
	}
	return e
}

// Execute runs the job to its end. It returns
//   - all build errors, before anything runs, if there are any;
//   - nil when the input has ended or, once ctx is done, when the job has stopped
//     gracefully: sources stop reading, records under way reach the sinks and are
//     flushed, windows still open do not fire, and a job with checkpoints takes a last
//     one. A stop that takes longer than WithStopTimeout is ErrStopTimeout, and one of a
//     job that has failed and waits for its restart is what it failed with;
//   - nil after Job.Cancel;
//   - otherwise the first error of the job that it was not restarted after. Errors of
//     operators and user functions, panics included, are *OperatorError.
//
// When Execute returns, all goroutines of the job are gone.
func (e *Environment) Execute(ctx context.Context, name string) error {
	j, err := e.Start(ctx, name)
	if err != nil {
		return err
	}
	return j.Wait()
}

// Start starts the job and returns while it runs. When ctx ends the job stops gracefully,
// as for Execute. Start returns all build errors, and what fails before the first record,
// such as a topic that does not exist or a checkpoint that does not fit the job; what
// happens later is returned by Job.Wait. An environment runs once: a second Start fails.
func (e *Environment) Start(ctx context.Context, name string) (*Job, error) {
	if e.executed {
		return nil, fmt.Errorf("%s: job %q: this environment has run already: build a new one with NewEnvironment", callSite(), name)
	}
	if err := errors.Join(append(e.errs, e.graph.Validate(), e.checkCheckpoints())...); err != nil {
		return nil, fmt.Errorf("%s: job %q: %w", callSite(), name, err)
	}
	e.graph.Name = name
	switch {
	case e.restart != nil:
		e.options.Restart = job.NewRestart(e.restart)
	case e.options.Checkpoints != nil && !e.noRestart:
		e.options.Restart = job.NewRestart(DefaultRestart)
	}
	j, err := e.startServed(ctx)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", name, err)
	}
	e.executed = true
	return j, nil
}

// fail remembers a build error.
func (e *Environment) fail(format string, args ...any) {
	e.errs = append(e.errs, fmt.Errorf("%s: %w", callSite(), fmt.Errorf(format, args...)))
}

// addNode makes a node and remembers where in the author's code.
func (e *Environment) addNode(n *graph.Node) *graph.Node {
	n.Where = callSite()
	return e.graph.Add(n)
}

// callSite returns file:line of the innermost caller outside this package.
func callSite() string {
	const self = "github.com/lowwater/lowwater."
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, self) || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", shortFile(f.File), f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}

// shortFile keeps the last two parts of a path.
func shortFile(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
