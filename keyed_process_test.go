package lowwater_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/state"
)

// counter counts the events of each key and tells a second of event time after the last.
type counter struct {
	lowwater.KeyedBase[string, string]
	count state.ValueState[int]
	last  state.ValueState[int64]
}

var totals = lowwater.NewOutputTag[int]("totals")

func (c *counter) Open(ctx *lowwater.OpenContext[string]) error {
	c.count = ctx.Value(state.Value[int]("count"))
	c.last = ctx.Value(state.Value[int64]("last"))
	return nil
}

func (c *counter) ProcessElement(ctx *lowwater.KeyedContext[string], e event, out *lowwater.Collector[string]) error {
	n, _ := c.count.Get()
	c.count.Set(n + 1)
	if last, ok := c.last.Get(); ok {
		ctx.DeleteEventTimeTimer(last + 1000)
	}
	c.last.Set(ctx.Timestamp())
	ctx.RegisterEventTimeTimer(ctx.Timestamp() + 1000)
	return nil
}

func (c *counter) OnTimer(ctx *lowwater.TimerContext[string], at int64, out *lowwater.Collector[string]) error {
	n, _ := c.count.Get()
	c.count.Clear()
	c.last.Clear()
	ctx.Output(totals, n)
	out.Emit(fmt.Sprintf("%s:%d@%d %v", ctx.Key(), n, at, ctx.Domain()))
	return nil
}

// timed is a stream of events with a watermark just before each of them.
func timed(env *lowwater.Environment, events ...event) *lowwater.DataStream[event] {
	strategy := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[event] { return beforeEach{} })
	return lowwater.FromSlice(env, events).AssignTimestampsAndWatermarks(strategy.WithTimestampAssigner(atOf)).Parallelism(1)
}

type beforeEach struct {
	eventtime.WatermarkGenerator[event]
}

func (beforeEach) OnEvent(_ event, timestamp int64, out eventtime.WatermarkOutput) {
	out.EmitWatermark(timestamp - 1)
}

func (beforeEach) OnPeriodicEmit(eventtime.WatermarkOutput) {}

func TestKeyedProcess(t *testing.T) {
	events := []event{{"a", 0, 1}, {"b", 100, 1}, {"a", 500, 1}, {"c", 3000, 1}, {"a", 3100, 1}}
	for _, parallelism := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			env := newEnv(lowwater.WithParallelism(parallelism))
			out := timed(env, events...).KeyBy(keyOf).Process(func() *counter { return &counter{} })
			got, side := out.Collect(), out.SideOutput(totals).Collect()
			execute(t, env)
			expect(t, "results", got.Values(), "a:2@1500 event time", "b:1@1100 event time", "c:1@4000 event time", "a:1@4100 event time")
			expect(t, "timestamps", got.Timestamps(), 1100, 1500, 4000, 4100)
			expect(t, "side output", side.Values(), 1, 1, 1, 2)
			expect(t, "timestamps of the side output", side.Timestamps(), 1100, 1500, 4000, 4100)
		})
	}
}

// waker sets a processing-time timer 50 ms after each event.
type waker struct {
	lowwater.KeyedBase[string, int64]
	closed *int
}

var wakings = lowwater.NewOutputTag[string]("wakings")

func (w *waker) ProcessElement(ctx *lowwater.KeyedContext[string], e event, _ *lowwater.Collector[int64]) error {
	ctx.RegisterProcessingTimeTimer(ctx.CurrentProcessingTime() + 50)
	return nil
}

func (w *waker) OnTimer(ctx *lowwater.TimerContext[string], at int64, out *lowwater.Collector[int64]) error {
	if ctx.Domain() != lowwater.ProcessingTime || ctx.Timestamp() != at {
		return fmt.Errorf("a timer of %v for %d at %d", ctx.Domain(), ctx.Timestamp(), at)
	}
	out.Emit(ctx.CurrentProcessingTime() - at)
	ctx.Output(wakings, ctx.Key())
	return nil
}

func (w *waker) Close() error { *w.closed++; return nil }

// Timers fire a millisecond after their time, when it is over; what they emit has no
// timestamp. Those that the end of input leaves are told.
func TestKeyedProcessingTimeTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		closed := 0
		env := newEnv(lowwater.WithParallelism(1), lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		source := &script[event]{splits: [][]step[event]{{
			{0, []event{{"a", 1, 0}}}, {10 * time.Millisecond, []event{{"b", 2, 0}}}, {time.Second, []event{{"c", 3, 0}, {"d", 3, 0}}},
		}}}
		out := from(env, source, bounded(0)).KeyBy(keyOf).Process(func() *waker { return &waker{closed: &closed} })
		delays, keys := out.Collect(), out.SideOutput(wakings).Collect()
		execute(t, env)
		inOrder(t, "delays", delays.Values(), 1, 1)
		inOrder(t, "timestamps", delays.Timestamps(), eventtime.MinTimestamp, eventtime.MinTimestamp)
		inOrder(t, "keys", keys.Values(), "a", "b")
		if closed != 1 {
			t.Errorf("closed %d times", closed)
		}
		if !strings.Contains(log.String(), "timers=2") || !strings.Contains(log.String(), "processing-time timers: they do not fire") {
			t.Errorf("the timers that were left are not told:\n%s", log.String())
		}
	})
}

// broken makes one mistake.
type broken struct {
	lowwater.KeyedBase[string, int]
	open    func(*lowwater.OpenContext[string])
	element func(*lowwater.KeyedContext[string]) error
}

func (b *broken) Open(ctx *lowwater.OpenContext[string]) error {
	if b.open != nil {
		b.open(ctx)
	}
	return nil
}

func (b *broken) ProcessElement(ctx *lowwater.KeyedContext[string], _ event, _ *lowwater.Collector[int]) error {
	if b.element != nil {
		return b.element(ctx)
	}
	return nil
}

func TestKeyedFunctionMistakes(t *testing.T) {
	failed := errors.New("no luck")
	tests := []struct {
		name string
		f    broken
		want []string
	}{
		{"state without a name", broken{open: func(ctx *lowwater.OpenContext[string]) { ctx.Value(state.Value[int]("")) }},
			[]string{"open: a state has no name"}},
		{"two states of one name", broken{open: func(ctx *lowwater.OpenContext[string]) {
			ctx.Value(state.Value[int]("n"))
			ctx.List(state.List[int]("n"))
		}}, []string{`open: state "n" is declared twice`, "give each state a name of its own"}},
		{"state used in Open", broken{open: func(ctx *lowwater.OpenContext[string]) { ctx.Value(state.Value[int]("n")).Set(1) }},
			[]string{`open: state "n" was used without a current key`}},
		{"key of a map", broken{open: func(ctx *lowwater.OpenContext[string]) { ctx.Map(state.Map[*int, int]("m")) }},
			[]string{`map state "m"`, "*int cannot be a key type"}},
		{"aggregate of nothing", broken{open: func(ctx *lowwater.OpenContext[string]) {
			ctx.Aggregating(state.Aggregating[int, int, int]("a", nil))
		}}, []string{`aggregating state "a" has no aggregator`}},
		{"reduction by nothing", broken{open: func(ctx *lowwater.OpenContext[string]) { ctx.Reducing(state.Reducing[int]("r", nil)) }},
			[]string{`reducing state "r" has no function`}},
		{"error", broken{element: func(*lowwater.KeyedContext[string]) error { return failed }}, []string{"no luck"}},
		{"timer without OnTimer", broken{element: func(ctx *lowwater.KeyedContext[string]) error {
			ctx.RegisterEventTimeTimer(5)
			return nil
		}}, []string{"a timer fired, but the function has no OnTimer of its own", "KeyedBase"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := newEnv()
			timed(env, event{"a", 1, 1}).KeyBy(keyOf).Process(func() *broken { f := tt.f; return &f }).Collect()
			err := env.Execute(t.Context(), "test")
			var where *lowwater.OperatorError
			if !errors.As(err, &where) || where.Operator != "Keyed Process" {
				t.Fatalf("error %v, want one of the operator", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
		})
	}
}

// matcher pairs the first record of each side of a key, in state that both share.
type matcher struct {
	lowwater.KeyedBase[string, string]
	waiting state.ListState[string]
}

func (m *matcher) Open(ctx *lowwater.OpenContext[string]) error {
	m.waiting = ctx.List(state.List[string]("waiting"))
	return nil
}

func (m *matcher) ProcessFirst(ctx *lowwater.KeyedContext[string], e event, out *lowwater.Collector[string]) error {
	return m.add(ctx, fmt.Sprint("event ", e.N), out)
}

func (m *matcher) ProcessSecond(ctx *lowwater.KeyedContext[string], n int, out *lowwater.Collector[string]) error {
	return m.add(ctx, fmt.Sprint("number ", n), out)
}

func (m *matcher) add(ctx *lowwater.KeyedContext[string], what string, out *lowwater.Collector[string]) error {
	m.waiting.Add(what)
	if all := slices.Sorted(slices.Values(m.waiting.Get())); len(all) == 2 {
		out.Emit(fmt.Sprint(ctx.Key(), all))
		m.waiting.Clear()
	}
	return nil
}

func TestKeyedConnect(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		env := newEnv(lowwater.WithParallelism(parallelism))
		events := timed(env, event{"key1", 1, 1}, event{"key2", 2, 2}).KeyBy(keyOf)
		numbers := lowwater.FromSlice(env, []int{2, 1}).KeyBy(func(n int) string { return fmt.Sprint("key", n) })
		got := events.Connect(numbers).Process(func() *matcher { return &matcher{} }).Collect()
		execute(t, env)
		expect(t, "pairs", got.Values(), "key1[event 1 number 1]", "key2[event 2 number 2]")
	}
}

func TestKeyedProcessBuildErrors(t *testing.T) {
	tests := []struct {
		name    string
		mistake func(s *lowwater.KeyedStream[string, event])
		want    string
	}{
		{"process", func(s *lowwater.KeyedStream[string, event]) { s.Process[string, *counter](nil) }, "Process: the factory is nil"},
		{"connect", func(s *lowwater.KeyedStream[string, event]) { s.Connect[int](nil) }, "Connect: the other stream is nil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := newEnv()
			tt.mistake(timed(env, event{}).KeyBy(keyOf))
			wantBuildError(t, env, tt.want)
		})
	}
}
