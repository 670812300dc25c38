package windowed

import (
	"github.com/lowwater/lowwater/window"
)

// router adds the records of a batch to panes. It works through a batch pane by
// pane rather than record by record, which keeps one table at a time near the
// processor and lets its lookups overlap. Nothing can tell the difference:
// every pane sees its records in the order of their arrival, and none of those
// that a route leads to has fired. Where other routes may lead to the same panes,
// records have to be added at once instead.
type router[K comparable, T, A any] struct {
	fold fold[T, A]

	// routes is the spans of time seen since the last reset, by start. They
	// do not overlap.
	routes []route[K, A]

	// Scratch space of gather and add.
	entries []int32
	keys    []K
	hashes  []uint64
	values  []T
}

// route says which panes all records with a time in span belong to.
type route[K comparable, A any] struct {
	span  window.TimeWindow
	panes []*pane[K, A]
	// shared says that other routes may lead to some of the panes.
	shared bool
	// runs is the records of this batch that are yet to be added.
	runs []run
}

// run is the records of a batch from one number up to (not including) another.
type run struct{ from, to int }

// maxRoutes bounds what a badly disordered stream makes of a router.
const maxRoutes = 128

// find returns the route for time t, nil if there is none.
func (r *router[K, T, A]) find(t int64) *route[K, A] {
	lo, hi := 0, len(r.routes)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if r.routes[mid].span.Start <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || r.routes[lo-1].span.End <= t {
		return nil
	}
	return &r.routes[lo-1]
}

// target is the operator that a router works for.
type target[K comparable, T, A any] interface {
	// locate makes the route for record i of a batch. It returns nil if the
	// record cannot simply be added: it is late, in no window, or one of its
	// windows has fired.
	locate(b *keyedBatch[K, T], i int) (*route[K, A], error)
	// addSingly does what is to be done with such a record. Records before it
	// that are on a route may not have been added yet.
	addSingly(b *keyedBatch[K, T], i int) error
}

// route adds the records of a batch to the panes of their timestamps. Runs of
// neighbouring records share the search for their panes.
func (r *router[K, T, A]) route(b *keyedBatch[K, T], o target[K, T, A]) error {
	times := b.Timestamps
	for i := 0; i < len(times); {
		route := r.find(times[i])
		if route == nil {
			var err error
			if route, err = o.locate(b, i); err != nil {
				return err
			}
		}
		if route == nil {
			if err := o.addSingly(b, i); err != nil {
				return err
			}
			i++
			continue
		}
		n := runLength(times[i:], route.span)
		route.runs = append(route.runs, run{i, i + n})
		i += n
		if route.shared {
			r.flush(b)
		}
	}
	r.flush(b)
	return nil
}

// insert adds a route without panes for a span that holds a time for which find
// found nothing.
func (r *router[K, T, A]) insert(b *keyedBatch[K, T], span window.TimeWindow) *route[K, A] {
	if len(r.routes) == maxRoutes {
		r.flush(b)
		r.reset()
	}
	n := len(r.routes)
	if n < cap(r.routes) {
		r.routes = r.routes[:n+1]
	} else {
		r.routes = append(r.routes, route[K, A]{})
	}
	added := r.routes[n]
	i := n // where it belongs
	for i > 0 && r.routes[i-1].span.Start > span.Start {
		r.routes[i] = r.routes[i-1]
		i--
	}
	added.span, added.panes, added.runs = span, added.panes[:0], added.runs[:0]
	r.routes[i] = added
	return &r.routes[i]
}

// reset forgets all routes, which must have no runs left. It must be called
// before a pane that a route leads to fires.
func (r *router[K, T, A]) reset() {
	r.routes = r.routes[:0]
}

// runLength returns how many times from the first lie in span.
func runLength(times []int64, span window.TimeWindow) int {
	start, length := span.Start, uint64(span.End-span.Start)
	for i, t := range times {
		if uint64(t-start) >= length {
			return i
		}
	}
	return len(times)
}

// flush adds all records that were put on a route.
func (r *router[K, T, A]) flush(b *keyedBatch[K, T]) {
	for i := range r.routes {
		route := &r.routes[i]
		switch len(route.runs) {
		case 0:
			continue
		case 1:
			from, to := route.runs[0].from, route.runs[0].to
			r.add(route.panes, b.Hashes[from:to], b.Keys[from:to], b.Values[from:to])
		default:
			r.gather(b, route.runs)
			r.add(route.panes, r.hashes, r.keys, r.values)
		}
		route.runs = route.runs[:0]
	}
}

// gather copies runs of records next to each other.
func (r *router[K, T, A]) gather(b *keyedBatch[K, T], runs []run) {
	r.hashes, r.keys, r.values = r.hashes[:0], r.keys[:0], r.values[:0]
	for _, run := range runs {
		if run.to == run.from+1 {
			r.hashes = append(r.hashes, b.Hashes[run.from])
			r.keys = append(r.keys, b.Keys[run.from])
			r.values = append(r.values, b.Values[run.from])
			continue
		}
		r.hashes = append(r.hashes, b.Hashes[run.from:run.to]...)
		r.keys = append(r.keys, b.Keys[run.from:run.to]...)
		r.values = append(r.values, b.Values[run.from:run.to]...)
	}
}

// add adds records to panes.
func (r *router[K, T, A]) add(panes []*pane[K, A], hashes []uint64, keys []K, values []T) {
	if cap(r.entries) < len(keys) {
		r.entries = make([]int32, len(keys))
	}
	entries := r.entries[:len(keys)]
	for _, p := range panes {
		created := int32(p.keys.Len())
		p.keys.UpsertBatch(hashes, keys, entries)
		p.spilled.records += len(keys)
		for i, n := range entries {
			acc := &p.keys.At(int(n)).Value
			if n == created {
				*acc = r.fold.New()
				created++
			}
			*acc = r.fold.Add(*acc, values[i])
		}
	}
}
