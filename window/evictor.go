package window

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Timestamped is an element of a window with its time in milliseconds since the
// epoch, math.MinInt64 if it has none.
type Timestamped[T any] struct {
	Value     T
	Timestamp int64
}

// Evictor removes elements from a window when it fires. With one, a window keeps all
// its elements, even for an aggregation. What is removed is gone for later firings,
// too (spec windows 2.11).
type Evictor[T any] interface {
	// EvictBefore returns the elements that the window function is to see, in
	// their order. It may reuse the slice. If none is left, the function is
	// called with none.
	EvictBefore(elements []Timestamped[T], w TimeWindow) []Timestamped[T]
	// EvictAfter returns the elements that the window keeps after the function
	// was called.
	EvictAfter(elements []Timestamped[T], w TimeWindow) []Timestamped[T]
	// Validate reports wrong parameters, as a build error of the job.
	Validate() error
	// String returns the Go expression that builds the evictor.
	String() string
}

// BuiltInEvictor is an Evictor that works either before or after the window
// function. Build it with CountEvictor, TimeEvictor or DeltaEvictor.
type BuiltInEvictor[T any] struct {
	name  string
	keep  func([]Timestamped[T]) []Timestamped[T]
	after bool
	err   error
}

// CountEvictor keeps the last n elements, in the order of their arrival. 0 keeps none; n must
// not be negative.
func CountEvictor[T any](n int64) BuiltInEvictor[T] {
	e := BuiltInEvictor[T]{name: fmt.Sprintf("window.CountEvictor(%d)", n)}
	if n < 0 {
		e.err = fmt.Errorf("window.CountEvictor: %d: must not be negative", n)
	}
	e.keep = func(elements []Timestamped[T]) []Timestamped[T] {
		return elements[max(0, int64(len(elements))-n):]
	}
	return e
}

// TimeEvictor keeps the elements that are less than size older than the newest, by their
// timestamps. If the first element has no timestamp it keeps all (spec windows 2.11). size
// is at least 1 ms and whole milliseconds.
func TimeEvictor[T any](size time.Duration) BuiltInEvictor[T] {
	e := BuiltInEvictor[T]{name: fmt.Sprintf("window.TimeEvictor(%v)", size)}
	e.err = checkLength("window.TimeEvictor", "size", size)
	e.keep = func(elements []Timestamped[T]) []Timestamped[T] {
		if len(elements) == 0 || elements[0].Timestamp == noTimestamp {
			return elements
		}
		newest := int64(math.MinInt64)
		for _, x := range elements {
			newest = max(newest, x.Timestamp)
		}
		cutoff := newest - size.Milliseconds()
		return slices.DeleteFunc(elements, func(x Timestamped[T]) bool { return x.Timestamp <= cutoff })
	}
	return e
}

// DeltaEvictor keeps the elements that are closer than threshold to the last, by
// delta(element, last): at the threshold they go, and with one of 0 or less usually the
// last itself, too. delta must not be nil.
func DeltaEvictor[T any](threshold float64, delta func(element, last T) float64) BuiltInEvictor[T] {
	e := BuiltInEvictor[T]{name: fmt.Sprintf("window.DeltaEvictor(%v, func)", threshold)}
	if delta == nil {
		e.err = fmt.Errorf("window.DeltaEvictor: the delta function is nil")
	}
	e.keep = func(elements []Timestamped[T]) []Timestamped[T] {
		if len(elements) == 0 {
			return elements
		}
		last := elements[len(elements)-1].Value
		return slices.DeleteFunc(elements, func(x Timestamped[T]) bool { return delta(x.Value, last) >= threshold })
	}
	return e
}

// After makes the evictor work after the window function instead of before.
func (e BuiltInEvictor[T]) After() BuiltInEvictor[T] { e.after = true; return e }

// EvictBefore implements Evictor.
func (e BuiltInEvictor[T]) EvictBefore(elements []Timestamped[T], _ TimeWindow) []Timestamped[T] {
	if e.after {
		return elements
	}
	return e.keep(elements)
}

// EvictAfter implements Evictor.
func (e BuiltInEvictor[T]) EvictAfter(elements []Timestamped[T], _ TimeWindow) []Timestamped[T] {
	if !e.after {
		return elements
	}
	return e.keep(elements)
}

// Validate implements Evictor.
func (e BuiltInEvictor[T]) Validate() error {
	if e.keep == nil {
		return errors.New("the evictor is nil: build one with window.CountEvictor, TimeEvictor or DeltaEvictor")
	}
	return e.err
}

// String implements Evictor.
func (e BuiltInEvictor[T]) String() string {
	if e.after {
		return e.name + ".After()"
	}
	return e.name
}
