package window

import (
	"fmt"
	"math"
	"time"
)

// ContinuousEventTimeTrigger returns a trigger that fires whenever the watermark
// passes a multiple of interval, and at the window's end, whether or not there are
// new elements (spec windows 3). A watermark that jumps over several multiples fires for
// each of them. interval is at least 1 ms and whole milliseconds.
//
// A watermark that jumps over more than a thousand intervals of the global window, or a
// million of another one, fires the last of them only.
func ContinuousEventTimeTrigger(interval time.Duration) Trigger {
	return continuousEvent{interval: interval}
}

// ContinuousProcessingTimeTrigger returns a trigger that fires whenever the clock
// passes a multiple of interval. Firings end with the window, which for event-time
// windows is when the clock passes their end; the watermark alone does not fire it.
// interval is at least 1 ms and whole milliseconds (spec windows 3).
func ContinuousProcessingTimeTrigger(interval time.Duration) Trigger {
	return continuousProcessing{interval: interval}
}

// nextFiring is the time of the next firing by interval. When windows merge the
// earliest counts.
var nextFiring = NewMergingState("next firing", func(a, b int64) int64 { return min(a, b) })

// How many firings in a row are made up for at most: in the global window, and in one that
// has an end. Far from a record's time is that of a window by processing time.
const (
	maxIntervals         = 1000
	maxIntervalsInWindow = 1_000_000
)

// boundary returns the first multiple of interval after t, at most the end of w. For
// a negative t it may be the one after, as in Flink.
func boundary(t int64, interval time.Duration, w TimeWindow) int64 {
	return following(t-t%interval.Milliseconds(), interval, w)
}

// following returns one interval after t, at most the end of w.
func following(t int64, interval time.Duration, w TimeWindow) int64 {
	next := t + interval.Milliseconds()
	if next < t {
		next = math.MaxInt64
	}
	return min(next, w.MaxTimestamp())
}

type continuousEvent struct {
	noTimers
	interval time.Duration
}

func (t continuousEvent) OnElement(c TriggerContext, timestamp int64, w TimeWindow) TriggerResult {
	if w.MaxTimestamp() <= c.CurrentWatermark() {
		return Fire
	}
	c.RegisterEventTimeTimer(w.MaxTimestamp())
	if _, ok := nextFiring.Get(c.Scope()); !ok {
		t.fireAt(c, boundary(timestamp, t.interval, w))
	}
	return Continue
}

func (t continuousEvent) fireAt(c TriggerContext, at int64) {
	nextFiring.Set(c.Scope(), at)
	c.RegisterEventTimeTimer(at)
}

func (t continuousEvent) OnEventTime(c TriggerContext, at int64, w TimeWindow) TriggerResult {
	if at == w.MaxTimestamp() {
		return Fire
	}
	if next, ok := nextFiring.Get(c.Scope()); !ok || next != at {
		return Continue
	}
	t.fireAt(c, following(t.skip(at, c.CurrentWatermark(), w), t.interval, w))
	return Fire
}

// skip returns the last boundary that a watermark has passed if at is an earlier one
// and there are too many between.
func (t continuousEvent) skip(at, watermark int64, w TimeWindow) int64 {
	most := uint64(maxIntervals)
	if w != GlobalWindow {
		watermark, most = min(watermark, w.MaxTimestamp()), maxIntervalsInWindow
	}
	interval := uint64(t.interval.Milliseconds())
	passed := uint64(watermark-at) / interval
	if watermark < at || passed <= most {
		return at
	}
	return at + int64(passed*interval)
}

func (continuousEvent) CanMerge() bool { return true }

func (continuousEvent) OnMerge(c TriggerContext, _ TimeWindow) {
	nextFiring.Merge(c.Scope(), c.Merged())
	if next, ok := nextFiring.Get(c.Scope()); ok {
		c.RegisterEventTimeTimer(next)
	}
}

func (continuousEvent) Clear(c TriggerContext, _ TimeWindow) {
	if next, ok := nextFiring.Get(c.Scope()); ok {
		c.DeleteEventTimeTimer(next)
		nextFiring.Clear(c.Scope())
	}
}

func (t continuousEvent) Validate() error {
	return checkLength("window.ContinuousEventTimeTrigger", "interval", t.interval)
}

func (t continuousEvent) String() string {
	return fmt.Sprintf("window.ContinuousEventTimeTrigger(%v)", t.interval)
}

type continuousProcessing struct {
	noTimers
	interval time.Duration
}

func (t continuousProcessing) OnElement(c TriggerContext, _ int64, w TimeWindow) TriggerResult {
	if _, ok := nextFiring.Get(c.Scope()); !ok {
		t.fireAt(c, boundary(c.CurrentProcessingTime(), t.interval, w))
	}
	return Continue
}

func (t continuousProcessing) fireAt(c TriggerContext, at int64) {
	nextFiring.Set(c.Scope(), at)
	c.RegisterProcessingTimeTimer(at)
}

// OnProcessingTime does not set a timer again for the window's end once that has
// passed: in Flink an event-time window whose end lies behind the clock fires without
// end.
func (t continuousProcessing) OnProcessingTime(c TriggerContext, at int64, w TimeWindow) TriggerResult {
	if next, ok := nextFiring.Get(c.Scope()); !ok || next != at {
		return Continue
	}
	nextFiring.Clear(c.Scope())
	if next := following(at, t.interval, w); next > at {
		t.fireAt(c, next)
	}
	return Fire
}

func (continuousProcessing) CanMerge() bool { return true }

func (continuousProcessing) OnMerge(c TriggerContext, _ TimeWindow) {
	nextFiring.Merge(c.Scope(), c.Merged())
	if next, ok := nextFiring.Get(c.Scope()); ok {
		c.RegisterProcessingTimeTimer(next)
	}
}

func (continuousProcessing) Clear(c TriggerContext, _ TimeWindow) {
	if next, ok := nextFiring.Get(c.Scope()); ok {
		c.DeleteProcessingTimeTimer(next)
		nextFiring.Clear(c.Scope())
	}
}

func (t continuousProcessing) Validate() error {
	return checkLength("window.ContinuousProcessingTimeTrigger", "interval", t.interval)
}

func (t continuousProcessing) String() string {
	return fmt.Sprintf("window.ContinuousProcessingTimeTrigger(%v)", t.interval)
}
