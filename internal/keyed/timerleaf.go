package keyed

import (
	"math/bits"
	"slices"
)

// leaf holds the timers of a range of times, in a log or in a group.
type leaf[K, N comparable] struct {
	// log holds registrations and deletions (see deleted) from start on. Those
	// before settled are registrations without duplicates, by rising time.
	log            []Timer[K, N]
	start, settled int
	// shared says that a snapshot may read the log.
	shared bool
	// group is set if the leaf is one; log is then unused.
	group *group[K, N]
}

// group holds many timers of one time.
type group[K, N comparable] struct {
	at int64
	// table holds the timers; the first fired of them were popped.
	table *Table[groupKey[K, N], struct{}]
	fired int
	// hashes and keys are registrations not yet in the table, at most chunk.
	hashes []uint64
	keys   []groupKey[K, N]
	// shared says that a snapshot may read these.
	shared bool
	// numbers is where the table puts what nobody asks for.
	numbers [chunk]int32
}

type groupKey[K, N comparable] struct {
	namespace N
	key       K
}

// append adds to the log, which is not full.
func (l *leaf[K, N]) append(t Timer[K, N]) {
	if len(l.log) == cap(l.log) {
		larger := make([]Timer[K, N], len(l.log), min(max(2*len(l.log), 8), leafSize))
		copy(larger, l.log)
		l.log = larger
	}
	l.log = append(l.log, t)
}

// timer returns timer i of a settled leaf.
func (l *leaf[K, N]) timer(i int) Timer[K, N] {
	if l.group == nil {
		return l.log[l.start+i]
	}
	e := l.group.table.entry(uint32(l.group.fired + i))
	return Timer[K, N]{Namespace: e.Key.namespace, At: l.group.at, Hash: e.Hash, Key: e.Key.key}
}

func (g *group[K, N]) len() int {
	g.settle()
	return g.table.Len() - g.fired
}

// apply makes a registration or a deletion.
func (g *group[K, N]) apply(t Timer[K, N]) {
	key := groupKey[K, N]{t.Namespace, t.Key}
	if t.Hash&deleted != 0 {
		g.settle()
		g.forgetFired()
		g.table.Delete(t.Hash&^deleted, key)
		return
	}
	g.hashes, g.keys = append(g.hashes, t.Hash), append(g.keys, key)
	if len(g.keys) == chunk {
		g.settle()
	}
}

// settle brings registrations into the table, many at once for speed.
func (g *group[K, N]) settle() {
	if len(g.keys) == 0 {
		return
	}
	g.forgetFired()
	g.table.UpsertBatch(g.hashes, g.keys, g.numbers[:len(g.keys)])
	if g.shared {
		g.hashes, g.keys, g.shared = nil, nil, false
		return
	}
	clear(g.keys)
	g.hashes, g.keys = g.hashes[:0], g.keys[:0]
}

// forgetFired takes timers that were popped out of the table. That is only
// needed when it is to change.
func (g *group[K, N]) forgetFired() {
	for ; g.fired > 0; g.fired-- {
		g.table.DeleteAt(g.fired - 1)
	}
}

// settling settles leaves, and is the working memory for it.
type settling[K, N comparable] struct {
	equality[K]
	// index holds the number of a timer plus one, by its hash.
	index         [2 * leafSize]uint16
	order, spread []timeAndNumber
	log           []Timer[K, N]
}

// timeAndNumber stands for a log entry: its time since the log's earliest, and
// where it is.
type timeAndNumber struct {
	after  uint64
	number int32
}

// settledLen settles a leaf and returns the number of its timers.
func (q *TimerQueue[K, N]) settledLen(l *leaf[K, N]) int {
	if l.group != nil {
		return l.group.len()
	}
	if l.settled < len(l.log) {
		q.own(l)
		q.scratch.settle(l)
	}
	return len(l.log) - l.start
}

// settle replaces a leaf's log by the registrations that it amounts to, sorted.
func (s *settling[K, N]) settle(l *leaf[K, N]) {
	index := &s.index
	clear(index[:])
	log := l.log[l.start:]
	live := log[:0]
	sorted, dead := true, false
	for i := range log {
		op := &log[i]
		remove := op.Hash&deleted != 0
		slot := home(op)
		for index[slot] != 0 && !s.sameTimer(&live[index[slot]-1], op) {
			slot = (slot + 1) % uint32(len(index))
		}
		if index[slot] != 0 {
			live[index[slot]-1].Hash = op.Hash
			dead = dead || remove
		} else if !remove {
			sorted = sorted && (len(live) == 0 || live[len(live)-1].At <= op.At)
			live = append(live, *op)
			index[slot] = uint16(len(live))
		}
	}
	if dead {
		live = slices.DeleteFunc(live, func(t Timer[K, N]) bool { return t.Hash&deleted != 0 })
	}
	clear(log[len(live):])
	l.log = l.log[:l.start+len(live)]
	if !sorted && len(live) > 1 {
		s.sort(l)
	}
	l.settled = len(l.log)
}

// sameTimer reports whether two log entries are about one timer.
func (s *settling[K, N]) sameTimer(a, b *Timer[K, N]) bool {
	return a.At == b.At && (a.Hash^b.Hash)&^deleted == 0 && s.same(a.Key, b.Key) && a.Namespace == b.Namespace
}

// home returns where the search for a timer in the index starts. Its namespace
// takes no part: timers of one key and time are few.
func home[K, N comparable](t *Timer[K, N]) uint32 {
	const odd = 0x9e3779b97f4a7c15
	high, low := bits.Mul64(uint64(t.At)^t.Hash<<32, odd)
	return uint32(high^low) % (2 * leafSize)
}

// sort sorts a log by time, equal times as they stand. Timers are large: each is
// moved once.
func (s *settling[K, N]) sort(l *leaf[K, N]) {
	log := l.log[l.start:]
	order := s.order[:0]
	earliest, latest := log[0].At, log[0].At
	for i := range log {
		earliest, latest = min(earliest, log[i].At), max(latest, log[i].At)
	}
	for i := range log {
		order = append(order, timeAndNumber{uint64(log[i].At) - uint64(earliest), int32(i)})
	}
	spread := slices.Grow(s.spread[:0], len(order))[:len(order)]
	for shift := 0; shift < bits.Len64(uint64(latest)-uint64(earliest)); shift += 8 {
		sortByDigit(spread, order, shift)
		order, spread = spread, order
	}
	sorted := withRoom(s.log)
	for _, o := range order {
		sorted = append(sorted, log[o.number])
	}
	clear(log)
	s.order, s.spread, s.log = order, spread, l.log[:0]
	l.log, l.start = sorted, 0
}

// sortByDigit copies from to to, sorted by eight bits of the times, equal ones as
// they stand.
func sortByDigit(to, from []timeAndNumber, shift int) {
	var next [256]int32
	for _, o := range from {
		next[uint8(o.after>>shift)]++
	}
	at := int32(0)
	for digit, n := range next {
		next[digit] = at
		at += n
	}
	for _, o := range from {
		n := &next[uint8(o.after>>shift)]
		to[*n] = o
		*n++
	}
}

// makeRoom settles leaf i, whose log is full, and cuts it up if it is still
// more than half full.
func (q *TimerQueue[K, N]) makeRoom(i int) {
	l := q.leaves[i].leaf
	newest := l.log[len(l.log)-1].At
	n := q.settledLen(l)
	q.own(l)
	copy(l.log, l.log[l.start:])
	clear(l.log[n:])
	l.log, l.start, l.settled = l.log[:n], 0, n
	if n <= leafSize/2 {
		return
	}
	// Where times rise, nothing more is to come before the newest.
	middle := n / 2
	if i == len(q.leaves)-1 && newest == l.log[n-1].At {
		middle = n - n/8
	}
	from, to := run(l.log, middle)
	parts := []leafFrom[K, N]{q.leaves[i]}
	switch {
	case to-from > leafSize/2:
		parts = append(parts, q.groupOf(l.log[from:to]))
		if to < n {
			parts = append(parts, q.cutOff(l, to))
		}
		clear(l.log[from:])
		l.log, l.settled = l.log[:from], from
	case from == 0:
		parts = append(parts, q.cutOff(l, to))
	default:
		parts = append(parts, q.cutOff(l, from))
	}
	if len(l.log) == 0 {
		q.free(l)
		parts = parts[1:]
	}
	q.leaves = slices.Replace(q.leaves, i, i+1, parts...)
}

// cutOff moves the timers of a settled leaf from number cut on to a new one.
func (q *TimerQueue[K, N]) cutOff(l *leaf[K, N], cut int) leafFrom[K, N] {
	later := q.newLeaf()
	later.log = append(withRoom(later.log), l.log[cut:]...)
	later.settled = len(later.log)
	clear(l.log[cut:])
	l.log, l.settled = l.log[:cut], cut
	return leafFrom[K, N]{later.log[0].At, later}
}

// withRoom returns an empty log for a full leaf, log itself if it is one.
func withRoom[K, N comparable](log []Timer[K, N]) []Timer[K, N] {
	if cap(log) < leafSize {
		return make([]Timer[K, N], 0, leafSize)
	}
	return log
}

// groupOf returns a group of timers, which are all of one time.
func (q *TimerQueue[K, N]) groupOf(timers []Timer[K, N]) leafFrom[K, N] {
	var g *group[K, N]
	if n := len(q.spareGroups); n > 0 {
		g = q.spareGroups[n-1]
		q.spareGroups = q.spareGroups[:n-1]
	} else {
		g = &group[K, N]{table: NewTable[groupKey[K, N], struct{}]()}
	}
	g.at = timers[0].At
	for _, t := range timers {
		g.apply(t)
	}
	return leafFrom[K, N]{g.at, &leaf[K, N]{group: g}}
}

func (q *TimerQueue[K, N]) newLeaf() *leaf[K, N] {
	l := &leaf[K, N]{}
	if n := len(q.spareLogs); n > 0 {
		l.log = q.spareLogs[n-1]
		q.spareLogs = q.spareLogs[:n-1]
	}
	return l
}

// free keeps an empty leaf's memory for reuse, unless there is enough.
func (q *TimerQueue[K, N]) free(l *leaf[K, N]) {
	switch g := l.group; {
	case l.shared && !q.isWritten():
	case g == nil && len(q.spareLogs) < spareLimit:
		clear(l.log)
		q.spareLogs = append(q.spareLogs, l.log[:0])
	case g != nil && len(q.spareGroups) < spareLimit && g.table.Len() <= spareGroupSize:
		g.table.Reset()
		g.fired = 0
		q.spareGroups = append(q.spareGroups, g)
	}
}
