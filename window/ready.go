package window

import "cmp"

// number is what can be added up.
type number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Sum adds up what of returns for each record, of any integer or floating-point type. It is
// 0 for no records. Integers wrap around.
func Sum[T any, N number](of func(T) N) Aggregator[T, N, N] {
	return fold[T, N]{
		empty: func() N { return 0 },
		add:   func(sum N, v T) N { return sum + of(v) },
		merge: func(a, b N) N { return a + b },
	}
}

// Min returns the smallest of what of returns for the records. A floating-point NaN is
// smaller than all other numbers. It is the zero value for no records, which is what a
// window has if an evictor leaves none.
func Min[T any, V cmp.Ordered](of func(T) V) Aggregator[T, Reduced[V], V] {
	return best[T, V]{of, func(a, b V) bool { return cmp.Less(a, b) }}
}

// Max returns the largest of what of returns for the records; see Min.
func Max[T any, V cmp.Ordered](of func(T) V) Aggregator[T, Reduced[V], V] {
	return best[T, V]{of, func(a, b V) bool { return cmp.Less(b, a) }}
}

// best keeps the value that comes before all others.
type best[T, V any] struct {
	of     func(T) V
	before func(a, b V) bool
}

func (best[T, V]) New() Reduced[V] { return Reduced[V]{} }

func (b best[T, V]) Add(acc Reduced[V], v T) Reduced[V] {
	return b.Merge(acc, Reduced[V]{b.of(v), true})
}

func (b best[T, V]) Merge(x, y Reduced[V]) Reduced[V] {
	if !x.Set || y.Set && b.before(y.Value, x.Value) {
		return y
	}
	return x
}

func (best[T, V]) Result(acc Reduced[V]) V { return acc.Value }

// Averaged is the accumulator of Average.
type Averaged struct {
	Sum   float64
	Count int64
}

// Average returns the arithmetic mean of what of returns for the records, of any integer or
// floating-point type; 0 for no records. It adds up float64 numbers.
func Average[T any, N number](of func(T) N) Aggregator[T, Averaged, float64] {
	return average[T, N]{of}
}

type average[T any, N number] struct{ of func(T) N }

func (average[T, N]) New() Averaged { return Averaged{} }

func (a average[T, N]) Add(acc Averaged, v T) Averaged {
	return Averaged{acc.Sum + float64(a.of(v)), acc.Count + 1}
}

func (average[T, N]) Merge(a, b Averaged) Averaged {
	return Averaged{a.Sum + b.Sum, a.Count + b.Count}
}

func (average[T, N]) Result(acc Averaged) float64 {
	if acc.Count == 0 {
		return 0
	}
	return acc.Sum / float64(acc.Count)
}

// Fold makes an aggregator of functions; the result is the accumulator. empty returns the
// accumulator of no records, add that of acc and one record more, merge that of two. The
// rules are those of Aggregator's New, Add and Merge; because the accumulator itself is
// the result, an add or merge that changes acc in place also changes results that were
// emitted before: return a new value if a window can fire more than once.
func Fold[T, A any](empty func() A, add func(acc A, value T) A, merge func(a, b A) A) Aggregator[T, A, A] {
	return fold[T, A]{empty, add, merge}
}

type fold[T, A any] struct {
	empty func() A
	add   func(A, T) A
	merge func(a, b A) A
}

func (f fold[T, A]) New() A           { return f.empty() }
func (f fold[T, A]) Add(acc A, v T) A { return f.add(acc, v) }
func (f fold[T, A]) Merge(a, b A) A   { return f.merge(a, b) }
func (f fold[T, A]) Result(acc A) A   { return acc }
