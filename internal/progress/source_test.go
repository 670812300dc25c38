package progress_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/status"
)

// bounded is the strategy of most tests: 5 ms out of order, idle after 100 ms.
func bounded() eventtime.WatermarkStrategy[int] {
	return eventtime.ForBoundedOutOfOrderness[int](5 * time.Millisecond).WithIdleness(100 * time.Millisecond)
}

func aligned() eventtime.WatermarkStrategy[int] {
	return bounded().WithWatermarkAlignment("g", time.Second, time.Second)
}

func newTestSource(t testing.TB, s eventtime.WatermarkStrategy[int], cfg progress.SourceConfig, out progress.Output) *progress.Source[int] {
	t.Helper()
	if cfg.Report == nil {
		cfg.Report = func(int64) {}
	}
	source, err := progress.NewSource(s, cfg, 0, out)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func addSplit(t testing.TB, s *progress.Source[int], id string) *progress.Split[int] {
	t.Helper()
	split, err := s.AddSplit(id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return split
}

// pauser is a reader that can pause splits.
type pauser struct{ trace }

func (p *pauser) PauseSplits(ids []string)  { p.add("pause %v", ids) }
func (p *pauser) ResumeSplits(ids []string) { p.add("resume %v", ids) }

func TestSourceRefusesWrongConfig(t *testing.T) {
	report := func(int64) {}
	tests := []struct {
		name     string
		strategy eventtime.WatermarkStrategy[int]
		cfg      progress.SourceConfig
		want     string
	}{
		{"no strategy", eventtime.WatermarkStrategy[int]{}, progress.SourceConfig{}, "zero value"},
		{"no coordinator", aligned(), progress.SourceConfig{}, "no way to report"},
		{"negative samples", aligned(), progress.SourceConfig{Report: report, Samples: -1}, "samples -1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := progress.NewSource(tt.strategy, tt.cfg, 0, &trace{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewSource: %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestSourceRefusesASplitTwice(t *testing.T) {
	source := newTestSource(t, bounded(), progress.SourceConfig{}, &trace{})
	split := addSplit(t, source, "a")
	if _, err := source.AddSplit("a", 0); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("second AddSplit: %v", err)
	}
	source.ReleaseSplit(split)
	source.ReleaseSplit(split)
	if source.Split("a") != nil || len(source.Splits()) > 0 {
		t.Error("the released split is still there")
	}
	addSplit(t, source, "a")
}

// TestSplitStates: every change is told once, and a split that is idle and
// paused counts as idle.
func TestSplitStates(t *testing.T) {
	var states trace
	var reader pauser
	source := newTestSource(t, aligned(), progress.SourceConfig{
		Pauser:     &reader,
		SplitState: func(id string, s status.SplitState) { states.add("%s %s", id, s) },
	}, &trace{})
	a, b := addSplit(t, source, "a"), addSplit(t, source, "b")
	must(t, a.EmitWatermark(100))
	must(t, source.MaxAllowed(50, 10))
	if !a.Paused() || a.State() != status.SplitPaused || a.Watermark() != 100 || b.State() != status.SplitActive {
		t.Errorf("a is %s at %d, b is %s", a.State(), a.Watermark(), b.State())
	}
	must(t, a.MarkIdle())
	must(t, b.MarkIdle())
	must(t, b.MarkIdle())
	must(t, a.MarkActive())
	must(t, source.MaxAllowed(math.MaxInt64, 20))
	source.ReleaseSplit(a)
	want := []string{"a paused", "a idle", "b idle", "a paused", "a active", "a finished"}
	if diff := cmp.Diff(want, states.lines); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pause [a]", "resume [a]"}, reader.lines); diff != "" {
		t.Errorf("reader (-want +got):\n%s", diff)
	}
}

func TestReaderWithoutPause(t *testing.T) {
	for _, allow := range []bool{false, true} {
		t.Run(fmt.Sprint("allow unaligned ", allow), func(t *testing.T) {
			source := newTestSource(t, aligned(), progress.SourceConfig{AllowUnalignedSplits: allow}, &trace{})
			split := addSplit(t, source, "a")
			must(t, split.EmitWatermark(100))
			err := source.MaxAllowed(50, 0)
			if allow {
				must(t, err)
				if !source.Blocked() || split.Paused() {
					t.Errorf("blocked %t, paused %t", source.Blocked(), split.Paused())
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), `group "g" must pause split "a"`) {
				t.Errorf("MaxAllowed: %v", err)
			}
		})
	}
}

// failing is an output whose n-th call fails.
type failing struct {
	trace
	n   int
	err error
}

func (f *failing) call() error {
	if f.n--; f.n == 0 {
		return f.err
	}
	return nil
}

func (f *failing) Watermark(t int64) error { _ = f.trace.Watermark(t); return f.call() }
func (f *failing) Status(idle bool) error  { _ = f.trace.Status(idle); return f.call() }

// TestErrorsComeBack: whoever caused an emission gets its error, and nothing is
// emitted after it.
func TestErrorsComeBack(t *testing.T) {
	boom := errors.New("channel closed")
	type step struct {
		name string
		run  func(out progress.Output) error
	}
	sourceAt := func(out progress.Output) *progress.Source[int] {
		s := newTestSource(t, eventtime.NoWatermarks[int](), progress.SourceConfig{}, out)
		addSplit(t, s, "a")
		return s
	}
	tests := []step{
		{"valve minimum", func(out progress.Output) error {
			return progress.NewValve(1, progress.Current, out).Watermark(0, 5)
		}},
		{"valve flush", func(out progress.Output) error {
			v := progress.NewValve(2, progress.Current, out)
			return errors.Join(v.Watermark(0, 5), v.Status(1, true))
		}},
		{"combination", func(out progress.Output) error {
			return progress.NewCombination(1, out).Input(0).Watermark(5)
		}},
		{"combination status", func(out progress.Output) error {
			c := progress.NewCombination(2, out)
			return errors.Join(c.Input(0).Watermark(5), c.Input(0).Status(true), c.Input(1).Status(true))
		}},
		{"gate", func(out progress.Output) error { return progress.NewGate(out).Watermark(5) }},
		{"source split", func(out progress.Output) error { return sourceAt(out).Split("a").EmitWatermark(5) }},
		{"source main", func(out progress.Output) error { return sourceAt(out).Main().MarkIdle() }},
		{"source end", func(out progress.Output) error { return sourceAt(out).End(true) }},
		{"timestamps operator", func(out progress.Output) error {
			o, err := progress.NewTimestampsOperator(bounded(), 10, false, 0, out)
			must(t, err)
			return o.Watermark(math.MaxInt64)
		}},
		{"sql assigner", func(out progress.Output) error {
			return progress.NewSQLWatermarkAssigner(10, 10, 0, out).Finish()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := &failing{n: 1, err: boom}
			if err := tt.run(out); !errors.Is(err, boom) {
				t.Errorf("error %v, want %v", err, boom)
			}
			if tt.name != "combination status" && tt.name != "valve flush" && len(out.lines) != 1 {
				t.Errorf("emitted %v", out.lines)
			}
		})
	}
}

func TestSourceIsSilentAfterAnError(t *testing.T) {
	boom := errors.New("channel closed")
	out := &failing{n: 2, err: boom}
	source := newTestSource(t, eventtime.NoWatermarks[int](), progress.SourceConfig{}, out)
	main := source.Main()
	must(t, main.EmitWatermark(1))
	for i, err := range []error{main.EmitWatermark(2), main.EmitWatermark(3), main.MarkIdle(), source.Periodic(10), source.End(true)} {
		if !errors.Is(err, boom) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if diff := cmp.Diff([]string{"watermark 1", "watermark 2"}, out.lines); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// TestOnBatchEqualsOnEvent: batches of any size lead to the same watermarks,
// idleness included.
func TestOnBatchEqualsOnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var single, batched trace
		newSource := func(out progress.Output) *progress.Source[int] {
			s, err := progress.NewSource(bounded(), progress.SourceConfig{}, 0, out)
			mustDo(t, err)
			for _, id := range []string{"a", "b"} {
				_, err := s.AddSplit(id, 0)
				mustDo(t, err)
			}
			return s
		}
		one, many := newSource(&single), newSource(&batched)
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "periodic") {
				now += rapid.Int64Range(0, 90).Draw(t, "ms")
				mustDo(t, one.Periodic(now))
				mustDo(t, many.Periodic(now))
				continue
			}
			id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "split")
			timestamps := rapid.SliceOfN(rapid.Int64Range(0, 100), 0, 5).Draw(t, "timestamps")
			for _, ts := range timestamps {
				mustDo(t, one.Split(id).OnEvent(0, ts))
			}
			if !many.Split(id).CanBatch() {
				t.Fatal("the built-in generator must take batches")
			}
			many.Split(id).OnBatch(make([]int, len(timestamps)), timestamps)
		}
		if diff := cmp.Diff(single.lines, batched.lines); diff != "" {
			t.Fatalf("output (-single +batched):\n%s", diff)
		}
		checkStream(t, single.lines)
	})
}

func TestPunctuatedGeneratorsGetNoBatches(t *testing.T) {
	s := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[int] { return punctuated{} })
	source := newTestSource(t, s, progress.SourceConfig{}, &trace{})
	if source.Main().CanBatch() {
		t.Error("CanBatch() of a generator that may emit on events")
	}
}

// punctuated emits on every event.
type punctuated struct{}

func (punctuated) OnEvent(_ int, t int64, out eventtime.WatermarkOutput) { out.EmitWatermark(t) }
func (punctuated) OnPeriodicEmit(eventtime.WatermarkOutput)              {}

func TestCoordinatorRefusesASourceTwice(t *testing.T) {
	c := progress.NewCoordinator()
	first, err := c.Join("orders", "g", 10)
	must(t, err)
	if _, err := c.Join("orders", "g", 10); err == nil {
		t.Error("a source joined twice")
	}
	if got := first.Limit(); got != math.MaxInt64 {
		t.Errorf("limit before any report: %d", got)
	}
	first.Report(3, 7)
	if got := first.Limit(); got != 17 {
		t.Errorf("limit %d, want 17", got)
	}
}

// TestNothingFollowsTheEnd: timers and announcements may still be under way.
func TestNothingFollowsTheEnd(t *testing.T) {
	var out trace
	var reader pauser
	var reports []int64
	source := newTestSource(t, aligned(), progress.SourceConfig{
		Pauser: &reader,
		Report: func(t int64) { reports = append(reports, t) },
	}, &out)
	must(t, addSplit(t, source, "a").EmitWatermark(100))
	must(t, source.End(true))
	for now := int64(200); now < 1000; now += 200 {
		must(t, source.Periodic(now))
		must(t, source.MaxAllowed(50, now))
		must(t, source.Sample(now))
	}
	if diff := cmp.Diff([]string{"watermark 100", fmt.Sprint("watermark ", math.MaxInt64)}, out.lines); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if len(reader.lines) > 0 {
		t.Errorf("the reader was told to %v", reader.lines)
	}
	if diff := cmp.Diff([]int64{math.MaxInt64}, reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// TestSQLTimerInterval: spec watermarks 10.5, the timer's period.
func TestSQLTimerInterval(t *testing.T) {
	tests := []struct{ interval, timeout, want int64 }{
		{200, 0, 200},
		{200, -1, 200},
		{0, 300, 300},
		{200, 1001, 200},
		{200, 1000, 40},
		{200, 200, 40},
		{1000, 200, 40},
		{1001, 200, 200},
		{3, 4, 1},
		{0, 0, 0},
	}
	for _, tt := range tests {
		a := progress.NewSQLWatermarkAssigner(tt.interval, tt.timeout, 5000, discard{})
		at, ok := a.NextTimer()
		if at-5000 != tt.want || ok != (tt.want > 0) {
			t.Errorf("interval %d, timeout %d: timer after %d, %t, want %d", tt.interval, tt.timeout, at-5000, ok, tt.want)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
