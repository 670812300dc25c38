package why

import (
	"fmt"
	"slices"
)

// This file has the causes where records exist and are not read fast enough.

const (
	// lagMillis is how old a backlog must be to be worth telling.
	lagMillis = 30_000
	// catchUpMillis is how long a backlog that shrinks may take to be gone.
	catchUpMillis = 2 * 3_600_000
	// saturated is the share of time, in ms/s, from which on a task has none left;
	// blockedShare that from which on back pressure is what limits it.
	saturated    = 850
	blockedShare = 400
)

// reading finds splits that are not read, or not fast enough.
func reading(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var found []Finding
	for _, s := range v.sources {
		if !v.feeds(s) {
			continue
		}
		if lost := s.unheard(); len(lost) > 0 {
			found = append(found, unheardFinding(s, lost))
		}
		behind, told := s.behind()
		if !told {
			if f, ok := slowWithoutOffsets(s); ok {
				found = append(found, f)
			}
			continue
		}
		var stalled, slow []split
		for _, sp := range behind {
			switch {
			case sp.isPaused(), sp.stuck():
			case sp.stalled():
				stalled = append(stalled, sp)
			default:
				slow = append(slow, sp)
			}
		}
		if un := s.unassigned(); len(un) > 0 {
			found = append(found, unassignedFinding(s, un))
		}
		if s.heldBySlower() {
			continue
		}
		if len(stalled) > 0 {
			found = append(found, stalledFinding(s, stalled))
		}
		if len(slow) > 0 {
			found = append(found, slowFinding(s, slow))
		}
	}
	return found
}

// heldBySlower reports whether a source with a backlog only waits, by alignment, for another
// of its group that is behind it and has a backlog, too.
func (s *source) heldBySlower() bool {
	g := s.gen.strategy
	w := timeOf(s.watermark())
	if g == nil || g.Alignment == nil || !w.OK || s.v.load(s.op, busyOf).Or(0) >= saturated {
		return false
	}
	for _, m := range s.v.sources {
		o := m.gen.strategy
		if m == s || o == nil || o.Alignment == nil || o.Alignment.Group != g.Alignment.Group {
			continue
		}
		mine := timeOf(m.watermark())
		ahead := g.Alignment.DriftMillis.Or(0) / 2
		if behind, _ := m.behind(); len(behind) > 0 && mine.OK && minus(w.Value, mine.Value) > ahead && s.v.load(m.op, busyOf).Or(saturated) >= saturated {
			return true
		}
	}
	return false
}

// behind returns the splits with a backlog that does not shrink; false if nobody tells
// about offsets.
func (s *source) behind() (splits []split, told bool) {
	for _, sp := range s.splits {
		lag := sp.lag()
		told = told || lag.OK
		if !lag.OK || lag.Value <= 0 || sp.Unassigned || sp.past == nil {
			continue
		}
		before := sp.past.lag()
		if !before.OK || before.Value <= 0 || catchesUp(before.Value, lag.Value, s.v.spanMillis) {
			continue
		}
		if age := sp.backlogMillis(); age.OK && age.Value >= lagMillis {
			splits = append(splits, sp)
		}
	}
	return splits, told
}

// catchesUp reports whether a backlog will be gone in reasonable time at the pace at which
// it shrank.
func catchesUp(before, now, span int64) bool {
	return now < before && now*span/(before-now) <= catchUpMillis
}

// backlogMillis estimates the age of the oldest record that is still to be read: as many
// records ago as the lag, by the rate of appends.
func (sp split) backlogMillis() Known[int64] {
	lag, v := sp.lag(), sp.src.v
	if n := sp.appended(); n.OK && n.Value > 0 {
		return Know(lag.Value * v.spanMillis / n.Value)
	}
	// Nothing is appended any more: at least the time since the last append.
	if at := timeOf(sp.LastAppendMillis); at.OK {
		return Know(v.now.AtMillis - at.Value)
	}
	return KnowIf(v.spanMillis, sp.past != nil)
}

// stalled reports whether nothing of a backlog was read between the snapshots.
func (sp split) stalled() bool {
	v := sp.src.v
	n := sp.read()
	if !n.OK || n.Value > 0 || v.spanMillis < patienceMillis {
		return false
	}
	blocked := v.loadAt(sp.src.op, sp.Subtask, backPressuredOf)
	return blocked.Or(0) < 900
}

// isPaused reports whether alignment holds a split.
func (sp split) isPaused() bool {
	return sp.State.OK && sp.State.Value == SplitPaused || sp.PausedMillisPerSecond.Or(0) >= blockedShare
}

// loadAt returns the share of time of one subtask's task, or the largest of all.
func (v *view) loadAt(o *Operator, subtask Known[int], of func(Task) Known[int64]) Known[int64] {
	for _, t := range v.tasks[vertexOf(o)] {
		if subtask.OK && t.Subtask == subtask.Value {
			return of(t)
		}
	}
	return v.load(o, of)
}

// unassigned returns partitions with records that no subtask reads.
func (s *source) unassigned() []split {
	var un []split
	for _, sp := range s.splits {
		if sp.Unassigned && sp.EndOffset.Or(0) > 0 {
			un = append(un, sp)
		}
	}
	return un
}

func unassignedFinding(s *source, splits []split) Finding {
	c := s.culprit(splits)
	f := Finding{
		Code: StalledReader, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("Nobody reads %s of topic %s: the partitions have records, and no subtask of source %s has them.",
			numbered("partition", c.Partitions), s.topic(splits), quoted(s.v.nameOf(s.op.ID))),
		Why: []string{"Partitions that were added after the start are found by discovery only."},
	}
	return f.fix(s.v.targetOf(s), EnablePartitionDiscovery, RestartReader)
}

func stalledFinding(s *source, splits []split) Finding {
	v := s.v
	c := s.culprit(splits)
	worst := splits[0]
	for _, sp := range splits {
		if sp.lag().Value > worst.lag().Value {
			worst = sp
		}
	}
	t := v.targetOf(s)
	f := Finding{
		Code: StalledReader, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s is silent because the reader of %s of topic %s has stopped: %s wait there, and none was read in the last %s.",
			t.title(), numbered("partition", c.Partitions), s.topic(splits), count(worst.lag().Value, "record"), duration(v.spanMillis)),
		Numbers: []Number{{"lag", worst.lag().Value}, {"stalled_ms", v.spanMillis}},
	}
	if t.moves() {
		f.Answer = fmt.Sprintf("Records of %s of topic %s are missing in the results of %s because their reader has stopped: %s wait there, and none was read in the last %s.",
			numbered("partition", c.Partitions), s.topic(splits), quoted(v.nameOf(t.op.ID)), count(worst.lag().Value, "record"), duration(v.spanMillis))
	}
	if p := worst.PositionOffset; p.OK {
		f.Numbers = append(f.Numbers, Number{"position", p.Value})
		f.Why = append(f.Why, fmt.Sprintf("Partition %d stays at offset %d; its end is %d.", worst.Partition, p.Value, worst.EndOffset.Or(p.Value+worst.lag().Value)))
	}
	f.RuledOut = append(f.RuledOut, RuledOut{QuietPartition, fmt.Sprintf("the partition has a lag of %s", count(worst.lag().Value, "record"))})
	if b := v.loadAt(s.op, worst.Subtask, backPressuredOf); b.OK {
		f.RuledOut = append(f.RuledOut, RuledOut{Backpressure, fmt.Sprintf("the reader is blocked by what is behind it %s of the time only", percent(b))})
	}
	f.maybeAligned(s, worst)
	return f.fix(t, RestartReader, CheckBrokerAccess)
}

// maybeAligned says that alignment may hold a split, if nobody tells.
func (f *Finding) maybeAligned(s *source, sp split) {
	if k := s.gen.strategy; (k == nil || k.Alignment != nil) && !sp.State.OK && len(s.v.sources) > 1 {
		f.Unless = append(f.Unless, Unless{AlignmentBlocked, "watermarks of the job, or gauges of splits"})
	}
}

// slowFinding tells of splits whose lag grows while they are read: all because of what is
// behind, or some because of themselves.
func slowFinding(s *source, slow []split) Finding {
	v := s.v
	t := v.targetOf(s)
	worst := slow[0]
	for _, sp := range slow {
		if sp.backlogMillis().Value > worst.backlogMillis().Value {
			worst = sp
		}
	}
	age := worst.backlogMillis().Value
	blocked := v.loadAt(s.op, worst.Subtask, backPressuredOf)
	if blocked.Or(0) >= blockedShare {
		return backPressureFinding(t, s, fmt.Sprintf("the lag of %s is %s of records, %d of them, and does not shrink", s.partitionsText(slow), duration(age), worst.lag().Value), age)
	}
	chained := s.chained()
	if chained != nil && v.loadAt(s.op, worst.Subtask, busyOf).Or(0) >= saturated {
		return slowChainFinding(t, s, chained, slow, worst)
	}
	c := s.culprit(slow)
	f := Finding{
		Code: PartitionLag, Severity: Slow, Culprit: c,
		Answer: fmt.Sprintf("Results of %s come late because %s of topic %s %s not read as fast as records come: lag %d, %s of records.",
			quoted(v.nameOf(t.op.ID)), numbered("partition", c.Partitions), s.topic(slow), verb(len(slow), "is", "are"), worst.lag().Value, duration(age)),
		Numbers: []Number{{"lag", worst.lag().Value}, {"behind_ms", age}},
	}
	if worst.past != nil && worst.past.lag().Value > worst.lag().Value {
		f.Answer = fmt.Sprintf("Results of %s come late because %s of topic %s %s a backlog that hardly shrinks: lag %d, %s of records.",
			quoted(v.nameOf(t.op.ID)), numbered("partition", c.Partitions), s.topic(slow), verb(len(slow), "has", "have"), worst.lag().Value, duration(age))
	}
	if a, n := worst.appended(), worst.read(); a.OK && n.OK {
		f.Numbers = append(f.Numbers, Number{"appended", a.Value}, Number{"read", n.Value})
		f.Why = append(f.Why, fmt.Sprintf("In the last %s, %d records were appended to partition %d and %d read.", duration(v.spanMillis), a.Value, worst.Partition, n.Value))
	}
	if b := v.loadAt(s.op, worst.Subtask, busyOf); b.OK {
		f.Why = append(f.Why, fmt.Sprintf("The subtask that reads it is busy %s of the time.", percent(b)))
	}
	f.RuledOut = append(f.RuledOut, RuledOut{QuietPartition, "records come"})
	if blocked.OK {
		f.RuledOut = append(f.RuledOut, RuledOut{Backpressure, fmt.Sprintf("the reader waits for what is behind it %s of the time", percent(blocked))})
	} else {
		f.Unless = append(f.Unless, Unless{Backpressure, "the load of the tasks"})
	}
	f.maybeAligned(s, worst)
	if w := t.in; w.OK {
		f.RuledOut = append(f.RuledOut, RuledOut{EventTimeSkew, "what holds the watermark back is unread records, not old ones"})
	}
	switch {
	case s.assigned && s.op.Parallelism >= len(s.splits):
		return f.fix(t, RepartitionKey) // there is a reader for each
	case s.hot(slow):
		return f.fix(t, RepartitionKey, ScaleSource)
	}
	return f.fix(t, ScaleSource, RepartitionKey)
}

// slowChainFinding tells of a source whose own task is slower than records come, by what is
// chained to it.
func slowChainFinding(t *target, s *source, o *Operator, slow []split, worst split) Finding {
	v := s.v
	age, busy := worst.backlogMillis().Value, v.loadAt(s.op, worst.Subtask, busyOf)
	f := Finding{
		Code: Backpressure, Severity: Slow, Culprit: Culprit{Source: s.op.ID, Topic: s.topic(s.splits), Operator: o.ID},
		Answer: fmt.Sprintf("Results of %s come late because operator %s, in the task of source %s, is slower than records come: event time falls behind by %s.",
			quoted(v.nameOf(t.op.ID)), v.withChain(o, s.op), quoted(v.nameOf(s.op.ID)), duration(age)),
		Why: []string{
			fmt.Sprintf("The lag of %s is %s of records, %d of them, and does not shrink.", s.partitionsText(slow), duration(age), worst.lag().Value),
			fmt.Sprintf("The subtask that reads %s is busy %s of the time. Behind a rebalance the operator would have subtasks of its own.", worst.called(), percent(busy)),
		},
		Numbers:  []Number{{"lag", worst.lag().Value}, {"behind_ms", age}, {"busy_ms_per_s", busy.Or(0)}},
		RuledOut: []RuledOut{{QuietPartition, "records come"}, {StalledReader, "the reader is busy, and does not wait for Kafka"}},
	}
	if len(slow) < len(s.splits) {
		return f.fix(t, RemoveBottleneck, RepartitionKey)
	}
	return f.fix(t, RemoveBottleneck, ScaleOperator)
}

func (s *source) partitionsText(splits []split) string {
	if len(splits) == len(s.splits) {
		return "every partition"
	}
	return numbered("partition", s.culprit(splits).Partitions)
}

// hot reports whether the slow splits get more records than the others: more readers would
// not help.
func (s *source) hot(slow []split) bool {
	least, most := MaxTime, int64(0)
	for _, sp := range s.splits {
		if slices.ContainsFunc(slow, func(other split) bool { return other.Split == sp.Split }) {
			least = min(least, sp.appended().Or(0))
		} else {
			most = max(most, sp.appended().Or(0))
		}
	}
	return len(slow) < len(s.splits) && least > most*3/2
}

func backPressureFinding(t *target, s *source, lag string, age int64) Finding {
	v := s.v
	c := Culprit{Source: s.op.ID, Topic: s.topic(s.splits)}
	f := Finding{
		Code: Backpressure, Severity: Slow,
		Numbers: []Number{{"behind_ms", age}, {"backpressured_ms_per_s", v.load(s.op, backPressuredOf).Or(0)}},
		Why:     []string{upper(lag) + "."},
	}
	who := "an operator behind it"
	if slow := v.bottleneck(s); slow != nil {
		if h, ok := v.hotSubtasks(slow); ok {
			return dataSkewFinding(t, s, slow, h, lag, age)
		}
		c.Operator = slow.ID
		who = "operator " + v.withChain(slow, s.op)
		f.Numbers = append(f.Numbers, Number{"busy_ms_per_s", v.load(slow, busyOf).Or(0)})
		f.Why = append(f.Why, fmt.Sprintf("Operator %s is busy %s of the time; source %s waits for it %s.", quoted(v.nameOf(slow.ID)), percent(v.load(slow, busyOf)),
			quoted(v.nameOf(s.op.ID)), percent(v.load(s.op, backPressuredOf))))
	}
	f.Culprit = c
	f.Answer = fmt.Sprintf("Results of %s come late because %s is slower than records come and blocks source %s: event time falls behind by %s.",
		quoted(v.nameOf(t.op.ID)), who, quoted(v.nameOf(s.op.ID)), duration(age))
	f.RuledOut = append(f.RuledOut,
		RuledOut{PartitionLag, "the readers are not at their limit, they are blocked"},
		RuledOut{QuietPartition, "records come and are read"})
	return f.fix(t, ScaleOperator, RemoveBottleneck)
}

// bottleneck returns the operator that blocks a source: the first behind it that is busy
// and not blocked itself.
func (v *view) bottleneck(s *source) *Operator {
	queue, seen := []string{s.op.ID}, map[string]bool{}
	var busiest *Operator
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		queue = append(queue, v.consumers[id]...)
		o := v.ops[id]
		if o == nil || vertexOf(o) == vertexOf(s.op) {
			continue
		}
		busy, blocked := v.load(o, busyOf), v.load(o, backPressuredOf)
		if !busy.OK || busy.Value < saturated-250 || blocked.Or(0) >= blockedShare {
			continue
		}
		if busiest == nil || busy.Value > v.load(busiest, busyOf).Value ||
			vertexOf(busiest) == vertexOf(o) && v.waits(o) && !v.waits(busiest) {
			busiest = o
		}
	}
	return busiest
}

// slowWithoutOffsets tells of a source that falls behind where only watermarks and load
// are known.
func slowWithoutOffsets(s *source) (Finding, bool) {
	v, t := s.v, s.v.targetOf(s)
	if v.past == nil || v.spanMillis < patienceMillis || s.gen.place == genNone {
		return Finding{}, false
	}
	op := s.gen.opOr(s.op)
	var slow []int
	behind := int64(0)
	newest := Known[int64]{}
	for _, sub := range v.subs[op.ID] {
		newest = greater(newest, timeOf(sub.OutputWatermark))
	}
	for _, sub := range v.subs[op.ID] {
		pace := paceOf(sub.OutputWatermark, sub.pastOutput(), v.spanMillis)
		if !pace.OK || pace.Value <= 0 || pace.Value >= 960 {
			continue
		}
		lag := v.now.AtMillis - sub.OutputWatermark.Value - s.gen.bound().Or(0)
		if lag < lagMillis {
			continue
		}
		index := KnowIf(sub.Index, sub.Index >= 0)
		if v.loadAt(s.op, index, backPressuredOf).Or(0) >= blockedShare {
			return backPressureFinding(t, s, fmt.Sprintf("its watermark went on by %s in the last %s", duration(pace.Value*v.spanMillis/1000), duration(v.spanMillis)), lag), true
		}
		if v.loadAt(s.op, index, busyOf).Or(0) >= saturated {
			slow, behind = append(slow, max(sub.Index, 0)), max(behind, lag)
		}
	}
	if len(slow) == 0 {
		return Finding{}, false
	}
	var splits []split
	for _, i := range slow {
		splits = append(splits, s.of(i)...)
	}
	c := s.culprit(splits)
	c.Subtasks = slow
	f := Finding{
		Code: PartitionLag, Severity: Slow, Culprit: c,
		Answer: fmt.Sprintf("Results of %s come late because %s of source %s cannot keep up: busy all the time, and its event time goes on slower than the clock, %s behind.",
			quoted(v.nameOf(t.op.ID)), numbered("subtask", slow), quoted(v.nameOf(s.op.ID)), duration(behind)),
		Numbers:  []Number{{"behind_ms", behind}},
		RuledOut: []RuledOut{{Backpressure, "the reader is busy, not blocked"}, {QuietPartition, "its watermark moves"}},
	}
	return f.fix(t, RepartitionKey, ScaleSource), true
}

// pastOutput returns the output watermark in the past.
func (s subtask) pastOutput() Known[int64] {
	if s.past == nil {
		return Known[int64]{}
	}
	return s.past.OutputWatermark
}
