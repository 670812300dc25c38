package windowed

import (
	"errors"
	"math"
	"sort"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/window"
)

// panes is the operator for windows that do not merge.
type panes[K comparable, T, A any] struct {
	core[K, T, A]

	// live is the windows with contents, by MaxTimestamp, then start.
	live []*pane[K, A]
	pool panePool[K, A]

	router router[K, T, A]
	// spilled is nil unless there is a budget for memory.
	spilled *spilling[K, T, A]
}

func (o *panes[K, T, A]) Open(rt *operator.Runtime, out operator.Output) error {
	o.router.fold = o.fold
	o.pool.releaser, _ = o.fold.(releaser[A])
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

// Snapshot implements operator.Stateful.
func (o *panes[K, T, A]) Snapshot(w snapshot.Writer) error {
	s, err := o.beginSnapshot(w, kindPanes)
	if err != nil {
		return err
	}
	defer s.Start()
	entries, err := o.windowsWriter(s)
	if err != nil {
		return err
	}
	for _, p := range o.live {
		w := p.window
		s.Table(p.keys, func(to *keyed.Encoder, e *keyed.Entry[K, A]) error {
			return entries.window(to, w, 0, e.Hash, &e.Key, &e.Value)
		})
	}
	return o.spilled.snapshotRuns(w, o.live)
}

func (o *panes[K, T, A]) restore() error {
	if _, err := o.restoreTimes(kindPanes); err != nil {
		return err
	}
	err := o.restoreContents(o.restoreEntry)
	if err == nil && o.spilled != nil {
		err = o.spilled.settle(o.live)
	}
	if err == nil && len(o.live) > 0 {
		o.silence.heard()
		o.setAlarm()
	}
	return err
}

// restoreEntry adds an entry of an earlier run to what was restored of its key and window.
func (o *panes[K, T, A]) restoreEntry(e *entry[K, A]) error {
	p := o.pane(e.window)
	acc, created := p.keys.Upsert(e.hash, e.key)
	if created {
		*acc = e.acc
	} else {
		*acc = o.fold.Merge(*acc, e.acc)
	}
	if o.spilled == nil || !o.spilled.restored(p, &e.acc) {
		return nil
	}
	return o.spilled.settle(o.live)
}

func (o *panes[K, T, A]) Process(_ int, p exchange.Payload) error {
	b := p.(*keyedBatch[K, T])
	o.silence.heard()
	if b.Len() == 0 {
		b.Release()
		return nil
	}
	now := o.rt.Timers.Now()
	if !o.pinned {
		o.pinAt(now)
	}
	var err error
	if o.processingTime {
		err = o.addNow(b, now)
	} else {
		err = o.router.route(b, o)
	}
	b.Release()
	if err == nil && o.spilled != nil {
		err = o.spilled.settle(o.live)
	}
	if err != nil {
		return err
	}
	return o.flush()
}

// addNow adds a batch to the processing-time windows of its arrival.
func (o *panes[K, T, A]) addNow(b *keyedBatch[K, T], now int64) error {
	if err := o.assign(b, 0, now); err != nil {
		return err
	}
	for _, w := range o.windows {
		o.router.add([]*pane[K, A]{o.pane(w)}, b.Hashes, b.Keys, b.Values)
	}
	o.setAlarm()
	return nil
}

func (o *panes[K, T, A]) setAlarm() {
	if o.processingTime && len(o.live) > 0 {
		o.alarm.SetAfter(o.live[0].max)
	}
}

// locate implements router's target.
func (o *panes[K, T, A]) locate(b *keyedBatch[K, T], i int) (*route[K, A], error) {
	if err := o.assign(b, i, 0); err != nil {
		return nil, err
	}
	t := b.Timestamps[i]
	span := o.Assigner.Span(t)
	if len(o.windows) == 0 || t < span.Start || t >= span.End {
		return nil, nil
	}
	for _, w := range o.windows {
		if o.eventTime && w.MaxTimestamp() <= o.watermark {
			return nil, nil
		}
	}
	r := o.router.insert(b, span)
	r.shared = len(o.windows) > 1 || o.windows[0] != span
	for _, w := range o.windows {
		r.panes = append(r.panes, o.pane(w))
	}
	return r, nil
}

// addSingly implements router's target: it adds record i to those of its windows
// that still take it, and fires the ones that have fired before (spec windows
// 2.1, 2.5).
func (o *panes[K, T, A]) addSingly(b *keyedBatch[K, T], i int) error {
	if len(o.windows) > 1 {
		o.router.flush(b) // some of them may be on a route
	}
	accepted := false
	for _, w := range o.windows {
		maxTimestamp := w.MaxTimestamp()
		if o.expired(maxTimestamp) {
			continue
		}
		accepted = true
		p := o.pane(w)
		o.router.add([]*pane[K, A]{p}, b.Hashes[i:i+1], b.Keys[i:i+1], b.Values[i:i+1])
		if o.eventTime && maxTimestamp <= o.watermark {
			acc := p.keys.Get(b.Hashes[i], b.Keys[i])
			if o.spilled != nil {
				if err := o.spilled.bringBack(p, b.Hashes[i], b.Keys[i], acc); err != nil {
					return err
				}
			}
			if err := o.emit(b.Keys[i], w, window.Late, acc); err != nil {
				return err
			}
		}
	}
	if !accepted {
		o.late(b, i)
	}
	return nil
}

// pane finds or makes the pane of a window.
func (o *panes[K, T, A]) pane(w window.TimeWindow) *pane[K, A] {
	maxTimestamp := w.MaxTimestamp()
	lo, hi := 0, len(o.live)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if p := o.live[mid]; p.max < maxTimestamp || p.max == maxTimestamp && p.window.Start < w.Start {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(o.live) && o.live[lo].window == w {
		return o.live[lo]
	}
	p := o.pool.get()
	p.window, p.max = w, maxTimestamp
	o.live = append(o.live, nil)
	copy(o.live[lo+1:], o.live[lo:])
	o.live[lo] = p
	return p
}

func (o *panes[K, T, A]) Watermark(t int64) error {
	from := o.watermark
	o.setWatermark(t)
	var err error
	switch {
	case o.eventTime:
		err = o.fireDue(from, o.watermark)
	case t == math.MaxInt64 && from < t && o.firesAtEndOfStream():
		err = o.fire(o.live)
	}
	if err != nil {
		return err
	}
	return o.forward(t)
}

func (o *panes[K, T, A]) firesAtEndOfStream() bool {
	global, ok := o.Assigner.(window.GlobalAssigner)
	return ok && global.FiresAtEndOfStream()
}

// fireDue fires the windows that end after watermark from and by watermark to,
// and drops those whose lateness is over. A window that came into being after
// its end has fired with each of its records and does not fire again.
func (o *panes[K, T, A]) fireDue(from, to int64) error {
	first := o.endedBy(from)
	due := o.live[first:max(first, o.endedBy(to))]
	if len(due) > 0 {
		o.router.reset()
	}
	if err := o.fire(due); err != nil {
		return err
	}
	n := 0
	for n < len(o.live) && o.expired(o.live[n].max) {
		n++
	}
	return o.drop(n)
}

// onClock fires the processing-time windows that are over.
func (o *panes[K, T, A]) onClock(now int64) error {
	n := o.endedBy(now - 1)
	if err := o.fire(o.live[:n]); err != nil {
		return err
	}
	if err := o.drop(n); err != nil {
		return err
	}
	o.setAlarm()
	return o.flush()
}

// endedBy returns the number of live windows with a MaxTimestamp of at most t.
func (o *panes[K, T, A]) endedBy(t int64) int {
	return sort.Search(len(o.live), func(i int) bool { return o.live[i].max > t })
}

// fire emits every key of every pane.
func (o *panes[K, T, A]) fire(due []*pane[K, A]) error {
	for _, p := range due {
		if p.spilled.onDisk > 0 {
			if err := o.fireSpilled(p); err != nil {
				return err
			}
			continue
		}
		for e := range p.keys.All() {
			if err := o.emit(e.Key, p.window, o.onTime(), &e.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop forgets the first n panes.
func (o *panes[K, T, A]) drop(n int) error {
	for _, p := range o.live[:n] {
		if p.spilled.onDisk > 0 {
			if err := o.spilled.drop(p); err != nil {
				return err
			}
		}
		o.pool.put(p)
	}
	rest := copy(o.live, o.live[n:])
	clear(o.live[rest:])
	o.live = o.live[:rest]
	if o.spilled == nil {
		return nil
	}
	return o.spilled.settle(o.live)
}

func (o *panes[K, T, A]) Finish() error { return o.lost(len(o.live)) }

// Close implements operator.Operator.
func (o *panes[K, T, A]) Close() error { return errors.Join(o.core.Close(), o.spilled.close()) }
