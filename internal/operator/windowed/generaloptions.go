package windowed

import (
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// General describes windows with more than an assigner that goes by time.
type General[K comparable, T any] struct {
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
func (g General[K, T]) Validate() error {
	if g.ElementAssigner != nil {
		if g.Assigner != nil {
			return errors.New("window: two assigners")
		}
		g.Assigner = byElement[T]{g.ElementAssigner}
	}
	if err := g.Options.Validate(); err != nil {
		return err
	}
	if g.Evictor != nil {
		if err := g.Evictor.Validate(); err != nil {
			return err
		}
	}
	if g.Trigger == nil {
		return nil
	}
	if err := g.Trigger.Validate(); err != nil {
		return err
	}
	if g.Assigner.Merging() && !g.Trigger.CanMerge() {
		return fmt.Errorf("%v cannot be used with %v, whose windows merge", g.Trigger, g.Assigner)
	}
	return nil
}

// simple reports whether another operator than the general one will do.
func (g General[K, T]) simple() bool {
	return g.ElementAssigner == nil && g.Trigger == nil && g.Evictor == nil && g.Clear == nil && !g.State
}

// GeneralAggregate is Aggregate for windows with triggers and the like.
func GeneralAggregate[K comparable, T, A, R any](g General[K, T], agg window.Aggregator[T, A, R]) operator.Operator {
	if g.simple() {
		return Aggregate[K](g.Options, agg)
	}
	return buildGeneral(g, agg, &paneResults[K, T, A, R]{agg: agg})
}

// GeneralAggregateProcess is AggregateProcess for windows with triggers and the like.
func GeneralAggregateProcess[K comparable, T, A, V, R any](g General[K, T], agg window.Aggregator[T, A, V], f Function[K, V, R]) operator.Operator {
	if g.simple() {
		return AggregateProcess(g.Options, agg, f)
	}
	return buildGeneral(g, agg, &processedResults[K, T, A, V, R]{agg: agg, open: f})
}

// GeneralProcess is Process for windows with triggers and the like.
func GeneralProcess[K comparable, T, R any](g General[K, T], f Function[K, T, R]) operator.Operator {
	if g.simple() {
		return Process(g.Options, f)
	}
	return buildGeneral(g, &lists[T]{}, &processedLists[K, T, R]{open: f})
}

func buildGeneral[K comparable, T, A any](g General[K, T], f fold[T, A], r results[K, A]) operator.Operator {
	if g.Evictor == nil {
		return newGeneral(g, folded[T, A]{f}, f, r)
	}
	return newGeneral(g, evictable[T]{}, nil, &evictedResults[K, T, A]{evictor: g.Evictor, fold: f, inner: r})
}

func newGeneral[K comparable, T, A any](g General[K, T], c contents[T, A], f fold[T, A], r results[K, A]) *general[K, T, A] {
	assigner := g.ElementAssigner
	if assigner != nil {
		g.Assigner = byElement[T]{assigner}
	} else {
		assigner = window.AssignElements[T](g.Assigner)
	}
	trigger := g.Trigger
	if trigger == nil {
		trigger = window.ForElements[T](window.DefaultTrigger(assigner))
	}
	return &general[K, T, A]{
		core:        newCore(g.Options, f, r),
		assigner:    assigner,
		merging:     assigner.Merging(),
		trigger:     trigger,
		contents:    c,
		state:       g.State,
		clear:       g.Clear,
		keys:        keyed.NewTable[K, *keyWindows[A]](),
		eventTimers: keyed.NewTimerQueue[K, window.TimeWindow](),
		clockTimers: keyed.NewTimerQueue[K, window.TimeWindow](),
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
