package why

import (
	"fmt"
	"slices"
)

// aligned finds groups of aligned sources that wait for a member, or that alignment slows
// down.
func aligned(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var byGroup groups[string, *source]
	for _, s := range v.sources {
		if g := s.gen.strategy; g != nil && g.Alignment != nil && v.feeds(s) {
			byGroup.add(g.Alignment.Group, s)
		}
	}
	var found []Finding
	for _, members := range byGroup.all() {
		var paused []*source
		for _, s := range members {
			if s.waitsForGroup(members) {
				paused = append(paused, s)
			}
		}
		if len(paused) == 0 {
			continue
		}
		if f, ok := blockedBy(v, members, paused); ok {
			found = append(found, f)
		} else if f, ok := throttled(v, members, paused); ok {
			found = append(found, f)
		}
	}
	return found
}

// waitsForGroup reports whether alignment holds splits of a source: they say so, or
// nothing is read although there is a backlog and the source is ahead of the group.
func (s *source) waitsForGroup(members []*source) bool {
	told := false
	for _, sp := range s.splits {
		if sp.isPaused() || sp.PausedMillisPerSecond.Or(0) >= 200 {
			return true
		}
		told = told || sp.State.OK || sp.PausedMillisPerSecond.OK
	}
	if told {
		return false
	}
	drift := s.gen.strategy.Alignment.DriftMillis
	least := Known[int64]{}
	for _, m := range members {
		least = lesser(least, timeOf(m.watermark()))
	}
	w := s.watermark()
	if !w.OK || !least.OK || !drift.OK {
		return false
	}
	n, past := s.v.sum(s.op.ID, recordsOut)
	stopped := growth(n, past)
	return stopped.OK && stopped.Value == 0 && w.Value > least.Value+drift.Value-s.v.intervalMillis() || s.capped(drift)
}

// capped reports whether a source with a backlog reads no faster than drift per update.
func (s *source) capped(drift Known[int64]) bool {
	update := s.gen.strategy.Alignment.UpdateMillis
	lagging := slices.ContainsFunc(s.splits, func(sp split) bool { return sp.lag().Or(0) > 0 && sp.past.lagOr(0) > 0 })
	if !lagging || !update.OK || update.Value <= 0 || s.v.load(s.op, busyOf).Or(0) >= saturated || s.v.load(s.op, backPressuredOf).Or(0) >= blockedShare {
		return false
	}
	limit := drift.Value * 1000 / update.Value
	for _, sub := range s.subs {
		pace := paceOf(sub.OutputWatermark, sub.pastOutput(), s.v.spanMillis)
		if pace.OK && pace.Value > 0 && pace.Value <= limit*13/10 && pace.Value >= limit/5 {
			return true
		}
	}
	return false
}

func (sp *Split) lagOr(n int64) int64 {
	if sp == nil {
		return n
	}
	return sp.lag().Or(n)
}

// blockedBy finds the member that the group waits for: the slowest, if it does not move.
func blockedBy(v *view, members, paused []*source) (Finding, bool) {
	var slowest *source
	for _, s := range members {
		if w := timeOf(s.watermark()); w.OK && (slowest == nil || w.Value < slowest.watermark().Value) {
			slowest = s
		}
	}
	if slowest == nil {
		return Finding{}, false
	}
	var silent []split
	var longest silence
	for _, sp := range slowest.splits {
		if q, ok := sp.quietFor(); ok && !sp.isIdle() && q.millis >= sp.patience() && !sp.isPaused() {
			silent = append(silent, sp)
			if q.millis > longest.millis {
				longest = q
			}
		}
	}
	if len(silent) == 0 {
		return Finding{}, false
	}
	t := v.targetOf(slowest)
	var names []string
	lag := int64(0)
	for _, s := range paused {
		if s != slowest {
			names = append(names, s.op.ID)
		}
		for _, sp := range s.splits {
			lag += sp.lag().Or(0)
		}
	}
	c := slowest.culprit(silent)
	c.Paused = names
	who := fmt.Sprintf("source %s", list(quotedAll(v, names)))
	if len(names) == 0 {
		who = "the rest of the source"
	}
	drift := slowest.gen.strategy.Alignment.DriftMillis
	f := Finding{
		Code: AlignmentBlocked, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s is silent because source %s (topic %s) has sent nothing for %s, and alignment keeps %s paused until it does.",
			t.title(), quoted(v.nameOf(slowest.op.ID)), slowest.topic(silent), duration(longest.millis), who),
		Numbers: []Number{{"silent_ms", longest.millis}},
		RuledOut: []RuledOut{
			{Backpressure, "the paused readers are idle, not blocked by what is behind them"},
			{QuietPartition, "a whole member of the alignment group is silent, and others are held for it"},
		},
	}
	if drift.OK {
		f.Numbers = append(f.Numbers, Number{"drift_ms", drift.Value})
		f.Why = append(f.Why, fmt.Sprintf("The group may be %s ahead of its slowest member, whose watermark stays at %s.", duration(drift.Value), instant(slowest.watermark().Value)))
	}
	if lag > 0 {
		f.Numbers = append(f.Numbers, Number{"lag", lag})
		f.Why = append(f.Why, fmt.Sprintf("Meanwhile %s wait to be read.", count(lag, "record")))
		f.RuledOut = append(f.RuledOut, RuledOut{PartitionLag, "the backlog is not read because its splits are paused"})
	}
	return f.fix(t, SetIdleness, RaiseDrift), true
}

func quotedAll(v *view, ids []string) []string {
	var all []string
	for _, id := range ids {
		all = append(all, quoted(v.nameOf(id)))
	}
	return all
}

// throttled finds a group that moves, but no faster than alignment lets it.
func throttled(v *view, members, paused []*source) (Finding, bool) {
	if len(paused) < len(members) {
		return Finding{}, false // a member that is not held sets the pace
	}
	s := paused[0]
	lag := int64(0)
	var lagging []split
	for _, m := range paused {
		for _, sp := range m.splits {
			if n := sp.lag().Or(0); n > 0 && sp.backlogMillis().Or(0) >= lagMillis {
				lag += n
				if m == s {
					lagging = append(lagging, sp)
				}
			}
		}
		if v.load(m.op, backPressuredOf).Or(0) >= blockedShare || v.load(m.op, busyOf).Or(0) >= saturated {
			return Finding{}, false
		}
	}
	if lag == 0 {
		return Finding{}, false
	}
	t := v.targetOf(s)
	a := s.gen.strategy.Alignment
	c := s.culprit(lagging)
	for _, m := range paused {
		c.Paused = append(c.Paused, m.op.ID)
	}
	f := Finding{
		Code: AlignmentThrottle, Severity: Slow, Culprit: c,
		Answer: fmt.Sprintf("Results of %s come late because alignment caps how fast a backlog is read: all its sources are paused most of the time, though nothing is slow. At most %s of event time are read each %s.",
			quoted(v.nameOf(t.op.ID)), duration(a.DriftMillis.Or(0)), duration(a.UpdateMillis.Or(1000))),
		Numbers: []Number{{"lag", lag}},
		RuledOut: []RuledOut{
			{PartitionLag, "the readers are idle, not at their limit"},
			{Backpressure, "nothing blocks the readers"},
		},
	}
	if a.DriftMillis.OK {
		f.Numbers = append(f.Numbers, Number{"drift_ms", a.DriftMillis.Value})
	}
	if a.UpdateMillis.OK {
		f.Numbers = append(f.Numbers, Number{"update_ms", a.UpdateMillis.Value})
	}
	if pace := t.pace(); pace.OK {
		f.Why = append(f.Why, fmt.Sprintf("Event time goes on by %s each second.", duration(pace.Value)))
	}
	return f.fix(t, RaiseDrift, ShortenUpdateInterval), true
}
