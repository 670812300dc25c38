package why

import "fmt"

// disorder finds records later than the bound allows. It is what is left when nothing else
// explains late records, so it says what it cannot exclude.
func disorder(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		if !t.losing() || len(t.feeds) == 0 {
			continue
		}
		if t.late.all() && t.late.growing() && !t.hasDisorder() {
			found = append(found, allLate(t))
			continue
		}
		if !t.late.growing() && (t.late.grown.OK || v.restarted) {
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
		Code: AllRecordsLate, Severity: t.late.severity(),
		Culprit:  Culprit{Source: src.op.ID, Topic: src.topic(nil), Operator: t.op.ID},
		Answer:   fmt.Sprintf("%s %s: its watermark is ahead of all of them.", t.title(), t.late.drops("every record")),
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
		if l.Split == sp.ID && l.Topic == sp.Topic && l.Partition == sp.Partition {
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
		Code: BoundTooSmall, Severity: t.late.severity(), Culprit: c,
		Answer: fmt.Sprintf("%s %s because they are further out of order than the bound of source %s allows (%s).",
			t.title(), t.late.drops("records"), quoted(v.nameOf(src.op.ID)), boundText(src)),
	}
	if needed.OK {
		out.Numbers = append(out.Numbers, Number{"needed_bound_ms", needed.Value})
		out.Answer = fmt.Sprintf("%s %s because records of %s of topic %s are up to %s out of order, and the bound of source %s is %s.",
			t.title(), t.late.drops("records"), numbered("partition", c.Partitions), src.topic(splits), duration(needed.Value), quoted(v.nameOf(src.op.ID)), boundText(src))
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
	if needed.OK {
		out.RuledOut = append(out.RuledOut, RuledOut{IdlenessTooShort, "the disorder within the partition was measured"})
	} else {
		out.couldBe(t, src)
	}
	if len(out.Unless) == 0 {
		return out.fix(t, RaiseBound, LateSideOutput)
	}
	out.Code = NotEnoughEvidence
	out.Unless = append([]Unless{{BoundTooSmall, "late records, or records from Kafka"}}, out.Unless...)
	out.Answer = fmt.Sprintf("%s %s, and what was seen does not tell why.", t.title(), t.late.drops("records"))
	return out.fix(t, LateSideOutput)
}

// couldBe names the causes of late records that what was seen does not exclude.
func (f *Finding) couldBe(t *target, src *source) {
	add := func(c Code, needs string) { f.Unless = append(f.Unless, Unless{c, needs}) }
	idle := src.gen.idleness()
	alone := len(src.splits) == 1 && len(t.feeds) == 1
	if !t.in.OK {
		add(FutureTimestamp, "the watermark of the operator")
	}
	switch {
	case idle.OK && idle.Value == 0:
		f.RuledOut = append(f.RuledOut, RuledOut{IdlenessTooShort, "there is no idle timeout"})
	case alone:
		f.RuledOut = append(f.RuledOut, RuledOut{IdlenessTooShort, "there is one partition only"})
	default:
		if src.inStep(t, idle) {
			f.RuledOut = append(f.RuledOut, RuledOut{IdlenessTooShort, "no partition paused for that long, or is behind the watermark"})
		} else {
			add(IdlenessTooShort, "gauges of splits, or records from Kafka")
		}
		if src.maybeBlocked() {
			add(IdleWhileBlocked, "offsets from Kafka, at two times")
		}
	}
	if k := src.gen.strategy; (k == nil || k.Kind == StrategyUnknown || k.Kind == StrategyCustom) && !src.followsEvents() {
		add(WallClockWatermark, "the description of the job")
		if src.gen.place != genAtSource {
			add(StrategyAfterSource, "the description of the job")
		}
	}
}

// followsEvents reports whether the watermark of a split was seen to keep the same distance
// to its newest event time.
func (s *source) followsEvents() bool {
	for _, sp := range s.splits {
		if sp.past == nil {
			continue
		}
		e, w := timeOf(sp.MaxEventMillis), timeOf(sp.Watermark)
		pe, pw := timeOf(sp.past.MaxEventMillis), timeOf(sp.past.Watermark)
		if e.OK && w.OK && pe.OK && pw.OK && e.Value > w.Value && e.Value-w.Value == pe.Value-pw.Value && e.Value != pe.Value {
			return true
		}
	}
	return false
}

// inStep reports whether no split of a source seems to time out and come back: each is at
// the watermark or before it, or had records all the time.
func (s *source) inStep(t *target, idle Known[int64]) bool {
	for _, sp := range s.splits {
		w := greater(s.v.out(s.op, sp.Subtask.Or(WholeOperator)), t.in)
		ahead := sp.Watermark.OK && w.OK && sp.Watermark.Value >= w.Value
		if !ahead && !(idle.OK && sp.past != nil && sp.fresh(s.v.now.AtMillis, idle.Value) && (split{sp.past, nil, s}).fresh(s.v.past.AtMillis, idle.Value)) {
			return false
		}
	}
	return len(s.splits) > 0
}

// fresh reports whether the last record of a split came within its idle timeout, and was
// not old then.
func (sp split) fresh(now, idle int64) bool {
	at := timeOf(sp.LastAppendMillis)
	if !at.OK {
		at = timeOf(sp.LastReadMillis)
	}
	gap := sp.typicalGapMillis()
	age, ok := sp.stampOf()
	return at.OK && now-at.Value <= idle && (!gap.OK || gap.Value*3 <= idle) && ok && -age.offset() <= idle
}

// maybeBlocked reports whether a backlog could have been taken for idle: there is one, or
// nobody tells, and nobody tells that the readers were free.
func (s *source) maybeBlocked() bool {
	for _, sp := range s.splits {
		if lag := sp.lag(); !lag.OK || lag.Value >= 10 {
			blocked := s.v.load(s.op, backPressuredOf)
			return !blocked.OK || blocked.Value > 100
		}
	}
	return len(s.splits) == 0
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
	last := ""
	if t.late.grown.OK {
		last = ", none in the last " + duration(v.spanMillis)
	}
	restart := v.restarted || v.e.Restarts.Or(0) > 0
	f := Finding{
		Code: NotEnoughEvidence, Severity: Fine,
		Culprit: Culprit{Source: src.op.ID, Topic: src.topic(nil), Operator: t.op.ID},
		Answer: fmt.Sprintf("%s %s%s. What it was does not show any more.",
			t.title(), t.late.dropped(), last),
	}
	if restart {
		f.Code, f.Severity = RestoreLateness, t.late.severity()
		f.Answer = fmt.Sprintf("%s %s around a restart%s: after a restore watermarks begin anew and partitions come back one by one.",
			t.title(), t.late.dropped(), last)
		if last == "" {
			f.Unless = append(f.Unless, Unless{BoundTooSmall, "a second look after the restart"})
		}
		f.addLate(t)
		if last != "" {
			f.RuledOut = append(f.RuledOut, RuledOut{BoundTooSmall, "no record is late in normal operation"})
		}
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
