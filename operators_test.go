package lowwater_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// newEnv returns an environment that keeps quiet.
func newEnv(options ...lowwater.Option) *lowwater.Environment {
	quiet := lowwater.WithLogger(slog.New(slog.DiscardHandler))
	return lowwater.NewEnvironment(append([]lowwater.Option{lowwater.WithParallelism(2), quiet}, options...)...)
}

// execute runs a job that must not fail.
func execute(t *testing.T, env *lowwater.Environment) {
	t.Helper()
	if err := env.Execute(t.Context(), "test"); err != nil {
		t.Fatalf("%+v", err)
	}
}

// expect compares a stream's records with what they should be, in any order.
func expect[T cmp.Ordered](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if diff := gocmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// inOrder compares a stream's records with what they should be, in their order.
func inOrder[T any](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func upTo(n int) []int {
	values := make([]int, n)
	for i := range values {
		values[i] = i
	}
	return values
}

func TestElementOperatorsKeepOrderAndTimestamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		timed := lowwater.FromSlice(env, upTo(5)).Forward().AssignTimestampsAndWatermarks(
			eventtime.ForMonotonousTimestamps[int]().WithTimestampAssigner(func(v int, _ int64) int64 { return int64(10 * v) })).
			Parallelism(1)
		mapped := timed.Forward().Map(func(v int) string { return fmt.Sprint("<", v, ">") }).Forward().Collect()
		even := timed.Forward().Filter(func(v int) bool { return v%2 == 0 }).Forward().Collect()
		none := timed.Forward().Filter(func(v int) bool { return false }).Forward().Collect()
		flat := timed.Forward().FlatMap(func(v int, emit func(int)) {
			for range v {
				emit(v)
			}
		}).Forward().Collect()
		execute(t, env)

		inOrder(t, "Map", mapped.Values(), "<0>", "<1>", "<2>", "<3>", "<4>")
		inOrder(t, "Map's timestamps", mapped.Timestamps(), 0, 10, 20, 30, 40)
		inOrder(t, "Filter", even.Values(), 0, 2, 4)
		inOrder(t, "Filter's timestamps", even.Timestamps(), 0, 20, 40)
		inOrder(t, "Filter of all", none.Values())
		inOrder(t, "FlatMap", flat.Values(), 1, 2, 2, 3, 3, 3, 4, 4, 4, 4)
		inOrder(t, "FlatMap's timestamps", flat.Timestamps(), 10, 20, 20, 30, 30, 30, 40, 40, 40, 40)
	})
}

func TestFlatMapMayEmitManyBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3*connector.BatchSize + 1
		env := newEnv()
		flat := lowwater.FromSlice(env, []int{0, 1}).Forward().FlatMap(func(v int, emit func(int)) {
			for i := range n {
				emit(v*n + i)
			}
		}).Forward().Collect()
		execute(t, env)
		inOrder(t, "FlatMap", flat.Values(), upTo(2*n)...)
	})
}

// TestConsumersDoNotSeeEachOther: a filter works in place, which those who got the
// same records must not notice.
func TestConsumersDoNotSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		s := lowwater.FromSlice(env, upTo(5000)).Forward().Filter(func(int) bool { return true })
		before := s.Collect()
		third := s.Filter(func(v int) bool { return v%3 == 0 }).Collect()
		elsewhere := s.Rebalance().Filter(func(v int) bool { return v%5 == 0 }).Collect()
		everywhere := s.Broadcast().Filter(func(v int) bool { return v%7 == 0 }).Collect()
		after := s.Forward().Collect()
		execute(t, env)
		every := func(n int) (values []int) {
			for v := 0; v < 5000; v += n {
				values = append(values, v)
			}
			return values
		}
		expect(t, "all", before.Values(), every(1)...)
		expect(t, "the third", third.Values(), every(3)...)
		expect(t, "the fifth", elsewhere.Values(), every(5)...)
		expect(t, "the seventh, twice", everywhere.Values(), append(every(7), every(7)...)...)
		expect(t, "all again", after.Values(), every(1)...)
	})
}

func TestProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now().UnixMilli()
		words, numbers := lowwater.NewOutputTag[string]("side"), lowwater.NewOutputTag[int]("side")
		unused := lowwater.NewOutputTag[string]("unused")
		env := newEnv()
		s := from(env, splitsOf(2, []event{{"a", 10, 1}, {"b", 20, 2}, {"c", 30, 3}, {"d", 40, 4}}), bounded(0)).
			Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[string]) error {
				if now := ctx.CurrentProcessingTime(); now != started {
					return fmt.Errorf("the clock shows %d, want %d", now, started)
				}
				if ctx.Timestamp() != e.At || ctx.Subtask() != 0 || ctx.CurrentWatermark() != eventtime.MinTimestamp {
					return fmt.Errorf("timestamp %d of %v in subtask %d at watermark %d", ctx.Timestamp(), e, ctx.Subtask(), ctx.CurrentWatermark())
				}
				if e.N%2 == 0 {
					out.Emit(e.Key)
				}
				if e.N == 3 {
					out.EmitAt("later", 99)
				}
				ctx.Output(words, "word "+e.Key)
				ctx.Output(numbers, e.N)
				return nil
			})
		main, sideWords, sideNumbers, nothing := s.Collect(), s.SideOutput(words).Collect(), s.SideOutput(numbers).Collect(), s.SideOutput(unused).Collect()
		execute(t, env)
		inOrder(t, "the main output", main.Values(), "b", "later", "d")
		inOrder(t, "its timestamps", main.Timestamps(), 20, 99, 40)
		inOrder(t, "the side output of words", sideWords.Values(), "word a", "word b", "word c", "word d")
		inOrder(t, "its timestamps", sideWords.Timestamps(), 10, 20, 30, 40)
		inOrder(t, "the side output of numbers", sideNumbers.Values(), 1, 2, 3, 4)
		inOrder(t, "the unused side output", nothing.Values())
	})
}

// subtask tells where each record was processed.
func subtask(s *lowwater.DataStream[int]) *lowwater.DataStream[[2]int] {
	return s.Process(func(ctx *lowwater.ProcessContext, v int, out *lowwater.Collector[[2]int]) error {
		out.Emit([2]int{ctx.Subtask(), v})
		return nil
	})
}

func TestPartitioning(t *testing.T) {
	const n = 6000
	tests := []struct {
		name  string
		apply func(*lowwater.DataStream[int]) *lowwater.DataStream[int]
		want  func(subtask, value int) bool
	}{
		{"rebalance", (*lowwater.DataStream[int]).Rebalance, func(subtask, v int) bool { return v%3 == subtask }},
		{"broadcast", (*lowwater.DataStream[int]).Broadcast, func(int, int) bool { return true }},
		{"automatic", func(s *lowwater.DataStream[int]) *lowwater.DataStream[int] { return s }, func(subtask, v int) bool { return v%3 == subtask }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				source := lowwater.FromSource(env, splitsOf(700, upTo(n)), eventtime.NoWatermarks[int](), "numbers")
				got := subtask(tt.apply(source)).Parallelism(3).Forward().Collect()
				execute(t, env)
				seen := map[int][]int{}
				for _, v := range got.Values() {
					seen[v[0]] = append(seen[v[0]], v[1])
				}
				for s := range 3 {
					var want []int
					for v := range n {
						if tt.want(s, v) {
							want = append(want, v)
						}
					}
					inOrder(t, fmt.Sprint("subtask ", s), seen[s], want...)
				}
			})
		})
	}
}

// TestForwardKeepsSubtasks: split i is read by subtask i and stays there, chained or
// not.
func TestForwardKeepsSubtasks(t *testing.T) {
	for _, chained := range []bool{true, false} {
		t.Run(fmt.Sprint("chained=", chained), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				source := lowwater.FromSource(env, splitsOf(1, []int{0, 10}, []int{1, 11}, []int{2, 12}), eventtime.NoWatermarks[int](), "numbers").
					Parallelism(3)
				s := subtask(source.Forward())
				if !chained {
					s.DisableChaining()
				}
				got := s.Forward().Collect()
				execute(t, env)
				for _, v := range got.Values() {
					if v[0] != v[1]%10 {
						t.Errorf("%d was processed in subtask %d", v[1], v[0])
					}
				}
				if len(got.Values()) != 6 {
					t.Errorf("got %v, want 6 records", got.Values())
				}
			})
		})
	}
}

func TestUnion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(3))
		odd := lowwater.NewOutputTag[int]("odd")
		split := lowwater.FromSlice(env, upTo(10)).Process(func(ctx *lowwater.ProcessContext, v int, out *lowwater.Collector[int]) error {
			if v%2 == 1 {
				ctx.Output(odd, v)
			} else {
				out.Emit(v)
			}
			return nil
		})
		hundreds := lowwater.FromSource(env, splitsOf(1, []int{100}, []int{200}), eventtime.NoWatermarks[int](), "hundreds")
		both := split.Union(split.SideOutput(odd))
		all := both.Union(hundreds, hundreds).Map(func(v int) int { return v }).Collect()
		alone := both.Union().Collect()
		execute(t, env)
		expect(t, "the union", all.Values(), append(upTo(10), 100, 100, 200, 200)...)
		expect(t, "the union of side output and main output", alone.Values(), upTo(10)...)
	})
}

// TestUnionHoldsTheSmallestWatermark: the record of the fast stream waits for the slow
// stream's time.
func TestUnionHoldsTheSmallestWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(1))
		fast := from(env, &script[event]{splits: [][]step[event]{{
			{0, []event{{"fast", 1000, 1}}},
			{3 * time.Second, []event{{"fast", 1001, 2}}},
		}}}, bounded(0))
		slow := from(env, &script[event]{splits: [][]step[event]{{
			{0, []event{{"slow", 100, 3}}},
			{3 * time.Second, []event{{"slow", 500, 4}}},
			{5 * time.Second, []event{{"slow", 501, 5}}},
		}}}, bounded(0))
		seen := fast.Union(slow).Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[string]) error {
			out.Emit(fmt.Sprint(e.N, " at ", ctx.CurrentWatermark()))
			return nil
		}).Collect()
		execute(t, env)
		expect(t, "records with watermarks", seen.Values(), fmt.Sprint("1 at ", eventtime.MinTimestamp),
			"2 at 99", fmt.Sprint("3 at ", eventtime.MinTimestamp), "4 at 99", "5 at 499")
	})
}

func TestAssignTimestampsAndWatermarksBehindTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(1))
		// The source's own watermarks are far ahead, and must not come through.
		ahead := eventtime.ForMonotonousTimestamps[event]().WithTimestampAssigner(func(e event, _ int64) int64 { return e.At + 1_000_000 })
		var previous []int64
		behind := eventtime.ForBoundedOutOfOrderness[event](10 * time.Millisecond).WithTimestampAssigner(func(e event, recordMillis int64) int64 {
			previous = append(previous, recordMillis)
			return e.At
		})
		seen := from(env, &script[event]{splits: [][]step[event]{{
			{0, []event{{"a", 100, 1}}},
			{time.Second, []event{{"b", 200, 2}, {"c", 195, 3}}},
			{2 * time.Second, []event{{"d", 300, 4}}},
		}}}, ahead).
			AssignTimestampsAndWatermarks(behind).
			Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[string]) error {
				out.Emit(fmt.Sprint(e.Key, ctx.Timestamp(), " at ", ctx.CurrentWatermark()))
				return nil
			}).Collect()
		execute(t, env)
		inOrder(t, "records with watermarks", seen.Values(),
			fmt.Sprint("a100 at ", eventtime.MinTimestamp), "b200 at 89", "c195 at 89", "d300 at 189")
		inOrder(t, "what the assigner saw", previous, 1_000_100, 1_000_200, 1_000_195, 1_000_300)
	})
}

// punctuated emits a watermark with every record whose N is negative.
type punctuated struct{}

func (punctuated) OnEvent(e event, t int64, out eventtime.WatermarkOutput) {
	if e.N < 0 {
		out.EmitWatermark(t)
	}
}
func (punctuated) OnPeriodicEmit(eventtime.WatermarkOutput) {}

// TestWatermarksOfEventsCutBatches: a generator that emits on events does so between
// the records of a batch, in the source and behind it.
func TestWatermarksOfEventsCutBatches(t *testing.T) {
	strategy := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[event] { return punctuated{} }).WithTimestampAssigner(atOf)
	input := splitsOf(10, []event{{"a", 5, 1}, {"b", 6, -1}, {"c", 7, 1}, {"d", 8, -1}, {"e", 4, -1}, {"f", 9, 1}})
	want := []string{fmt.Sprint("a at ", eventtime.MinTimestamp), fmt.Sprint("b at ", eventtime.MinTimestamp), "c at 6", "d at 6", "e at 8", "f at 8"}
	for name, build := range map[string]func(*lowwater.Environment) *lowwater.DataStream[event]{
		"in the source": func(env *lowwater.Environment) *lowwater.DataStream[event] { return from(env, input, strategy) },
		"behind the source": func(env *lowwater.Environment) *lowwater.DataStream[event] {
			return from(env, input, eventtime.NoWatermarks[event]()).AssignTimestampsAndWatermarks(strategy)
		},
		"behind a channel": func(env *lowwater.Environment) *lowwater.DataStream[event] {
			return from(env, input, strategy).Rebalance().Filter(func(event) bool { return true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv(lowwater.WithParallelism(1))
				seen := build(env).Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[string]) error {
					out.Emit(fmt.Sprint(e.Key, " at ", ctx.CurrentWatermark()))
					return nil
				}).Collect()
				execute(t, env)
				inOrder(t, "records with watermarks", seen.Values(), want...)
			})
		})
	}
}

// TestKeyBySendsAKeyToOneSubtask: also the keys of a union come together.
func TestKeyBySendsAKeyToOneSubtask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(3))
		var events []event
		for i := range 300 {
			events = append(events, event{fmt.Sprint("key-", i%30), int64(i), 1})
		}
		s := from(env, splitsOf(7, events[:100], events[100:200]), bounded(time.Second))
		other := from(env, splitsOf(300, events[200:]), bounded(time.Second))
		got := sumByKey(s.Union(other)).Collect()
		execute(t, env)
		var want []string
		for i := range 30 {
			want = append(want, fmt.Sprintf("key-%d 0..1000 10", i))
		}
		expect(t, "sums", got.Values(), want...)
	})
}

func TestProcessErrorNamesTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no such customer")
		env := newEnv()
		lowwater.FromSlice(env, upTo(3)).Forward().Process(func(_ *lowwater.ProcessContext, v int, _ *lowwater.Collector[int]) error {
			if v == 2 {
				return broken
			}
			return nil
		}).Name("Look up").UID("lookup").Collect()
		err := env.Execute(t.Context(), "test")
		var oe *lowwater.OperatorError
		if !errors.As(err, &oe) || !errors.Is(err, broken) {
			t.Fatalf("got %v, want an OperatorError around %v", err, broken)
		}
		if got, want := placeless(err), `job "test": operator "Look up" (HERE, uid lookup), subtask 0: no such customer`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
