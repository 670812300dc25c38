package windowed

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// general is the operator for whatever the others cannot do: triggers, evictors,
// assigners that look at values and functions with state. It goes through the
// rules of spec windows 2 record by record and window by window, with a timer per
// key and window.
type general[K comparable, T, A any] struct {
	core[K, T, A]
	assigner window.ElementAssigner[T]
	trigger  window.ElementTrigger[T]
	state    bool
	clear    func(*Context[K]) error
	contents contents[T, A]
	merging  bool

	keys    *keyed.Table[K, *keyWindows[A]]
	service *keyed.TimerService[K, window.TimeWindow]

	// at is what the current call is about.
	at triggerContext[K, T, A]

	// resumed says that the watermark of an earlier run has yet to be told again: what
	// it sets off has happened then.
	resumed bool
	// restored is what states share that are read back, from a snapshot or from disk; nil if
	// there are none.
	restored *restoredStates
	// spilled is nil unless there is a budget for memory. keys is what of its keys is in
	// memory then.
	spilled *spilledGeneral[K, T, A]
}

func (o *general[K, T, A]) Open(rt *operator.Runtime, out operator.Output) error {
	o.at.o = o
	if err := o.open(rt, out, o.onClock, o.onSilence); err != nil {
		return err
	}
	if err := o.openStorage(o.contents.codec()); err != nil {
		return err
	}
	if err := o.openSpilling(); err != nil || rt.Restored == nil {
		return err
	}
	if err := o.restore(); err != nil {
		return err
	}
	o.setAlarm()
	return nil
}

// usePinned makes the assigner, pinned, the one for elements.
func (o *general[K, T, A]) usePinned() {
	if t, ok := o.Assigner.(window.TumblingAssigner); ok {
		o.assigner = window.AssignElements[T](t)
	}
}

func (o *general[K, T, A]) Process(_ int, p exchange.Payload) error {
	b := p.(*keyedBatch[K, T])
	o.silence.heard()
	now := o.rt.Timers.Now()
	if !o.pinned && b.Len() > 0 {
		o.pinAt(now)
		o.usePinned()
	}
	if o.spilled != nil {
		if err := o.spilled.keys.Prepare(b.Hashes, b.Keys); err != nil {
			return err
		}
	}
	for i := range b.Values {
		if err := o.process(b, i, now); err != nil {
			return err
		}
	}
	b.Release()
	if err := o.settle(); err != nil {
		return err
	}
	o.setAlarm()
	return o.flush()
}

// process does spec windows 2.1 for record i.
func (o *general[K, T, A]) process(b *keyedBatch[K, T], i int, now int64) error {
	key, hash, value, timestamp := b.Keys[i], b.Hashes[i], b.Values[i], b.Timestamps[i]
	var err error
	o.windows, err = o.assigner.Assign(o.windows[:0], value, timestamp, now)
	if err != nil {
		return fmt.Errorf("%v: %s, key %v: %w", o.assigner, o.rt.Describe(b.Origins[i]), key, err)
	}
	if err := o.enter(hash, key); err != nil {
		return err
	}
	accepted := false
	for _, w := range o.windows {
		s := o.windowFor(w)
		if o.expired(s.window.MaxTimestamp()) {
			if o.merging {
				s.drop()
				s.live = false
			}
			o.at.windows.prune(s)
			continue
		}
		accepted = true
		if !s.filled {
			s.acc, s.filled = o.contents.New(), true
		}
		s.acc = o.contents.Add(s.acc, value, timestamp)
		o.focus(s)
		r := o.trigger.OnElement(&o.at, value, timestamp, s.window)
		if err := o.act(r, s, o.timing(s.window)); err != nil {
			return err
		}
		o.registerCleanup(s.window)
		o.at.windows.prune(s)
	}
	if !accepted {
		o.late(b, i)
	}
	return o.leave()
}

// enter makes a key the current one.
func (o *general[K, T, A]) enter(hash uint64, key K) error {
	w, err := o.upsert(hash, key)
	if err != nil {
		return err
	}
	if *w == nil {
		*w = &keyWindows[A]{}
	}
	o.at.hash, o.at.key, o.at.windows = hash, key, *w
	return nil
}

// leave forgets the current key if nothing is left of it. It returns what was wrong with
// the key's restored states.
func (o *general[K, T, A]) leave() error {
	if o.at.windows.empty() {
		if err := o.remove(o.at.hash, o.at.key); err != nil {
			return err
		}
	}
	if o.restored != nil {
		return o.restored.err
	}
	return nil
}

// focus makes a window of the current key the current one.
func (o *general[K, T, A]) focus(s *windowState[A]) {
	o.at.state = s
	if !o.state {
		return
	}
	o.context.windowState, o.context.keyState = &s.user, &o.at.windows.global
	if o.merging {
		o.context.windowState = nil
	}
}

// windowFor returns the state of the window that a record of window w goes to.
func (o *general[K, T, A]) windowFor(w window.TimeWindow) *windowState[A] {
	if !o.merging {
		return o.at.windows.at(w)
	}
	merged := o.at.windows.touching(w)
	result := w
	for _, m := range merged {
		result = result.Cover(m.window)
	}
	var s *windowState[A]
	switch {
	case len(merged) == 1 && merged[0].window == result:
		s = merged[0]
	case len(merged) == 0:
		s = o.at.windows.at(w)
	default:
		s = o.merge(o.at.windows.at(result), merged)
	}
	s.live = true
	return s
}

// merge moves windows into the one that they have become (spec windows 2.6).
func (o *general[K, T, A]) merge(into *windowState[A], merged []*windowState[A]) *windowState[A] {
	o.at.merged = o.at.merged[:0]
	for _, m := range merged {
		o.at.merged = append(o.at.merged, &m.trigger)
	}
	o.focus(into)
	o.trigger.OnMerge(&o.at, into.window)
	o.at.merged = o.at.merged[:0]
	for _, m := range merged {
		o.focus(m)
		o.trigger.Clear(&o.at, m.window)
		o.deleteCleanup(m.window)
		switch {
		case !m.filled:
		case !into.filled:
			into.acc, into.filled = m.acc, true
		default:
			into.acc = o.contents.Merge(into.acc, m.acc)
		}
		m.drop()
		m.live = false
		o.at.windows.prune(m)
	}
	return into
}

// act does what the trigger answered for s, which is in focus.
func (o *general[K, T, A]) act(r window.TriggerResult, s *windowState[A], timing window.Timing) error {
	if r.Fires() && s.filled {
		if err := o.emit(o.at.key, s.window, timing, &s.acc); err != nil {
			return err
		}
		s.filled = !o.contents.empty(s.acc)
	}
	if r.Purges() {
		s.drop()
	}
	return nil
}

// timing is that of a firing caused by an element, or by a timer of the other
// kind of time than the window's.
func (o *general[K, T, A]) timing(w window.TimeWindow) window.Timing {
	now := o.watermark
	if o.processingTime {
		now = o.rt.Timers.Now()
	}
	return timingAt(now, w, window.Late)
}

// timingAt is the timing of a firing at time t, which is past if t is the end of the
// window or later. In the global window, which has no end, all firings are on time.
func timingAt(t int64, w window.TimeWindow, past window.Timing) window.Timing {
	switch {
	case w == window.GlobalWindow:
		return window.OnTime
	case t < w.MaxTimestamp():
		return window.Early
	default:
		return past
	}
}

func (o *general[K, T, A]) registerCleanup(w window.TimeWindow) {
	if at := o.cleanupTime(w.MaxTimestamp()); at != noCleanup {
		o.timers(o.eventTime).Register(o.timer(at, w))
	}
}

func (o *general[K, T, A]) deleteCleanup(w window.TimeWindow) {
	if at := o.cleanupTime(w.MaxTimestamp()); at != noCleanup {
		o.timers(o.eventTime).Delete(o.timer(at, w))
	}
}

func (o *general[K, T, A]) timers(event bool) *keyed.TimerQueue[K, window.TimeWindow] {
	if event {
		return o.service.Event
	}
	return o.service.Processing
}

func (o *general[K, T, A]) timer(at int64, w window.TimeWindow) keyed.Timer[K, window.TimeWindow] {
	return keyed.Timer[K, window.TimeWindow]{Namespace: w, At: at, Hash: o.at.hash, Key: o.at.key}
}

func (o *general[K, T, A]) Watermark(t int64) error {
	if o.resumed {
		o.resumed = false
		if t == o.context.Watermark {
			return o.forward(t)
		}
	}
	o.setWatermark(t)
	if err := o.advance(); err != nil {
		return err
	}
	return o.forward(t)
}

// advance calls the event-time timers up to the watermark.
func (o *general[K, T, A]) advance() error {
	err := o.service.AdvanceWatermark(o.watermark, func(t keyed.Timer[K, window.TimeWindow]) error { return o.onTimer(t, true) })
	if err != nil {
		return err
	}
	o.setAlarm() // triggers may have registered timers of the clock
	return o.settle()
}

// onClock calls the timers that the clock has passed.
func (o *general[K, T, A]) onClock(now int64) error {
	err := o.service.AdvanceProcessingTime(now-1, func(t keyed.Timer[K, window.TimeWindow]) error { return o.onTimer(t, false) })
	if err == nil {
		err = o.settle()
	}
	if err != nil {
		return err
	}
	o.setAlarm()
	return o.flush()
}

func (o *general[K, T, A]) setAlarm() {
	if !o.eventTime { // a trigger may wait for event time all the same
		o.rt.Metrics.EventTimers.Tell(o.service.Event.Next())
	}
	if at, ok := o.service.Processing.Next(); ok {
		o.alarm.SetAfter(at)
	}
}

// onTimer does spec windows 2.7 for one timer of the trigger or the operator.
func (o *general[K, T, A]) onTimer(t keyed.Timer[K, window.TimeWindow], event bool) error {
	w := t.Namespace
	if err := o.enter(t.Hash, t.Key); err != nil {
		return err
	}
	s := o.at.windows.at(w)
	if o.merging && !s.live {
		o.at.windows.prune(s)
		return o.leave()
	}
	o.focus(s)
	var r window.TriggerResult
	timing := o.timing(w)
	if event {
		r = o.trigger.OnEventTime(&o.at, t.At, w)
	} else {
		r = o.trigger.OnProcessingTime(&o.at, t.At, w)
	}
	if event == o.eventTime {
		timing = timingAt(t.At, w, window.Late)
		if t.At == w.MaxTimestamp() {
			timing = o.onTime()
		}
	}
	if err := o.act(r, s, timing); err != nil {
		return err
	}
	if event == o.eventTime && t.At == o.cleanupTime(w.MaxTimestamp()) {
		if err := o.retire(s); err != nil {
			return err
		}
	}
	o.at.windows.prune(s)
	return o.leave()
}

// retire ends s, which is in focus.
func (o *general[K, T, A]) retire(s *windowState[A]) error {
	s.drop()
	o.trigger.Clear(&o.at, s.window)
	if o.clear != nil {
		x := o.context
		x.Key, x.Window, x.Timestamp = o.at.key, s.window, s.window.MaxTimestamp()
		if err := o.clear(x); err != nil {
			return err
		}
	}
	s.user = window.Scope{}
	s.live = false
	return nil
}

func (o *general[K, T, A]) onSilence() error {
	last, now := int64(noTime), o.rt.Timers.Now()
	err := o.eachWindow(func(s *windowState[A]) {
		if s.window.Start <= now {
			last = max(last, s.window.MaxTimestamp())
		}
	})
	if err != nil {
		return err
	}
	return o.closeUpTo(last, o.advance)
}

func (o *general[K, T, A]) Finish() error {
	if !o.processingTime {
		return nil
	}
	windows := 0
	if err := o.eachWindow(func(*windowState[A]) { windows++ }); err != nil {
		return err
	}
	return o.lost(windows)
}
