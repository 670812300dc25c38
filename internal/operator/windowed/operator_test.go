package windowed

import (
	"bytes"
	"errors"
	"iter"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

func (h *harness) mustProcess(t testing.TB, records ...timed) {
	t.Helper()
	if err := h.process(records...); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) mustAdvance(t testing.TB, watermark int64) {
	t.Helper()
	if err := h.op.Watermark(watermark); err != nil {
		t.Fatal(err)
	}
}

// panes describes what was emitted since the last call, in order.
func (h *harness) panes() []string {
	var lines []string
	for _, r := range h.take().main {
		f := r.Value.(firing)
		lines = append(lines, paneLine(f.Key, f.Window, f.Timing, f.Value.([]int32), false))
	}
	return lines
}

func TestMissingTimestampNamesTheRecord(t *testing.T) {
	for _, a := range []window.Assigner{
		window.Tumbling(time.Second),
		window.Sliding(10*time.Second, time.Second),
	} {
		h := openHarness(t, Process(specOf[element](Options{Assigner: a}), listFunction))
		err := h.process(timed{element{"k", 1}, 5, 0}, timed{element{"k", 2}, noTimestamp, connector.MakeOrigin(3, 42)})
		if !errors.Is(err, window.ErrNoTimestamp) {
			t.Fatalf("%v: error %v, want ErrNoTimestamp", a, err)
		}
		for _, part := range []string{a.String(), "42", "key k", "timestamp assigner"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
	}
}

func TestLateRecordsAreCountedAndSampled(t *testing.T) {
	for _, late := range []string{"", lateOutput} {
		h := openHarness(t, Process(specOf[element](Options{Assigner: window.Tumbling(10 * time.Millisecond), LateOutput: late}), listFunction))
		h.mustAdvance(t, 100)
		h.mustProcess(t,
			timed{element{"a", 1}, 50, connector.MakeOrigin(1, 7)},
			timed{element{"b", 2}, 99, connector.MakeOrigin(2, 8)},
			timed{element{"b", 3}, 101, connector.MakeOrigin(2, 9)})
		if got := h.metrics.NumLateRecords.Value(); got != 2 {
			t.Errorf("late output %q: %d late records, want 2", late, got)
		}
		dropped := map[string]int64{"": 2, lateOutput: 0}[late]
		if got := h.metrics.NumLateRecordsDropped.Value(); got != dropped {
			t.Errorf("late output %q: %d dropped, want %d", late, got, dropped)
		}
		want := []metric.LateRecord{
			{Timestamp: 50, Watermark: 100, Key: "a", Origin: connector.MakeOrigin(1, 7)},
			{Timestamp: 99, Watermark: 100, Key: "b", Origin: connector.MakeOrigin(2, 8)},
		}
		if diff := cmp.Diff(want, h.metrics.Late.Latest()); diff != "" {
			t.Errorf("late output %q: samples (-want +got):\n%s", late, diff)
		}
		if diff := cmp.Diff(map[uint32]int64{1: 1, 2: 1}, h.metrics.Late.BySplit()); diff != "" {
			t.Errorf("late output %q: by split (-want +got):\n%s", late, diff)
		}
	}
}

// A record whose windows have ended but which is not late itself is lost by Flink
// without a trace. Here it is counted.
func TestRecordsAtTheEndOfTimeAreCounted(t *testing.T) {
	for _, test := range []struct {
		assigner window.Assigner
		reason   string
	}{
		{window.Tumbling(time.Second), "windows-ended"},
		{window.Session(time.Second), "windows-ended"},
		{window.Sliding(10*time.Second, time.Second), "timestamp-out-of-range"},
	} {
		h := openHarness(t, Process(specOf[element](Options{Assigner: test.assigner}), listFunction))
		h.mustAdvance(t, 0)
		h.mustProcess(t, timed{element{"k", 1}, math.MaxInt64, connector.MakeOrigin(1, 7)})
		drops := h.metrics.Drops()[test.reason]
		if drops.Count != 1 || !strings.Contains(drops.Latest[0], "key k") {
			t.Errorf("%v: drops %v, want one for %q", test.assigner, h.metrics.Drops(), test.reason)
		}
	}
}

func TestGlobalWindowFiresAtEndOfStreamOnly(t *testing.T) {
	h := openHarness(t, Process(specOf[element](Options{Assigner: window.GlobalEndOfStream()}), listFunction))
	h.mustProcess(t, timed{element{"b", 1}, 5, 0}, timed{element{"a", 2}, noTimestamp, 0})
	h.mustAdvance(t, math.MaxInt64-1)
	h.mustProcess(t, timed{element{"b", 3}, 1, 0})
	if got := h.panes(); got != nil {
		t.Errorf("fired before the end: %v", got)
	}
	h.mustAdvance(t, math.MaxInt64)
	global := window.GlobalWindow
	want := []string{
		paneLine("b", global, window.OnTime, []int32{1, 3}, false),
		paneLine("a", global, window.OnTime, []int32{2}, false),
	}
	if diff := cmp.Diff(want, h.panes()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

// Windows fire by end, and the keys of a window in the order of their first
// record in it.
func TestFiringOrder(t *testing.T) {
	for _, a := range []window.Assigner{
		window.Tumbling(10 * time.Millisecond),
		window.Sliding(20*time.Millisecond, 10*time.Millisecond),
	} {
		h := openHarness(t, Process(specOf[element](Options{Assigner: a}), listFunction))
		h.mustProcess(t, timed{element{"z", 1}, 15, 0}, timed{element{"m", 2}, 5, 0},
			timed{element{"a", 3}, 16, 0}, timed{element{"m", 4}, 17, 0})
		h.mustAdvance(t, 19)
		got := strings.Join(h.panes(), "\n")
		want := "m [0, 10) [2] on-time\nz [10, 20) [1] on-time\na [10, 20) [3] on-time\nm [10, 20) [4] on-time"
		if a.String() != "window.Tumbling(10ms)" {
			want = "m [-10, 10) [2] on-time\nm [0, 20) [2 4] on-time\nz [0, 20) [1] on-time\na [0, 20) [3] on-time"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", a, diff)
		}
	}
}

func TestProcessingTimeFiresOneMillisecondAfterTheEnd(t *testing.T) {
	for _, a := range []window.Assigner{
		window.Tumbling(10 * time.Millisecond).ProcessingTime(),
		window.Sliding(10*time.Millisecond, 5*time.Millisecond).ProcessingTime(),
		window.Session(10 * time.Millisecond).ProcessingTime(),
	} {
		h := openHarness(t, Process(specOf[element](Options{Assigner: a}), listFunction))
		h.mustProcess(t, timed{element{"k", 1}, 0, 0})
		if len(h.clock.timers) != 1 {
			t.Fatalf("%v: %d timers, want 1", a, len(h.clock.timers))
		}
		h.mustAdvance(t, math.MaxInt64)
		if err := h.clock.set(9); err != nil {
			t.Fatal(err)
		}
		h.take()
		if err := h.clock.set(10); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"k [0, 10) [1] on-time"}, h.panes()); diff != "" {
			t.Errorf("%v: at 10 (-want +got):\n%s", a, diff)
		}
	}
}

// When the clock goes back, no window fires twice.
func TestProcessingTimeClockGoesBack(t *testing.T) {
	h := openHarness(t, Process(specOf[element](Options{Assigner: window.Sliding(10*time.Millisecond, 5*time.Millisecond).ProcessingTime()}), listFunction))
	h.clock.now = 12
	h.mustProcess(t, timed{element{"k", 1}, 0, 0})
	if err := h.clock.set(15); err != nil {
		t.Fatal(err)
	}
	h.clock.now = 3
	h.mustProcess(t, timed{element{"k", 2}, 0, 0})
	if err := h.clock.set(40); err != nil {
		t.Fatal(err)
	}
	want := []string{"k [5, 15) [1] on-time", "k [10, 20) [1 2] on-time", "k [15, 25) [2] on-time"}
	if diff := cmp.Diff(want, h.panes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProcessingTimeWindowsLostAtTheEndAreTold(t *testing.T) {
	for _, a := range []window.Assigner{
		window.Tumbling(10 * time.Millisecond).ProcessingTime(),
		window.Sliding(10*time.Millisecond, 5*time.Millisecond).ProcessingTime(),
		window.Session(10 * time.Millisecond).ProcessingTime(),
	} {
		var log bytes.Buffer
		op := Process(specOf[element](Options{Assigner: a}), listFunction)
		h := openHarness(t, op)
		rt := h.runtime()
		rt.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if err := op.Open(rt, h.out); err != nil {
			t.Fatal(err)
		}
		h.mustProcess(t, timed{element{"k", 1}, 0, 0})
		if err := op.Finish(); err != nil {
			t.Fatal(err)
		}
		if got := h.panes(); got != nil {
			t.Errorf("%v: fired at the end: %v", a, got)
		}
		if !strings.Contains(log.String(), "do not fire") {
			t.Errorf("%v: log is %q", a, log.String())
		}
	}
}

func TestStaggerIsFixedAtTheFirstRecord(t *testing.T) {
	a := window.Tumbling(10 * time.Millisecond).Stagger(window.StaggerNatural).ProcessingTime()
	h := openHarness(t, Process(specOf[element](Options{Assigner: a}), listFunction))
	h.clock.now = 4
	h.mustProcess(t, timed{element{"k", 1}, 0, 0})
	h.clock.now = 8
	h.mustProcess(t, timed{element{"k", 2}, 0, 0})
	if err := h.clock.set(100); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"k [4, 14) [1 2] on-time"}, h.panes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An error of a window function ends the call at once.
func TestErrorsOfFunctionsAreReturned(t *testing.T) {
	broken := errors.New("broken")
	for _, a := range []window.Assigner{
		window.Tumbling(10 * time.Millisecond),
		window.Sliding(10*time.Millisecond, 5*time.Millisecond),
		window.Session(10 * time.Millisecond),
	} {
		calls := 0
		op := Process(specOf[element](Options{Assigner: a, AllowedLateness: 100}), func(*Context[string], *operator.Emitter[firing]) func(iter.Seq[element]) error {
			return func(iter.Seq[element]) error { calls++; return broken }
		})
		h := openHarness(t, op)
		h.mustProcess(t, timed{element{"a", 1}, 1, 0}, timed{element{"b", 1}, 1, 0})
		if err := op.Watermark(50); !errors.Is(err, broken) || calls != 1 {
			t.Errorf("%v: watermark: error %v after %d calls, want the function's after 1", a, err, calls)
		}
		if err := h.process(timed{element{"c", 1}, 1, 0}); !errors.Is(err, broken) || calls != 2 {
			t.Errorf("%v: late record: error %v after %d calls, want the function's after 2", a, err, calls)
		}
		if got := h.take().watermarks; got != nil {
			t.Errorf("%v: watermark %v forwarded after an error", a, got)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{}, "no assigner"},
		{Options{Assigner: window.Tumbling(0)}, "at least 1ms"},
		{Options{Assigner: window.Global(), AllowedLateness: -1}, "must not be negative"},
	} {
		if err := test.options.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.options, err, test.want)
		}
	}
}
