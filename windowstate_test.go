package lowwater_test

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// TestStateNeedsStateful: whichever operator runs the windows.
func TestStateNeedsStateful(t *testing.T) {
	second := window.Tumbling(time.Second)
	for name, windows := range map[string]func(*lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click]{
		"default trigger": func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
			return s.Window(second)
		},
		"trigger": func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
			return s.Window(second).Trigger(window.EventTimeTrigger())
		},
		"merging windows": func(s *lowwater.KeyedStream[string, click]) *lowwater.WindowedStream[string, click] {
			return s.Window(window.Session(time.Second)).Trigger(window.EventTimeTrigger())
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
			firings := 0
			windows(clicks(env, of("a", 1, 5000)...)).Process(
				func(ctx *lowwater.WindowContext[string], _ iter.Seq[click], _ *lowwater.Collector[int]) error {
					firings++
					_, ofWindow := ctx.WindowState()
					_, ofKey := ctx.KeyState()
					for _, err := range []error{ofWindow, ofKey} {
						if err == nil || !strings.Contains(err.Error(), "call Stateful") {
							t.Errorf("got %v, want an error that says to call Stateful", err)
						}
					}
					return nil
				}).Collect()
			if err := env.Execute(t.Context(), "test"); err != nil || firings != 2 {
				t.Errorf("%d firings, want 2 (%v)", firings, err)
			}
		})
	}
}

// TestStatefulNeedsAContext: where the function has none, state is of no use.
func TestStatefulNeedsAContext(t *testing.T) {
	for name, build := range map[string]func(*lowwater.WindowedStream[string, click]){
		"Aggregate": func(w *lowwater.WindowedStream[string, click]) { w.Aggregate(lowwater.Count[click]()) },
		"Reduce":    func(w *lowwater.WindowedStream[string, click]) { w.Reduce(func(a, _ click) click { return a }) },
	} {
		env := lowwater.NewEnvironment()
		build(clicks(env, of("a", 1)...).Window(window.Tumbling(time.Second)).Stateful(nil))
		wantBuildError(t, env, "windowstate_test.go:", name+": Stateful has no effect", "use AggregateProcess or Process")
	}
}
