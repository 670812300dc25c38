package lowwater_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

var errKaboom = errors.New("kaboom")

// kaboom is what user code of the tests panics with.
func kaboom() { panic(errKaboom) }

// brokenAssigner panics when it assigns.
type brokenAssigner struct{ window.TumblingAssigner }

func (brokenAssigner) Assign([]window.TimeWindow, int64, int64) ([]window.TimeWindow, error) {
	kaboom()
	return nil, nil
}

// brokenAggregator panics in the method it names.
type brokenAggregator string

func (b brokenAggregator) at(method string) {
	if string(b) == method {
		kaboom()
	}
}

func (b brokenAggregator) New() int               { b.at("New"); return 0 }
func (b brokenAggregator) Add(n int, _ event) int { b.at("Add"); return n + 1 }
func (b brokenAggregator) Merge(x, y int) int     { b.at("Merge"); return x + y }
func (b brokenAggregator) Result(n int) int       { b.at("Result"); return n }

// brokenGenerator panics in the method it names.
type brokenGenerator string

func (b brokenGenerator) OnEvent(event, int64, eventtime.WatermarkOutput) {
	if b == "OnEvent" {
		kaboom()
	}
}

func (b brokenGenerator) OnPeriodicEmit(eventtime.WatermarkOutput) {
	if b == "OnPeriodicEmit" {
		kaboom()
	}
}

func (b brokenGenerator) strategy() eventtime.WatermarkStrategy[event] {
	return eventtime.ForGenerator(func() eventtime.WatermarkGenerator[event] { return b }).WithTimestampAssigner(atOf)
}

// TestPanicsAreErrors: a panic anywhere in user code ends the job with an error that
// names the operator and has the stack.
func TestPanicsAreErrors(t *testing.T) {
	second := window.Tumbling(window2sSize)
	tests := []struct {
		name string
		// operator is the name that the error must have.
		operator string
		build    func(s *stream)
	}{
		{"map", "mine", func(s *stream) { s.Map(func(event) int { kaboom(); return 0 }).Name("mine").PrintTo(io.Discard) }},
		{"filter", "mine", func(s *stream) { s.Filter(func(event) bool { kaboom(); return true }).Name("mine").PrintTo(io.Discard) }},
		{"flat map", "mine", func(s *stream) { s.FlatMap(func(event, func(int)) { kaboom() }).Name("mine").PrintTo(io.Discard) }},
		{"process", "mine", func(s *stream) {
			s.Process(func(*lowwater.ProcessContext, event, *lowwater.Collector[int]) error { kaboom(); return nil }).Name("mine").PrintTo(io.Discard)
		}},
		{"the second of a chain", "mine", func(s *stream) {
			s.Map(same).Filter(func(event) bool { kaboom(); return true }).Name("mine").Map(same).PrintTo(io.Discard)
		}},
		{"behind a channel", "mine", func(s *stream) {
			s.Rebalance().Map(func(event) int { kaboom(); return 0 }).Name("mine").PrintTo(io.Discard)
		}},
		// The key is computed by the sender.
		{"key", "events", func(s *stream) {
			s.KeyBy(func(event) string { kaboom(); return "" }).Window(second).Aggregate(lowwater.Count[event]()).Name("mine").PrintTo(io.Discard)
		}},
		{"key behind an operator", "sender", func(s *stream) {
			s.Map(same).Name("sender").KeyBy(func(event) string { kaboom(); return "" }).Window(second).Aggregate(lowwater.Count[event]()).PrintTo(io.Discard)
		}},
		{"timestamp assigner behind the source", "mine", func(s *stream) {
			s.AssignTimestampsAndWatermarks(eventtime.NoWatermarks[event]().WithTimestampAssigner(func(event, int64) int64 { kaboom(); return 0 })).
				Name("mine").PrintTo(io.Discard)
		}},
		{"generator on an event", "mine", func(s *stream) {
			s.AssignTimestampsAndWatermarks(brokenGenerator("OnEvent").strategy()).Name("mine").PrintTo(io.Discard)
		}},
		{"generator on a timer", "mine", func(s *stream) {
			s.AssignTimestampsAndWatermarks(brokenGenerator("OnPeriodicEmit").strategy()).Name("mine").PrintTo(io.Discard)
		}},
		{"window assigner", "mine", func(s *stream) {
			s.KeyBy(keyOf).Window(brokenAssigner{second}).Aggregate(lowwater.Count[event]()).Name("mine").PrintTo(io.Discard)
		}},
		{"new accumulator", "mine", func(s *stream) {
			s.KeyBy(keyOf).Window(second).Aggregate(brokenAggregator("New")).Name("mine").PrintTo(io.Discard)
		}},
		{"adding to an accumulator", "mine", func(s *stream) {
			s.KeyBy(keyOf).Window(second).Aggregate(brokenAggregator("Add")).Name("mine").PrintTo(io.Discard)
		}},
		{"merging of accumulators", "mine", func(s *stream) {
			s.WindowAll(window.Session(window2sSize)).Aggregate(brokenAggregator("Merge")).Name("mine").PrintTo(io.Discard)
		}},
		{"result of a window", "mine", func(s *stream) {
			s.KeyBy(keyOf).Window(second).Aggregate(brokenAggregator("Result")).Name("mine").PrintTo(io.Discard)
		}},
		{"reduce", "mine", func(s *stream) {
			s.WindowAll(second).Reduce(func(a, b event) event { kaboom(); return a }).Name("mine").PrintTo(io.Discard)
		}},
		{"window function", "mine", func(s *stream) {
			s.WindowAll(second).Process(func(*lowwater.WindowContext[lowwater.All], iter.Seq[event], *lowwater.Collector[int]) error {
				kaboom()
				return nil
			}).Name("mine").PrintTo(io.Discard)
		}},
		{"window function in processing time", "mine", func(s *stream) {
			s.WindowAll(second.ProcessingTime()).Process(func(*lowwater.WindowContext[lowwater.All], iter.Seq[event], *lowwater.Collector[int]) error {
				kaboom()
				return nil
			}).Name("mine").PrintTo(io.Discard)
		}},
		{"behind a window that fires", "mine", func(s *stream) {
			s.WindowAll(second).Aggregate(lowwater.Count[event]()).
				Map(func(window.Pane[lowwater.All, int64]) int { kaboom(); return 0 }).Parallelism(1).Name("mine").PrintTo(io.Discard)
		}},
		{"sink function", "mine", func(s *stream) { s.SinkFunc(func(context.Context, event) error { kaboom(); return nil }).Name("mine") }},
		{"writer", "mine", func(s *stream) {
			s.SinkTo(&recorder{onWrite: func(context.Context, *connector.Batch[event]) error { kaboom(); return nil }}).Name("mine")
		}},
		{"flush of a writer", "mine", func(s *stream) {
			s.SinkTo(&recorder{onFlush: func(context.Context) error { kaboom(); return nil }}).Name("mine")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				// Some records are there for merging; the end is far away, so that timers fire.
				input := []event{{"a", 1000, 1}, {"a", 1100, 2}, {"a", 4500, 3}, {"a", 3050, 4}}
				tt.build(from(env, &script[event]{splits: [][]step[event]{{{0, input}}}, endAfter: 10 * window2sSize}, bounded(0)))
				err := env.Execute(t.Context(), "test")
				wantPanic(t, err, tt.operator)
			})
		})
	}
}

// TestPanicsOfSourceStrategiesAreErrors: the same for what runs within the source.
func TestPanicsOfSourceStrategiesAreErrors(t *testing.T) {
	for name, strategy := range map[string]eventtime.WatermarkStrategy[event]{
		"timestamp assigner":    eventtime.NoWatermarks[event]().WithTimestampAssigner(func(event, int64) int64 { kaboom(); return 0 }),
		"generator on an event": brokenGenerator("OnEvent").strategy(),
		"generator on a timer":  brokenGenerator("OnPeriodicEmit").strategy(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}, unbounded: true}, strategy).PrintTo(io.Discard)
				wantPanic(t, env.Execute(t.Context(), "test"), "events")
			})
		})
	}
}

// same is a map that changes nothing.
func same(e event) event { return e }

// wantPanic checks that err is the panic of kaboom in that operator.
func wantPanic(t *testing.T, err error, operator string) {
	t.Helper()
	var oe *lowwater.OperatorError
	var p *lowwater.Panic
	if !errors.As(err, &oe) || !errors.As(err, &p) {
		t.Fatalf("got %v, want an OperatorError with a Panic", err)
	}
	if oe.Operator != operator {
		t.Errorf("the error blames %q, want %q", oe.Operator, operator)
	}
	if p.Value != errKaboom || !errors.Is(err, errKaboom) {
		t.Errorf("the panic's value is %v, want %v", p.Value, errKaboom)
	}
	if !strings.Contains(string(p.Stack), "lowwater_test.kaboom") {
		t.Errorf("the stack does not show where it happened:\n%s", p.Stack)
	}
	if s := err.Error(); strings.Contains(s, "\n") || !strings.Contains(s, "panic: kaboom") {
		t.Errorf("the message is %q", s)
	}
	if s := fmt.Sprintf("%+v", err); !strings.Contains(s, "panic_test.go") {
		t.Errorf("%%+v has no stack: %q", s)
	}
}

// TestGoexitIsAnError: user code that ends its goroutine, as t.FailNow does, ends the
// job.
func TestGoexitIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		lowwater.FromSlice(env, upTo(3)).Map(func(v int) int { runtime.Goexit(); return v }).Name("mine").PrintTo(io.Discard)
		err := env.Execute(t.Context(), "test")
		if err == nil || !strings.Contains(err.Error(), `operator "mine"`) || !strings.Contains(err.Error(), "runtime.Goexit") {
			t.Errorf("got %v, want an error of mine that says runtime.Goexit", err)
		}
	})
}

// TestOperatorsAreClosedBehindAPanic: all writers of the job, also the one that panicked.
func TestOperatorsAreClosedBehindAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		first := &recorder{onWrite: func(context.Context, *connector.Batch[event]) error { kaboom(); return nil }}
		second := &recorder{}
		s := from(env, splitsOf(2, timeline), bounded(0))
		s.SinkTo(first).Name("first")
		s.Rebalance().SinkTo(second).Name("second")
		wantPanic(t, env.Execute(t.Context(), "test"), "first")
		for name, calls := range map[string][]string{"first": first.of(0), "second": second.of(0), "second in subtask 1": second.of(1)} {
			if len(calls) == 0 || calls[len(calls)-1] != "close" {
				t.Errorf("the calls of %s are %q, want a close at the end", name, calls)
			}
		}
	})
}
