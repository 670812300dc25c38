package window_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/lowwater/lowwater/window"
)

// assigned returns the windows of a record with that timestamp, in milliseconds, one a line.
func assigned(a window.Assigner, timestamp int64) string {
	windows, err := a.Assign(nil, timestamp, 0)
	if err != nil {
		return err.Error()
	}
	lines := make([]string, len(windows))
	for i, w := range windows {
		lines[i] = w.String()
	}
	return strings.Join(lines, "\n")
}

func ExampleTumbling() {
	fmt.Println(assigned(window.Tumbling(time.Minute), 61_000))
	fmt.Println(assigned(window.Tumbling(time.Minute).Offset(15*time.Second), 61_000))
	// Output:
	// [1970-01-01T00:01:00Z, 1970-01-01T00:02:00Z)
	// [1970-01-01T00:00:15Z, 1970-01-01T00:01:15Z)
}

// The newest window comes first.
func ExampleSliding() {
	fmt.Println(assigned(window.Sliding(time.Minute, 30*time.Second), 61_000))
	// Output:
	// [1970-01-01T00:01:00Z, 1970-01-01T00:02:00Z)
	// [1970-01-01T00:00:30Z, 1970-01-01T00:01:30Z)
}

func ExampleCumulating() {
	fmt.Println(assigned(window.Cumulating(time.Hour, 20*time.Minute), 25*60_000))
	// Output:
	// [1970-01-01T00:00:00Z, 1970-01-01T00:40:00Z)
	// [1970-01-01T00:00:00Z, 1970-01-01T01:00:00Z)
}

// Every record has a window of its own; those that touch are merged.
func ExampleSession() {
	var windows []window.TimeWindow
	for _, t := range []int64{0, 20_000, 50_001} {
		windows, _ = window.Session(30*time.Second).Assign(windows, t, 0)
	}
	for _, m := range window.Merge(windows) {
		fmt.Println(len(m.From), "windows become", m.Into)
	}
	// Output:
	// 2 windows become [1970-01-01T00:00:00Z, 1970-01-01T00:00:50Z)
}

// The day on which clocks in Berlin are put forward has 23 hours.
func ExampleDays() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(assigned(window.Days(1, berlin), time.Date(2026, 3, 29, 12, 0, 0, 0, berlin).UnixMilli()))
	// Output:
	// [2026-03-28T23:00:00Z, 2026-03-29T22:00:00Z)
}

func ExampleTumblingAssigner_Validate() {
	fmt.Println(window.Tumbling(0).Validate())
	// Output:
	// window.Tumbling: size 0s: must be at least 1ms
}
