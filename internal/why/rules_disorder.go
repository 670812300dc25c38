package why

import (
	"fmt"
	"slices"
)

// disorder finds records later than the bound allows. It is what is left when nothing else
// explains late records, so it says what it cannot exclude.
func disorder(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		if !t.losing() {
			continue
		}
		if t.late.all() && t.late.growing() && !t.hasDisorder() {
			found = append(found, allLate(t))
			continue
		}
		if !t.late.growing() && t.late.grown.OK {
			found = append(found, pastLoss(t))
			continue
		}
		found = append(found, boundFinding(t))
	}
	return found
}

// allLate tells that every record is late, whatever made the watermark.
func allLate(t *target) Finding {
	src := t.feeds[0].src
	f := Finding{
		Code: AllRecordsLate, Severity: Loss,
		Culprit:  Culprit{Source: src.op.ID, Topic: src.topic(nil), Operator: t.op.ID},
		Answer:   fmt.Sprintf("%s drops every record as late: its watermark is ahead of all of them.", t.title()),
		RuledOut: []RuledOut{{BoundTooSmall, "it is every record, not those out of order"}},
		Unless:   []Unless{{WallClockWatermark, "the description of the strategy, or event times of records"}, {FutureTimestamp, "event times of records"}},
	}
	f.addLate(t)
	if t.in.OK {
		f.Numbers = append(f.Numbers, Number{"watermark", t.in.Value})
	}
	return f.fix(t, WatermarkFromEvents)
}

// hasDisorder reports whether the disorder of a partition was seen to exceed its bound.
func (t *target) hasDisorder() bool {
	for _, f := range t.feeds {
		for _, sp := range f.src.splits {
			if sp.disorder(t).OK {
				return true
			}
		}
	}
	return false
}

// disorder returns the bound that a split needs if that is more than it has.
func (sp split) disorder(t *target) Known[int64] {
	bound := sp.src.gen.bound()
	if p := sp.Profile; p != nil && bound.OK {
		return KnowIf(max(p.DisorderMillis, p.DelaySpreadMillis), p.DisorderMillis > bound.Value)
	}
	worst := Known[int64]{}
	for _, l := range t.late.samples {
		if l.Topic == sp.Topic && l.Partition == sp.Partition {
			worst = greater(worst, Know(l.WatermarkMillis-l.EventMillis+1+bound.Or(0)))
		}
	}
	return worst
}

func boundFinding(t *target) Finding {
	v := t.v
	src := t.feeds[0].src
	var splits []split
	needed := Known[int64]{}
	for _, f := range t.feeds {
		for _, sp := range f.src.splits {
			n := sp.disorder(t)
			if n.OK && (!needed.OK || f.src == src) {
				if !needed.OK {
					src, splits = f.src, nil
				}
				needed = greater(needed, n)
				splits = append(splits, sp)
			}
		}
	}
	if len(splits) == 0 {
		for _, sp := range src.splits {
			if sp.delivers() {
				splits = append(splits, sp)
			}
		}
	}
	c := src.culprit(splits)
	c.Subtasks = nil
	bound := src.gen.bound()
	out := Finding{
		Code: BoundTooSmall, Severity: Loss, Culprit: c,
		Answer: fmt.Sprintf("%s drops records as late because they are further out of order than the bound of source %s allows (%s).",
			t.title(), quoted(v.nameOf(src.op.ID)), boundText(src)),
	}
	if needed.OK {
		out.Numbers = append(out.Numbers, Number{"needed_bound_ms", needed.Value})
		out.Answer = fmt.Sprintf("%s drops records as late because records of %s of topic %s are up to %s out of order, and the bound of source %s is %s.",
			t.title(), numbered("partition", c.Partitions), src.topic(splits), duration(needed.Value), quoted(v.nameOf(src.op.ID)), boundText(src))
	}
	if bound.OK {
		out.Numbers = append(out.Numbers, Number{"bound_ms", bound.Value})
	}
	out.addLate(t)
	if !needed.OK {
		out.Why = append(out.Why, "How large the disorder is takes records from Kafka, or a sample of late ones, to tell.")
	}
	if src.gen.place == genAtSource {
		out.RuledOut = append(out.RuledOut, RuledOut{StrategyAfterSource, "the watermarks are made in the source, per split"})
	}
	if t.in.OK && t.in.Value <= v.now.AtMillis+aheadMillis {
		out.RuledOut = append(out.RuledOut, RuledOut{FutureTimestamp, "the watermark is not ahead of the clock"})
	}
	out.idlenessToo(t, src, needed.OK)
	return out.fix(t, RaiseBound, LateSideOutput)
}

// idlenessToo says whether an idle timeout could be to blame instead.
func (f *Finding) idlenessToo(t *target, src *source, sure bool) {
	idle := src.gen.idleness()
	switch {
	case sure:
		f.RuledOut = append(f.RuledOut, RuledOut{IdlenessTooShort, "the disorder within the partition was measured"})
		return
	case idle.OK && idle.Value == 0:
		f.RuledOut = append(f.RuledOut, RuledOut{IdlenessTooShort, "there is no idle timeout"})
		return
	}
	inStep := len(src.splits) > 0
	backlog := false
	for _, sp := range src.splits {
		w := t.v.out(src.op, sp.Subtask.Or(WholeOperator))
		inStep = inStep && sp.Watermark.OK && w.OK && sp.Watermark.Value >= w.Value
		lag := sp.lag()
		backlog = backlog || !lag.OK || lag.Value >= 10
	}
	single := len(src.splits) == 1 && len(t.feeds) == 1
	if !single && !inStep {
		f.Unless = append(f.Unless, Unless{IdlenessTooShort, "gauges of splits, or records from Kafka"})
	}
	if backlog && slices.ContainsFunc(t.v.tasks[vertexOf(src.op)], func(k Task) bool { return k.BackPressuredMillis.Or(0) > 100 }) {
		f.Unless = append(f.Unless, Unless{IdleWhileBlocked, "offsets from Kafka, at two times"})
	}
	if src.gen.place == genUnknown || src.gen.strategy == nil {
		f.Unless = append(f.Unless, Unless{StrategyAfterSource, "the description of the job"})
	}
}

func boundText(s *source) string {
	b := s.gen.bound()
	switch {
	case !b.OK:
		return "unknown"
	case b.Value == 0:
		return "0: ascending timestamps"
	}
	return duration(b.Value)
}

// pastLoss tells of records that were late and are no longer.
func pastLoss(t *target) Finding {
	v := t.v
	src := t.feeds[0].src
	restart := v.restarted || v.e.Restarts.Or(0) > 0
	f := Finding{
		Code: NotEnoughEvidence, Severity: Fine,
		Culprit: Culprit{Source: src.op.ID, Topic: src.topic(nil), Operator: t.op.ID},
		Answer: fmt.Sprintf("%s has dropped %s as late, none in the last %s. What it was does not show any more.",
			t.title(), count(t.late.total.Value, "record"), duration(v.spanMillis)),
	}
	if restart {
		f.Code, f.Severity = RestoreLateness, Loss
		f.Answer = fmt.Sprintf("%s has dropped %s as late around a restart, none in the last %s: after a restore watermarks begin anew and partitions come back one by one.",
			t.title(), count(t.late.total.Value, "record"), duration(v.spanMillis))
		f.addLate(t)
		f.RuledOut = append(f.RuledOut, RuledOut{BoundTooSmall, "no record is late in normal operation"})
		return f.fix(t, LateSideOutput, Wait)
	}
	f.addLate(t)
	return f
}

// filtered finds generators that get no records because a filter before them lets none
// through.
func filtered(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var found []Finding
	for _, t := range v.targets() {
		if t.moves() {
			continue
		}
		for _, f := range t.feeds {
			g := &f.src.gen
			if g.place != genBehind {
				continue
			}
			filter := filterBefore(f, g.op)
			if filter == nil {
				continue
			}
			starved := v.starved(f, g.op)
			if len(starved) == 0 {
				continue
			}
			var splits []split
			for _, i := range starved {
				if forwardOnly(f, g.op) {
					splits = append(splits, f.src.of(i)...)
				}
			}
			c := f.src.culprit(splits)
			c.Operator, c.Subtasks = filter.ID, starved
			out := Finding{
				Code: FilteredBeforeGenerator, Severity: Stall, Culprit: c,
				Answer: fmt.Sprintf("%s is silent because operator %s drops all records that %s of %s would make watermarks from: source %s has them, the generator never sees one.",
					t.title(), quoted(v.nameOf(filter.ID)), numbered("subtask", starved), quoted(v.nameOf(g.op.ID)), quoted(v.nameOf(f.src.op.ID))),
				RuledOut: []RuledOut{{QuietPartition, "the source has sent records"}, {OverParallelSource, "the source's subtasks have partitions with records"}},
			}
			for _, i := range starved {
				if n := subtaskCounter(v.subs[f.src.op.ID], i, recordsOut); n.OK {
					out.Numbers = append(out.Numbers, Number{"source_records", n.Value})
					out.Why = append(out.Why, fmt.Sprintf("Subtask %d of source %s has sent %s; the watermark behind the filter is %s.", i, quoted(v.nameOf(f.src.op.ID)), count(n.Value, "record"), instant(v.out(g.op, i).Or(MinTime))))
					break
				}
			}
			found = append(found, out.fix(t, MoveStrategyToSource, SetIdleness))
		}
	}
	return found
}

// filterBefore returns the operator between a source and its generator that drops records:
// a filter, or whatever else is there.
func filterBefore(f feed, gen *Operator) (found *Operator) {
	passed := false
	for _, o := range f.via {
		if o == gen {
			passed = true
		} else if passed && (found == nil || o.Kind == KindFilter) {
			found = o
		}
	}
	return found
}

// starved returns the subtasks of a generator whose watermark does not move, and which get
// no records, while the source before them sends some.
func (v *view) starved(f feed, gen *Operator) []int {
	var starved []int
	for _, sub := range v.subs[gen.ID] {
		w := sub.OutputWatermark
		frozen := w.OK && w.Value == MinTime || w.OK && sub.past != nil && sub.past.OutputWatermark == w && v.spanMillis >= patienceMillis
		if !frozen || sub.Idle.Or(false) {
			continue
		}
		if in := sub.RecordsIn; in.OK && in.Value > 0 && (sub.past == nil || growth(in, sub.past.RecordsIn).Or(1) > 0) {
			continue
		}
		sent := subtaskCounter(v.subs[f.src.op.ID], sub.Index, recordsOut)
		if !forwardOnly(f, gen) || sub.Index < 0 {
			sent, _ = v.sum(f.src.op.ID, recordsOut)
		}
		if sent.OK && sent.Value > 0 {
			starved = append(starved, max(sub.Index, 0))
		}
	}
	return starved
}

func subtaskCounter(subs []subtask, index int, of func(*Subtask) Known[int64]) Known[int64] {
	for _, s := range subs {
		if s.Index == index {
			return of(s.Subtask)
		}
	}
	return Known[int64]{}
}
