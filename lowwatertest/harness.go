package lowwatertest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
)

// Drive calls f in a bubble of virtual time with a harness for a part of a job. f
// declares inputs and outputs, builds what is between them with the public API, and
// then drives it. The part runs with a parallelism of 1 unless it says otherwise;
// options override that.
//
// It needs no build tag.
func Drive(t *testing.T, f func(t *testing.T, h *Harness), options ...lowwater.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &Harness{t: t, env: NewEnvironment(t, options...)}
		t.Cleanup(h.stop)
		f(t, h)
	})
}

// Harness drives a part of a job. The first push, signal or advance starts it; inputs and
// outputs are declared before. When such a call returns, everything that follows from it
// has happened, and outputs have what came out.
//
// If the part fails, such as by an error of a user function, the next call or the end
// of the test fails the test, unless [Harness.Err] was asked and has told. All methods,
// and those of inputs and outputs, are for the goroutine of the test.
type Harness struct {
	t   *testing.T
	env *lowwater.Environment
	job *lowwater.Job
	// told says that the test knows of the part's error.
	told bool
}

// Env returns the environment, for parts that make sources of their own.
func (h *Harness) Env() *lowwater.Environment { return h.env }

// Input adds an input, whose stream is the beginning of the part. It is active, without a
// watermark and does not end until it is told otherwise, and so holds back whatever
// combines it with other inputs.
func (h *Harness) Input[T any](name string) *Input[T] {
	h.t.Helper()
	h.mustNotRun("Input")
	in := &Input[T]{h: h, source: newManualSource[T](name)}
	strategy := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[T] { return silent[T]{} })
	in.stream = lowwater.FromSource(h.env, in.source, strategy, name).Parallelism(1)
	return in
}

// Output adds an output, which notes what a stream emits. Side outputs are streams, too.
// With a part of parallelism 1 records are in the order in which they were emitted.
func (h *Harness) Output[T any](stream *lowwater.DataStream[T]) *Output[T] {
	h.t.Helper()
	h.mustNotRun("Output")
	out := &Output[T]{watermark: eventtime.MinTimestamp}
	stream.SinkTo(noted[T]{out}).Parallelism(1)
	return out
}

// Advance lets d of processing time pass, with all timers that are due in it. A
// processing-time timer for t fires when the clock has passed t, 1 ms later (spec windows
// 4).
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	h.run()
	synctest.Sleep(d)
}

// Status returns what the part looks like now: records, watermarks and late records by
// operator.
func (h *Harness) Status() lowwater.JobStatus {
	h.t.Helper()
	h.run()
	return h.job.Status()
}

// Err returns the error that ended the part, nil if there is none. The test then does not
// fail for it.
func (h *Harness) Err() error {
	if h.job == nil {
		return nil
	}
	select {
	case <-h.job.Done():
	default:
		return nil
	}
	err := h.job.Wait()
	h.told = err != nil
	return err
}

func (h *Harness) mustNotRun(call string) {
	h.t.Helper()
	if h.job != nil {
		h.t.Fatalf("%s: the part runs already: declare inputs and outputs before the first push, signal or advance", call)
	}
}

// run starts the part if need be, and fails the test if it has failed.
func (h *Harness) run() {
	h.t.Helper()
	if h.job != nil {
		if told := h.told; !told && h.Err() != nil {
			h.t.Fatal(h.Err())
		}
		return
	}
	job, err := h.env.Start(h.t.Context(), h.t.Name())
	if err != nil {
		h.t.Fatal(err)
	}
	h.job = job
	synctest.Wait()
}

// stop ends the part.
func (h *Harness) stop() {
	if h.job == nil {
		return
	}
	h.job.Stop()
	if err := h.job.Wait(); err != nil && !h.told {
		h.t.Error(err)
	}
}
