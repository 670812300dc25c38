package why

import (
	"fmt"
	"slices"
)

// This file has the causes that lie in the timestamps themselves.

const (
	yearMillis = 365 * dayMillis
	// aheadMillis is how far ahead of the clock an event time must be to be wrong: clocks
	// of producers differ by less.
	aheadMillis = 60_000
)

// stamp is an event time and the wall clock when its record was written or read.
type stamp struct {
	event, wall int64
	exact       bool // both are of one record
}

func (s stamp) offset() int64 { return minus(s.event, s.wall) }

// stampOf returns the newest event time of a split with its wall clock.
func (sp split) stampOf() (stamp, bool) {
	if e, at := sp.lastEvent(), timeOf(sp.LastAppendMillis); e.OK && at.OK {
		return stamp{e.Value, at.Value, true}, true
	}
	if p := sp.Profile; p != nil && len(p.Ahead) > 0 && p.AheadRecords == p.Records {
		last := p.Ahead[len(p.Ahead)-1]
		return stamp{last.EventMillis, last.AppendMillis, true}, true
	}
	if e, at := sp.topEvent(), timeOf(sp.LastReadMillis); e.OK && at.OK {
		return stamp{e.Value, at.Value, false}, true
	}
	v := sp.src.v
	if e := sp.topEvent(); e.OK && sp.delivers() {
		return stamp{e.Value, v.now.AtMillis, false}, true
	}
	return stamp{}, false
}

// unit is a unit that was taken for milliseconds.
type unit struct {
	code   Code
	name   string
	short  string
	factor int64
}

// unitOf tells the unit that an event time must be in, given that it is about the wall
// clock; false if it is milliseconds, or nothing fits.
func unitOf(event, wall int64) (unit, bool) {
	switch {
	case event <= 0 || near(event, wall):
	case event < wall/100 && near(event*1000, wall):
		return unit{TimestampsInSeconds, "seconds", "s", 1000}, true
	case near(event/1000, wall):
		return unit{TimestampsTooFine, "microseconds", "us", 1000}, true
	case near(event/1_000_000, wall):
		return unit{TimestampsTooFine, "nanoseconds", "ns", 1_000_000}, true
	}
	return unit{}, false
}

// near reports whether a time in milliseconds is about the wall clock: data may be old.
func near(t, wall int64) bool { return t > wall-20*yearMillis && t < wall+yearMillis }

// wrongUnit finds event times in seconds, micro- or nanoseconds.
func wrongUnit(v *view) []Finding {
	var found []Finding
	for _, s := range v.sources {
		if s.gen.place == genNone || !v.feeds(s) {
			continue
		}
		var byUnit groups[unit, split]
		for _, sp := range s.splits {
			if u, ok := sp.unit(); ok {
				byUnit.add(u, sp)
			}
		}
		if len(byUnit.keys) == 0 {
			if u, w, ok := s.unitOfWatermark(); ok {
				f := unitFinding(s, u, s.splitsIn(u), w)
				found = append(found, f)
			}
		}
		for u, splits := range byUnit.all() {
			e := splits[0].topEvent()
			if last := splits[0].lastEvent(); last.OK {
				e = last
			}
			found = append(found, unitFinding(s, u, splits, e.Value))
		}
	}
	return found
}

// unit returns the unit of a split's event times, if it is a wrong one.
func (sp split) unit() (unit, bool) {
	v := sp.src.v
	for _, e := range []Known[int64]{sp.lastEvent(), sp.topEvent()} {
		if !e.OK {
			continue
		}
		if u, ok := unitOf(e.Value, sp.wall().Or(v.now.AtMillis)); ok {
			return u, true
		}
	}
	return unit{}, false
}

// wall returns when the last record was written, or read.
func (sp split) wall() Known[int64] {
	if at := timeOf(sp.LastAppendMillis); at.OK {
		return at
	}
	return timeOf(sp.LastReadMillis)
}

// unitOfWatermark is unit where only watermarks of subtasks are known.
func (s *source) unitOfWatermark() (unit, int64, bool) {
	for _, sub := range s.v.subs[s.gen.opOr(s.op).ID] {
		w := sub.OutputWatermark
		if !w.OK || w.Value == MinTime || w.Value == MaxTime {
			continue
		}
		// A bound in milliseconds may be more than the time since 1970 in seconds.
		e := plus(w.Value, s.gen.bound().Or(0)+1)
		if u, ok := unitOf(e, s.v.now.AtMillis); ok {
			return u, e, true
		}
	}
	return unit{}, 0, false
}

// splitsIn returns the splits that are in a unit where only watermarks of subtasks are
// known, nil if nobody can tell: a watermark of several splits tells of one of them.
func (s *source) splitsIn(u unit) []split {
	if !s.assigned || s.gen.place != genAtSource {
		return nil
	}
	var in []split
	for _, sub := range s.v.subs[s.op.ID] {
		w := sub.OutputWatermark
		if !w.OK || w.Value == MinTime || w.Value == MaxTime {
			continue
		}
		if is, ok := unitOf(plus(w.Value, s.gen.bound().Or(0)+1), s.v.now.AtMillis); !ok || is != u {
			continue
		}
		own := s.of(sub.Index)
		if sub.Index < 0 || len(own) != 1 {
			return nil
		}
		in = append(in, own...)
	}
	return in
}

func unitFinding(s *source, u unit, splits []split, event int64) Finding {
	v := s.v
	t := v.targetOf(s)
	c := s.culprit(splits)
	c.Subtasks = nil
	where := fmt.Sprintf("topic %s", s.topic(splits))
	if len(splits) > 0 && len(splits) < len(s.splits) {
		where = numbered("partition", c.Partitions) + " of " + where
	}
	f := Finding{
		Code: u.code, Culprit: c,
		Numbers: []Number{{"factor", u.factor}, {"event_time", event}},
	}
	if u.code == TimestampsInSeconds {
		f.Severity = Stall
		f.Answer = fmt.Sprintf("%s is silent because the timestamps in %s are seconds and are taken for milliseconds: event time is at %s, in 1970.", t.title(), where, instant(event))
	} else {
		f.Severity = WrongResult
		f.Answer = fmt.Sprintf("The timestamps in %s are %s and are taken for milliseconds: event time there is %s.", where, u.name, instant(event))
		if t.losing() {
			f.Severity = t.late.worse(f.Severity)
			f.Answer = fmt.Sprintf("%s %s because the timestamps in %s are %s and are taken for milliseconds: they pushed the watermark to %s.", t.title(), t.late.drops("records"), where, u.name, instant(event))
			f.addLate(t)
		}
	}
	f.Why = append(f.Why, fmt.Sprintf("%d is the time that the wall clock shows if it is read as %s: %s.", event, u.name, instant(u.millis(event))))
	if since := t.lateSinceMillis(); since.OK && u.code == TimestampsTooFine && t.losing() {
		f.Numbers = append(f.Numbers, Number{"since_ms", since.Value - (v.now.AtMillis - v.upMillis())})
		f.Why = append(f.Why, fmt.Sprintf("By their rate records have been late since about %s.", clock(since.Value)))
	}
	if s.gen.place == genBehind && len(splits) < len(s.splits) {
		f.Then = append(f.Then, StrategyAfterSource)
	}
	f.RuledOut = append(f.RuledOut, RuledOut{EventTimeSkew, fmt.Sprintf("the factor to the wall clock is %d", u.factor)}, RuledOut{NoWatermarkStrategy, "there are watermarks"})
	if u.code == TimestampsInSeconds {
		return f.fix(t, ConvertUnit)
	}
	return f.fix(t, ConvertUnit, BoundFutureTimestamps)
}

// millis converts a time in the unit.
func (u unit) millis(event int64) int64 {
	if u.code == TimestampsInSeconds {
		return event * u.factor
	}
	return event / u.factor
}

// feeds reports whether a source feeds an operator that waits for event time.
func (v *view) feeds(s *source) bool { return v.targetOf(s) != nil }

// targetOf returns the first target that a source feeds, nil if there is none.
func (v *view) targetOf(s *source) *target {
	for _, t := range v.targets() {
		if slices.ContainsFunc(t.feeds, func(f feed) bool { return f.src == s }) {
			return t
		}
	}
	return nil
}
