package why

import "slices"

// target is an operator that waits for event time, and what feeds it.
type target struct {
	v        *view
	op       *Operator
	in, past Known[int64] // its input watermark, now and in the past
	hold     hold
	feeds    []feed
	late     lateness
}

// feed is a source that feeds a target.
type feed struct {
	src *source
	// join is the operator with several inputs nearest to the source, if there is one, and
	// input the one that the source leads to.
	join  *Operator
	input int
	// via are the operators between, from the target to the source.
	via []*Operator
}

// waits reports whether an operator waits for event time.
func (v *view) waits(o *Operator) bool {
	switch o.Kind {
	case KindWindow, KindJoin, KindTimers:
		return true
	case KindMaybeTimers:
		return slices.ContainsFunc(v.subs[o.ID], func(s subtask) bool { return s.EventTimers.Value })
	}
	return false
}

// targets returns the operators that wait for event time, those nearest to the sources
// first. Nothing is said of jobs without any.
func (v *view) targets() []*target {
	if v.waiting == nil {
		v.waiting = []*target{}
		for i := range v.e.Operators {
			if o := &v.e.Operators[i]; v.waits(o) {
				v.waiting = append(v.waiting, v.target(o))
			}
		}
	}
	return v.waiting
}

func (v *view) target(o *Operator) *target {
	t := &target{v: v, op: o, hold: v.holdOf(o)}
	t.in, t.past = v.in(o.ID)
	if !t.in.OK {
		if l, _, ok := v.smallestBefore(o, WholeOperator); ok {
			t.in = l.WatermarkMillis
		}
	}
	t.addFeeds(o, feed{}, 0)
	t.late = v.latenessOf(o)
	return t
}

// grown returns the sum of a counter and how much it grew.
func (v *view) grown(id string, of func(*Subtask) Known[int64]) (now, by Known[int64]) {
	now, past := v.sum(id, of)
	return now, growth(now, past)
}

// addFeeds collects the sources before o.
func (t *target) addFeeds(o *Operator, f feed, depth int) {
	if depth > len(t.v.e.Operators) {
		return
	}
	for _, s := range t.v.sources {
		if s.op == o && !slices.ContainsFunc(t.feeds, func(g feed) bool { return g.src == s }) {
			f.src = s
			t.feeds = append(t.feeds, f)
		}
	}
	for i, in := range o.Inputs {
		next := f
		if len(o.Inputs) > 1 {
			next.join, next.input = o, i
		}
		if o != t.op {
			next.via = append(slices.Clone(f.via), o)
		}
		for _, edge := range in.Edges {
			if before := t.v.ops[edge.From]; before != nil {
				t.addFeeds(before, next, depth+1)
			}
		}
	}
}

// stuck reports whether the target's watermark does not move, and whether that is known.
func (t *target) stuck() (stuck, known bool) {
	switch {
	case !t.in.OK:
		return false, false
	case t.in.Value == MinTime:
		return true, true
	case !t.past.OK:
		return false, false
	}
	return t.in.Value == t.past.Value, true
}

// moves reports whether the target's watermark is known to move.
func (t *target) moves() bool {
	stuck, known := t.stuck()
	return known && !stuck
}

// pace returns how many milliseconds the watermark went in a second, unknown without a past.
func (t *target) pace() Known[int64] { return paceOf(t.in, t.past, t.v.spanMillis) }

func paceOf(now, past Known[int64], span int64) Known[int64] {
	if span <= 0 || !now.OK || !past.OK || now.Value == MinTime || past.Value == MinTime || now.Value == MaxTime {
		return Known[int64]{}
	}
	return Know((now.Value - past.Value) * 1000 / span)
}

// nextTimer returns the time of the target's earliest event-time timer, MaxTime if none is
// pending; unknown if nobody tells.
func (t *target) nextTimer() Known[int64] {
	next := Known[int64]{}
	for _, s := range t.v.subs[t.op.ID] {
		next = lesser(next, s.NextTimerMillis)
	}
	return next
}

// due reports whether a window ends between the target's watermark and what that could
// be. Windows of an unknown kind count as due as soon as there is a difference.
func (t *target) due(potential int64) bool {
	if next := t.nextTimer(); next.OK {
		return next.Value != MaxTime && (!t.in.OK || t.in.Value == MinTime || next.Value <= potential)
	}
	if t.in.OK && t.in.Value == MinTime {
		return true
	}
	if !t.in.OK || potential <= t.in.Value {
		return !t.in.OK
	}
	w := t.op.Window
	if w == nil {
		return true
	}
	switch w.Kind {
	case Session:
		return minus(potential, t.in.Value) > w.GapMillis
	case Sliding:
		return nextEnd(t.in.Value, w.SlideMillis, w.OffsetMillis+w.SizeMillis) <= plus(potential, 1)
	default:
		return nextEnd(t.in.Value, w.SizeMillis, w.OffsetMillis) <= plus(potential, 1)
	}
}

// nextEnd returns the end of the first window that a watermark has not closed: windows
// end every millis, and close when the watermark is at least end - 1.
func nextEnd(watermark, every, offset int64) int64 {
	if every <= 0 {
		return watermark
	}
	past := (watermark + 1 - offset) % every
	if past < 0 {
		past += every
	}
	return watermark + 1 - past + every
}

// open returns how many windows are open; unknown if nobody tells.
func (t *target) open() Known[int64] {
	n, _ := t.v.sum(t.op.ID, func(s *Subtask) Known[int64] { return s.OpenWindows })
	return n
}
