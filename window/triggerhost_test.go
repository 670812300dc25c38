package window_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/operator/replay"
	"github.com/lowwater/lowwater/window"
)

func TestConformanceTriggers(t *testing.T) {
	dirs := append([]string{"testdata/windows"}, filepath.SplitList(os.Getenv("LOWWATER_VECTORS"))...)
	cases, err := replay.Vectors("trigger", dirs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			got, err := replay.AnswerTrigger(c)
			if err != nil {
				t.Fatal(err)
			}
			if d := replay.Difference(c, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A watermark that jumps over many intervals of the global window, such as the one
// at the end of a stream, must not fire for each.
func TestContinuousTriggerInGlobalWindowEnds(t *testing.T) {
	h := replay.NewTriggerHost(window.ForElements[replay.Element](window.ContinuousEventTimeTrigger(time.Second)))
	h.OnElement(replay.Element{}, 500, window.GlobalWindow)
	for _, test := range []struct {
		watermark int64
		firings   int
	}{
		{999, 0},
		{1000, 1},
		{3500, 2},
		{1_700_000_000_500, 1},
		{1_700_000_001_000, 1},
		{math.MaxInt64, 2},
	} {
		if got := len(h.Watermark(test.watermark)); got != test.firings {
			t.Fatalf("watermark %d: %d firings, want %d", test.watermark, got, test.firings)
		}
	}
}

// Neither must it in a window by processing time, whose end is far from the record's time, while
// one with an end by event time fires for each interval.
func TestContinuousTriggerFarFromTheRecordEnds(t *testing.T) {
	for _, test := range []struct {
		end     int64
		firings int
	}{{86_400_000, 86_400}, {1_700_000_000_000, 2}} {
		h := replay.NewTriggerHost(window.ForElements[replay.Element](window.ContinuousEventTimeTrigger(time.Second)))
		w := window.TimeWindow{Start: test.end - 86_400_000, End: test.end}
		h.OnElement(replay.Element{}, 500, w)
		if got := len(h.Watermark(math.MaxInt64)); got != test.firings {
			t.Errorf("%d firings in %v, want %d", got, w, test.firings)
		}
	}
}

// An event-time window that lies behind the clock fires once per element, not without
// end.
func TestContinuousProcessingTriggerBehindTheClockEnds(t *testing.T) {
	h := replay.NewTriggerHost(window.ForElements[replay.Element](window.ContinuousProcessingTimeTrigger(time.Second)))
	w := window.TimeWindow{Start: 0, End: 10_000}
	const now = 1_700_000_000_000
	h.Clock(now)
	for range 2 {
		h.OnElement(replay.Element{}, 5, w)
		if got := len(h.Clock(now)); got != 1 {
			t.Fatalf("%d firings, want 1", got)
		}
	}
}
