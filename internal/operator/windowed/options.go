package windowed

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// Options describe the windows of an operator.
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
	errNoState      = errors.New("the window function has no state: call Stateful before Process or AggregateProcess")
	errMergingState = errors.New("merging windows have no state of their own: use that of the key (spec windows 2.9)")
)

// Function is a window function that sees the elements of a pane. It is called
// once per subtask and returns the function for every pane, which may range
// over the elements any number of times, but only during the call.
type Function[K comparable, T, R any] func(*Context[K], *operator.Emitter[R]) func(iter.Seq[T]) error

// Aggregate returns the operator that folds records with agg and emits a
// window.Pane per firing. Options must be valid.
func Aggregate[K comparable, T, A, R any](o Options, agg window.Aggregator[T, A, R]) operator.Operator {
	_, ordered := agg.(window.ArrivalOrdered)
	return build(o, agg, &paneResults[K, T, A, R]{agg: agg}, !ordered)
}

// AggregateProcess returns the operator that folds records with agg and calls f
// with the result as the only element.
func AggregateProcess[K comparable, T, A, V, R any](o Options, agg window.Aggregator[T, A, V], f Function[K, V, R]) operator.Operator {
	_, ordered := agg.(window.ArrivalOrdered)
	return build(o, agg, &processedResults[K, T, A, V, R]{agg: agg, open: f}, !ordered)
}

// Process returns the operator that keeps the records of a window and calls f
// with all of them, in the order of their arrival.
func Process[K comparable, T, R any](o Options, f Function[K, T, R]) operator.Operator {
	if l, overlap := layoutOf(o.Assigner); overlap {
		s := newSliced(o, &numberedLists[T]{}, &processedNumberedLists[K, T, R]{open: f}, l)
		s.slices.ordered = true
		return s
	}
	return build(o, &lists[T]{}, &processedLists[K, T, R]{open: f}, false)
}

// build returns the operator for an assigner. Only if sliceable may it fold
// records in another order than that of their arrival.
func build[K comparable, T, A any](o Options, f fold[T, A], r results[K, A], sliceable bool) operator.Operator {
	if o.Assigner.Merging() {
		return &sessions[K, T, A]{core: newCore(o, f, r)}
	}
	if l, overlap := layoutOf(o.Assigner); overlap && sliceable {
		return newSliced(o, f, r, l)
	}
	return &panes[K, T, A]{core: newCore(o, f, r)}
}

func newSliced[K comparable, T, A any](o Options, f fold[T, A], r results[K, A], l layout) *sliced[K, T, A] {
	return &sliced[K, T, A]{core: newCore(o, f, r), layout: l}
}

func newCore[K comparable, T, A any](o Options, f fold[T, A], r results[K, A]) core[K, T, A] {
	return core[K, T, A]{Options: o, fold: f, results: r, watermark: math.MinInt64}
}
