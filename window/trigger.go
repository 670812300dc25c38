package window

import (
	"errors"
	"fmt"
)

// TriggerResult says what a trigger wants done with a window.
type TriggerResult uint8

const (
	// Continue: nothing.
	Continue TriggerResult = 0
	// Fire: call the window function; the contents stay.
	Fire TriggerResult = 1 << 0
	// Purge: drop the contents. The trigger's state and timers stay, and so
	// does the window.
	Purge TriggerResult = 1 << 1
	// FireAndPurge: call the window function, then drop the contents.
	FireAndPurge = Fire | Purge
)

// Fires reports whether the window function is to be called.
func (r TriggerResult) Fires() bool { return r&Fire != 0 }

// Purges reports whether the contents are to be dropped.
func (r TriggerResult) Purges() bool { return r&Purge != 0 }

// String returns the name that Flink has for the result, such as "FIRE_AND_PURGE".
func (r TriggerResult) String() string {
	return [...]string{"CONTINUE", "FIRE", "PURGE", "FIRE_AND_PURGE"}[r&FireAndPurge]
}

// Trigger decides when windows fire, window by window and key by key, by time and
// count alone (spec windows 3). A stream with a trigger runs on the general window
// operator, which is slower than the ones for the default triggers.
//
// One Trigger value serves all keys and windows: what it has to remember goes into
// a State of the context. Contents of a window are up to date before OnElement is
// called.
//
// A trigger given to a stream replaces the default: a CountTrigger on tumbling
// windows does not fire at their end.
type Trigger interface {
	// OnElement is called for each element that a window took. timestamp is
	// math.MinInt64 if the element has none.
	OnElement(c TriggerContext, timestamp int64, w TimeWindow) TriggerResult
	TriggerCallbacks
}

// ElementTrigger is Trigger for triggers that look at values. It is given to
// WindowedStream.ElementTrigger.
type ElementTrigger[T any] interface {
	// OnElement is Trigger.OnElement with the element's value.
	OnElement(c TriggerContext, value T, timestamp int64, w TimeWindow) TriggerResult
	TriggerCallbacks
}

// TriggerCallbacks are the methods that Trigger and ElementTrigger have in common.
type TriggerCallbacks interface {
	// OnEventTime is called when the watermark reaches an event-time timer of
	// the window, at t: one that the trigger registered, or the operator's own
	// at the window's cleanup time. The window may have no contents any more;
	// then firing does nothing.
	OnEventTime(c TriggerContext, t int64, w TimeWindow) TriggerResult
	// OnProcessingTime is the same for timers of the clock.
	OnProcessingTime(c TriggerContext, t int64, w TimeWindow) TriggerResult
	// CanMerge reports whether the trigger may be used with merging windows.
	CanMerge() bool
	// OnMerge is called when windows have become one, w, which is the context's
	// window. The trigger takes over their State and registers its timers for
	// w. Clear follows for each of them.
	OnMerge(c TriggerContext, w TimeWindow)
	// Clear deletes the State and the timers of a window that goes away.
	Clear(c TriggerContext, w TimeWindow)
	// Validate reports wrong parameters, as a build error of the job.
	Validate() error
	// String returns the Go expression that builds the trigger.
	String() string
}

// TriggerContext is what a trigger may do. It is valid during a call only, and
// everything in it is about one window of one key.
//
// Timers are a set: registering a time twice is the same as once, and deleting one
// that is not there does nothing. A timer for a time that has passed is called at
// the next watermark, or as soon as the clock is looked at (spec windows 4).
type TriggerContext interface {
	// CurrentWatermark returns the operator's watermark in milliseconds,
	// eventtime.MinTimestamp if there was none yet.
	CurrentWatermark() int64
	// CurrentProcessingTime returns the clock in milliseconds since the epoch.
	CurrentProcessingTime() int64
	// RegisterEventTimeTimer has OnEventTime called when the watermark reaches t.
	RegisterEventTimeTimer(t int64)
	// RegisterProcessingTimeTimer has OnProcessingTime called when the clock has passed t.
	RegisterProcessingTimeTimer(t int64)
	// DeleteEventTimeTimer removes the window's event-time timer for t.
	DeleteEventTimeTimer(t int64)
	// DeleteProcessingTimeTimer removes the window's processing-time timer for t.
	DeleteProcessingTimeTimer(t int64)
	// Scope is where the window's State is.
	Scope() *Scope
	// Merged returns, in OnMerge, the scopes of the windows that were merged.
	Merged() []*Scope
}

// DefaultTrigger returns the trigger that an assigner's windows have if they are
// given none (spec windows 1.12).
func DefaultTrigger(a interface{ IsEventTime() bool }) Trigger {
	if t, ok := a.(interface{ defaultTrigger() Trigger }); ok {
		return t.defaultTrigger()
	}
	if a.IsEventTime() {
		return EventTimeTrigger()
	}
	return ProcessingTimeTrigger()
}

func (a GlobalAssigner) defaultTrigger() Trigger {
	if a.endOfStream {
		return EndOfStreamTrigger()
	}
	return NeverTrigger()
}

// ForElements returns t as a trigger of elements.
func ForElements[T any](t Trigger) ElementTrigger[T] { return forElements[T]{t} }

type forElements[T any] struct{ Trigger }

func (t forElements[T]) OnElement(c TriggerContext, _ T, timestamp int64, w TimeWindow) TriggerResult {
	return t.Trigger.OnElement(c, timestamp, w)
}

func (t forElements[T]) Validate() error {
	if t.Trigger == nil {
		return errNilTrigger
	}
	return t.Trigger.Validate()
}

var errNilTrigger = errors.New("the trigger is nil")

// checkInner says what is wrong with the trigger inside another.
func checkInner[T any](call string, t ElementTrigger[T]) error {
	err := errNilTrigger
	if t != nil {
		err = t.Validate()
	}
	if errors.Is(err, errNilTrigger) {
		return fmt.Errorf("%s: %w", call, err)
	}
	return err
}

// nothing is the value that triggers made from an ElementTrigger see.
type nothing = struct{}

// byTime makes a Trigger of an ElementTrigger that ignores values.
type byTime struct{ ElementTrigger[nothing] }

func (t byTime) OnElement(c TriggerContext, timestamp int64, w TimeWindow) TriggerResult {
	return t.ElementTrigger.OnElement(c, nothing{}, timestamp, w)
}
