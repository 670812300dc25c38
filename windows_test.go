package lowwater_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// text writes a pane as "key start..end value", with its timing if it is not on time.
func text[K, V any](p window.Pane[K, V]) string {
	s := fmt.Sprint(p.Key, " ", rangeOf(p.Window), " ", p.Value)
	if p.Timing != window.OnTime {
		s += " " + p.Timing.String()
	}
	return s
}

func rangeOf(w window.TimeWindow) string {
	if w == window.GlobalWindow {
		return "global"
	}
	return fmt.Sprintf("%d..%d", w.Start, w.End)
}

func keyOf(e event) string { return e.Key }

// sumByKey counts events in windows of a second.
func sumByKey(s *lowwater.DataStream[event]) *lowwater.DataStream[string] {
	return s.KeyBy(keyOf).Window(window.Tumbling(time.Second)).Aggregate(lowwater.Count[event]()).Map(text)
}

const window2sSize = 2 * time.Second

// These are the windows of tests that do not care about windows.
var (
	window2s  = window.Tumbling(window2sSize)
	windowDay = window.Tumbling(24 * time.Hour)
)

// pane is what a count emits.
type pane = window.Pane[string, int64]

// timeline is the input of most window tests: one split, in order of time but for b.
var timeline = []event{
	{"a", 1000, 1}, {"a", 1999, 2}, {"b", 1500, 3}, {"a", 2000, 4}, {"a", 3500, 5}, {"b", 6000, 6},
}

func TestEventTimeWindows(t *testing.T) {
	tests := []struct {
		assigner window.Assigner
		want     []string
	}{
		{window.Tumbling(time.Second), []string{
			"a 1000..2000 2", "b 1000..2000 1", "a 2000..3000 1", "a 3000..4000 1", "b 6000..7000 1",
		}},
		{window.Tumbling(2 * time.Second).Offset(500 * time.Millisecond), []string{
			"a 500..2500 3", "b 500..2500 1", "a 2500..4500 1", "b 4500..6500 1",
		}},
		{window.Sliding(2*time.Second, time.Second), []string{
			"a 0..2000 2", "b 0..2000 1", "a 1000..3000 3", "b 1000..3000 1", "a 2000..4000 2", "a 3000..5000 1",
			"b 5000..7000 1", "b 6000..8000 1",
		}},
		{window.Sliding(time.Second, 2*time.Second).Offset(time.Second), []string{ // with gaps
			"a 1000..2000 2", "b 1000..2000 1", "a 3000..4000 1",
		}},
		{window.Session(1200 * time.Millisecond), []string{
			"a 1000..3200 3", "b 1500..2700 1", "a 3500..4700 1", "b 6000..7200 1",
		}},
		{window.GlobalEndOfStream(), []string{"a global 4", "b global 2"}},
		{window.Global(), nil}, // never fires without a trigger
	}
	for _, tt := range tests {
		t.Run(tt.assigner.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				panes := from(env, splitsOf(2, timeline), bounded(500*time.Millisecond)).
					KeyBy(keyOf).Window(tt.assigner).Aggregate(lowwater.Count[event]())
				results, timestamps := panes.Map(text).Collect(), panes.Collect()
				execute(t, env)
				expect(t, "panes", results.Values(), tt.want...)
				for i, at := range timestamps.Timestamps() {
					if want := timestamps.Values()[i].Window.MaxTimestamp(); at != want {
						t.Errorf("the timestamp of %v is %d, want %d", timestamps.Values()[i], at, want)
					}
				}
			})
		})
	}
}

// TestProcessingTimeWindows: the timestamps, all alike, play no part.
func TestProcessingTimeWindows(t *testing.T) {
	tests := []struct {
		assigner window.Assigner
		want     []string
	}{
		{window.Tumbling(time.Second).ProcessingTime(), []string{"a 1000..2000 2", "a 3000..4000 1"}},
		{window.Tumbling(2 * time.Second).Offset(-500 * time.Millisecond).ProcessingTime(), []string{"a -500..1500 1", "a 1500..3500 2"}},
		{window.Sliding(2*time.Second, time.Second).ProcessingTime(), []string{
			"a 0..2000 2", "a 1000..3000 2", "a 2000..4000 1", "a 3000..5000 1",
		}},
		{window.Session(time.Second).ProcessingTime(), []string{"a 1000..2500 2", "a 3000..4000 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.assigner.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now().UnixMilli()
				same := func(n int) []event { return []event{{"a", 42, n}} }
				env := newEnv()
				s := from(env, &script[event]{
					splits:   [][]step[event]{{{time.Second, same(1)}, {1500 * time.Millisecond, same(2)}, {3 * time.Second, same(3)}, {9 * time.Second, same(4)}}},
					endAfter: 9 * time.Second,
				}, eventtime.NoWatermarks[event]())
				results := s.KeyBy(keyOf).Window(tt.assigner).Aggregate(lowwater.Count[event]()).
					Map(func(p window.Pane[string, int64]) string {
						if now, end := time.Now().UnixMilli(), p.Window.End; now != end {
							t.Errorf("%v fired at %d", p, now)
						}
						p.Window.Start -= started
						p.Window.End -= started
						return text(p)
					}).Collect()
				execute(t, env)
				// The last record's windows are open when the input ends.
				expect(t, "panes", results.Values(), tt.want...)
			})
		})
	}
}

// TestWindowFunctions runs every function on the same windows.
func TestWindowFunctions(t *testing.T) {
	type windowed = lowwater.WindowedStream[string, event]
	sum := func(elements iter.Seq[event]) (n int) {
		for e := range elements {
			n += e.N
		}
		return n
	}
	tests := []struct {
		name  string
		apply func(*windowed) *lowwater.DataStream[string]
		want  []string
	}{
		{"reduce", func(w *windowed) *lowwater.DataStream[string] {
			return w.Reduce(func(a, b event) event { return event{a.Key, max(a.At, b.At), a.N + b.N} }).Map(text)
		}, []string{"a 1000..2000 {a 1999 3}", "b 1000..2000 {b 1500 3}", "a 2000..3000 {a 2000 4}", "a 3000..4000 {a 3500 5}", "b 6000..7000 {b 6000 6}"}},
		{"aggregate", func(w *windowed) *lowwater.DataStream[string] {
			return w.Aggregate(mean{}).Map(text)
		}, []string{"a 1000..2000 1.5", "b 1000..2000 3", "a 2000..3000 4", "a 3000..4000 5", "b 6000..7000 6"}},
		{"process", func(w *windowed) *lowwater.DataStream[string] {
			return w.Process(func(ctx *lowwater.WindowContext[string], elements iter.Seq[event], out *lowwater.Collector[string]) error {
				out.Emit(fmt.Sprint(ctx.Key(), " ", rangeOf(ctx.Window()), " ", sum(elements), ctx.Timing()))
				if twice := sum(elements); twice > 3 {
					out.Emit(fmt.Sprint("more than 3: ", twice))
				}
				return nil
			})
		}, []string{"a 1000..2000 3 on-time", "b 1000..2000 3 on-time", "a 2000..3000 4 on-time", "a 3000..4000 5 on-time", "b 6000..7000 6 on-time",
			"more than 3: 4", "more than 3: 5", "more than 3: 6"}},
		{"aggregate and process", func(w *windowed) *lowwater.DataStream[string] {
			return w.AggregateProcess(mean{}, func(ctx *lowwater.WindowContext[string], elements iter.Seq[float64], out *lowwater.Collector[string]) error {
				out.Emit(fmt.Sprint(ctx.Key(), " ", rangeOf(ctx.Window()), " ", slices.Collect(elements)))
				return nil
			})
		}, []string{"a 1000..2000 [1.5]", "b 1000..2000 [3]", "a 2000..3000 [4]", "a 3000..4000 [5]", "b 6000..7000 [6]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				results := tt.apply(from(env, splitsOf(2, timeline), bounded(500*time.Millisecond)).
					KeyBy(keyOf).Window(window.Tumbling(time.Second))).Collect()
				execute(t, env)
				expect(t, "results", results.Values(), tt.want...)
			})
		})
	}
}

// mean is an aggregator with three different types.
type mean struct{}

type sumCount struct{ sum, count int }

func (mean) New() sumCount                      { return sumCount{} }
func (mean) Add(acc sumCount, e event) sumCount { return sumCount{acc.sum + e.N, acc.count + 1} }
func (mean) Merge(a, b sumCount) sumCount       { return sumCount{a.sum + b.sum, a.count + b.count} }
func (mean) Result(acc sumCount) float64        { return float64(acc.sum) / float64(acc.count) }

// TestProcessWindowSeesTheWatermark: a watermark that passes several windows is what all
// of them see; results and side outputs carry the window's last millisecond.
func TestProcessWindowSeesTheWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		side := lowwater.NewOutputTag[string]("side")
		started := time.Now().UnixMilli()
		env := newEnv()
		s := from(env, &script[event]{splits: [][]step[event]{{
			{0, []event{{"a", 1000, 1}, {"a", 2000, 2}}},
			{900 * time.Millisecond, []event{{"a", 3500, 3}}},
			{1900 * time.Millisecond, []event{{"a", 9000, 4}}},
		}}, endAfter: 2900 * time.Millisecond}, bounded(0)).
				KeyBy(keyOf).
				Window(window.Tumbling(time.Second)).
				Process(func(ctx *lowwater.WindowContext[string], elements iter.Seq[event], out *lowwater.Collector[string]) error {
				w := rangeOf(ctx.Window())
				out.Emit(fmt.Sprint(w, " at ", ctx.CurrentWatermark()))
				ctx.Output(side, fmt.Sprint(w, " after ", ctx.CurrentProcessingTime()-started))
				return nil
			})
		results, sides := s.Collect(), s.SideOutput(side).Collect()
		execute(t, env)
		inOrder(t, "results", results.Values(), "1000..2000 at 1999", "2000..3000 at 3499", "3000..4000 at 8999",
			fmt.Sprint("9000..10000 at ", eventtime.MaxTimestamp))
		inOrder(t, "their timestamps", results.Timestamps(), 1999, 2999, 3999, 9999)
		inOrder(t, "side outputs", sides.Values(), "1000..2000 after 200", "2000..3000 after 1000", "3000..4000 after 2000", "9000..10000 after 2900")
		inOrder(t, "their timestamps", sides.Timestamps(), 1999, 2999, 3999, 9999)
	})
}

func TestAllowedLatenessAndLateSideOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := lowwater.NewOutputTag[event]("late")
		env := newEnv()
		s := from(env, &script[event]{splits: [][]step[event]{{
			{0, []event{{"a", 1500, 1}, {"b", 2500, 2}}},
			{time.Second, []event{{"a", 1600, 3}, {"c", 1700, 4}}},                    // late but allowed
			{2 * time.Second, []event{{"a", 3600, 5}}},                                // now it is over
			{3 * time.Second, []event{{"a", 1800, 6}, {"b", 2600, 7}, {"a", 500, 8}}}, // b is still allowed
		}}}, bounded(0)).
			KeyBy(keyOf).
			Window(window.Tumbling(time.Second)).
			AllowedLateness(time.Second).
			SideOutputLate(late).
			Aggregate(lowwater.Count[event]())
		results, tooLate := s.Map(text).Collect(), s.SideOutput(late).Collect()
		execute(t, env)
		expect(t, "panes", results.Values(), "a 1000..2000 1", "a 1000..2000 2 late", "c 1000..2000 1 late",
			"b 2000..3000 1", "b 2000..3000 2 late", "a 3000..4000 1")
		inOrder(t, "late records", tooLate.Values(), event{"a", 1800, 6}, event{"a", 500, 8})
		inOrder(t, "their timestamps", tooLate.Timestamps(), 1800, 500)
	})
}

// TestLateRecordsAreCounted: without a late output they are dropped, never without a
// trace.
func TestLateRecordsAreCounted(t *testing.T) {
	for _, withOutput := range []bool{false, true} {
		t.Run(fmt.Sprint("output=", withOutput), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := lowwater.NewOutputTag[event]("late")
				env := newEnv(lowwater.WithParallelism(1))
				w := from(env, &script[event]{splits: [][]step[event]{{
					{0, []event{{"a", 5000, 1}}},
					{time.Second, []event{{"a", 100, 2}, {"b", 200, 3}, {"a", 6000, 4}}},
				}}}, bounded(0)).KeyBy(keyOf).Window(window.Tumbling(time.Second))
				if withOutput {
					w = w.SideOutputLate(late)
				}
				s := w.Aggregate(lowwater.Count[event]()).Name("Count")
				s.Map(text).Collect()
				var lateRecords *lowwater.Collected[event]
				if withOutput {
					lateRecords = s.SideOutput(late).Collect()
				}
				job, err := env.Start(t.Context(), "test")
				if err != nil {
					t.Fatal(err)
				}
				if err := job.Wait(); err != nil {
					t.Fatal(err)
				}
				count := operatorStatus(t, job, "Count")
				wantDropped := int64(2)
				if withOutput {
					wantDropped = 0
					if n := len(lateRecords.Values()); n != 2 {
						t.Errorf("%d records in the side output, want 2", n)
					}
				}
				if count.LateRecords != 2 || count.LateRecordsDropped != wantDropped {
					t.Errorf("%d late records of which %d dropped, want 2 and %d", count.LateRecords, count.LateRecordsDropped, wantDropped)
				}
			})
		})
	}
}

// operatorStatus returns the numbers of an operator in the first subtask that runs it.
func operatorStatus(t *testing.T, job *lowwater.Job, name string) (s struct {
	LateRecords, LateRecordsDropped, In, Out int64
}) {
	t.Helper()
	for _, v := range job.Status().Vertices {
		for _, o := range v.Subtasks[0].Operators {
			if o.Name == name {
				s.LateRecords, s.LateRecordsDropped, s.In, s.Out = o.LateRecords, o.LateRecordsDropped, o.RecordsIn, o.RecordsOut
				return s
			}
		}
	}
	t.Fatalf("no operator %q in %+v", name, job.Status())
	return s
}

func TestWindowAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(3))
		all := from(env, splitsOf(2, timeline[:3], timeline[3:]), bounded(5*time.Second)).
			WindowAll(window.Tumbling(2 * time.Second)).
			Reduce(func(a, b event) event { return event{"", 0, a.N + b.N} })
		results := all.Map(func(p window.Pane[lowwater.All, event]) string { return text(p) }).Collect()
		execute(t, env)
		expect(t, "panes", results.Values(), "all 0..2000 { 0 6}", "all 2000..4000 { 0 9}", "all 6000..8000 {b 6000 6}")
	})
}

// TestWindowsOfWindows: results carry timestamps and watermarks follow them, so that
// windows can be stacked.
func TestWindowsOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		perSecond := from(env, splitsOf(2, timeline), bounded(500*time.Millisecond)).
			KeyBy(keyOf).Window(window.Tumbling(time.Second)).Aggregate(lowwater.Count[event]())
		most := perSecond.WindowAll(window.Tumbling(time.Second)).Reduce(func(a, b window.Pane[string, int64]) window.Pane[string, int64] {
			if b.Value > a.Value {
				return b
			}
			return a
		}).Map(func(p window.Pane[lowwater.All, window.Pane[string, int64]]) string { return text(p.Value) }).Collect()
		execute(t, env)
		expect(t, "most per second", most.Values(), "a 1000..2000 2", "a 2000..3000 1", "a 3000..4000 1", "b 6000..7000 1")
	})
}

func TestKeysOfEveryKind(t *testing.T) {
	type pair struct {
		Name string
		Odd  bool
	}
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		s := from(env, splitsOf(2, timeline), bounded(500*time.Millisecond))
		w := window.GlobalEndOfStream()
		numbers := s.KeyBy(func(e event) int { return e.N % 2 }).Window(w).Aggregate(lowwater.Count[event]()).Map(text).Collect()
		bools := s.KeyBy(func(e event) bool { return e.N > 4 }).Window(w).Aggregate(lowwater.Count[event]()).Map(text).Collect()
		structs := s.KeyBy(func(e event) pair { return pair{e.Key, e.N%2 == 1} }).Window(w).Aggregate(lowwater.Count[event]()).Map(text).Collect()
		arrays := s.KeyBy(func(e event) [2]int8 { return [2]int8{int8(e.N % 2), 7} }).Window(w).Aggregate(lowwater.Count[event]()).Map(text).Collect()
		execute(t, env)
		expect(t, "numbers", numbers.Values(), "0 global 3", "1 global 3")
		expect(t, "bools", bools.Values(), "false global 4", "true global 2")
		expect(t, "structs", structs.Values(), "{a true} global 2", "{a false} global 2", "{b true} global 1", "{b false} global 1")
		expect(t, "arrays", arrays.Values(), "[0 7] global 3", "[1 7] global 3")
	})
}

// TestRecordWithoutTimestampInAnEventTimeWindow: the error says which record and what to
// do.
func TestRecordWithoutTimestampInAnEventTimeWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		from(env, splitsOf(2, timeline), eventtime.NoWatermarks[event]()).KeyBy(keyOf).
			Window(window.Tumbling(time.Second)).Aggregate(lowwater.Count[event]()).Name("Count").Parallelism(1).Collect()
		err := env.Execute(t.Context(), "test")
		if !errors.Is(err, window.ErrNoTimestamp) {
			t.Fatalf("got %v, want %v", err, window.ErrNoTimestamp)
		}
		for _, part := range []string{`operator "Count"`, "record 0 of events split-0"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	})
}
