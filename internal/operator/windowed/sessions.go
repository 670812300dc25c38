package windowed

import (
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// session is one in-flight window of one key. The sessions of a key are a list
// by start; no two of them touch.
type session[K comparable, A any] struct {
	window window.TimeWindow
	acc    A
	next   *session[K, A]

	key  K
	hash uint64

	// fired says that time has passed the window's end as it is now.
	fired bool
	// queued says that the session has an entry in the heap, at time due. That
	// may be before the window's end, which moves with every record: the
	// session is then put back when its time has come. Other entries that the
	// session has had, and those of another seq, mean nothing any more.
	queued bool
	due    int64
	seq    uint64
}

// sessions is the operator for merging windows.
type sessions[K comparable, T, A any] struct {
	core[K, T, A]

	keys *keyed.Table[K, *session[K, A]]
	ends endHeap[*session[K, A]]
	live int
	seq  uint64
	free []*session[K, A]

	// snapshot is the last one that was begun; see keep.
	snapshot *keyed.Snapshot
	// spilled is nil unless there is a budget for memory. It has its own ends then, and keys
	// is what of its keys is in memory.
	spilled *spilledSessions[K, T, A]

	entries []int32 // scratch space of Process
	// refused is the records of a batch for which a key was added in vain.
	refused []int
}

// maxFreeSessions bounds the sessions kept for reuse beyond as many as are live.
const maxFreeSessions = 1 << 10

func (o *sessions[K, T, A]) Open(rt *operator.Runtime, out operator.Output) error {
	o.keys = keyed.NewTable[K, *session[K, A]]()
	if err := o.open(rt, out, o.onClock, o.onSilence); err != nil {
		return err
	}
	if err := o.openStorage(codecOf(o.fold)); err != nil {
		return err
	}
	if err := o.openSpilling(); err != nil || rt.Restored == nil {
		return err
	}
	return o.restore()
}

func (o *sessions[K, T, A]) Process(_ int, p exchange.Payload) error {
	b := p.(*keyedBatch[K, T])
	o.silence.heard()
	err := o.addAll(b)
	b.Release()
	if err != nil {
		return err
	}
	o.setAlarm()
	return o.flush()
}

func (o *sessions[K, T, A]) addAll(b *keyedBatch[K, T]) error {
	now := o.rt.Timers.Now()
	if o.spilled != nil {
		return o.spilled.addAll(b, now)
	}
	if cap(o.entries) < b.Len() {
		o.entries = make([]int32, b.Len())
	}
	entries := o.entries[:b.Len()]
	o.keys.UpsertBatch(b.Hashes, b.Keys, entries)
	for i, n := range entries {
		head := &o.keys.At(int(n)).Value
		if err := o.add(head, b, i, now); err != nil {
			return err
		}
		if *head == nil {
			o.refused = append(o.refused, i)
		}
	}
	for _, i := range o.refused {
		if head := o.keys.Get(b.Hashes[i], b.Keys[i]); head != nil && *head == nil {
			o.keys.Delete(b.Hashes[i], b.Keys[i])
		}
	}
	o.refused = o.refused[:0]
	return nil
}

// add puts record i into the sessions of its key. head is where their list begins.
func (o *sessions[K, T, A]) add(head **session[K, A], b *keyedBatch[K, T], i int, now int64) error {
	if err := o.assign(b, i, now); err != nil {
		return err
	}
	accepted := false
	for _, w := range o.windows {
		if s := o.take(head, b, i, w); s != nil {
			accepted = true
			if err := o.touched(s); err != nil {
				return err
			}
		}
	}
	if !accepted {
		o.late(b, i)
	}
	return nil
}

// take puts record i, whose own window is w, into the session that it touches,
// makes one of all that it touches, or opens one, and returns it (spec windows
// 2.6). It returns nil if the record comes too late for that. head is where the
// list of the key's sessions begins.
func (o *sessions[K, T, A]) take(head **session[K, A], b *keyedBatch[K, T], i int, w window.TimeWindow) *session[K, A] {
	at := head
	for *at != nil && (*at).window.End < w.Start {
		at = &(*at).next
	}
	s := *at
	switch {
	case s != nil && s.window.Touches(w):
		// A session in flight takes the record even if w alone is late.
		s.window = s.window.Cover(w)
		o.absorb(s)
	case o.expired(w.MaxTimestamp()):
		return nil
	default:
		s = o.newSession(b.Hashes[i], b.Keys[i], w)
		s.next = *at
		*at = s
	}
	s.acc = o.fold.Add(s.acc, b.Values[i])
	return s
}

// absorb merges the sessions that follow s into it as long as they touch it.
func (o *sessions[K, T, A]) absorb(s *session[K, A]) {
	for s.next != nil && s.next.window.Touches(s.window) {
		other := s.next
		s.window = s.window.Cover(other.window)
		s.acc = o.fold.Merge(s.acc, other.acc)
		s.next = other.next
		o.recycle(other)
	}
}

// touched fires s if it has ended already (spec windows 2.5), and sees to it
// that s is looked at when its next time comes.
func (o *sessions[K, T, A]) touched(s *session[K, A]) error {
	s.fired = o.eventTime && s.window.MaxTimestamp() <= o.watermark
	if next := o.nextTime(s); !s.queued || next < s.due {
		o.queue(s, next)
	}
	if s.fired {
		return o.emit(s.key, s.window, window.Late, &s.acc)
	}
	return nil
}

// nextTime returns when something will happen to s: it fires, or it goes.
func (o *sessions[K, T, A]) nextTime(s *session[K, A]) int64 {
	if s.fired {
		return o.cleanupTime(s.window.MaxTimestamp())
	}
	return s.window.MaxTimestamp()
}

func (o *sessions[K, T, A]) queue(s *session[K, A], at int64) {
	s.queued, s.due = true, at
	if o.spilled != nil {
		o.spilled.ends.push(due[keyOf[K]]{at, s.seq, keyOf[K]{s.hash, s.key}})
		return
	}
	o.ends.push(due[*session[K, A]]{at, s.seq, s})
}

func (o *sessions[K, T, A]) Watermark(t int64) error {
	o.setWatermark(t)
	if o.eventTime {
		if err := o.advance(o.watermark); err != nil {
			return err
		}
	}
	return o.forward(t)
}

// onClock fires the processing-time sessions that are over.
func (o *sessions[K, T, A]) onClock(now int64) error {
	if err := o.advance(now - 1); err != nil {
		return err
	}
	o.setAlarm()
	return o.flush()
}

func (o *sessions[K, T, A]) setAlarm() {
	if !o.processingTime {
		return
	}
	if o.spilled != nil && len(o.spilled.ends) > 0 {
		o.alarm.SetAfter(o.spilled.ends[0].at)
	}
	if len(o.ends) > 0 {
		o.alarm.SetAfter(o.ends[0].at)
	}
}

// advance fires and drops sessions, in the order of their times, up to time t.
func (o *sessions[K, T, A]) advance(t int64) error {
	if o.spilled != nil {
		return o.spilled.advance(t)
	}
	for len(o.ends) > 0 && o.ends[0].at <= t {
		d := o.ends.pop()
		if d.v.seq != d.seq {
			continue
		}
		if err := o.end(d.v, d.at); err != nil {
			return err
		}
	}
	return nil
}

// end fires s or drops it, if it was queued for the time at and that is still when.
func (o *sessions[K, T, A]) end(s *session[K, A], at int64) error {
	if !s.queued || s.due != at {
		return nil
	}
	s.queued = false
	if next := o.nextTime(s); next > at {
		o.queue(s, next)
		return nil
	}
	o.keep(s)
	if !s.fired {
		s.fired = true
		if err := o.emit(s.key, s.window, o.onTime(), &s.acc); err != nil {
			return err
		}
		if next := o.nextTime(s); next > at {
			o.queue(s, next)
			return nil
		}
	}
	return o.remove(s)
}

// remove takes s out of its key's list.
func (o *sessions[K, T, A]) remove(s *session[K, A]) error {
	hash, key := s.hash, s.key
	head := o.keys.Get(s.hash, s.key)
	at := head
	for *at != s {
		at = &(*at).next
	}
	*at = s.next
	o.recycle(s)
	switch {
	case *head != nil:
		return nil
	case o.spilled != nil:
		return o.spilled.keys.Delete(hash, key)
	default:
		o.keys.Delete(hash, key)
		return nil
	}
}

func (o *sessions[K, T, A]) newSession(hash uint64, key K, w window.TimeWindow) *session[K, A] {
	s := o.freeSession()
	o.seq++
	o.live++
	*s = session[K, A]{window: w, acc: o.fold.New(), key: key, hash: hash, seq: o.seq}
	return s
}

func (o *sessions[K, T, A]) freeSession() *session[K, A] {
	n := len(o.free)
	if n == 0 {
		return new(session[K, A])
	}
	s := o.free[n-1]
	o.free = o.free[:n-1]
	return s
}

func (o *sessions[K, T, A]) recycle(s *session[K, A]) {
	o.live--
	o.discard(s)
}

// discard keeps the memory of a session that nothing refers to any more for another one.
func (o *sessions[K, T, A]) discard(s *session[K, A]) {
	if r, ok := o.fold.(releaser[A]); ok {
		r.release(s.acc)
	}
	*s = session[K, A]{}
	if len(o.free) < o.live+maxFreeSessions {
		o.free = append(o.free, s)
	}
}

func (o *sessions[K, T, A]) Finish() error { return o.lost(o.live) }
