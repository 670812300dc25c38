package why

import (
	"fmt"
	"slices"
)

// This file has the cause where records have no time at all: 0, -1, or what a field that
// is missing is taken for.

const (
	// oldestMillis is 1980: no event that is processed as it happens is older.
	oldestMillis = 3652 * dayMillis
	// decadeMillis is how far the clock or other records must be ahead of such times.
	decadeMillis = 10 * yearMillis
)

// missing finds event times that are about the beginning of 1970 while the clock, or the
// times of others, are decades later.
func missing(v *view) []Finding {
	var found []Finding
	for _, s := range v.sources {
		t := v.targetOf(s)
		if s.gen.place == genNone || t == nil {
			continue
		}
		var without []split
		event := Known[int64]{}
		for _, sp := range s.splits {
			if e := sp.missingTime(t); e.OK {
				without, event = append(without, sp), lesser(event, e)
			}
		}
		switch late := s.missingLate(t); {
		case event.OK:
			found = append(found, missingFinding(t, s, without, event.Value))
		case len(late) > 0:
			found = append(found, missingLateFinding(t, s, late))
		}
	}
	return found
}

// isMissing reports whether an event time cannot be one, and is none in another unit.
func (v *view) isMissing(event int64) bool {
	_, known := unitOf(event, v.now.AtMillis)
	return !known && event != MinTime && event < oldestMillis && minus(v.now.AtMillis, event) > decadeMillis
}

// missingTime returns the newest event time of a split if it cannot be one. Old data that
// are read again go on; if one look does not tell, only 0 and less are no such data.
func (sp split) missingTime(t *target) Known[int64] {
	v := sp.src.v
	e := sp.topEvent()
	if w, _ := sp.ownWatermarkNow(); !e.OK && w.OK {
		e = Know(plus(w.Value, sp.src.gen.bound().Or(-1)+1))
	}
	if !e.OK || !v.isMissing(e.Value) || sp.isIdle() || t.in.OK && t.in.Value > e.Value {
		return Known[int64]{}
	}
	switch pace := sp.pace(); {
	case sp.src.gen.fromRecord() && e.Value == -1:
		return Known[int64]{} // records without a Kafka timestamp: noAssigner tells of them
	case !pace.OK:
		return KnowIf(e.Value, e.Value <= 0)
	case pace.Value == 0:
		return e
	default:
		return KnowIf(e.Value, pace.Value <= catchingUp && t.decadesAhead(e.Value))
	}
}

// ownWatermarkNow is ownWatermark of the present, also of a split without a past.
func (sp split) ownWatermarkNow() (Known[int64], bool) {
	if sp.src.gen.place != genAtSource {
		return Known[int64]{}, false
	}
	if sp.past == nil {
		sp.past = &Split{}
	}
	w, _ := sp.ownWatermark()
	w = KnowIf(w.Value, w.OK && w.Value != MinTime && w.Value != MaxTime)
	return w, w.OK
}

// decadesAhead reports whether another split that feeds the target is decades ahead.
func (t *target) decadesAhead(event int64) bool {
	for _, f := range t.feeds {
		if slices.ContainsFunc(f.src.splits, func(sp split) bool {
			e := sp.topEvent()
			return e.OK && minus(e.Value, event) > decadeMillis
		}) {
			return true
		}
	}
	return false
}

// missingLate returns the samples of late records of a source that have no time, if most
// of the late ones do not.
func (s *source) missingLate(t *target) []LateSample {
	if !t.losing() {
		return nil
	}
	var without []LateSample
	for _, l := range t.late.samples {
		own := len(t.feeds) == 1 || slices.ContainsFunc(s.splits, func(sp split) bool {
			return sp.ID == l.Split && sp.Topic == l.Topic && sp.Partition == l.Partition
		})
		if own && s.v.isMissing(l.EventMillis) && minus(l.WatermarkMillis, l.EventMillis) > decadeMillis {
			without = append(without, l)
		}
	}
	if 2*len(without) <= len(t.late.samples) {
		return nil
	}
	return without
}

func missingFinding(t *target, s *source, splits []split, event int64) Finding {
	c := s.culprit(splits)
	c.Subtasks = nil
	f := Finding{
		Code: TimestampsMissing, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s is silent because records of %s have no time: their timestamps are %s, as if the field were missing, or were not the one that %s.",
			t.title(), s.these(splits), nearEpoch(event), s.reader()),
		Numbers:  []Number{{"event_time", event}},
		RuledOut: []RuledOut{{TimestampsInSeconds, "read as seconds they are not near the clock either"}, {QuietPartition, "records have come"}},
	}
	f.Why = append(f.Why, fmt.Sprintf("That is %s the clock.", distance(minus(t.v.now.AtMillis, event))))
	if t.decadesAhead(event) {
		f.Why = append(f.Why, "Other records are of the present: the watermark, which is the smallest of all, does not get there.")
	}
	return f.missingFixes(t, s)
}

func missingLateFinding(t *target, s *source, late []LateSample) Finding {
	c := Culprit{Source: s.op.ID, Topic: s.topic(nil)}
	event := late[0].EventMillis
	for _, l := range late {
		event = min(event, l.EventMillis)
		if l.Split == "" && !slices.Contains(c.Partitions, l.Partition) {
			c.Partitions = append(c.Partitions, l.Partition)
		}
	}
	slices.Sort(c.Partitions)
	f := Finding{
		Code: TimestampsMissing, Severity: t.late.severity(), Culprit: c,
		Answer: fmt.Sprintf("%s %s because they have no time: their timestamps are %s, as if the field were missing, or were not the one that %s.",
			t.title(), t.late.drops("records"), nearEpoch(event), s.reader()),
		Numbers:  []Number{{"event_time", event}},
		RuledOut: []RuledOut{{BoundTooSmall, "no bound covers decades"}},
	}
	f.addLate(t)
	return f.missingFixes(t, s)
}

func (f Finding) missingFixes(t *target, s *source) Finding {
	if s.gen.fromRecord() {
		return f.fix(t, AddTimestampAssigner, CheckTimestamps)
	}
	return f.fix(t, CheckTimestamps)
}

// reader says what reads the timestamps of a source.
func (s *source) reader() string {
	name := quoted(s.v.nameOf(s.op.ID))
	if s.gen.fromRecord() {
		return "source " + name + " takes, the timestamp of the Kafka record"
	}
	return "the timestamp assigner of source " + name + " reads"
}

// nearEpoch writes a time that is none.
func nearEpoch(event int64) string { return fmt.Sprintf("%d (%s)", event, instant(event)) }
