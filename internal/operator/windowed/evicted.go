package windowed

import (
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// evictedResults lets an evictor choose among the elements of a pane, and makes
// of them what fold and inner would have made of the pane.
type evictedResults[K comparable, T, A any] struct {
	evictor window.Evictor[T]
	fold    fold[T, A]
	inner   results[K, A]
	context *Context[K]
}

func (r *evictedResults[K, T, A]) openResults(c *Context[K], out operator.Output) {
	r.context = c
	r.inner.openResults(c, out)
}

func (r *evictedResults[K, T, A]) emit(elements *[]window.Timestamped[T]) error {
	*elements = r.evictor.EvictBefore(*elements, r.context.Window)
	acc := r.fold.New()
	for _, e := range *elements {
		acc = r.fold.Add(acc, e.Value)
	}
	if err := r.inner.emit(&acc); err != nil {
		return err
	}
	if l, ok := r.fold.(releaser[A]); ok {
		l.release(acc)
	}
	*elements = r.evictor.EvictAfter(*elements, r.context.Window)
	return nil
}

func (r *evictedResults[K, T, A]) flush() error { return r.inner.flush() }
