package window

// Aggregator folds the records of a window into one accumulator as they arrive,
// so that a window keeps no records (spec windows 2.10). T is the records'
// type, A the accumulator's, R the result's.
//
// One Aggregator value serves all keys and windows of all subtasks: it must not
// have state of its own. It must give the same result however the records of a
// window are split into accumulators and merged: sessions merge, sliding and
// cumulating windows share the accumulators of the slices of time that they have
// in common, and windows for which a memory budget has no room go to disk in several
// accumulators of a key, which are merged in the order of their records' arrival. So an
// overlapping window sees its records slice by slice, and within a slice in the order
// of arrival. An aggregation that depends on the order of arrival, such as "the last
// value", says so by ArrivalOrdered.
type Aggregator[T, A, R any] interface {
	// New returns the accumulator of no records.
	New() A
	// Add returns acc with value added. It may change acc and return it, and
	// may keep value.
	Add(acc A, value T) A
	// Merge returns a with all of b added. It may change a and return it. It
	// must leave b as it is and must not keep any part of b that a later Add
	// could change, because b may go on to be used.
	Merge(a, b A) A
	// Result returns the result of the records so far. It must leave acc as it
	// is: a window can fire more than once.
	Result(acc A) R
}

// ArrivalOrdered is implemented by aggregators whose result depends on the order in
// which records arrive. Overlapping windows then fold each record into every
// window it is in, at a cost per record and window, and windows stay in memory whatever
// the budget.
type ArrivalOrdered interface {
	// ArrivalOrdered does nothing; that an aggregator has it is what counts.
	ArrivalOrdered()
}

// InArrivalOrder returns agg as one that is ArrivalOrdered.
func InArrivalOrder[T, A, R any](agg Aggregator[T, A, R]) Aggregator[T, A, R] {
	return inArrivalOrder[T, A, R]{agg}
}

type inArrivalOrder[T, A, R any] struct{ Aggregator[T, A, R] }

func (inArrivalOrder[T, A, R]) ArrivalOrdered() {}

// Count counts records.
func Count[T any]() Aggregator[T, int64, int64] { return count[T]{} }

type count[T any] struct{}

func (count[T]) New() int64               { return 0 }
func (count[T]) Add(n int64, _ T) int64   { return n + 1 }
func (count[T]) Merge(a, b int64) int64   { return a + b }
func (count[T]) Result(n int64) (r int64) { return n }

// Reduced is the accumulator of Reduce: a value, once there is one.
type Reduced[T any] struct {
	Value T
	Set   bool
}

// Reduce combines records two by two; the first record of a window is the value to begin
// with, and the zero value the result of no records. The function must be associative, must not
// change its arguments and, for sliding and cumulating windows, must not depend on
// their order; see InArrivalOrder.
func Reduce[T any](combine func(a, b T) T) Aggregator[T, Reduced[T], T] {
	return reduce[T]{combine}
}

type reduce[T any] struct{ combine func(a, b T) T }

func (reduce[T]) New() Reduced[T] { return Reduced[T]{} }

func (r reduce[T]) Add(acc Reduced[T], value T) Reduced[T] {
	if !acc.Set {
		return Reduced[T]{value, true}
	}
	acc.Value = r.combine(acc.Value, value)
	return acc
}

func (r reduce[T]) Merge(a, b Reduced[T]) Reduced[T] {
	if !b.Set {
		return a
	}
	return r.Add(a, b.Value)
}

func (reduce[T]) Result(acc Reduced[T]) T { return acc.Value }
