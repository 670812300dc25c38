package windowed

import (
	"fmt"
	"math"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// Aggregate returns the operator that folds records with agg and emits a
// window.Pane per firing. The spec must be valid, here and below.
func Aggregate[K comparable, T, A, R any](s Spec[K, T], agg window.Aggregator[T, A, R]) operator.Operator {
	return buildFold(s, agg, &paneResults[K, T, A, R]{agg: agg})
}

// AggregateProcess returns the operator that folds records with agg and calls f
// with the result as the only element.
func AggregateProcess[K comparable, T, A, V, R any](s Spec[K, T], agg window.Aggregator[T, A, V], f Function[K, V, R]) operator.Operator {
	result := func(acc A, yield func(V) bool) { yield(agg.Result(acc)) }
	return buildFold(s, agg, &processed[K, A, V, R]{open: f, visit: result})
}

// Process returns the operator that keeps the records of a window and calls f
// with all of them, in the order of their arrival.
func Process[K comparable, T, R any](s Spec[K, T], f Function[K, T, R]) operator.Operator {
	inOrder := &processed[K, []T, T, R]{open: f, visit: visitList[T]}
	if s.general() {
		return buildGeneral(s, &lists[T]{}, inOrder)
	}
	if l, overlap := layoutOf(s.Assigner); overlap {
		o := newSliced(s.Options, &numberedLists[T]{}, &processed[K, []numbered[T], T, R]{open: f, visit: visitNumbered[T]}, l)
		o.slices.ordered = true
		return o
	}
	return build(s.Options, &lists[T]{}, inOrder, false)
}

func buildFold[K comparable, T, A, R any](s Spec[K, T], agg window.Aggregator[T, A, R], r results[K, A]) operator.Operator {
	if s.general() {
		return buildGeneral(s, agg, r)
	}
	_, ordered := agg.(window.ArrivalOrdered)
	return build(s.Options, agg, r, !ordered)
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

func buildGeneral[K comparable, T, A any](s Spec[K, T], f fold[T, A], r results[K, A]) operator.Operator {
	if s.Evictor == nil {
		return newGeneral(s, folded[T, A]{f}, f, r)
	}
	return newGeneral(s, evictable[T]{}, nil, &evictedResults[K, T, A]{evictor: s.Evictor, fold: f, inner: r})
}

func newGeneral[K comparable, T, A any](s Spec[K, T], c contents[T, A], f fold[T, A], r results[K, A]) *general[K, T, A] {
	assigner := s.ElementAssigner
	if assigner != nil {
		s.Assigner = byElement[T]{assigner}
	} else {
		assigner = window.AssignElements[T](s.Assigner)
	}
	trigger := s.Trigger
	if trigger == nil {
		trigger = window.ForElements[T](window.DefaultTrigger(assigner))
	}
	return &general[K, T, A]{
		core:     newCore(s.Options, f, r),
		assigner: assigner,
		merging:  assigner.Merging(),
		trigger:  trigger,
		contents: c,
		state:    s.State,
		clear:    s.Clear,
		keys:     keyed.NewTable[K, *keyWindows[A]](),
		service:  keyed.NewTimerService[K, window.TimeWindow](),
	}
}

// byElement stands for an assigner of elements where one by time is asked for what
// both can tell.
type byElement[T any] struct{ window.ElementAssigner[T] }

func (a byElement[T]) Assign(dst []window.TimeWindow, _, _ int64) ([]window.TimeWindow, error) {
	return dst, fmt.Errorf("%v assigns by value", a.ElementAssigner)
}

func (a byElement[T]) Span(t int64) window.TimeWindow {
	return window.TimeWindow{Start: t, End: t + 1}
}
