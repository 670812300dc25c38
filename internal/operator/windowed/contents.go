package windowed

import (
	"cmp"
	"iter"
	"slices"
	"unsafe"

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

// processed calls a function with the elements of a pane.
type processed[K comparable, A, V, R any] struct {
	open Function[K, V, R]
	// visit yields the elements that acc stands for, each time the same.
	visit func(acc A, yield func(V) bool)

	f       func(iter.Seq[V]) error
	emitter *operator.Emitter[R]
	current A
	// elements visits current; made once.
	elements iter.Seq[V]
}

func (r *processed[K, A, V, R]) openResults(c *Context[K], out operator.Output) {
	r.emitter = operator.NewEmitter[R](out, "")
	r.f = r.open(c, r.emitter)
	r.elements = func(yield func(V) bool) { r.visit(r.current, yield) }
}

func (r *processed[K, A, V, R]) emit(acc *A) error {
	r.current = *acc
	err := r.f(r.elements)
	var none A
	r.current = none
	return err
}

func (r *processed[K, A, V, R]) flush() error { return r.emitter.Flush() }

// lists keeps the records themselves.
type lists[T any] struct {
	free [][]T
	// kept is the memory of the free lists in bytes.
	kept int
}

// maxFreeLists and maxFreeBytes bound the lists kept for reuse.
const (
	maxFreeLists = 1 << 14
	maxFreeBytes = 8 << 20
)

func (l *lists[T]) New() []T {
	if n := len(l.free); n > 0 {
		list := l.free[n-1]
		l.free = l.free[:n-1]
		l.kept -= bytesOf(list)
		return list
	}
	return nil
}

// bytesOf returns the memory that a list takes.
func bytesOf[T any](list []T) int {
	var v T
	return cap(list) * int(unsafe.Sizeof(v))
}

func (l *lists[T]) Add(list []T, v T) []T { return append(list, v) }

func (l *lists[T]) Merge(a, b []T) []T { return append(a, b...) }

func (l *lists[T]) release(list []T) {
	size := bytesOf(list)
	if len(l.free) == maxFreeLists || l.kept+size > maxFreeBytes {
		return
	}
	clear(list)
	l.free = append(l.free, list[:0])
	l.kept += size
}

func visitList[T any](list []T, yield func(T) bool) {
	for _, v := range list {
		if !yield(v) {
			return
		}
	}
}

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

// visitNumbered puts list into the order of arrival, if it is not, and visits it.
func visitNumbered[T any](list []numbered[T], yield func(T) bool) {
	bySeq := func(a, b numbered[T]) int { return cmp.Compare(a.seq, b.seq) }
	if !slices.IsSortedFunc(list, bySeq) {
		slices.SortFunc(list, bySeq)
	}
	for i := range list {
		if !yield(list[i].value) {
			return
		}
	}
}
