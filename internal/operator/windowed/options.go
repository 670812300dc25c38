package windowed

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// Options is the part of a Spec that has no types.
type Options struct {
	Assigner window.Assigner
	// AllowedLateness is how long, in milliseconds of event time, a window is
	// kept after it has fired.
	AllowedLateness int64
	// LateOutput is the id of the side output for late records. Without one
	// they are dropped and counted.
	LateOutput string
	// CloseAfterSilence fires and closes all open windows when no record has arrived for
	// so many milliseconds of wall-clock time. 0 means never. For event time only.
	CloseAfterSilence int64
}

// Validate reports wrong options.
func (o Options) Validate() error {
	if o.Assigner == nil {
		return errors.New("no assigner: the one given to Window or WindowBy is nil")
	}
	if err := o.Assigner.Validate(); err != nil {
		return err
	}
	if o.AllowedLateness < 0 {
		return fmt.Errorf("AllowedLateness(%v): must not be negative", time.Duration(o.AllowedLateness)*time.Millisecond)
	}
	if o.CloseAfterSilence < 0 {
		return fmt.Errorf("CloseAfterSilence(%v): must not be negative", time.Duration(o.CloseAfterSilence)*time.Millisecond)
	}
	if o.CloseAfterSilence > 0 && !o.Assigner.IsEventTime() {
		return fmt.Errorf("CloseAfterSilence: %v does not wait for event time", o.Assigner)
	}
	return nil
}

// Spec describes the windows of an operator, with what depends on the types of keys and
// records.
type Spec[K comparable, T any] struct {
	Options
	// ElementAssigner takes the place of Options.Assigner, which is nil then.
	ElementAssigner window.ElementAssigner[T]
	// Trigger takes the place of the assigner's default trigger.
	Trigger window.ElementTrigger[T]
	Evictor window.Evictor[T]
	// State says that the window function uses WindowState or KeyState, which fail
	// without it.
	State bool
	// Clear is called once for each window of a key when it goes, and may write to
	// side outputs. It is not called when windows merge.
	Clear func(*Context[K]) error
}

// Validate reports wrong options.
func (s Spec[K, T]) Validate() error {
	if s.ElementAssigner != nil {
		if s.Assigner != nil {
			return errors.New("window: two assigners")
		}
		s.Assigner = byElement[T]{s.ElementAssigner}
	}
	if err := s.Options.Validate(); err != nil {
		return err
	}
	if s.Evictor != nil {
		if err := s.Evictor.Validate(); err != nil {
			return err
		}
	}
	if s.Trigger == nil {
		return nil
	}
	if err := s.Trigger.Validate(); err != nil {
		return err
	}
	if s.CloseAfterSilence > 0 {
		return fmt.Errorf("CloseAfterSilence fires windows by itself: it cannot be combined with the trigger %v", s.Trigger)
	}
	if s.Assigner.Merging() && !s.Trigger.CanMerge() {
		return fmt.Errorf("%v cannot be used with %v, whose windows merge", s.Trigger, s.Assigner)
	}
	return nil
}

// general reports whether only the general operator will do.
func (s Spec[K, T]) general() bool {
	return s.ElementAssigner != nil || s.Trigger != nil || s.Evictor != nil || s.Clear != nil || s.State
}

// Context tells a window function which pane it is called for. It is valid
// during the call only. The embedded Element is the way to side outputs; its
// Timestamp is the window's MaxTimestamp, which all results of a pane carry
// (spec windows 2.4), and its Watermark the current one, which may be far past
// the window's end.
type Context[K comparable] struct {
	*operator.Element
	Key    K
	Window window.TimeWindow
	Timing window.Timing

	// windowState and keyState are set by the general operator only, and
	// windowState only if windows do not merge.
	windowState, keyState *window.Scope
}

// WindowState returns the function's state of this key and window. It goes when the
// window does. It fails with merging windows, and if the operator was built without
// state (spec windows 2.9).
func (c *Context[K]) WindowState() (*window.Scope, error) {
	if c.windowState == nil && c.keyState != nil {
		return nil, errMergingState
	}
	if c.windowState == nil {
		return nil, errNoState
	}
	return c.windowState, nil
}

// KeyState returns the function's state of this key, which all windows share and
// which stays. It fails if the operator was built without state.
func (c *Context[K]) KeyState() (*window.Scope, error) {
	if c.keyState == nil {
		return nil, errNoState
	}
	return c.keyState, nil
}

var (
	errNoState      = errors.New("the window function has no state: call Stateful on the windows")
	errMergingState = errors.New("merging windows have no state of their own: use that of the key (spec windows 2.9)")
)

// Function is a window function that sees the elements of a pane. It is called
// once per subtask and returns the function for every pane, which may range
// over the elements any number of times, but only during the call.
type Function[K comparable, T, R any] func(*Context[K], *operator.Emitter[R]) func(iter.Seq[T]) error
