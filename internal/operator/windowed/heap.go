package windowed

// due is an entry of an endHeap: look at v when time reaches at. seq makes the
// order of equal times the order in which the values came.
type due[V any] struct {
	at  int64
	seq uint64
	v   V
}

// endHeap orders values by the time at which they are to be looked at. Entries
// are never moved or removed from the middle: whoever takes one out decides
// whether it still means something.
type endHeap[V any] []due[V]

func (h endHeap[V]) before(i, j int) bool { return h[i].before(&h[j]) }

func (d *due[V]) before(other *due[V]) bool {
	return d.at < other.at || d.at == other.at && d.seq < other.seq
}

func (h *endHeap[V]) push(d due[V]) {
	*h = append(*h, d)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

// pop removes and returns the earliest entry.
func (h *endHeap[V]) pop() due[V] {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	q[last] = due[V]{}
	q = q[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			break
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
	*h = q
	return first
}
