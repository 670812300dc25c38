package windowed

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// sliced is the operator for overlapping windows. A record is kept once, in the
// slice of time that it falls into, and a window is put together from its slices
// when it fires. So the cost of a record does not depend on the number of windows
// that it is in.
//
// Windows share their slices: what tells an open window from one that is over is
// only the time up to which windows have fired.
type sliced[K comparable, T, A any] struct {
	core[K, T, A]
	layout layout
	router router[K, T, A]
	slices sliceStore[K, T, A]

	// done is the time up to which windows have fired: the watermark, or the
	// clock, which is not followed when it goes back.
	done    int64
	resumed resumedClocks

	panes []*pane[K, A] // scratch space of addSingly
	// unsettled is how many records have come since the budget was looked at.
	unsettled int
}

func (o *sliced[K, T, A]) Open(rt *operator.Runtime, out operator.Output) error {
	o.router.fold = o.fold
	o.slices.open(o.fold, &o.layout)
	o.done, o.resumed.latest = math.MinInt64, math.MinInt64
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

func (o *sliced[K, T, A]) Process(_ int, p exchange.Payload) error {
	b := p.(*keyedBatch[K, T])
	o.silence.heard()
	var err error
	if o.processingTime {
		o.addNow(b)
	} else {
		err = o.router.route(b, o)
	}
	records := b.Len()
	b.Release()
	if err == nil && o.slices.spilled != nil {
		err = o.settle(records)
	}
	if err != nil {
		return err
	}
	return o.flush()
}

// addNow adds a batch to the slice of the time of its arrival.
func (o *sliced[K, T, A]) addNow(b *keyedBatch[K, T]) {
	now := o.rt.Timers.Now()
	if done := max(o.done, o.resumed.latest); done != math.MinInt64 {
		now = max(now, done+1)
	}
	s := o.slices.at(o.layout.slice(now))
	o.router.add([]*pane[K, A]{s}, b.Hashes, b.Keys, b.Values)
	o.setAlarm()
}

// locate implements router's target: the route leads to the record's slice, and
// to all sums of slices that hold it already.
func (o *sliced[K, T, A]) locate(b *keyedBatch[K, T], i int) (*route[K, A], error) {
	t := b.Timestamps[i]
	if t == math.MinInt64 {
		return nil, o.assign(b, i, 0)
	}
	if !o.layout.holds(t) {
		return nil, nil
	}
	number := o.layout.slice(t)
	open, last := o.openWindows(number)
	if open > last || o.layout.maxTimestamp(open) <= o.watermark {
		return nil, nil
	}
	r := o.router.insert(b, o.layout.span(number))
	r.panes = o.slices.holding(r.panes, number)
	r.shared = o.slices.ordered
	return r, nil
}

// openWindows returns the numbers of the first and the last window that slice
// number is part of and that still takes records: none if first is above last.
func (o *sliced[K, T, A]) openWindows(number int64) (first, last int64) {
	first, last = o.layout.windows(number)
	return max(first, o.firstOpen()), last
}

// firstOpen returns the number of the first window that still takes records.
func (o *sliced[K, T, A]) firstOpen() int64 {
	t := o.done
	if o.eventTime && t != math.MaxInt64 {
		t -= o.AllowedLateness
		if t > o.done {
			t = math.MinInt64
		}
	}
	return o.layout.after(t)
}

// addSingly implements router's target: record i is late, or some of its windows
// have fired and fire again.
func (o *sliced[K, T, A]) addSingly(b *keyedBatch[K, T], i int) error {
	t := b.Timestamps[i]
	if !o.layout.holds(t) {
		o.rt.Metrics.Drop("timestamp-out-of-range", fmt.Sprintf("%s with timestamp %d of key %v",
			o.rt.Describe(b.Origins[i]), t, b.Keys[i]))
		return nil
	}
	number := o.layout.slice(t)
	open, last := o.openWindows(number)
	if open > last {
		o.late(b, i)
		return nil
	}
	o.panes = o.slices.holding(o.panes[:0], number)
	o.router.add(o.panes, b.Hashes[i:i+1], b.Keys[i:i+1], b.Values[i:i+1])
	fired := min(last, o.layout.after(o.watermark)-1)
	for n := range fired - open + 1 {
		k := open + n
		if !o.layout.cumulating {
			k = fired - n // a sliding window's assigner has the newest first
		}
		if err := o.fireKey(k, b.Hashes[i], b.Keys[i]); err != nil {
			return err
		}
	}
	return o.slices.spilled.doneWithKey()
}

// fireKey fires window k for one key, because of a late record.
func (o *sliced[K, T, A]) fireKey(k int64, hash uint64, key K) error {
	lo, hi := o.layout.slices(k)
	acc, err := o.slices.sumOf(lo, hi, hash, key)
	if err != nil {
		return err
	}
	err = o.emit(key, o.layout.window(k), window.Late, &acc)
	o.slices.pool.release(acc)
	return err
}

func (o *sliced[K, T, A]) Watermark(t int64) error {
	o.setWatermark(t)
	if o.eventTime {
		if err := o.fireDue(o.watermark); err != nil {
			return err
		}
	}
	return o.forward(t)
}

// onClock fires the processing-time windows that are over.
func (o *sliced[K, T, A]) onClock(now int64) error {
	if err := o.fireDue(max(o.done, now-1)); err != nil {
		return err
	}
	o.setAlarm()
	return o.flush()
}

func (o *sliced[K, T, A]) setAlarm() {
	if !o.processingTime {
		return
	}
	if k, _, ok := o.nextWindow(o.layout.after(o.done), 0); ok {
		o.alarm.SetAfter(o.layout.maxTimestamp(k))
	}
}

// nextWindow returns the number of the first window from k on that has contents.
// No slice before number pos of the live ones belongs to it; the next search may
// begin there.
func (o *sliced[K, T, A]) nextWindow(k int64, pos int) (int64, int, bool) {
	live := o.slices.live
	for pos < len(live) {
		lo, hi := o.layout.slices(k)
		switch n := live[pos].number; {
		case n < lo:
			pos++
		case n >= hi:
			k, _ = o.layout.windows(n)
		default:
			return k, pos, true
		}
	}
	return k, pos, false
}

// fireDue fires the windows that end by time t and have not yet, and drops the
// slices that no window needs any more.
func (o *sliced[K, T, A]) fireDue(t int64) error {
	k, pos, ok := o.nextWindow(o.layout.after(o.done), 0)
	o.done = t
	for ok && o.layout.maxTimestamp(k) <= t {
		o.router.reset()
		if err := o.fire(k); err != nil {
			return err
		}
		k, pos, ok = o.nextWindow(k+1, pos)
	}
	lo, _ := o.layout.slices(o.firstOpen())
	dropped, err := o.slices.dropBefore(lo)
	if dropped {
		o.router.reset()
	}
	if err == nil && o.slices.spilled != nil {
		err = o.settle(0)
	}
	return err
}

// fire emits every key of window k.
func (o *sliced[K, T, A]) fire(k int64) error {
	lo, hi := o.layout.slices(k)
	w := o.layout.window(k)
	parts, err := o.slices.collect(lo, hi)
	if err != nil {
		return fmt.Errorf("window %v: %w", w, err)
	}
	if !o.slices.spilled.fits(parts) {
		return o.fireSpilled(w, parts)
	}
	p, temporary := o.slices.sum(parts)
	for e := range p.keys.All() {
		if o.resumed.fired(w.MaxTimestamp(), e.Hash) {
			continue
		}
		if err := o.emit(e.Key, w, o.onTime(), &e.Value); err != nil {
			return err
		}
	}
	if temporary {
		o.slices.pool.put(p)
	}
	return nil
}

func (o *sliced[K, T, A]) Finish() error {
	windows := 0
	k, pos, ok := o.nextWindow(o.layout.after(o.done), 0)
	for ok {
		windows++
		k, pos, ok = o.nextWindow(k+1, pos)
	}
	return o.lost(windows)
}

// Close implements operator.Operator.
func (o *sliced[K, T, A]) Close() error { return errors.Join(o.core.Close(), o.slices.spilled.close()) }
