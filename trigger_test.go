package lowwater_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// click is a record of these tests.
type click struct {
	User   string
	Millis int64
	Gap    time.Duration
}

// clicks is a keyed stream whose watermark follows every record.
func clicks(env *lowwater.Environment, records ...click) *lowwater.KeyedStream[string, click] {
	strategy := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[click] { return everyRecord{} }).
		WithTimestampAssigner(func(c click, _ int64) int64 { return c.Millis })
	return lowwater.FromSlice(env, records).
		AssignTimestampsAndWatermarks(strategy).Parallelism(1).
		KeyBy(func(c click) string { return c.User })
}

type everyRecord struct{}

func (everyRecord) OnEvent(_ click, timestamp int64, out eventtime.WatermarkOutput) {
	out.EmitWatermark(timestamp)
}
func (everyRecord) OnPeriodicEmit(eventtime.WatermarkOutput) {}

// at makes clicks of one user.
func of(user string, millis ...int64) (out []click) {
	for _, ms := range millis {
		out = append(out, click{User: user, Millis: ms})
	}
	return out
}

// list is a window function that shows what it gets.
func list(ctx *lowwater.WindowContext[string], elements iter.Seq[click], out *lowwater.Collector[string]) error {
	var times []int64
	for c := range elements {
		times = append(times, c.Millis)
	}
	out.Emit(fmt.Sprintf("%s %v %v", ctx.Key(), times, ctx.Timing()))
	return nil
}

func TestTriggersEvictorsAndElementAssigners(t *testing.T) {
	second := time.Second
	tests := []struct {
		name    string
		records []click
		windows func(*lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click]
		want    []string
	}{
		{"count window", of("a", 1, 2, 3, 4, 5),
			func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
				return s.CountWindow(2)
			},
			[]string{"a [1 2] on-time", "a [3 4] on-time"}},
		{"sliding count window", of("a", 1, 2, 3, 4, 5),
			func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
				return s.SlidingCountWindow(3, 2)
			},
			[]string{"a [1 2] on-time", "a [2 3 4] on-time"}},
		{"early results", of("a", 100, 1500, 2500, 10_000),
			func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
				return s.Window(window.Tumbling(5 * second)).Trigger(window.ContinuousEventTimeTrigger(second))
			},
			[]string{
				"a [100 1500] early", "a [100 1500 2500] early", // at 1s and 2s, by the watermark behind the record
				"a [100 1500 2500] early", "a [100 1500 2500] early", "a [100 1500 2500] on-time", // at once, by that of 10s
				"a [10000] early", "a [10000] early", "a [10000] early", "a [10000] early", "a [10000] on-time",
			}},
		{"a gap of its own", []click{{"a", 0, second}, {"a", 1000, 5 * second}, {"a", 6000, second}, {"a", 8000, second}},
			func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
				return s.WindowBy(window.DynamicSession(func(c click) time.Duration { return c.Gap }))
			},
			[]string{"a [0 1000 6000] on-time", "a [8000] on-time"}},
		{"evictor", of("a", 100, 200, 300),
			func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
				return s.Window(window.Tumbling(second)).Evictor(window.CountEvictor[click](1))
			},
			[]string{"a [300] on-time"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
			got := tt.windows(clicks(env, tt.records...)).Process(list).Collect()
			if err := env.Execute(t.Context(), tt.name); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Values(), tt.want) {
				t.Errorf("got\n%q, want\n%q", got.Values(), tt.want)
			}
		})
	}
}

func TestStatefulWindowFunction(t *testing.T) {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	firings, total := window.NewState[int]("firings"), window.NewState[int]("total")
	gone := lowwater.NewOutputTag[string]("gone")
	add := func(s *window.Scope, of window.State[int]) int {
		n, _ := of.Get(s)
		of.Set(s, n+1)
		return n + 1
	}
	counted := clicks(env, of("a", 100, 1200, 150, 5000)...).
		Window(window.Tumbling(time.Second)).
		AllowedLateness(time.Second).
		Stateful(func(ctx *lowwater.WindowContext[string]) error {
			s, err := ctx.WindowState()
			if err != nil {
				return err
			}
			n, _ := firings.Get(s)
			ctx.Output(gone, fmt.Sprintf("%d after %d", ctx.Window().Start, n))
			firings.Clear(s)
			return nil
		}).
		Process(func(ctx *lowwater.WindowContext[string], _ iter.Seq[click], out *lowwater.Collector[string]) error {
			w, err := ctx.WindowState()
			if err != nil {
				return err
			}
			k, err := ctx.KeyState()
			if err != nil {
				return err
			}
			out.Emit(fmt.Sprintf("%d: %d of %d", ctx.Window().Start, add(w, firings), add(k, total)))
			return nil
		})
	results, cleared := counted.Collect(), counted.SideOutput(gone).Collect()
	if err := env.Execute(t.Context(), "stateful"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"0: 1 of 1", "0: 2 of 2", "1000: 1 of 3", "5000: 1 of 4"}; !slices.Equal(results.Values(), want) {
		t.Errorf("got %q, want %q", results.Values(), want)
	}
	if want := []string{"0 after 2", "1000 after 1", "5000 after 1"}; !slices.Equal(cleared.Values(), want) {
		t.Errorf("cleared %q, want %q", cleared.Values(), want)
	}
}

func TestWindowSettingsThatDoNotFit(t *testing.T) {
	type (
		keyed   = lowwater.KeyedStream[string, click]
		windows = lowwater.WindowedStream[string, click]
	)
	second, none := window.Tumbling(time.Second), window.TimeoutOptions{}
	gap := func(click) time.Duration { return time.Second }
	for want, build := range map[string]func(*keyed) *windows{
		"cannot be used with window.Session": func(s *keyed) *windows {
			return s.Window(window.Session(time.Second)).ElementTrigger(window.DeltaTrigger(1, func(a, b click) float64 { return 0 }))
		},
		"window.CountTrigger: 0":                    func(s *keyed) *windows { return s.CountWindow(0) },
		"window.CountEvictor: -1":                   func(s *keyed) *windows { return s.SlidingCountWindow(-1, 1) },
		"Process: the trigger is nil":               func(s *keyed) *windows { return s.Window(window.Global()).Trigger(nil) },
		": the trigger is nil":                      func(s *keyed) *windows { return s.Window(window.Global()).ElementTrigger(nil) },
		"window.PurgingTrigger: the trigger is nil": func(s *keyed) *windows { return s.Window(second).Trigger(window.PurgingTrigger(nil)) },
		"window.TimeoutTrigger: the trigger is nil": func(s *keyed) *windows {
			return s.Window(second).Trigger(window.TimeoutTrigger(nil, time.Second, none))
		},
		"the evictor is nil":                           func(s *keyed) *windows { return s.Window(second).Evictor(nil) },
		"given to Window or WindowBy is nil":           func(s *keyed) *windows { return s.WindowBy(nil) },
		"gap function is nil":                          func(s *keyed) *windows { return s.WindowBy(window.DynamicSession[click](nil)) },
		"window.Global() does not wait for event time": func(s *keyed) *windows { return s.Window(window.Global()).CloseAfterSilence(time.Second) },
		"ProcessingTime() does not wait for event time": func(s *keyed) *windows {
			return s.WindowBy(window.DynamicSession(gap).ProcessingTime()).CloseAfterSilence(time.Second)
		},
		"CloseAfterSilence(-1s): must not be negative":       func(s *keyed) *windows { return s.Window(second).CloseAfterSilence(-time.Second) },
		"CloseAfterSilence(1ns): must be whole milliseconds": func(s *keyed) *windows { return s.Window(second).CloseAfterSilence(1) },
	} {
		env := lowwater.NewEnvironment()
		build(clicks(env, of("a", 1)...)).Process(list)
		err := env.Execute(t.Context(), "wrong")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "trigger_test.go:") {
			t.Errorf("got %v, want an error that names this file and %q", err, want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one error for one mistake:\n%v", err)
		}
	}
}
