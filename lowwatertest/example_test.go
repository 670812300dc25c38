package lowwatertest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/lowwatertest"
	"github.com/lowwater/lowwater/window"
)

// visitsPerSession is the part of a job that is tested here.
func visitsPerSession(clicks *lowwater.DataStream[string]) *lowwater.DataStream[window.Pane[string, int64]] {
	return clicks.
		KeyBy(func(user string) string { return user }).
		Window(window.Session(30 * time.Second)).
		Aggregate(lowwater.Count[string]())
}

// A table of what goes in and what must come out. In a test of yours the function is
// called TestSessions and is all there is.
func ExampleDrive() {
	testSessions := func(t *testing.T) {
		for _, tt := range []struct {
			name   string
			clicks []int64 // seconds
			want   []int64 // clicks by session
		}{
			{"one click", []int64{1}, []int64{1}},
			{"a gap shorter than the session's", []int64{1, 30}, []int64{2}},
			{"a longer one", []int64{1, 32}, []int64{1, 1}},
			{"a click between two sessions joins them", []int64{1, 40, 20}, []int64{3}},
		} {
			lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
				in := h.Input[string]("clicks")
				out := h.Output(visitsPerSession(in.Stream()))
				for _, second := range tt.clicks {
					in.Push("ada", second*1000)
				}
				in.Watermark(100_000)
				var got []int64
				for _, pane := range out.TakeValues() {
					got = append(got, pane.Value)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("%s: sessions of %v clicks, want %v", tt.name, got, tt.want)
				}
			})
		}
	}
	fmt.Println(run("TestSessions", testSessions))
	// Output: true
}

// Two inputs: one that says nothing holds the windows until it is idle.
func ExampleInput_idle() {
	testIdle := func(t *testing.T) {
		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			web, app := h.Input[string]("web"), h.Input[string]("app")
			out := h.Output(visitsPerSession(web.Stream().Union(app.Stream())))
			web.Push("ada", 1000)
			web.Watermark(60_000)
			if len(out.Take()) != 0 {
				t.Error("a session ended although the app may still tell of clicks")
			}
			app.Idle()
			if len(out.Take()) != 1 {
				t.Error("the session did not end")
			}
		})
	}
	fmt.Println(run("TestIdle", testIdle))
	// Output: true
}

// A restart in the middle of a session, with more subtasks afterwards.
func ExampleRestore() {
	testRestart := func(t *testing.T) {
		var snapshot *lowwatertest.Snapshot
		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			in := h.Input[string]("clicks")
			h.Output(visitsPerSession(in.Stream()))
			in.Push("ada", 1000)
			in.Push("ada", 20_000)
			in.Watermark(25_000)
			snapshot = h.Snapshot()
		}, lowwatertest.WithSnapshots())

		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			in := h.Input[string]("clicks")
			out := h.Output(visitsPerSession(in.Stream()))
			in.Push("ada", 30_000)
			in.Watermark(60_000)
			if got := out.TakeValues(); len(got) != 1 || got[0].Value != 3 {
				t.Errorf("sessions %v, want one of 3 clicks", got)
			}
		}, lowwatertest.Restore(snapshot), lowwater.WithParallelism(3))
	}
	fmt.Println(run("TestRestart", testRestart))
	// Output: true
}

// run runs a test as go test does, which is what examples need.
func run(name string, test func(t *testing.T)) (ok bool) {
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: name, F: test}})
}
