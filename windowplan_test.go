package lowwater_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// TestWindowsThatNeverFireAreTold: without a trigger nothing fires the global window.
func TestWindowsThatNeverFireAreTold(t *testing.T) {
	type (
		keyed   = lowwater.KeyedStream[string, click]
		windows = lowwater.WindowedStream[string, click]
	)
	for name, test := range map[string]struct {
		windows func(*keyed) *windows
		told    bool
	}{
		"global":               {func(s *keyed) *windows { return s.Window(window.Global()) }, true},
		"global by element":    {func(s *keyed) *windows { return s.WindowBy(window.AssignElements[click](window.Global())) }, true},
		"with a trigger":       {func(s *keyed) *windows { return s.CountWindow(1) }, false},
		"at the end of stream": {func(s *keyed) *windows { return s.Window(window.GlobalEndOfStream()) }, false},
		"tumbling":             {func(s *keyed) *windows { return s.Window(window.Tumbling(time.Second)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
			test.windows(clicks(env, of("a", 1)...)).Process(list).PrintTo(io.Discard)
			job, err := env.Start(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			if err := job.Wait(); err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(job.Warnings(), func(w lowwater.Warning) bool { return w.Code == "window-never-fires" })
			if told != test.told {
				t.Errorf("warned: %v, want %v (%v)", told, test.told, job.Warnings())
			}
		})
	}
}

// TestSideOutputsOfWindows: what has no context has no side output but the late one.
func TestSideOutputsOfWindows(t *testing.T) {
	late, other := lowwater.NewOutputTag[click]("late"), lowwater.NewOutputTag[string]("other")
	second := window.Tumbling(time.Second)
	for name, build := range map[string]func(*lowwater.KeyedStream[string, click]){
		"aggregate": func(s *lowwater.KeyedStream[string, click]) {
			s.Window(second).SideOutputLate(late).Aggregate(lowwater.Count[click]()).SideOutput(other)
		},
		"reduce": func(s *lowwater.KeyedStream[string, click]) {
			s.Window(second).Reduce(func(a, _ click) click { return a }).SideOutput(late)
		},
		"join": func(s *lowwater.KeyedStream[string, click]) {
			s.Join(s).Window(second).Apply(func(a, _ click) click { return a }).SideOutput(late)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := lowwater.NewEnvironment()
			build(clicks(env, of("a", 1)...))
			wantBuildError(t, env, "has no such side output", "windowplan_test.go:")
		})
	}
}
