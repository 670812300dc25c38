package windowed

import (
	"cmp"
	"iter"
	"slices"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// fold is what windows keep of their records: the first three methods of a
// window.Aggregator.
type fold[T, A any] interface {
	New() A
	Add(acc A, value T) A
	Merge(a, b A) A
}

// releaser is implemented by folds whose accumulators can be used again.
type releaser[A any] interface {
	release(acc A)
}

// results makes what a pane emits when it fires.
type results[K comparable, A any] interface {
	openResults(c *Context[K], out operator.Output)
	// emit emits the results of the pane that the context describes.
	emit(acc *A) error
	flush() error
}

// paneResults emits one window.Pane per firing.
type paneResults[K comparable, T, A, R any] struct {
	agg     window.Aggregator[T, A, R]
	context *Context[K]
	emitter *operator.Emitter[window.Pane[K, R]]
}

func (r *paneResults[K, T, A, R]) openResults(c *Context[K], out operator.Output) {
	r.context, r.emitter = c, operator.NewEmitter[window.Pane[K, R]](out, "")
}

func (r *paneResults[K, T, A, R]) emit(acc *A) error {
	c := r.context
	r.emitter.Append(window.Pane[K, R]{
		Key: c.Key, Window: c.Window, Value: r.agg.Result(*acc), Timing: c.Timing,
	}, c.Timestamp, 0)
	return nil
}

func (r *paneResults[K, T, A, R]) flush() error { return r.emitter.Flush() }

// processedResults calls a function with the result of an aggregation.
type processedResults[K comparable, T, A, V, R any] struct {
	agg     window.Aggregator[T, A, V]
	open    Function[K, V, R]
	f       func(iter.Seq[V]) error
	emitter *operator.Emitter[R]
	current V
	// elements yields current; made once.
	elements iter.Seq[V]
}

func (r *processedResults[K, T, A, V, R]) openResults(c *Context[K], out operator.Output) {
	r.emitter = operator.NewEmitter[R](out, "")
	r.f = r.open(c, r.emitter)
	r.elements = func(yield func(V) bool) { yield(r.current) }
}

func (r *processedResults[K, T, A, V, R]) emit(acc *A) error {
	r.current = r.agg.Result(*acc)
	return r.f(r.elements)
}

func (r *processedResults[K, T, A, V, R]) flush() error { return r.emitter.Flush() }

// lists keeps the records themselves.
type lists[T any] struct{ free [][]T }

// maxFreeLists bounds the lists kept for reuse.
const maxFreeLists = 1 << 14

func (l *lists[T]) New() []T {
	if n := len(l.free); n > 0 {
		list := l.free[n-1]
		l.free = l.free[:n-1]
		return list
	}
	return nil
}

func (l *lists[T]) Add(list []T, v T) []T { return append(list, v) }

func (l *lists[T]) Merge(a, b []T) []T { return append(a, b...) }

func (l *lists[T]) release(list []T) {
	clear(list)
	if len(l.free) < maxFreeLists {
		l.free = append(l.free, list[:0])
	}
}

// processedLists calls a function with all elements of a pane.
type processedLists[K comparable, T, R any] struct {
	open    Function[K, T, R]
	f       func(iter.Seq[T]) error
	emitter *operator.Emitter[R]
	current []T
	// elements yields current; made once.
	elements iter.Seq[T]
}

func (r *processedLists[K, T, R]) openResults(c *Context[K], out operator.Output) {
	r.emitter = operator.NewEmitter[R](out, "")
	r.f = r.open(c, r.emitter)
	r.elements = func(yield func(T) bool) {
		for _, v := range r.current {
			if !yield(v) {
				return
			}
		}
	}
}

func (r *processedLists[K, T, R]) emit(list *[]T) error {
	r.current = *list
	err := r.f(r.elements)
	r.current = nil
	return err
}

func (r *processedLists[K, T, R]) flush() error { return r.emitter.Flush() }

// numbered is a record with its place in the order of arrival.
type numbered[T any] struct {
	seq   uint64
	value T
}

// numberedLists keeps records such that lists of several slices can be put back
// into the order of arrival.
type numberedLists[T any] struct {
	lists[numbered[T]]
	seq uint64
}

func (l *numberedLists[T]) Add(list []numbered[T], v T) []numbered[T] {
	l.seq++
	return append(list, numbered[T]{l.seq, v})
}

// processedNumberedLists is processedLists for numberedLists.
type processedNumberedLists[K comparable, T, R any] struct {
	open    Function[K, T, R]
	f       func(iter.Seq[T]) error
	emitter *operator.Emitter[R]
	current []numbered[T]
	// elements yields current; made once.
	elements iter.Seq[T]
}

func (r *processedNumberedLists[K, T, R]) openResults(c *Context[K], out operator.Output) {
	r.emitter = operator.NewEmitter[R](out, "")
	r.f = r.open(c, r.emitter)
	r.elements = func(yield func(T) bool) {
		for i := range r.current {
			if !yield(r.current[i].value) {
				return
			}
		}
	}
}

func (r *processedNumberedLists[K, T, R]) emit(list *[]numbered[T]) error {
	r.current = *list
	bySeq := func(a, b numbered[T]) int { return cmp.Compare(a.seq, b.seq) }
	if !slices.IsSortedFunc(r.current, bySeq) {
		slices.SortFunc(r.current, bySeq)
	}
	err := r.f(r.elements)
	r.current = nil
	return err
}

func (r *processedNumberedLists[K, T, R]) flush() error { return r.emitter.Flush() }
