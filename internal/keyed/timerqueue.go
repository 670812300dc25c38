package keyed

import (
	"iter"
	"math"
	"slices"
	"sort"
)

// Timer is one timer of a keyed operator: a callback for a key at a time.
type Timer[K, N comparable] struct {
	// Namespace tells the timers of one key at one time apart: a window, or
	// struct{} where there is nothing to tell.
	Namespace N
	// At is in milliseconds since the epoch.
	At   int64
	Hash uint64
	Key  K
}

// TimerQueue is a set of timers in the order of their times.
//
// Registering a timer looks nothing up. The queue is a log of registrations
// and deletions, cut by time into leaves. What a leaf's log amounts to is found
// out when it is full or when its time comes: for the whole leaf at once, within
// the processor's caches.
//
//	front            leaf            leaf            group
//	few timers,      a log           a log           many timers of
//	sorted           of [lo, lo')    of [lo', lo'')  one time, a Table
//
// The front holds what is due before the first leaf's time. Every change to it
// is made at once, so that callbacks may register and delete timers around the
// current time at little cost.
//
// Timers of one time come out in an order that depends only on the calls made,
// mostly that of registration. Operators must not rely on it, as in Flink.
type TimerQueue[K, N comparable] struct {
	// front is sorted by falling time, so that the next timer is the last. When
	// it is longer than frontLimit, a part of it is moved to a leaf.
	front      []Timer[K, N]
	frontLimit int
	// leaves are sorted by lo.
	leaves []leafFrom[K, N]
	// recent is the number of a leaf that was just used.
	recent int

	// snapshot is the last one of the queue, nil if it is known to be over.
	snapshot *Snapshot

	scratch settling[K, N]
	spilled []Timer[K, N]
	// spareLogs and spareGroups are empty ones for reuse.
	spareLogs   [][]Timer[K, N]
	spareGroups []*group[K, N]
}

// leafFrom is a leaf with the first time that it covers. It covers all up to the
// next leaf's; the front covers what is before the first leaf's.
type leafFrom[K, N comparable] struct {
	lo int64
	*leaf[K, N]
}

const (
	// leafSize is the largest length of a log. It bounds the work of settling
	// one, and the number of leaves.
	leafSize = 2048
	// frontFill is about how many timers move to the front at a time, and
	// frontSize how many more may be registered there.
	frontFill = 32
	frontSize = 64
	// spareLimit and spareGroupSize bound what is kept for reuse.
	spareLimit     = 4
	spareGroupSize = 1 << 16

	// deleted marks a log entry that deletes. Hashes have this bit clear.
	deleted = 1 << 63
)

// NewTimerQueue returns an empty queue.
func NewTimerQueue[K, N comparable]() *TimerQueue[K, N] {
	return &TimerQueue[K, N]{scratch: settling[K, N]{equality: equalityOf[K]()}, frontLimit: frontSize}
}

// Register adds a timer, unless it is there.
func (q *TimerQueue[K, N]) Register(t Timer[K, N]) { q.apply(t) }

// Delete removes a timer, if it is there.
func (q *TimerQueue[K, N]) Delete(t Timer[K, N]) {
	t.Hash |= deleted
	q.apply(t)
}

// Pop removes and returns the earliest timer if its time is at or before until.
func (q *TimerQueue[K, N]) Pop(until int64) (t Timer[K, N], ok bool) {
	if len(q.front) == 0 && !q.fillFront(until) {
		return t, false
	}
	n := len(q.front)
	if n == 0 {
		return q.popGroup(), true
	}
	if q.front[n-1].At > until {
		return t, false
	}
	t = q.front[n-1]
	q.front[n-1] = Timer[K, N]{}
	if q.front = q.front[:n-1]; n == 1 {
		q.frontLimit = frontSize
	}
	return t, true
}

// Next returns the time of the earliest timer, false if there is none. It may
// settle a leaf: ask once a batch, not once a record.
func (q *TimerQueue[K, N]) Next() (at int64, ok bool) {
	if n := len(q.front); n > 0 {
		return q.front[n-1].At, true
	}
	l := q.earliest(math.MaxInt64)
	if l == nil {
		return 0, false
	}
	return l.lo, true
}

// IsEmpty reports whether there are no timers. It may say no when all that there were have
// been deleted.
func (q *TimerQueue[K, N]) IsEmpty() bool { return len(q.front) == 0 && len(q.leaves) == 0 }

// Len returns the number of timers. It settles all logs, so it costs as much
// as there were calls since the last time: it is not for every record.
func (q *TimerQueue[K, N]) Len() int {
	n := len(q.front)
	for _, l := range q.leaves {
		n += q.settledLen(l.leaf)
	}
	return n
}

// All visits all timers in the order of their times. The queue must not be
// changed meanwhile.
func (q *TimerQueue[K, N]) All() iter.Seq[Timer[K, N]] {
	return func(yield func(Timer[K, N]) bool) {
		for _, t := range slices.Backward(q.front) {
			if !yield(t) {
				return
			}
		}
		for _, l := range q.leaves {
			for i := range q.settledLen(l.leaf) {
				if !yield(l.timer(i)) {
					return
				}
			}
		}
	}
}

// apply makes a registration or a deletion.
func (q *TimerQueue[K, N]) apply(t Timer[K, N]) {
	if len(q.leaves) == 0 || t.At < q.leaves[0].lo {
		q.applyFront(t)
		return
	}
	i := q.leafOf(t.At)
	l := q.leaves[i]
	switch {
	case l.group == nil:
		l.append(t)
		if len(l.log) == leafSize {
			q.makeRoom(i)
		}
	case t.At == l.group.at:
		l.group.apply(t)
	default: // in the gap between a group and the next leaf
		gap := q.newLeaf()
		gap.append(t)
		q.leaves = slices.Insert(q.leaves, i+1, leafFrom[K, N]{l.group.at + 1, gap})
	}
}

// leafOf returns the number of the leaf that covers a time.
func (q *TimerQueue[K, N]) leafOf(at int64) int {
	i := q.recent
	if i < len(q.leaves) && q.leaves[i].lo <= at && (i+1 == len(q.leaves) || at < q.leaves[i+1].lo) {
		return i
	}
	i = sort.Search(len(q.leaves), func(i int) bool { return q.leaves[i].lo > at }) - 1
	q.recent = i
	return i
}

// applyFront makes a registration or a deletion in the front.
func (q *TimerQueue[K, N]) applyFront(t Timer[K, N]) {
	remove := t.Hash&deleted != 0
	t.Hash &^= deleted
	from, to := q.frontRun(t.At)
	for i := from; i < to; i++ {
		if q.scratch.sameTimer(&q.front[i], &t) {
			if remove {
				q.front = slices.Delete(q.front, i, i+1)
			}
			return
		}
	}
	if remove {
		return
	}
	q.front = slices.Insert(q.front, from, t)
	if len(q.front) > q.frontLimit {
		q.spillFront()
	}
}

// frontRun returns where in the front the timers of a time are, or would be.
func (q *TimerQueue[K, N]) frontRun(at int64) (from, to int) {
	from = sort.Search(len(q.front), func(i int) bool { return q.front[i].At <= at })
	to = from + sort.Search(len(q.front)-from, func(i int) bool { return q.front[from+i].At < at })
	return from, to
}

// spillFront moves about the later half of the front to the first leaf, or all
// of it if it is of one time.
func (q *TimerQueue[K, N]) spillFront() {
	n := len(q.front)
	from, to := q.frontRun(q.front[n/2].At)
	if to == n && from > 0 {
		to = from
	}
	q.spilled = append(q.spilled[:0], q.front[:to]...)
	q.front = slices.Delete(q.front, 0, to)
	q.frontLimit = frontSize
	if len(q.leaves) == 0 || q.leaves[0].group != nil {
		q.leaves = slices.Insert(q.leaves, 0, leafFrom[K, N]{leaf: q.newLeaf()})
	}
	q.leaves[0].lo = q.spilled[to-1].At
	q.recent = 0
	for _, t := range slices.Backward(q.spilled) {
		q.apply(t)
	}
	clear(q.spilled)
}

// fillFront makes the earliest timer available if its time is at or before
// until: in the empty front, or in a group that is the first leaf. It reports
// whether there is one.
func (q *TimerQueue[K, N]) fillFront(until int64) bool {
	l := q.earliest(until)
	if l == nil {
		return false
	}
	if l.group == nil {
		q.carve(l)
	}
	return true
}

// earliest returns the first leaf, settled, with the time of the earliest timer
// as its lo; nil if that is after until or there is none. The front is empty.
func (q *TimerQueue[K, N]) earliest(until int64) *leafFrom[K, N] {
	for len(q.leaves) > 0 && q.leaves[0].lo <= until {
		l := &q.leaves[0]
		if q.settledLen(l.leaf) == 0 {
			q.dropFirst()
			continue
		}
		if l.lo = l.timer(0).At; l.lo <= until {
			return l
		}
	}
	return nil
}

// carve moves the first timers of the first leaf to the empty front: about
// frontFill, but all or none of a time.
func (q *TimerQueue[K, N]) carve(l *leafFrom[K, N]) {
	q.own(l.leaf)
	timers := l.log[l.start:]
	from, cut := run(timers, min(frontFill, len(timers))-1)
	if cut > frontSize && from > 0 {
		cut = from
	}
	for _, t := range slices.Backward(timers[:cut]) {
		q.front = append(q.front, t)
	}
	q.frontLimit = cut + frontSize
	if cut == len(timers) {
		q.dropFirst()
		return
	}
	l.lo = timers[cut].At
	l.start += cut
	clear(timers[:cut])
}

// run returns where, in timers by rising time, those with the time of timer i
// are.
func run[K, N comparable](timers []Timer[K, N], i int) (from, to int) {
	at := timers[i].At
	from = sort.Search(i, func(j int) bool { return timers[j].At >= at })
	to = i + sort.Search(len(timers)-i, func(j int) bool { return timers[i+j].At > at })
	return from, to
}

func (q *TimerQueue[K, N]) dropFirst() {
	q.free(q.leaves[0].leaf)
	q.leaves[0] = leafFrom[K, N]{}
	q.leaves = q.leaves[1:]
	q.recent = 0
}

// popGroup removes and returns the next timer of the group that is the first
// leaf.
func (q *TimerQueue[K, N]) popGroup() Timer[K, N] {
	l := q.leaves[0]
	t := l.timer(0)
	if l.group.fired++; l.group.len() == 0 {
		q.dropFirst()
	}
	return t
}
