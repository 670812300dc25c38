package why

import (
	"fmt"
	"slices"
)

// This file has the causes of late records. Those that lie in timestamps are in
// rules_time.go.

// losingFeeds calls find for each source of each target that drops records.
func (v *view) losingFeeds(find func(t *target, f feed) (Finding, bool)) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		if !t.losing() {
			continue
		}
		for _, f := range t.feeds {
			if f.src.gen.place == genNone {
				continue
			}
			if out, ok := find(t, f); ok {
				found = append(found, out)
			}
		}
	}
	return found
}

// wallClock finds watermarks that follow the wall clock while the data are older.
func wallClock(v *view) []Finding {
	return v.losingFeeds(func(t *target, f feed) (Finding, bool) {
		src := f.src
		known := src.gen.strategy != nil && src.gen.strategy.Kind == StrategyWallClock
		follows := src.followsClock()
		described := src.gen.strategy != nil && src.gen.strategy.Kind != StrategyUnknown && src.gen.strategy.Kind != StrategyCustom
		if !known && (described || !follows || !t.late.all()) {
			return Finding{}, false
		}
		out := Finding{
			Code: WallClockWatermark, Severity: t.late.severity(),
			Culprit: Culprit{Source: src.op.ID, Topic: src.topic(nil)},
			Answer: fmt.Sprintf("%s %s because the watermark of source %s follows the wall clock, while its records are older.",
				t.title(), t.late.drops("every record"), quoted(t.v.nameOf(src.op.ID))),
		}
		if !t.late.all() {
			out.Answer = fmt.Sprintf("%s %s because the watermark of source %s follows the wall clock, not the records.", t.title(), t.late.drops("records"), quoted(t.v.nameOf(src.op.ID)))
		}
		if age := src.ageMillis(); age.OK {
			out.Numbers = append(out.Numbers, Number{"age_ms", age.Value})
			out.Why = append(out.Why, fmt.Sprintf("The newest event time there is %s behind the wall clock; the watermark allows for %s.", duration(age.Value), duration(src.gen.bound().Or(0))))
		}
		out.addLate(t)
		out.RuledOut = append(out.RuledOut,
			RuledOut{BoundTooSmall, "the watermark does not come from the records, so their order has no part in it"},
			RuledOut{FutureTimestamp, "the watermark is not ahead of the clock"})
		return out.fix(t, WatermarkFromEvents), true
	})
}

// followsClock reports whether a source's watermark went on exactly with the wall clock
// while its event times are far behind it.
func (s *source) followsClock() bool {
	age := s.ageMillis()
	for _, sub := range s.v.subs[s.gen.opOr(s.op).ID] {
		if sub.past == nil || !sub.OutputWatermark.OK {
			continue
		}
		w := sub.OutputWatermark.Value
		pace := paceOf(sub.OutputWatermark, sub.past.OutputWatermark, s.v.spanMillis)
		behind := minus(s.v.now.AtMillis, w)
		if pace.OK && pace.Value > 980 && pace.Value < 1020 && age.OK && age.Value > 2*behind+aheadMillis {
			return true
		}
	}
	return false
}

// ageMillis returns how far the newest event time of a source is behind the clock.
func (s *source) ageMillis() Known[int64] {
	top := Known[int64]{}
	for _, sp := range s.splits {
		top = greater(top, sp.topEvent())
		top = greater(top, sp.lastEvent())
	}
	return KnowIf(s.v.now.AtMillis-top.Value, top.OK)
}

// idleBlocked finds splits with a backlog that were taken for idle.
func idleBlocked(v *view) []Finding {
	return v.losingFeeds(func(t *target, f feed) (Finding, bool) {
		src := f.src
		if idle := src.gen.idleness(); idle.OK && idle.Value == 0 {
			return Finding{}, false
		}
		var blocked []split
		for _, sp := range src.splits {
			if sp.blockedIdle(t) {
				blocked = append(blocked, sp)
			}
		}
		if len(blocked) == 0 {
			return Finding{}, false
		}
		c := src.culprit(blocked)
		slow := v.bottleneck(src)
		if slow != nil {
			c.Operator = slow.ID
		}
		out := Finding{
			Code: IdleWhileBlocked, Severity: t.late.severity(), Culprit: c,
			Answer: fmt.Sprintf("%s %s because %s of topic %s %s taken for idle with a lag of %s: the reader was blocked, not the producer.",
				t.title(), t.late.drops("records"), numbered("partition", c.Partitions), src.topic(blocked), verb(len(blocked), "was", "were"), count(blocked[0].lag().Value, "record")),
			Numbers: []Number{{"lag", blocked[0].lag().Value}},
		}
		if e := blocked[0].eventAtPosition(); e.OK {
			if w := greater(v.out(src.gen.opOr(src.op), blocked[0].Subtask.Or(WholeOperator)), t.in); w.OK && w.Value > e.Value {
				out.Numbers = append(out.Numbers, Number{"behind_ms", w.Value - e.Value})
				out.Why = append(out.Why, fmt.Sprintf("The next record to be read there is of about %s, %s behind the watermark, which went on without the partition.", instant(e.Value), duration(w.Value-e.Value)))
			}
		}
		out.addLate(t)
		if slow != nil {
			out.Why = append(out.Why, fmt.Sprintf("The reader waits for operator %s, which is busy %s of the time.", quoted(v.nameOf(slow.ID)), percent(v.load(slow, busyOf))))
		}
		out.RuledOut = append(out.RuledOut,
			RuledOut{QuietPartition, fmt.Sprintf("the partition has a lag of %s", count(blocked[0].lag().Value, "record"))},
			RuledOut{BoundTooSmall, "the late records come from a backlog, not from disorder"})
		return out.fix(t, RemoveBottleneck, RaiseIdleness, UpgradeEngine), true
	})
}

// blockedIdle reports whether a split has a backlog and no part in the minimum.
func (sp split) blockedIdle(t *target) bool {
	lag := sp.lag()
	if !lag.OK || lag.Value < 10 || sp.past == nil || !sp.past.lag().OK || sp.past.lag().Value == 0 {
		return false
	}
	g := &sp.src.gen
	w := greater(t.v.out(g.opOr(sp.src.op), sp.Subtask.Or(WholeOperator)), t.in)
	if sp.State.OK {
		// Idle now, or back behind what went on without it.
		return sp.State.Value == SplitIdle || w.OK && sp.Watermark.OK && sp.Watermark.Value < w.Value
	}
	e := sp.eventAtPosition()
	return w.OK && e.OK && g.place == genAtSource && minus(w.Value, e.Value) > patienceMillis
}

// eventAtPosition estimates the event time of the next record to be read, from the rate of
// appends: as many records ago as the lag.
func (sp split) eventAtPosition() Known[int64] {
	lag, n := sp.lag(), sp.appended()
	last := sp.lastEvent()
	if !last.OK {
		last = timeOf(sp.LastRecordMillis)
	}
	if !lag.OK || !n.OK || n.Value <= 0 || !last.OK {
		return Known[int64]{}
	}
	return Know(last.Value - lag.Value*sp.src.v.spanMillis/n.Value)
}

func percent(millisPerSecond Known[int64]) string {
	return fmt.Sprintf("%d %%", (millisPerSecond.Or(0)+5)/10)
}

// idleTooShort finds splits that time out between records that come regularly.
func idleTooShort(v *view) []Finding {
	return v.losingFeeds(func(t *target, f feed) (Finding, bool) {
		src := f.src
		idle := src.gen.idleness()
		if !idle.OK || idle.Value <= 0 {
			return Finding{}, false
		}
		var returning []split
		gap := Known[int64]{}
		for _, sp := range src.splits {
			if g, ok := sp.returns(t, idle.Value); ok {
				returning = append(returning, sp)
				gap = greater(gap, g)
			}
		}
		if len(returning) == 0 || len(returning) == len(src.splits) && len(t.feeds) == 1 {
			return Finding{}, false
		}
		c := src.culprit(returning)
		c.Subtasks = nil
		out := Finding{
			Code: IdlenessTooShort, Severity: t.late.severity(), Culprit: c,
			Answer: fmt.Sprintf("%s %s because %s of topic %s %s longer between records than the idle timeout of %s: the watermark goes on without %s, and the next records are behind it.",
				t.title(), t.late.drops("records"), numbered("partition", c.Partitions), src.topic(returning), verb(len(returning), "pauses", "pause"), duration(idle.Value), verb(len(returning), "it", "them")),
			Numbers: []Number{{"idleness_ms", idle.Value}},
		}
		if gap.OK {
			out.Answer = fmt.Sprintf("%s %s because %s of topic %s %s for %s between records, and the idle timeout is %s: the watermark goes on without %s, and the next records are behind it.",
				t.title(), t.late.drops("records"), numbered("partition", c.Partitions), src.topic(returning), verb(len(returning), "pauses", "pause"), duration(gap.Value), duration(idle.Value), verb(len(returning), "it", "them"))
			out.Numbers = append([]Number{{"gap_ms", gap.Value}}, out.Numbers...)
		}
		for _, sp := range returning[:1] {
			if w := greater(v.out(src.op, sp.Subtask.Or(WholeOperator)), t.in); w.OK && sp.Watermark.OK && sp.Watermark.Value < w.Value {
				out.Why = append(out.Why, fmt.Sprintf("Partition %d is %s behind the watermark that it should have held back: that passed it while it was idle.",
					sp.Partition, duration(minus(w.Value, sp.Watermark.Value))))
			}
		}
		out.addLate(t)
		out.RuledOut = append(out.RuledOut, RuledOut{BoundTooSmall, "the records are in order within the partition; they are behind the other partitions"})
		if lag := returning[0].lag(); lag.OK {
			out.RuledOut = append(out.RuledOut, RuledOut{IdleWhileBlocked, fmt.Sprintf("lag %d", lag.Value)})
		}
		return out.fix(t, RaiseIdleness, LateSideOutput), true
	})
}

// returns reports whether a split was idle and came back behind the others, and the gap
// between its records as far as it shows.
func (sp split) returns(t *target, idle int64) (gap Known[int64], ok bool) {
	v := sp.src.v
	if lag := sp.lag(); lag.OK && lag.Value > 10 {
		return gap, false
	}
	if p := sp.Profile; p != nil && len(p.Gaps) > 0 && p.Gaps[0].Millis() > idle {
		gap = Know(p.Gaps[0].Millis())
	}
	if age, exact := sp.stampOf(); exact && age.exact && -age.offset() > idle && -age.offset() < dayMillis/2 {
		gap = greater(gap, Know(-age.offset())) // what was gathered in the meantime
	}
	if silent, known := sp.silent(); known && !silent.never && sp.read().Or(0) > 0 && silent.millis > idle {
		gap = greater(gap, Know(silent.millis))
	}
	if pause := sp.longestPause(); sp.read().Or(0) > 0 && pause.Value > idle {
		gap = greater(gap, pause)
	}
	if slices.ContainsFunc(t.late.bySplit, func(l LateCount) bool {
		return l.Source == sp.src.op.ID && l.Split == sp.ID && l.Topic == sp.Topic && l.Partition == sp.Partition && l.Count*2 >= t.late.total.Value
	}) && (gap.OK || sp.IdleMillisPerSecond.Or(0) > 0 || sp.isIdle()) {
		return gap, true
	}
	own := v.out(sp.src.op, sp.Subtask.Or(WholeOperator))
	w := greater(own, t.in)
	active := sp.State.OK && sp.State.Value == SplitActive
	if active && w.OK && sp.Watermark.OK && sp.Watermark.Value != MinTime && sp.Watermark.Value < w.Value {
		return gap, true
	}
	if !sp.State.OK && own.OK && own.Value != MinTime && w.Value > own.Value && sp.read().Or(0) > 0 && len(sp.src.of(sp.Subtask.Or(WholeOperator))) == 1 {
		return gap, true // its subtask is behind what it feeds: it was left out
	}
	if sp.isIdle() && sp.read().Or(0) > 0 {
		return gap, true
	}
	last := sp.lastEvent()
	return gap, gap.OK && (!sp.State.OK && last.OK && w.OK && last.Value <= w.Value || sp.Profile != nil && !sp.Watermark.OK)
}

// longestPause returns the longest time between two records of a split that is seen in the
// history of the attempt: all of it where one record came from one snapshot to the next, or
// several after a snapshot that saw most of the silence; or else as much as that saw.
func (sp split) longestPause() Known[int64] {
	longest := Known[int64]{}
	var before *Split
	history := sp.src.v.e.History
	for i := range history {
		if history[i].AtMillis < sp.src.v.attemptMillis() {
			continue
		}
		now := history[i].find(sp.Split)
		if before != nil && now != nil {
			longest = greater(longest, pauseBetween(before, now, history[i-1].AtMillis))
		}
		before = now
	}
	return longest
}

// pauseBetween returns how long a split had no records from one snapshot to the next, which
// has some.
func pauseBetween(before, now *Split, at int64) Known[int64] {
	n := growth(now.Records, before.Records)
	if !n.OK {
		n = growth(now.PositionOffset, before.PositionOffset)
	}
	then, last := timeOf(before.LastAppendMillis), timeOf(now.LastAppendMillis)
	if !then.OK || !last.OK {
		then, last = timeOf(before.LastReadMillis), timeOf(now.LastReadMillis)
	}
	switch {
	case !then.OK || !last.OK || n.Value <= 0:
		return Known[int64]{}
	case n.Value == 1, 2*(at-then.Value) >= last.Value-then.Value: // most of it was seen
		return Know(last.Value - then.Value)
	}
	return Know(at - then.Value)
}

// afterSource finds generators behind the source that see several splits at once.
func afterSource(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		for _, f := range t.feeds {
			g := &f.src.gen
			if g.place != genBehind {
				continue
			}
			if starved := v.starved(f, g.op); len(starved) > 0 && !t.moves() && !forwardOnly(f, g.op) && !v.starting() {
				found = append(found, starvedByShuffle(t, f, starved))
				continue
			}
			if !sharesGenerator(f) {
				continue
			}
			if t.losing() {
				found = append(found, afterSourceLoss(t, f))
				continue
			}
			found = append(found, Finding{
				Code: StrategyAfterSource, Severity: Fine,
				Culprit: Culprit{Source: f.src.op.ID, Topic: f.src.topic(nil), Operator: g.op.ID},
				Answer: fmt.Sprintf("Operator %s makes watermarks behind source %s, for several partitions at once. As long as all are read at the same pace that is harmless; when one is read before the others, theirs are late.",
					quoted(v.nameOf(g.op.ID)), quoted(v.nameOf(f.src.op.ID))),
			}.fix(t, MoveStrategyToSource))
		}
	}
	return found
}

// sharesGenerator reports whether a generator behind the source sees several splits.
func sharesGenerator(f feed) bool {
	src := f.src
	if !forwardOnly(f, src.gen.op) {
		return len(src.splits) != 1
	}
	bySubtask := map[int]int{}
	for _, sp := range src.splits {
		bySubtask[sp.Subtask.Or(0)]++
		if bySubtask[sp.Subtask.Or(0)] > 1 {
			return true
		}
	}
	return len(src.splits) == 0
}

// starvedByShuffle is the finding that some generators behind a shuffle get no records.
func starvedByShuffle(t *target, f feed, starved []int) Finding {
	v, g := t.v, &f.src.gen
	return Finding{
		Code: StrategyAfterSource, Severity: Stall,
		Culprit: Culprit{Source: f.src.op.ID, Topic: f.src.topic(nil), Operator: g.op.ID, Subtasks: starved},
		Answer: fmt.Sprintf("%s is silent because operator %s makes the watermarks behind a shuffle, not per split, and %s of it %s no records to make them from: no key leads there.",
			t.title(), quoted(v.nameOf(g.op.ID)), numbered("subtask", starved), verb(len(starved), "gets", "get")),
		RuledOut: []RuledOut{{QuietPartition, "the source has sent records"}},
	}.fix(t, MoveStrategyToSource, SetIdleness)
}

func afterSourceLoss(t *target, f feed) Finding {
	v, src, g := t.v, f.src, &f.src.gen
	late := t.lateSplits(src)
	c := src.culprit(late)
	c.Operator, c.Subtasks = g.op.ID, nil
	out := Finding{
		Code: StrategyAfterSource, Severity: t.late.severity(), Culprit: c,
		Answer: fmt.Sprintf("%s %s because operator %s makes the watermarks behind source %s, from all partitions mixed, not per split: what is read first makes the rest late.",
			t.title(), t.late.drops("records"), quoted(v.nameOf(g.op.ID)), quoted(v.nameOf(src.op.ID))),
		Numbers: []Number{{"partitions", int64(len(src.splits))}},
	}
	out.addLate(t)
	if !t.late.growing() && t.late.grown.OK {
		out.Why = append(out.Why, "No record is late any more: it happened while a backlog was read, one partition after another.")
	}
	if bound := g.bound(); bound.OK {
		out.RuledOut = append(out.RuledOut, RuledOut{BoundTooSmall, fmt.Sprintf("a bound per split needs to cover the disorder of one partition only; this one, %s, has to cover the distance between partitions", duration(bound.Value))})
	}
	out.RuledOut = append(out.RuledOut, RuledOut{FutureTimestamp, "the watermark is not ahead of the clock"}, RuledOut{QuietPartition, "the watermark moves"})
	if len(late) == 0 || !t.late.growing() {
		return out.fix(t, MoveStrategyToSource)
	}
	return out.fix(t, MoveStrategyToSource, RaiseBound)
}

// lateSplits returns the splits whose records are late behind a shared generator.
func (t *target) lateSplits(s *source) []split {
	var late []split
	for _, sp := range s.splits {
		if slices.ContainsFunc(t.late.bySplit, func(l LateCount) bool {
			return l.Source == s.op.ID && l.Split == sp.ID && l.Topic == sp.Topic && l.Partition == sp.Partition && l.Count > 0
		}) {
			late = append(late, sp)
		}
	}
	if len(late) > 0 {
		return late
	}
	w := s.watermark()
	for _, sp := range s.splits {
		if e := sp.lastEvent(); t.late.growing() && e.OK && w.OK && e.Value <= w.Value && e.Value < t.v.now.AtMillis-patienceMillis {
			late = append(late, sp)
		}
	}
	if len(late) > 0 || t.late.growing() {
		return late
	}
	// A backlog is read one partition after another, the first of each subtask first.
	seen := map[int]bool{}
	for _, sp := range s.splits {
		if seen[sp.Subtask.Or(0)] {
			late = append(late, sp)
		}
		seen[sp.Subtask.Or(0)] = true
	}
	return late
}
