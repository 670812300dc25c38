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
	if err := o.openStorage(codecOf(o.fold)); err != nil || rt.Restored == nil {
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
	if cap(o.entries) < b.Len() {
		o.entries = make([]int32, b.Len())
	}
	entries := o.entries[:b.Len()]
	o.keys.UpsertBatch(b.Hashes, b.Keys, entries)
	for i, n := range entries {
		if err := o.assign(b, i, now); err != nil {
			return err
		}
		head := &o.keys.At(int(n)).Value
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
			if *head == nil {
				o.refused = append(o.refused, i)
			}
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
	if o.processingTime && len(o.ends) > 0 {
		o.alarm.SetAfter(o.ends[0].at)
	}
}

// advance fires and drops sessions, in the order of their times, up to time t.
func (o *sessions[K, T, A]) advance(t int64) error {
	for len(o.ends) > 0 && o.ends[0].at <= t {
		d := o.ends.pop()
		s := d.v
		if s.seq != d.seq || !s.queued || s.due != d.at {
			continue
		}
		s.queued = false
		if next := o.nextTime(s); next > d.at {
			o.queue(s, next)
			continue
		}
		o.keep(s)
		if !s.fired {
			s.fired = true
			if err := o.emit(s.key, s.window, o.onTime(), &s.acc); err != nil {
				return err
			}
			if next := o.nextTime(s); next > d.at {
				o.queue(s, next)
				continue
			}
		}
		o.remove(s)
	}
	return nil
}

// remove takes s out of its key's list.
func (o *sessions[K, T, A]) remove(s *session[K, A]) {
	head := o.keys.Get(s.hash, s.key)
	at := head
	for *at != s {
		at = &(*at).next
	}
	*at = s.next
	if *head == nil {
		o.keys.Delete(s.hash, s.key)
	}
	o.recycle(s)
}

func (o *sessions[K, T, A]) newSession(hash uint64, key K, w window.TimeWindow) *session[K, A] {
	var s *session[K, A]
	if n := len(o.free); n > 0 {
		s = o.free[n-1]
		o.free = o.free[:n-1]
	} else {
		s = new(session[K, A])
	}
	o.seq++
	o.live++
	*s = session[K, A]{window: w, acc: o.fold.New(), key: key, hash: hash, seq: o.seq}
	return s
}

func (o *sessions[K, T, A]) recycle(s *session[K, A]) {
	if r, ok := o.fold.(releaser[A]); ok {
		r.release(s.acc)
	}
	o.live--
	*s = session[K, A]{}
	if len(o.free) < o.live+maxFreeSessions {
		o.free = append(o.free, s)
	}
}

func (o *sessions[K, T, A]) Finish() error { return o.lost(o.live) }
