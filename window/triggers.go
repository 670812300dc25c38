package window

import (
	"fmt"
	"math"
	"time"
)

// noTimers is embedded by triggers that register none.
type noTimers struct{}

func (noTimers) OnEventTime(TriggerContext, int64, TimeWindow) TriggerResult      { return Continue }
func (noTimers) OnProcessingTime(TriggerContext, int64, TimeWindow) TriggerResult { return Continue }

// stateless is embedded by triggers without State that do not merge.
type stateless struct{}

func (stateless) CanMerge() bool                     { return false }
func (stateless) OnMerge(TriggerContext, TimeWindow) {}
func (stateless) Clear(TriggerContext, TimeWindow)   {}
func (stateless) Validate() error                    { return nil }

// NeverTrigger returns the default trigger of the global window: it does not fire.
func NeverTrigger() Trigger { return never{} }

type never struct {
	noTimers
	stateless
}

func (never) OnElement(TriggerContext, int64, TimeWindow) TriggerResult { return Continue }
func (never) String() string                                            { return "window.NeverTrigger()" }

// EndOfStreamTrigger returns a trigger that fires once, when a bounded input has ended
// (spec windows 3). It cannot merge.
func EndOfStreamTrigger() Trigger { return endOfStream{} }

type endOfStream struct {
	noTimers
	stateless
}

func (endOfStream) OnElement(c TriggerContext, _ int64, _ TimeWindow) TriggerResult {
	c.RegisterEventTimeTimer(math.MaxInt64)
	return Continue
}

func (endOfStream) OnEventTime(_ TriggerContext, t int64, _ TimeWindow) TriggerResult {
	if t == math.MaxInt64 {
		return Fire
	}
	return Continue
}

func (endOfStream) Clear(c TriggerContext, _ TimeWindow) { c.DeleteEventTimeTimer(math.MaxInt64) }
func (endOfStream) String() string                       { return "window.EndOfStreamTrigger()" }

// EventTimeTrigger returns the default trigger of event-time windows: it fires when
// the watermark reaches the window's last millisecond, and at once for every element after
// that (spec windows 2.4, 2.5).
func EventTimeTrigger() Trigger { return eventTime{} }

type eventTime struct{ noTimers }

func (eventTime) OnElement(c TriggerContext, _ int64, w TimeWindow) TriggerResult {
	if w.MaxTimestamp() <= c.CurrentWatermark() {
		return Fire
	}
	c.RegisterEventTimeTimer(w.MaxTimestamp())
	return Continue
}

func (eventTime) OnEventTime(_ TriggerContext, t int64, w TimeWindow) TriggerResult {
	if t == w.MaxTimestamp() {
		return Fire
	}
	return Continue
}

func (eventTime) CanMerge() bool { return true }

// OnMerge leaves out a window that has ended: the element that merged it makes it
// fire, and a timer would do so again.
func (eventTime) OnMerge(c TriggerContext, w TimeWindow) {
	if w.MaxTimestamp() > c.CurrentWatermark() {
		c.RegisterEventTimeTimer(w.MaxTimestamp())
	}
}

func (eventTime) Clear(c TriggerContext, w TimeWindow) { c.DeleteEventTimeTimer(w.MaxTimestamp()) }
func (eventTime) Validate() error                      { return nil }
func (eventTime) String() string                       { return "window.EventTimeTrigger()" }

// ProcessingTimeTrigger returns the default trigger of processing-time windows: it
// fires when the clock has passed the window's end. On event-time windows it
// compares that end with the clock, and the watermark can drop a window before (spec
// windows 3).
func ProcessingTimeTrigger() Trigger { return processingTime{} }

type processingTime struct{ noTimers }

func (processingTime) OnElement(c TriggerContext, _ int64, w TimeWindow) TriggerResult {
	c.RegisterProcessingTimeTimer(w.MaxTimestamp())
	return Continue
}

func (processingTime) OnProcessingTime(TriggerContext, int64, TimeWindow) TriggerResult { return Fire }

func (processingTime) CanMerge() bool { return true }

func (processingTime) OnMerge(c TriggerContext, w TimeWindow) {
	if w.MaxTimestamp() > c.CurrentProcessingTime() {
		c.RegisterProcessingTimeTimer(w.MaxTimestamp())
	}
}

func (processingTime) Clear(c TriggerContext, w TimeWindow) {
	c.DeleteProcessingTimeTimer(w.MaxTimestamp())
}
func (processingTime) Validate() error { return nil }
func (processingTime) String() string  { return "window.ProcessingTimeTrigger()" }

// CountTrigger returns a trigger that fires at every n-th element of a window. When
// windows merge their counts add up, and the next element fires if that makes n or
// more. Elements that are left over at the window's end are dropped without a firing. n is
// at least 1 (spec windows 3).
func CountTrigger(n int64) Trigger { return countTrigger{n: n} }

type countTrigger struct {
	noTimers
	n int64
}

var elementCount = NewMergingState("count", func(a, b int64) int64 { return a + b })

func (t countTrigger) OnElement(c TriggerContext, _ int64, _ TimeWindow) TriggerResult {
	n, _ := elementCount.Get(c.Scope())
	if n+1 < t.n {
		elementCount.Set(c.Scope(), n+1)
		return Continue
	}
	elementCount.Clear(c.Scope())
	return Fire
}

func (countTrigger) CanMerge() bool { return true }

func (countTrigger) OnMerge(c TriggerContext, _ TimeWindow) {
	elementCount.Merge(c.Scope(), c.Merged())
}

func (countTrigger) Clear(c TriggerContext, _ TimeWindow) { elementCount.Clear(c.Scope()) }

func (t countTrigger) Validate() error {
	if t.n < 1 {
		return fmt.Errorf("window.CountTrigger: %d: must be at least 1", t.n)
	}
	return nil
}

func (t countTrigger) String() string { return fmt.Sprintf("window.CountTrigger(%d)", t.n) }

// DeltaTrigger returns a trigger that fires when an element is further than threshold
// from a reference, by delta(reference, element). The element then becomes the
// reference; the first one is the first element of the window, which does not fire. delta
// must not be nil. It cannot merge (spec windows 3).
func DeltaTrigger[T any](threshold float64, delta func(reference, element T) float64) ElementTrigger[T] {
	return deltaTrigger[T]{threshold: threshold, delta: delta, reference: NewState[T]("reference")}
}

type deltaTrigger[T any] struct {
	noTimers
	stateless
	threshold float64
	delta     func(reference, element T) float64
	reference State[T]
}

func (t deltaTrigger[T]) OnElement(c TriggerContext, value T, _ int64, _ TimeWindow) TriggerResult {
	reference, ok := t.reference.Get(c.Scope())
	if ok && !(t.delta(reference, value) > t.threshold) {
		return Continue
	}
	t.reference.Set(c.Scope(), value)
	if !ok {
		return Continue
	}
	return Fire
}

func (t deltaTrigger[T]) Clear(c TriggerContext, _ TimeWindow) { t.reference.Clear(c.Scope()) }

func (t deltaTrigger[T]) Validate() error {
	if t.delta == nil {
		return fmt.Errorf("window.DeltaTrigger: the delta function is nil")
	}
	return nil
}

func (t deltaTrigger[T]) String() string {
	return fmt.Sprintf("window.DeltaTrigger(%v, func)", t.threshold)
}

// PurgingTrigger returns a trigger that fires when t does and then drops the
// contents of the window, so that the next firing has what came since (spec windows 3).
func PurgingTrigger(t Trigger) Trigger { return byTime{purging[nothing]{ForElements[nothing](t)}} }

// PurgingElementTrigger is PurgingTrigger for triggers that look at values.
func PurgingElementTrigger[T any](t ElementTrigger[T]) ElementTrigger[T] { return purging[T]{t} }

type purging[T any] struct{ ElementTrigger[T] }

// purge adds a purge to a firing.
func purge(r TriggerResult) TriggerResult {
	if r.Fires() {
		return FireAndPurge
	}
	return r
}

func (t purging[T]) OnElement(c TriggerContext, value T, timestamp int64, w TimeWindow) TriggerResult {
	return purge(t.ElementTrigger.OnElement(c, value, timestamp, w))
}

func (t purging[T]) OnEventTime(c TriggerContext, at int64, w TimeWindow) TriggerResult {
	return purge(t.ElementTrigger.OnEventTime(c, at, w))
}

func (t purging[T]) OnProcessingTime(c TriggerContext, at int64, w TimeWindow) TriggerResult {
	return purge(t.ElementTrigger.OnProcessingTime(c, at, w))
}

func (t purging[T]) Validate() error {
	return checkInner("window.PurgingTrigger", t.ElementTrigger)
}

func (t purging[T]) String() string {
	return fmt.Sprintf("window.PurgingTrigger(%v)", t.ElementTrigger)
}

// TimeoutOptions change what a TimeoutTrigger does. The zero value is Flink's default.
type TimeoutOptions struct {
	// ResetOnElement starts the timeout anew with every element.
	ResetOnElement bool
	// KeepOnTimeout keeps the state of the inner trigger, such as its count,
	// when the timeout fires.
	KeepOnTimeout bool
}

// TimeoutTrigger returns a trigger that fires when t does, and otherwise once the
// clock is timeout ahead of the first element after the last firing. It also fires at every
// timer of t and at the window's cleanup, as in Flink (spec windows 3). timeout is at least
// 1 ms and whole milliseconds. It cannot merge.
func TimeoutTrigger(t Trigger, timeout time.Duration, o TimeoutOptions) Trigger {
	return byTime{TimeoutElementTrigger(ForElements[nothing](t), timeout, o)}
}

// TimeoutElementTrigger is TimeoutTrigger for triggers that look at values.
func TimeoutElementTrigger[T any](t ElementTrigger[T], timeout time.Duration, o TimeoutOptions) ElementTrigger[T] {
	return timeoutTrigger[T]{t, timeout, o}
}

type timeoutTrigger[T any] struct {
	inner   ElementTrigger[T]
	timeout time.Duration
	options TimeoutOptions
}

var timeoutAt = NewState[int64]("timeout")

func (t timeoutTrigger[T]) OnElement(c TriggerContext, value T, timestamp int64, w TimeWindow) TriggerResult {
	r := t.inner.OnElement(c, value, timestamp, w)
	if r.Fires() {
		t.Clear(c, w)
		return r
	}
	at, running := timeoutAt.Get(c.Scope())
	if running && t.options.ResetOnElement {
		c.DeleteProcessingTimeTimer(at)
		running = false
	}
	if !running {
		at = c.CurrentProcessingTime() + t.timeout.Milliseconds()
		timeoutAt.Set(c.Scope(), at)
		c.RegisterProcessingTimeTimer(at)
	}
	return r
}

func (t timeoutTrigger[T]) OnEventTime(c TriggerContext, at int64, w TimeWindow) TriggerResult {
	return t.onTimer(c, t.inner.OnEventTime(c, at, w), w)
}

func (t timeoutTrigger[T]) OnProcessingTime(c TriggerContext, at int64, w TimeWindow) TriggerResult {
	return t.onTimer(c, t.inner.OnProcessingTime(c, at, w), w)
}

// onTimer fires at any timer, the inner trigger's too.
func (t timeoutTrigger[T]) onTimer(c TriggerContext, inner TriggerResult, w TimeWindow) TriggerResult {
	if !t.options.KeepOnTimeout {
		t.Clear(c, w)
	}
	return Fire | inner&Purge
}

func (t timeoutTrigger[T]) CanMerge() bool                     { return false }
func (t timeoutTrigger[T]) OnMerge(TriggerContext, TimeWindow) {}

func (t timeoutTrigger[T]) Clear(c TriggerContext, w TimeWindow) {
	if at, running := timeoutAt.Get(c.Scope()); running {
		c.DeleteProcessingTimeTimer(at)
		timeoutAt.Clear(c.Scope())
	}
	t.inner.Clear(c, w)
}

func (t timeoutTrigger[T]) Validate() error {
	if err := checkLength("window.TimeoutTrigger", "timeout", t.timeout); err != nil {
		return err
	}
	return checkInner("window.TimeoutTrigger", t.inner)
}

func (t timeoutTrigger[T]) String() string {
	return fmt.Sprintf("window.TimeoutTrigger(%v, %v, %#v)", t.inner, t.timeout, t.options)
}
