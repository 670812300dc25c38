// Package window is the vocabulary of windows: time windows, the assigners that
// put records into them, and the panes that windowed streams produce.
//
// It holds types and pure functions only; the operators that keep window
// contents and fire them are in internal/operator/windowed.
package window

import (
	"fmt"
	"math"
	"time"

	"github.com/lowwater/lowwater/internal/enum"
)

// TimeWindow is the half-open interval [Start, End) of event or processing
// time in milliseconds since the epoch (spec windows 1.1).
type TimeWindow struct {
	// Start is the first millisecond of the window.
	Start int64
	// End is the first millisecond after it.
	End int64
}

// GlobalWindow is the one window of the global assigner. Its MaxTimestamp is the
// end of time.
var GlobalWindow = TimeWindow{Start: math.MinInt64, End: math.MaxInt64}

// MaxTimestamp returns the largest timestamp that belongs to the window, End-1: the window
// fires when the watermark reaches it, and results carry it (spec windows 2.4). For
// GlobalWindow it is math.MaxInt64.
func (w TimeWindow) MaxTimestamp() int64 {
	if w == GlobalWindow {
		return math.MaxInt64
	}
	return w.End - 1
}

// String returns both ends in UTC, in the format of RFC 3339.
func (w TimeWindow) String() string {
	if w == GlobalWindow {
		return "[global]"
	}
	return fmt.Sprintf("[%s, %s)", formatMillis(w.Start), formatMillis(w.End))
}

func formatMillis(t int64) string {
	return time.UnixMilli(t).UTC().Format("2006-01-02T15:04:05.999Z")
}

// Timing tells why a pane was produced.
type Timing uint8

const (
	// OnTime: the watermark (or, in processing time, the clock) passed the
	// end of the window for the first time.
	OnTime Timing = iota
	// Early: a trigger fired before the window's end.
	Early
	// Late: a late record within the allowed lateness updated a window that
	// had fired.
	Late
	// BySilence: the input had been silent for as long as CloseAfterSilence says.
	BySilence
)

// String returns the timing in words, such as "on-time".
func (t Timing) String() string {
	return enum.Name(t, "on-time", "early", "late", "closed by silence")
}

// Pane is one result of a window: what the incremental window functions
// produce. A window that fires more than once gives several (spec windows 2.5).
type Pane[K, V any] struct {
	Key    K
	Window TimeWindow
	Value  V
	// Timing tells why the window fired.
	Timing Timing
}

// String returns key, window and value, and the timing unless it is OnTime.
func (p Pane[K, V]) String() string {
	s := fmt.Sprintf("%v %v %v", p.Key, p.Window, p.Value)
	if p.Timing != OnTime {
		s += " (" + p.Timing.String() + ")"
	}
	return s
}
