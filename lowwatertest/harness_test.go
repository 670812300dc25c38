package lowwatertest_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/lowwatertest"
	"github.com/lowwater/lowwater/window"
)

type pane = window.Pane[string, int64]

// counts counts words in windows of ten milliseconds.
func counts(in *lowwater.DataStream[string]) *lowwater.WindowedStream[string, string] {
	return in.KeyBy(func(s string) string { return s }).Window(window.Tumbling(10 * time.Millisecond))
}

func TestWindow(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in := h.Input[string]("words")
		late := lowwater.NewOutputTag[string]("late")
		stream := counts(in.Stream()).SideOutputLate(late).Aggregate(lowwater.Count[string]())
		out, lateOut := h.Output(stream), h.Output(stream.SideOutput(late))

		in.Push("a", 1)
		in.PushAll(lowwatertest.Element[string]{Value: "b", Timestamp: 2}, lowwatertest.Element[string]{Value: "a", Timestamp: 12})
		in.Watermark(8)
		if got := out.Take(); len(got) != 0 || out.Watermark() != 8 {
			t.Errorf("%v came out before the window's end, with the watermark at %d", got, out.Watermark())
		}
		in.Watermark(9)
		in.Push("c", 5)
		first := window.TimeWindow{Start: 0, End: 10}
		want := []lowwatertest.Element[pane]{
			{Value: pane{Key: "a", Window: first, Value: 1, Timing: window.OnTime}, Timestamp: 9},
			{Value: pane{Key: "b", Window: first, Value: 1, Timing: window.OnTime}, Timestamp: 9},
		}
		if diff := cmp.Diff(want, out.Take()); diff != "" {
			t.Errorf("panes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]lowwatertest.Element[string]{{Value: "c", Timestamp: 5}}, lateOut.Take()); diff != "" {
			t.Errorf("late (-want +got):\n%s", diff)
		}
		in.End()
		if got := out.TakeValues(); len(got) != 1 || got[0].Key != "a" || out.Watermark() != eventtime.MaxTimestamp {
			t.Errorf("at the end %v came out, with the watermark at %d", got, out.Watermark())
		}
	})
}

// An idle input does not hold back the other.
func TestIdleInput(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		left, right := h.Input[string]("left"), h.Input[string]("right")
		out := h.Output(left.Stream().Union(right.Stream()))
		for _, step := range []struct {
			do   func()
			want int64
		}{
			{func() { left.Watermark(10) }, eventtime.MinTimestamp},
			{func() { right.Idle() }, 10},
			{func() { left.Watermark(20) }, 20},
			{func() { right.Active() }, 20},
			{func() { left.Watermark(30) }, 30}, // right does not count until it has caught up
			{func() { right.Watermark(30) }, 30},
			{func() { left.Watermark(40) }, 30},
			{func() { right.Watermark(35) }, 35},
			{func() { left.End() }, 35},
			{func() { right.End() }, eventtime.MaxTimestamp},
		} {
			step.do()
			if got := out.Watermark(); got != step.want {
				t.Errorf("the watermark is at %d, want %d", got, step.want)
			}
		}
	})
}

func TestProcessingTime(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in := h.Input[string]("words")
		windows := in.Stream().KeyBy(func(s string) string { return s }).Window(window.Tumbling(time.Hour).ProcessingTime())
		out := h.Output(windows.Aggregate(lowwater.Count[string]()))
		began := time.Now()
		in.Push("a", eventtime.MinTimestamp)
		in.Push("a", eventtime.MinTimestamp)
		h.Advance(59 * time.Minute)
		if got := out.Take(); len(got) != 0 {
			t.Errorf("%v came out before the hour", got)
		}
		h.Advance(2 * time.Minute)
		if got := out.TakeValues(); len(got) != 1 || got[0].Value != 2 {
			t.Errorf("%v came out, want one pane of two", got)
		}
		if passed := time.Since(began); passed != 61*time.Minute {
			t.Errorf("%v have passed", passed)
		}
	})
}

func TestErrorOfAUserFunction(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in := h.Input[string]("words")
		broken := errors.New("broken")
		h.Output(in.Stream().Process(func(_ *lowwater.ProcessContext, s string, _ *lowwater.Collector[string]) error {
			if s == "bad" {
				return broken
			}
			return nil
		}))
		in.Push("good", 1)
		if err := h.Err(); err != nil {
			t.Errorf("failed early: %v", err)
		}
		in.Push("bad", 1)
		if err := h.Err(); !errors.Is(err, broken) {
			t.Errorf("Err: %v, want %v", err, broken)
		}
	})
}

// The status names late records by the input's name and their number.
func TestStatus(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in := h.Input[string]("words")
		h.Output(counts(in.Stream()).Aggregate(lowwater.Count[string]()))
		in.Watermark(100)
		in.Push("a", 101)
		in.Push("late", 1)
		var late []lowwater.LateSample
		for _, v := range h.Status().Vertices {
			for _, o := range v.Subtasks[0].Operators {
				late = append(late, o.LateSamples...)
			}
		}
		want := []lowwater.LateSample{{Timestamp: 1, Watermark: 100, Key: "late", Source: "words", Split: "words", Offset: 1}}
		if diff := cmp.Diff(want, late); diff != "" {
			t.Errorf("late samples (-want +got):\n%s", diff)
		}
	})
}

// TestReadme: the README shows readme_test.go from its type on.
func TestReadme(t *testing.T) {
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(string(source), "type Visit")
	if from < 0 {
		t.Fatal("readme_test.go does not have the type Visit")
	}
	shown := string(source[from:])
	if n := strings.Count(shown, "\n"); n >= 30 {
		t.Errorf("the README's test has %d lines, want less than 30", n)
	}
	if !strings.Contains(string(readme), shown) {
		t.Error("the README's test is not that of readme_test.go")
	}
}
