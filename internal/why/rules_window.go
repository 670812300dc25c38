package why

import "fmt"

// This file has the causes that lie in design: bounds and windows, and in records that
// are older than others.

// skewed finds splits and sources that are read in time and carry older event times.
func skewed(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var found []Finding
	for _, t := range v.targets() {
		found = append(found, skewOf(t)...)
	}
	return found
}

// timed is a split with its newest event time.
type timed struct {
	split
	event int64
}

func skewOf(t *target) []Finding {
	v := t.v
	var all []timed
	newest := Known[int64]{}
	for _, f := range t.feeds {
		if f.src.gen.place != genNone {
			all = append(all, f.src.eventTimes()...)
		}
	}
	for _, e := range all {
		if e.event <= v.now.AtMillis+aheadMillis {
			newest = greater(newest, Know(e.event))
		}
	}
	if !newest.OK {
		return nil
	}
	var found []Finding
	for _, f := range t.feeds {
		var behind []split
		most := int64(0)
		mine := 0
		for _, e := range all {
			if e.src != f.src {
				continue
			}
			mine++
			d := newest.Value - e.event
			if last := e.lastEvent(); last.OK && e.lag().Or(0) > 0 {
				d = min(d, newest.Value-last.Value) // what is still to be read is not old
			}
			if d-e.sinceLast() >= t.muchBehind(&f.src.gen) && e.keepsPace() {
				behind = append(behind, e.split)
				most = max(most, d)
			}
		}
		if len(behind) == 0 || t.in.OK && t.in.Value != MinTime && minus(newest.Value, t.in.Value) < most/2 {
			continue
		}
		found = append(found, skewFinding(t, f.src, behind, most, mine))
	}
	return found
}

// sinceLast returns how long ago the last record of a split came, 0 if nobody tells: where
// records seldom come, the newest is that much older.
func (sp split) sinceLast() int64 {
	at := sp.wall()
	return max(0, sp.src.v.now.AtMillis-at.Or(sp.src.v.now.AtMillis))
}

// eventTimes returns the newest event time of each split of a source. Where only watermarks
// are known, that of a subtask stands for its splits.
func (s *source) eventTimes() []timed {
	var all []timed
	for _, sp := range s.splits {
		if e := sp.topEvent(); e.OK {
			all = append(all, timed{sp, e.Value})
			continue
		}
		if !sp.Subtask.OK || s.gen.place != genAtSource || sp.lag().Or(0) > 0 || len(s.of(sp.Subtask.Value)) != 1 {
			continue
		}
		if w := timeOf(s.v.out(s.op, sp.Subtask.Value)); w.OK && w.Value != MaxTime && (s.gen.bound().OK || !s.tellsEvents()) {
			all = append(all, timed{sp, plus(w.Value, s.gen.bound().Or(0)+1)})
		}
	}
	return all
}

// tellsEvents reports whether an event time of any split is known, which the watermarks of
// others cannot be compared with as long as the bound is not.
func (s *source) tellsEvents() bool {
	for _, sp := range s.splits {
		if sp.topEvent().OK {
			return true
		}
	}
	return false
}

// muchBehind is how far a split must be behind the others to matter.
func (t *target) muchBehind(g *generator) int64 {
	d := max(2*g.bound().Or(0), 2*aheadMillis)
	if w := t.op.Window; w != nil {
		d = max(d, w.everyMillis())
	}
	return d
}

// catchingUp is the pace of event time, in ms/s, from which on a backlog is being read.
const catchingUp = 1500

// keepsPace reports whether a split flows, has no backlog, and its event time goes on as
// fast as the clock.
func (sp split) keepsPace() bool {
	v := sp.src.v
	if sp.lag().OK {
		if n := sp.appended(); !n.OK && sp.lag().Value >= 10 {
			return false // nobody tells how much time that is
		}
		if age := sp.backlogMillis(); sp.lag().Value > 0 && age.OK && age.Value >= lagMillis {
			return false
		}
	} else if pace := sp.pace(); !pace.OK || pace.Value < 900 || pace.Value > catchingUp || v.loadAt(sp.src.op, sp.Subtask, busyOf).Or(0) >= saturated {
		return false // nobody tells whether there is a backlog
	}
	return sp.flows() && !sp.isIdle() && !sp.isPaused()
}

// pace returns how fast the event time of a split goes on, in ms/s: by its own, or by the
// watermark of its subtask.
func (sp split) pace() Known[int64] {
	v := sp.src.v
	if sp.past == nil {
		return Known[int64]{}
	}
	if p := paceOf(timeOf(sp.MaxEventMillis), timeOf(sp.past.MaxEventMillis), v.spanMillis); p.OK {
		return p
	}
	if p := paceOf(timeOf(sp.Watermark), timeOf(sp.past.Watermark), v.spanMillis); p.OK {
		return p
	}
	for _, sub := range sp.src.subs {
		if sp.Subtask.OK && sub.Index == sp.Subtask.Value {
			return paceOf(sub.OutputWatermark, sub.pastOutput(), v.spanMillis)
		}
	}
	return Known[int64]{}
}

func skewFinding(t *target, s *source, behind []split, most int64, all int) Finding {
	v := t.v
	c := s.culprit(behind)
	what := fmt.Sprintf("%s of topic %s %s", numbered("partition", c.Partitions), s.topic(behind), verb(len(behind), "carries", "carry"))
	if len(behind) == all && len(t.feeds) > 1 {
		what = fmt.Sprintf("source %s (topic %s) carries", quoted(v.nameOf(s.op.ID)), s.topic(behind))
	}
	f := Finding{
		Code: EventTimeSkew, Severity: Slow, Culprit: c,
		Answer:  fmt.Sprintf("Results of %s come late because %s event times that are %s older than those of the others: it is read in time, and its records are old.", quoted(v.nameOf(t.op.ID)), what, duration(most)),
		Numbers: []Number{{"behind_ms", most}},
	}
	sp := behind[0]
	if lag := sp.lag(); lag.OK {
		f.Numbers = append(f.Numbers, Number{"lag", lag.Value})
		f.RuledOut = append(f.RuledOut, RuledOut{PartitionLag, fmt.Sprintf("lag %d", lag.Value)})
	} else {
		f.Unless = append(f.Unless, Unless{PartitionLag, "offsets from Kafka"})
	}
	if e, at := sp.lastEvent(), timeOf(sp.LastAppendMillis); e.OK && at.OK {
		f.Why = append(f.Why, fmt.Sprintf("The last record of partition %d was written at %s and is of %s.", sp.Partition, instant(at.Value), instant(e.Value)))
	}
	f.RuledOut = append(f.RuledOut, RuledOut{QuietPartition, "records come"})
	if b := v.load(s.op, backPressuredOf); b.OK {
		f.RuledOut = append(f.RuledOut, RuledOut{Backpressure, fmt.Sprintf("the reader is blocked %s of the time", percent(b))})
	}
	f.RuledOut = append(f.RuledOut, RuledOut{TimezoneShift, "the distance is not that of a time zone for the whole source"})
	return f.fix(t, SeparateBackfill, AlignSources)
}

// byDesign finds bounds that are long for the windows behind them.
func byDesign(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		if stuck, known := t.stuck(); known && stuck && t.in.Value != MinTime && v.past != nil {
			continue // something holds it, whatever the bound
		}
		for _, f := range t.feeds {
			if out, ok := longBound(t, f.src); ok {
				found = append(found, out)
			}
		}
	}
	return found
}

func longBound(t *target, s *source) (Finding, bool) {
	v := t.v
	bound := s.gen.bound()
	if !bound.OK {
		bound = s.boundSeen()
	}
	if !bound.OK {
		return Finding{}, false
	}
	size := int64(60_000)
	if w := t.op.Window; w != nil {
		size = max(w.everyMillis(), 1)
	}
	if bound.Value < 5*60_000 || bound.Value < size || !t.in.OK {
		return Finding{}, false
	}
	behind := minus(v.now.AtMillis, t.in.Value)
	if t.in.Value != MinTime && (behind < bound.Value || behind > bound.Value+max(bound.Value/2, 5*60_000)) {
		return Finding{}, false // the records are old, or something else holds
	}
	f := Finding{
		Code: DelayByDesign, Severity: Slow,
		Culprit: Culprit{Source: s.op.ID, Topic: s.topic(nil)},
		Answer: fmt.Sprintf("Results of %s come %s late by design: the out-of-orderness bound of source %s is %s, so the watermark stays that far behind the records.",
			quoted(v.nameOf(t.op.ID)), duration(bound.Value), quoted(v.nameOf(s.op.ID)), duration(bound.Value)),
		Numbers: []Number{{"delay_ms", bound.Value}},
	}
	if bound.Value < 10*size {
		f.Severity = Fine // late, and not by so much that it could not be meant
	}
	if v.upMillis() < bound.Value && (t.in.Value == MinTime || t.in.Value < v.now.AtMillis-v.upMillis()) {
		f.Severity = Stall
		f.Answer = fmt.Sprintf("%s has not fired yet because the out-of-orderness bound of source %s is %s: the watermark stays that far behind the records, and the job runs for %s.",
			t.title(), quoted(v.nameOf(s.op.ID)), duration(bound.Value), duration(v.upMillis()))
	}
	if t.in.Value != MinTime {
		f.Numbers = append(f.Numbers, Number{"behind_ms", behind})
		f.Why = append(f.Why, fmt.Sprintf("The watermark is %s behind the wall clock, and moves.", duration(behind)))
	}
	for _, sp := range s.splits {
		if e := sp.topEvent(); e.OK && e.Value > v.now.AtMillis-bound.Value/10 {
			f.RuledOut = append(f.RuledOut, RuledOut{EventTimeSkew, "the records are recent: " + instant(e.Value)})
			f.Why = append(f.Why, fmt.Sprintf("The newest record of partition %d is of %s.", sp.Partition, instant(e.Value)))
			break
		}
	}
	if lag := s.totalLag(); lag.OK {
		f.RuledOut = append(f.RuledOut, RuledOut{PartitionLag, fmt.Sprintf("lag %d", lag.Value)})
	}
	f.RuledOut = append(f.RuledOut, RuledOut{QuietPartition, "the watermark moves"})
	return f.fix(t, LowerBound, EarlyResults), true
}

// boundSeen infers the bound from a split that tells its newest event time and watermark.
func (s *source) boundSeen() Known[int64] {
	least := Known[int64]{}
	for _, sp := range s.splits {
		if e, w := timeOf(sp.MaxEventMillis), timeOf(sp.Watermark); e.OK && w.OK && e.Value > w.Value {
			least = lesser(least, Know(e.Value-w.Value-1))
		}
	}
	return least
}

func (s *source) totalLag() Known[int64] {
	sum := Known[int64]{}
	for _, sp := range s.splits {
		if lag := sp.lag(); lag.OK {
			sum = Know(sum.Or(0) + lag.Value)
		}
	}
	return sum
}

// windows finds windows that cannot close, or that are not what they were meant to be, and
// tells of those that are not due.
func windows(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		w := t.op.Window
		if w == nil {
			continue
		}
		switch {
		case w.Kind == Sliding && w.SlideMillis > w.SizeMillis && w.SizeMillis > 0:
			found = append(found, definition(t, WrongResult, fmt.Sprintf("its windows slide by %s and are %s long: records between two windows are in none.", duration(w.SlideMillis), duration(w.SizeMillis))))
		case w.Kind != Session && w.everyMillis() >= 90*dayMillis:
			found = append(found, definition(t, Stall, fmt.Sprintf("one of its windows ends every %s only (%d ms): that looks like a wrong unit, and few end in a lifetime of the job.", duration(w.everyMillis()), w.everyMillis())))
		case w.Kind == Session && w.GapMillis >= 90*dayMillis:
			found = append(found, definition(t, Stall, fmt.Sprintf("its sessions end after %s without records (%d ms): that looks like a wrong unit.", duration(w.GapMillis), w.GapMillis)))
		case w.Kind != Session && w.SizeMillis < 1000 && t.fewerThanWindows():
			found = append(found, definition(t, WrongResult, fmt.Sprintf("its windows are %d ms long, and records come so seldom that each is in a window of its own: that looks like seconds taken for milliseconds.", w.SizeMillis)))
		case w.Kind == Session && v.upMillis() <= w.GapMillis:
			if f, ok := notDue(t); ok {
				found = append(found, f)
			}
		case w.Kind == Session:
			if f, ok := endlessSession(t); ok {
				found = append(found, f)
			}
		default:
			if f, ok := notDue(t); ok {
				found = append(found, f)
			}
		}
	}
	return found
}

func definition(t *target, s Severity, what string) Finding {
	return Finding{
		Code: WindowDefinition, Severity: s,
		Culprit: Culprit{Operator: t.op.ID},
		Answer:  fmt.Sprintf("%s is not what it was meant to be: %s", t.title(), what),
		Numbers: []Number{{"size_ms", max(t.op.Window.SizeMillis, t.op.Window.GapMillis)}, {"slide_ms", t.op.Window.SlideMillis}},
	}.fix(t, FixOperator)
}

// fewerThanWindows reports whether fewer records come than there are windows in time.
func (t *target) fewerThanWindows() bool {
	n := t.late.inGrown
	return n.OK && n.Value > 0 && t.v.spanMillis/n.Value > 3*t.op.Window.SizeMillis
}

// endlessSession finds sessions that cannot end: their keys have records more often than
// the gap.
func endlessSession(t *target) (Finding, bool) {
	v, w := t.v, t.op.Window
	if stuck, known := t.stuck(); v.starting() || known && stuck || w.GapMillis <= 0 {
		return Finding{}, false
	}
	ran := min(v.upMillis(), MaxTime)
	out, pastOut := v.sum(t.op.ID, recordsOut)
	if out.OK && (out.Value > 0 && growth(out, pastOut).Or(1) > 0) || ran < 5*w.GapMillis {
		return Finding{}, false
	}
	open, pastOpen := v.sum(t.op.ID, func(s *Subtask) Known[int64] { return s.OpenWindows })
	gap, key := t.steadiestGap(5 * w.GapMillis)
	apart := Known[int64]{}
	if t.late.inGrown.Or(0) > 0 && open.OK && open.Value > 0 {
		apart = Know(v.spanMillis * open.Value / t.late.inGrown.Value)
	}
	measured := gap.OK && gap.Value < w.GapMillis
	byRate := apart.OK && apart.Value < w.GapMillis/2 && open.OK && pastOpen == open
	if gap.OK && !measured || !measured && !byRate {
		return Finding{}, false
	}
	f := Finding{
		Code: SessionNeverGaps, Severity: Stall,
		Culprit: Culprit{Operator: t.op.ID, Key: key},
		Answer: fmt.Sprintf("%s does not fire because its sessions never end: they wait for %s without a record of a key, and the keys have records more often than that.",
			t.title(), duration(w.GapMillis)),
		Numbers:  []Number{{"session_gap_ms", w.GapMillis}},
		RuledOut: []RuledOut{{QuietPartition, "the watermark moves"}, {WindowNotDue, fmt.Sprintf("the job runs for %s, many gaps", duration(ran))}},
	}
	if !measured && !out.OK {
		// Sessions that end look like this when as many begin.
		f.Severity = Fine
		f.Answer = fmt.Sprintf("%s may never fire: its sessions wait for %s without a record of a key, and the keys seem to have records more often than that.", t.title(), duration(w.GapMillis))
		f.Unless = append(f.Unless, Unless{None, "the results of the window, or records from Kafka"})
	}
	if measured {
		f.Numbers = append(f.Numbers, Number{"longest_gap_ms", gap.Value})
		f.Why = append(f.Why, fmt.Sprintf("Key %s never paused for more than %s.", quoted(key), duration(gap.Value)))
	} else {
		f.Numbers = append(f.Numbers, Number{"record_every_ms", apart.Value})
		f.Why = append(f.Why, fmt.Sprintf("%s have been open all the time, and each got a record every %s on average.", upper(count(open.Value, "session")), duration(apart.Value)))
	}
	for _, feed := range t.feeds {
		if f.Culprit.Source == "" {
			f.Culprit.Source, f.Culprit.Topic = feed.src.op.ID, feed.src.topic(nil)
		}
	}
	return f.fix(t, CapSessionLength, ExcludeHeartbeats), true
}

// steadiestGap returns the key with records most regularly, if records were read back, and
// of long enough.
func (t *target) steadiestGap(span int64) (gap Known[int64], key string) {
	for _, f := range t.feeds {
		for _, sp := range f.src.splits {
			if p := sp.Profile; p != nil && p.SteadiestSpanMillis >= span && lesser(gap, p.SteadiestGapMillis) != gap {
				gap, key = p.SteadiestGapMillis, p.SteadiestKey
			}
		}
	}
	return gap, key
}

// notDue tells that the first window has not ended yet. Nothing is wrong then.
func notDue(t *target) (Finding, bool) {
	v, w := t.v, t.op.Window
	if !t.in.OK || t.in.Value == MinTime || t.in.Value > v.now.AtMillis || t.open().Or(1) == 0 {
		return Finding{}, false
	}
	out, _ := v.sum(t.op.ID, recordsOut)
	every := w.everyMillis()
	end := t.nextEnd()
	started := v.now.AtMillis - v.upMillis()
	// Sessions are asked for while the job has run for less than their gap.
	if ended := w.Kind != Session && end-every > started; ended || out.OK && out.Value > 0 {
		return Finding{}, false // one has ended since the start
	}
	if !t.moves() && t.passed(end) {
		return Finding{}, false // an input holds what others would have closed
	}
	slowest := int64(0)
	for _, f := range t.feeds {
		slowest = max(slowest, f.src.gen.bound().Or(0))
	}
	if slowest >= every && slowest >= 5*60_000 || minus(v.now.AtMillis, t.in.Value) > slowest+2*aheadMillis {
		return Finding{}, false // a bound, or something that holds, is the reason
	}
	f := Finding{
		Code: WindowNotDue, Severity: Fine,
		Culprit: Culprit{Operator: t.op.ID},
		Answer: fmt.Sprintf("%s waits because its window is not over, and none was since the start: it ends at %s, and event time is at %s.",
			t.title(), instant(end), instant(t.in.Value)),
		Numbers: []Number{{"due_in_ms", end - 1 - t.in.Value}, {"size_ms", max(w.SizeMillis, w.GapMillis)}},
	}
	return f.fix(t, Wait, EarlyResults), true
}

// passed reports whether a part of what feeds the target is beyond the end of a window.
func (t *target) passed(end int64) bool {
	beyond := func(w Known[int64]) bool { return w.OK && w.Value >= end-1 && w.Value != MaxTime }
	for _, f := range t.feeds {
		for _, sub := range t.v.subs[f.src.op.ID] {
			if beyond(sub.OutputWatermark) {
				return true
			}
		}
		for _, sp := range f.src.splits {
			if beyond(sp.Watermark) {
				return true
			}
		}
	}
	return false
}

// held reports whether the target's watermark stands still although a part of what feeds
// it is beyond the end of a window.
func (t *target) held() bool {
	stuck, known := t.stuck()
	if w := t.op.Window; !known || !stuck || t.in.Value == MinTime || w == nil {
		return false
	}
	return t.passed(t.nextEnd())
}

// nextEnd returns the end of the window that the target's watermark would close next.
func (t *target) nextEnd() int64 {
	w := t.op.Window
	switch w.Kind {
	case Session:
		return plus(t.in.Value, w.GapMillis)
	case Sliding:
		return nextEnd(t.in.Value, w.SlideMillis, w.OffsetMillis+w.SizeMillis)
	}
	return nextEnd(t.in.Value, w.SizeMillis, w.OffsetMillis)
}
