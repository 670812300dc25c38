package why

import (
	"fmt"
	"slices"
)

// This file has the causes where event time does not come from the events, or a few of
// them are far ahead.

// future finds records so far ahead of the clock that the watermark is.
func future(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		for _, f := range t.feeds {
			if out, ok := futureOf(t, f); ok {
				found = append(found, out)
			}
		}
	}
	return found
}

func futureOf(t *target, f feed) (Finding, bool) {
	v, src := t.v, f.src
	if src.gen.place == genNone || src.gen.strategy != nil && src.gen.strategy.Kind == StrategyWallClock {
		return Finding{}, false
	}
	if k := src.gen.strategy; k != nil && k.MaxFutureMillis.OK && t.in.Value <= v.now.AtMillis+k.MaxFutureMillis.Value+aheadMillis {
		return Finding{}, false // such records do not move the watermark
	}
	ahead := src.aheadOfClock()
	if len(ahead.splits) == 0 && !ahead.event.OK && len(t.feeds) == 1 && t.in.OK && t.in.Value > v.now.AtMillis+aheadMillis {
		ahead.event = Know(plus(t.in.Value, src.gen.bound().Or(0)+1))
	}
	if len(ahead.splits) == 0 && !ahead.event.OK {
		return Finding{}, false
	}
	if t.in.OK && t.in.Value != MinTime && t.in.Value < v.now.AtMillis && !t.losing() {
		return Finding{}, false // the minimum has kept it harmless
	}
	if t.in.OK && t.in.Value == MaxTime || ahead.event.Value == MaxTime {
		return Finding{}, false
	}
	c := src.culprit(ahead.splits)
	c.Subtasks = nil
	event := ahead.event.Value
	started := v.now.AtMillis - v.upMillis()
	arrived := t.lateSinceMillis()
	if a := ahead.record; a != nil {
		c.Key, arrived = a.Key, Know(a.AppendMillis)
	}
	distance := event - arrived.Or(v.now.AtMillis)
	what, was := "a few records", "were"
	if ahead.count.OK {
		what, was = count(ahead.count.Value, "record"), verb(int(ahead.count.Value), "was", "were")
	} else if open := t.open(); open.OK && open.Value <= 1 {
		what, was = "1 record (or a few)", "was"
	}
	where := "topic " + src.topic(ahead.splits)
	if len(c.Partitions) > 0 {
		where = numbered("partition", c.Partitions) + " of " + where
	}
	out := Finding{
		Code: FutureTimestamp, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s has a watermark of the future because %s in %s %s stamped %s ahead of the clock: event time is at %s until the clock gets there.",
			t.title(), what, where, was, duration(distance), instant(event)),
		Numbers: []Number{{"ahead_ms", distance}, {"event_time", event}},
	}
	if t.losing() {
		out.Severity = t.late.severity()
		out.Answer = fmt.Sprintf("%s %s because %s in %s, stamped %s ahead of the clock, pushed the watermark to %s.",
			t.title(), t.late.drops("records"), what, where, duration(distance), instant(t.in.Or(event)))
		out.addLate(t)
	}
	if out.Severity == Stall && t.moves() {
		out.Severity = Fine // a clock that goes ahead, with everything else in step
	}
	if arrived.OK {
		out.Numbers = append(out.Numbers, Number{"arrived_at_ms", arrived.Value - started})
		out.Why = append(out.Why, fmt.Sprintf("It came at about %s, %s after the start of the job.", clock(arrived.Value), duration(arrived.Value-started)))
	}
	if ahead.normal.OK {
		out.Why = append(out.Why, fmt.Sprintf("The last record there has the time %s: the others are right.", instant(ahead.normal.Value)))
		out.RuledOut = append(out.RuledOut, RuledOut{TimezoneShift, "the last record is not ahead"})
	}
	if _, zone := zoneOf(event - v.now.AtMillis); zone && ahead.record == nil && !ahead.normal.OK {
		out.Unless = append(out.Unless, Unless{TimezoneShift, "when the records were written"})
	}
	out.RuledOut = append(out.RuledOut, RuledOut{BoundTooSmall, fmt.Sprintf("the watermark is %s ahead of the clock, no bound would do", duration(max(0, event-v.now.AtMillis)))})
	if k := src.gen.strategy; k != nil && k.Kind != StrategyUnknown {
		out.RuledOut = append(out.RuledOut, RuledOut{WallClockWatermark, "the watermark follows records"})
	}
	return out.fix(t, BoundFutureTimestamps, FixProducerClock), true
}

// ahead is what of a source is ahead of the clock.
type ahead struct {
	splits []split
	event  Known[int64] // the largest event time
	normal Known[int64] // of the last record, if that is not ahead
	count  Known[int64]
	record *AheadRecord
}

// aheadOfClock finds the splits of a source whose watermark ran ahead of the clock.
func (s *source) aheadOfClock() ahead {
	v := s.v
	var a ahead
	limit := v.now.AtMillis + aheadMillis
	for _, sp := range s.splits {
		top := Known[int64]{}
		if s.gen.place != genBehind {
			top = timeOf(sp.MaxEventMillis)
			if w := timeOf(sp.Watermark); !top.OK && w.OK {
				top = Know(plus(w.Value, s.gen.bound().Or(0)+1))
			}
		}
		if p := sp.Profile; p != nil && p.AheadRecords > 0 {
			a.addProfile(sp, p, limit)
		}
		last := sp.lastEvent()
		if last.OK {
			top = greater(top, last)
		}
		if top.OK && top.Value > limit {
			a.add(sp, top)
			if last.OK && last.Value <= limit {
				a.normal = last
			}
		}
	}
	if len(a.splits) > 0 {
		return a
	}
	// Only watermarks: the largest of the subtasks that make them.
	for _, sub := range v.subs[s.gen.opOr(s.op).ID] {
		w := sub.OutputWatermark
		if w.OK && w.Value != MaxTime && w.Value > limit {
			a.event = greater(a.event, Know(plus(w.Value, s.gen.bound().Or(0)+1)))
			if own := s.of(sub.Index); len(own) == 1 {
				a.splits = append(a.splits, own[0])
			}
		}
	}
	return a
}

func (a *ahead) add(sp split, event Known[int64]) {
	if !slices.ContainsFunc(a.splits, func(other split) bool { return other.Split == sp.Split }) {
		a.splits = append(a.splits, sp)
	}
	a.event = greater(a.event, event)
}

func (a *ahead) addProfile(sp split, p *Profile, limit int64) {
	for i := range p.Ahead {
		r := &p.Ahead[i]
		if r.EventMillis > limit {
			a.add(sp, Know(r.EventMillis))
			if a.record == nil || r.EventMillis > a.record.EventMillis {
				a.record = r
			}
		}
	}
	if a.record != nil {
		a.count = Know(a.count.Or(0) + p.AheadRecords)
	}
}

// noAssigner finds sources whose event time is the Kafka timestamp while the payload has
// another.
func noAssigner(v *view) []Finding {
	var found []Finding
	for _, s := range v.sources {
		g := &s.gen
		if g.place == genNone || g.strategy == nil || g.strategy.Timestamps != FromRecord || !v.feeds(s) {
			continue
		}
		t := v.targetOf(s)
		var without, differ []split
		most := int64(0)
		for _, sp := range s.splits {
			if r := sp.LastRecordMillis; r.OK && r.Value == -1 || sp.MaxEventMillis.OK && sp.MaxEventMillis.Value == -1 {
				without = append(without, sp)
				continue
			}
			d := int64(0)
			if r, p := timeOf(sp.LastRecordMillis), timeOf(sp.LastPayloadMillis); r.OK && p.OK {
				if d = r.Value - p.Value; d < 0 {
					d = -d
				}
			}
			if sp.Profile != nil {
				d = max(d, sp.Profile.PayloadBehindRecordMillis)
			}
			if d > t.smallDifference(g) {
				differ = append(differ, sp)
				most = max(most, d)
			}
		}
		if w := s.watermark(); w.OK && plus(w.Value, g.bound().Or(0)+1) == -1 {
			without = s.splits // that is the time of records that have none
		}
		switch {
		case len(without) > 0:
			found = append(found, assignerFinding(t, s, without, 0))
		case len(differ) > 0:
			found = append(found, assignerFinding(t, s, differ, most))
		}
	}
	return found
}

// smallDifference is how far event time may be from arrival without changing results much:
// less than the bound that the author allows for, and a tenth of a window.
func (t *target) smallDifference(g *generator) int64 {
	d := max(g.bound().Or(0), 2000)
	if w := t.op.Window; w != nil {
		d = min(d, max(w.everyMillis()/10, 2000))
	}
	return d
}

func assignerFinding(t *target, s *source, splits []split, most int64) Finding {
	c := s.culprit(splits)
	c.Subtasks = nil
	f := Finding{
		Code: NoTimestampAssigner, Severity: WrongResult, Culprit: c,
		Answer: fmt.Sprintf("%s counts by the Kafka timestamp, when a record was written, because source %s has no timestamp assigner: the event time in the payload is ignored, and differs by %s.",
			t.title(), quoted(s.v.nameOf(s.op.ID)), duration(most)),
		Numbers: []Number{{"difference_ms", most}},
	}
	if most == 0 {
		f.Severity = Stall
		f.Answer = fmt.Sprintf("%s has no event time because the records of topic %s have no Kafka timestamp and source %s has no timestamp assigner: the event time in the payload is ignored.",
			t.title(), s.topic(splits), quoted(s.v.nameOf(s.op.ID)))
	}
	for _, sp := range splits[:1] {
		if r, p := timeOf(sp.LastRecordMillis), timeOf(sp.LastPayloadMillis); r.OK && p.OK && r.Value != -1 {
			f.Why = append(f.Why, fmt.Sprintf("The last record of partition %d has the Kafka timestamp %s and the payload time %s.", sp.Partition, instant(r.Value), instant(p.Value)))
		}
	}
	f.RuledOut = append(f.RuledOut, RuledOut{BoundTooSmall, "it is not the order of the records that is wrong, but their times"}, RuledOut{QuietPartition, "the watermark moves with the records"})
	return f.fix(t, AddTimestampAssigner)
}
