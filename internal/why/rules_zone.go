package why

import (
	"fmt"
	"slices"
)

// This file has event times that are off by a time zone.

const (
	quarterMillis = 15 * 60_000
	// zoneSlackMillis is how much an offset may differ from that of a zone, and records of
	// it from each other.
	zoneSlackMillis = 4 * 60_000
	// enoughRecords is how many records read back tell what all are like.
	enoughRecords = 10
)

// timezone finds event times that are off by whole or half hours, all of them.
func timezone(v *view) []Finding {
	var found []Finding
	for _, s := range v.sources {
		if s.gen.place == genNone || !v.feeds(s) || s.gen.fromRecord() {
			continue
		}
		var byOffset groups[int64, split]
		normal := 0
		for _, sp := range s.splits {
			if off, ok := sp.zone(); ok {
				byOffset.add(off, sp)
			} else if _, ok := sp.stampOf(); ok {
				normal++
			}
		}
		if len(byOffset.keys) == 0 && normal == 0 {
			if off, ok := s.zoneOfWatermark(); ok {
				found = append(found, zoneFinding(s, nil, off))
			}
		}
		for off, splits := range byOffset.all() {
			if off < 0 && normal > 0 {
				continue // some partitions with old data are more likely
			}
			found = append(found, zoneFinding(s, splits, off))
		}
	}
	return found
}

// zone returns the offset of a time zone that all event times of a split have.
func (sp split) zone() (int64, bool) {
	now, ok := sp.stampOf()
	if !ok {
		return 0, false
	}
	off, ok := zoneOf(now.offset())
	if !ok || off < 0 && !now.exact || !sp.Profile.allAt(off) {
		return 0, false
	}
	if sp.past == nil {
		return off, now.exact
	}
	before, ok := (split{sp.past, nil, sp.src}).stampOf()
	if !ok {
		return off, now.exact
	}
	apart := now.offset() - before.offset()
	return off, apart > -zoneSlackMillis && apart < zoneSlackMillis && (now.exact || now.event != before.event)
}

// allAt reports whether the records of a profile, if there is one, are all that far ahead of
// when they were appended, or behind it.
func (p *Profile) allAt(off int64) bool {
	switch {
	case p == nil || p.Records == 0:
		return true
	case off < 0:
		return p.DelaySpreadMillis <= zoneSlackMillis
	}
	return p.AheadRecords == p.Records && !slices.ContainsFunc(p.Ahead, func(r AheadRecord) bool {
		apart := minus(r.EventMillis, r.AppendMillis) - off
		return apart < -zoneSlackMillis || apart > zoneSlackMillis
	})
}

// constant reports whether the offset of a split is that of more records than the last.
func (sp split) constant() bool {
	if p := sp.Profile; p != nil && p.Records >= enoughRecords {
		return true
	}
	if sp.past == nil {
		return false
	}
	now, ok := sp.stampOf()
	before, then := (split{sp.past, nil, sp.src}).stampOf()
	return ok && then && now.event != before.event
}

// brokenZones are the distances of time zones from UTC that are no whole hours, in quarters
// of an hour: Newfoundland in summer and in winter, Kabul, Delhi, Kathmandu, Yangon, Eucla,
// Adelaide (and the Marquesas), Adelaide in summer, the Chatham Islands in winter and in
// summer. Local time taken for UTC is off by that, UTC taken for local time by its opposite.
var brokenZones = []int64{10, 14, 18, 22, 23, 26, 35, 38, 42, 51, 55}

// zoneOf returns the offset of a time zone that an offset is, false if it is none. Zones are
// up to 14 hours from UTC.
func zoneOf(offset int64) (int64, bool) {
	if offset > dayMillis || offset < -dayMillis {
		return 0, false
	}
	rounded := roundTo(offset, quarterMillis)
	quarters := max(rounded, -rounded) / quarterMillis
	whole := quarters%4 == 0 && quarters > 0 && quarters <= 14*4
	apart := offset - rounded
	return rounded, (whole || slices.Contains(brokenZones, quarters)) && apart >= -zoneSlackMillis && apart <= zoneSlackMillis
}

func roundTo(n, unit int64) int64 {
	if n < 0 {
		return -roundTo(-n, unit)
	}
	return (n + unit/2) / unit * unit
}

// zoneOfWatermark is zone where only watermarks are known: ahead of the clock by whole
// half hours, and moving with it.
func (s *source) zoneOfWatermark() (int64, bool) {
	v := s.v
	for _, sub := range v.subs[s.gen.opOr(s.op).ID] {
		w := sub.OutputWatermark
		if !w.OK || w.Value == MinTime || sub.past == nil || v.past == nil {
			continue
		}
		pace := paceOf(w, sub.past.OutputWatermark, v.spanMillis)
		off, ok := zoneOf(minus(plus(w.Value, s.gen.bound().Or(0)+1), v.now.AtMillis))
		if ok && off > 0 && pace.OK && pace.Value > 500 && pace.Value < 2000 {
			return off, true
		}
	}
	return 0, false
}

func zoneFinding(s *source, splits []split, off int64) Finding {
	t := s.v.targetOf(s)
	c := s.culprit(splits)
	c.Subtasks = nil
	where := fmt.Sprintf("source %s (topic %s)", quoted(s.v.nameOf(s.op.ID)), s.topic(splits))
	if len(splits) < len(s.splits) && len(splits) > 0 {
		where = numbered("partition", c.Partitions) + " of " + where
	}
	f := Finding{
		Code: TimezoneShift, Severity: WrongResult, Culprit: c,
		Numbers: []Number{{"offset_ms", off}},
	}
	constant := !slices.ContainsFunc(splits, func(sp split) bool { return !sp.constant() })
	records := "Every record"
	if constant {
		f.Why = append(f.Why, fmt.Sprintf("The distance between event time and the wall clock is %s for every record seen, as time zones have; it does not change with time.", signedHours(off)))
		f.RuledOut = append(f.RuledOut, RuledOut{FutureTimestamp, "it is every record, not a few"})
	} else {
		records = "The last record"
		f.Why = append(f.Why, fmt.Sprintf("The distance between event time and the wall clock is %s, as time zones have.", signedHours(off)))
	}
	switch {
	case off < 0:
		f.Answer = fmt.Sprintf("%s of %s is %s off, as local time taken for UTC is. It holds event time back by as much.", records, where, signedHours(off))
		f.Unless = append(f.Unless, Unless{EventTimeSkew, "a look at how long after the event the producer writes a record"})
	default:
		f.Answer = fmt.Sprintf("%s of %s is %s off: its event time is local time taken for UTC. Its windows are the wrong ones and stay open for so long.", records, where, signedHours(off))
		if !constant {
			f.Unless = append(f.Unless, Unless{FutureTimestamp, "more records than the last one"})
		}
		f.RuledOut = append(f.RuledOut, RuledOut{EventTimeSkew, "no record that is only old is ahead of the clock"})
	}
	f.RuledOut = append(f.RuledOut, RuledOut{QuietInput, "records flow"})
	if t.losing() {
		f.Severity = t.late.worse(f.Severity)
		f.addLate(t)
	}
	return f.fix(t, FixTimezone)
}

// signedHours writes an offset: +8 h, -5 h 30 min.
func signedHours(off int64) string {
	if off < 0 {
		return "-" + duration(-off)
	}
	return "+" + duration(off)
}
