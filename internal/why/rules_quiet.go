package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// This file has the causes where records do not come: one partition, one input, all.

// quietSplit is a split without records for longer than it may be.
type quietSplit struct {
	split
	silence
}

// restored reports whether a split without records has a watermark all the same: it had records
// before the job was started again, from a checkpoint. Its counters are of this attempt.
func (s *quietSplit) restored() bool {
	return s.never && s.Watermark.OK && s.Watermark.Value != MinTime
}

// neverSince is since when a split without records has had none.
func (s *quietSplit) neverSince() string {
	if s.restored() {
		return "since the job was started again"
	}
	return "yet"
}

// quiet sorts the splits that feed a target.
type quiet struct {
	silent  []quietSplit
	flowing []split
	unknown []split
	sources int // sources with splits
}

func (t *target) quiet() quiet {
	var q quiet
	for _, f := range t.feeds {
		if f.src.gen.place == genNone {
			continue
		}
		if len(f.src.splits) > 0 {
			q.sources++
		}
		for _, sp := range f.src.splits {
			if sp.Unassigned {
				continue
			}
			s, ok := sp.silent()
			switch {
			case ok && s.millis >= sp.patience():
				q.silent = append(q.silent, quietSplit{sp, s})
			case sp.stuck():
				q.flowing = append(q.flowing, sp)
			case !ok && !sp.delivers():
				q.unknown = append(q.unknown, sp)
			default:
				q.flowing = append(q.flowing, sp)
			}
		}
	}
	return q
}

// delivers reports whether records of a split are known to have come.
func (sp split) delivers() bool {
	if n := sp.read(); n.OK {
		return n.Value > 0
	}
	if n := sp.src.subtaskRead(sp); n.OK {
		return n.Value > 0
	}
	lag := sp.lag()
	return lag.OK && lag.Value > 0 || sp.LastReadMillis.OK && sp.LastReadMillis.Value != Never
}

// flows reports whether a split is known to have had records lately.
func (sp split) flows() bool {
	for _, n := range []Known[int64]{sp.read(), sp.appended(), sp.src.subtaskRead(sp)} {
		if n.OK && n.Value > 0 {
			return true
		}
	}
	last := greater(timeOf(sp.LastAppendMillis), timeOf(sp.LastReadMillis))
	return last.OK && sp.src.v.now.AtMillis-last.Value < sp.patience()
}

// quietInputs finds partitions, inputs or whole jobs without records.
func quietInputs(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var found []Finding
	for _, t := range v.targets() {
		if t.in.OK && t.in.Value == MaxTime {
			continue
		}
		q := t.quiet()
		if len(q.silent) > 0 && len(q.flowing) == 0 && len(q.unknown) == 0 {
			if f, ok := allQuiet(t, q); ok {
				found = append(found, t.closedBySilence(f))
			}
			continue
		}
		found = append(found, someQuiet(t, q)...)
		if len(q.silent) == 0 {
			found = append(found, frozenSubtask(t)...)
		}
	}
	return found
}

// allQuiet is the finding that nothing comes at all.
func allQuiet(t *target, q quiet) (Finding, bool) {
	v := t.v
	shortest := q.silent[0]
	never := true
	for _, s := range q.silent {
		if s.millis < shortest.millis {
			shortest = s
		}
		never = never && s.never
	}
	src := shortest.src
	if !never && !t.due(plus(v.now.AtMillis, -src.gen.bound().Or(0))) {
		return Finding{}, false
	}
	if v.past != nil && t.moves() || !never && shortest.millis < t.noticeable() {
		return Finding{}, false
	}
	var own []split
	for _, s := range q.silent {
		if s.src == src {
			own = append(own, s.split)
		}
	}
	c := src.culprit(own)
	c.Subtasks = nil
	f := Finding{
		Code: AllInputsQuiet, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s waits because all %s are silent: %s, and only a later record can close what is open.",
			t.title(), t.topics(), shortest.lastRecord()),
		Numbers: []Number{{"silent_ms", shortest.millis}},
	}
	if never {
		f.Severity = Fine // there is nothing that waits
		f.Answer = fmt.Sprintf("%s is silent because nothing has come: all %s are without a record.", t.title(), t.topics())
	} else if open := t.open(); !open.OK && (!t.in.OK || t.in.Value == MinTime) {
		f.Severity = Fine // nothing is known to wait
	} else if open.OK {
		f.Numbers = append(f.Numbers, Number{"open_windows", open.Value})
		if open.Value == 0 {
			f.Severity = Fine
			f.Answer = fmt.Sprintf("Nothing comes: all %s are silent, for %s. No window is open.", t.topics(), duration(shortest.millis))
		} else {
			f.Why = append(f.Why, fmt.Sprintf("%s %s open. The watermark is %s.", upper(count(open.Value, "window")), verb(int(open.Value), "is", "are"), instant(t.in.Or(MinTime))))
		}
	}
	f.Why = append(f.Why, "An idle timeout, and idleness cannot help: idle inputs are left out of the minimum, and nothing is left to move it.")
	f.RuledOut = append(f.RuledOut, RuledOut{QuietPartition, fmt.Sprintf("the others are silent too: %s", silences(q.silent))})
	if shortest.drained {
		f.RuledOut = append(f.RuledOut, RuledOut{StalledReader, "everything that was appended has been read: lag 0"})
	} else {
		f.Unless = append(f.Unless, Unless{StalledReader, "offsets from Kafka"})
		f.maybeAligned(src, shortest.split)
	}
	f.quietByTheClock(q.silent)
	return f.fix(t, ProcessingTimeTimeout, HeartbeatRecords, CheckProducer), true
}

// lastRecord says when the last record came.
func (s silence) lastRecord() string {
	if s.atLeast {
		return fmt.Sprintf("no record came in the last %s", duration(s.millis))
	}
	return fmt.Sprintf("the last record came %s ago", duration(s.millis))
}

// noticeable returns how long nothing may come before a missing result is noticed: a
// window, at most an hour.
func (t *target) noticeable() int64 {
	w := t.op.Window
	if w == nil {
		return longestPatienceMillis
	}
	return min(w.everyMillis(), 3_600_000)
}

// topics names what feeds a target: the partitions of topics, or else the splits of sources.
func (t *target) topics() string {
	if slices.ContainsFunc(t.feeds, func(f feed) bool { return !f.src.kafka() }) {
		var names []string
		for _, f := range t.feeds {
			names = append(names, quoted(t.v.nameOf(f.src.op.ID)))
		}
		return "splits of " + verb(len(names), "source ", "sources ") + list(names)
	}
	var names []string
	for _, f := range t.feeds {
		for _, topic := range f.src.topics {
			if !slices.Contains(names, topic) {
				names = append(names, topic)
			}
		}
	}
	return "partitions of " + verb(len(names), "topic ", "topics ") + list(names)
}

// silences lists how long splits have been silent.
func silences(splits []quietSplit) string {
	var each []string
	for i, s := range splits {
		if i == 4 && len(splits) > 5 {
			return list(append(each, fmt.Sprintf("%d others", len(splits)-i)))
		}
		d := "for " + duration(s.millis)
		if s.never {
			d = "always"
			if s.restored() {
				d = s.neverSince()
			}
		}
		each = append(each, s.name()+" "+d)
	}
	return list(each)
}

// someQuiet finds silent splits that hold the target while others flow.
func someQuiet(t *target, q quiet) []Finding {
	if t.moves() {
		return nil
	}
	if _, known := t.stuck(); !known && len(t.v.subs[t.op.ID]) > 0 && t.v.past != nil {
		return nil
	}
	potential := t.potential(q)
	var held []holding
	for _, f := range t.feeds {
		byTopic := map[string][]quietSplit{}
		for _, s := range q.silent {
			if s.src == f.src && t.holds(s, q, potential) {
				byTopic[s.Topic] = append(byTopic[s.Topic], s)
			}
		}
		if t.in.OK && t.in.Value != MinTime && potential.OK && !t.due(potential.Value) {
			continue
		}
		for topic, own := range byTopic {
			if !t.in.OK {
				// Whether it holds anything is a guess, so that takes more.
				own = slices.DeleteFunc(own, func(s quietSplit) bool { return !s.never && s.millis < longestPatienceMillis })
			}
			if byTopic[topic] = own; len(own) == 0 {
				delete(byTopic, topic)
			}
		}
		for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
			at := MaxTime
			for _, s := range byTopic[topic] {
				w := s.Watermark
				if !w.OK {
					w = t.v.out(f.src.gen.opOr(f.src.op), s.Subtask.Or(WholeOperator))
				}
				at = min(at, w.Or(MaxTime))
			}
			held = append(held, holding{quietOf(t, f, byTopic[topic], q, potential), at})
		}
	}
	// The smallest watermark is what is waited for now, the others come after it.
	slices.SortStableFunc(held, func(a, b holding) int { return cmp.Compare(a.at, b.at) })
	var found []Finding
	for _, h := range held {
		found = append(found, h.Finding)
	}
	return found
}

// holding is a finding with the watermark that it holds.
type holding struct {
	Finding
	at int64
}

// holds reports whether a silent split pins the target: it counts, and others are ahead.
func (t *target) holds(s quietSplit, q quiet, potential Known[int64]) bool {
	g := &s.src.gen
	idle := g.idleness()
	once := t.in.OK && t.in.Value != MinTime && t.v.past == nil && !s.State.OK
	if s.isIdle() || !idle.OK && (!t.in.OK || once) {
		return false // it does not count, or nobody can tell whether it does
	}
	if idle.OK && idle.Value > 0 && !s.State.OK && !t.pinnedBy(s.src, s.Subtask) {
		return false // it will have timed out
	}
	if e := s.lastEvent(); e.OK && t.in.OK && e.Value < t.in.Value {
		return false // the watermark has passed all that it had
	}
	if g.place == genBehind && slices.ContainsFunc(q.flowing, func(sp split) bool {
		return sp.src == s.src && (sp.Subtask == s.Subtask || !s.Subtask.OK)
	}) {
		return false // one generator has records of both
	}
	if w := s.Watermark; w.OK && potential.OK && w.Value != MinTime {
		return w.Value < potential.Value
	}
	// Without a gauge the watermark of the subtask tells.
	if w := t.v.out(g.opOr(s.src.op), s.Subtask.Or(WholeOperator)); w.OK && !s.Watermark.OK && potential.OK {
		return w.Value < potential.Value
	}
	return true
}

// pinnedBy reports whether the target's watermark is that of one subtask of a source.
func (t *target) pinnedBy(s *source, subtask Known[int]) bool {
	stuck, known := t.stuck()
	return stuck && known && t.hold.src == s && !t.hold.allIdle && subtask.OK && t.hold.subtask == subtask.Value && t.in.OK &&
		t.v.out(s.gen.opOr(s.op), subtask.Value) == t.in
}

// potential returns what the target's watermark would be without silent splits: the
// smallest of those that flow.
func (t *target) potential(q quiet) Known[int64] {
	least := Known[int64]{}
	for _, sp := range q.flowing {
		w := sp.Watermark
		if !w.OK || w.Value == MinTime {
			w = sp.topEvent()
			if w.OK {
				w.Value = plus(w.Value, -sp.src.gen.bound().Or(0)-1)
			}
		}
		if sp.isIdle() || sp.State.OK && sp.State.Value == SplitPaused {
			continue
		}
		least = lesser(least, w)
	}
	if least.OK {
		return least
	}
	// No split tells; the subtasks that are ahead do.
	for _, f := range t.feeds {
		for _, sub := range t.v.subs[f.src.gen.opOr(f.src.op).ID] {
			flows := len(q.flowing) == 0 || slices.ContainsFunc(q.flowing, func(sp split) bool {
				return sp.src == f.src && (!sp.Subtask.OK || sub.Index < 0 || sp.Subtask.Value == sub.Index)
			})
			if w := sub.OutputWatermark; flows && w.OK && t.in.OK && w.Value > t.in.Value {
				least = lesser(least, w)
			}
		}
	}
	return least
}

func quietOf(t *target, f feed, mine []quietSplit, q quiet, potential Known[int64]) Finding {
	v, src := t.v, f.src
	var splits []split
	longest := mine[0]
	for _, s := range mine {
		splits = append(splits, s.split)
		if s.millis > longest.millis {
			longest = s
		}
	}
	others := slices.ContainsFunc(q.flowing, func(sp split) bool { return sp.src == src && !sp.isIdle() }) ||
		slices.ContainsFunc(q.unknown, func(sp split) bool { return sp.src == src })
	code := QuietPartition
	what := src.these(splits)
	if !others && q.sources > 1 {
		code = QuietInput
		what = "input " + quoted(v.nameOf(src.op.ID))
		if src.kafka() {
			what += fmt.Sprintf(" (topic %s)", src.topic(splits))
		}
	}
	things := len(mine)
	if code == QuietInput {
		things = 1
	}
	out := Finding{
		Code: code, Severity: Stall, Culprit: src.culprit(splits),
		Answer:  fmt.Sprintf("%s is silent because %s %s and %s the watermark at %s.", t.title(), what, hasBeenSilent(longest, things), verb(things, "holds", "hold"), held(t.in)),
		Numbers: []Number{{"silent_ms", longest.millis}},
	}
	if longest.never {
		out.Answer = fmt.Sprintf("%s is silent because %s %s no record %s and %s the watermark at %s.",
			t.title(), what, verb(things, "has", "have"), longest.neverSince(), verb(things, "holds", "hold"), held(t.in))
	} else if started := v.e.StartedMillis; started.OK && !longest.atLeast && longest.sinceMillis >= started.Value {
		out.Why = append(out.Why, fmt.Sprintf("%s: silent since %d s after the start of the job (%s).",
			upper(longest.called()), (longest.sinceMillis-started.Value)/1000, clock(longest.sinceMillis)))
	}
	if potential.OK && t.in.OK && t.in.Value != MinTime {
		out.Numbers = append(out.Numbers, Number{"behind_ms", potential.Value - t.in.Value})
	}
	if potential.OK {
		out.Why = append(out.Why, fmt.Sprintf("The inputs that flow would allow %s.", instant(potential.Value)))
	}
	out.Then = nextQuiet(t, q, mine)
	if potential.OK && potential.Value > v.now.AtMillis+aheadMillis {
		out.Then = append(out.Then, FutureTimestamp)
		out.Why = append(out.Why, fmt.Sprintf("That is %s ahead of the clock: once the watermark gets there, records of the present are late. Bound the timestamps before it is let go.",
			duration(potential.Value-v.now.AtMillis)))
	}
	out.lookAlikes(t, longest, code, q)
	out.quietByTheClock(mine)
	if idle := src.gen.idleness().Or(0); idle > longest.millis {
		out.Why = append(out.Why, fmt.Sprintf("Its idle timeout is %s: that will leave it out in %s.", duration(idle), duration(idle-longest.millis)))
	} else if idle > 0 {
		out.Why = append(out.Why, "It has an idle timeout, which has not taken effect: its clock stands still under back pressure and while alignment pauses a split.")
		return out.fix(t, RemoveBottleneck, SetIdleness, CheckProducer)
	}
	return out.fix(t, SetIdleness, CheckProducer, HeartbeatRecords)
}

// called names a split by its number, or by its ID if it is no partition.
func (sp *Split) called() string {
	if sp.ID != "" {
		return "split " + sp.ID
	}
	return fmt.Sprintf("partition %d", sp.Partition)
}

// held names the watermark that something is held at.
func held(w Known[int64]) string {
	if !w.OK || w.Value == MinTime {
		return "the beginning of time"
	}
	return instant(w.Value)
}

func hasBeenSilent(s quietSplit, n int) string {
	if s.atLeast {
		return fmt.Sprintf("%s sent nothing for at least %s", verb(n, "has", "have"), duration(s.millis))
	}
	return fmt.Sprintf("%s sent nothing for %s", verb(n, "has", "have"), duration(s.millis))
}

// lookAlikes says what excludes the causes that look like a silent split.
func (f *Finding) lookAlikes(t *target, s quietSplit, code Code, q quiet) {
	if s.drained {
		f.RuledOut = append(f.RuledOut, RuledOut{StalledReader, "everything that was appended there has been read: lag 0"})
		f.RuledOut = append(f.RuledOut, RuledOut{PartitionLag, "lag 0"})
	} else {
		f.Unless = append(f.Unless, Unless{StalledReader, "offsets from Kafka"})
		f.maybeAligned(s.src, s.split)
	}
	if len(s.src.empty) == 0 {
		f.RuledOut = append(f.RuledOut, RuledOut{OverParallelSource, "every subtask of the source has a partition"})
	}
	if len(q.flowing) > 0 {
		f.RuledOut = append(f.RuledOut, RuledOut{AllInputsQuiet, "other inputs flow"})
	} else {
		f.Unless = append(f.Unless, Unless{AllInputsQuiet, "when the others had records last"})
	}
	switch g := &s.src.gen; {
	case g.strategy == nil && (!t.in.OK || t.in.Value == MinTime):
		f.Unless = append(f.Unless, Unless{SideInputWithout, "the description of the job"}, Unless{NoWatermarkStrategy, "the description of the job"})
	case code == QuietInput:
		f.RuledOut = append(f.RuledOut, RuledOut{SideInputWithout, "the source has a watermark strategy"})
	}
}

// nextQuiet names what holds next once the quiet splits do not.
func nextQuiet(t *target, q quiet, mine []quietSplit) []Code {
	for _, s := range q.silent {
		if s.src != mine[0].src && !s.isIdle() && s.src.gen.idleness().Or(0) == 0 {
			return []Code{QuietInput}
		}
	}
	return nil
}

// frozenSubtask finds a subtask of several splits that sends records while its watermark
// stands still, where nobody tells about splits: one of them must be silent.
func frozenSubtask(t *target) []Finding {
	h := &t.hold
	if stuck, known := t.stuck(); !known || !stuck || h.src == nil || h.gen != nil || h.allIdle || h.exact || t.v.spanMillis < patienceMillis {
		return nil
	}
	v, src := t.v, h.src
	own := src.of(h.subtask)
	w := v.out(src.op, h.subtask)
	if len(own) < 2 || src.gen.idleness().Or(0) > 0 || src.gen.place != genAtSource || w != t.in {
		return nil
	}
	if t.in.Value != MinTime && t.in.Value > v.now.AtMillis {
		return nil // that would be a timestamp in the future
	}
	for _, sp := range own {
		if lag := sp.lag(); lag.OK {
			return nil // Kafka tells about splits, and it is none of them
		}
	}
	potential := t.potential(quiet{})
	if !potential.OK && t.in.Value != MinTime || potential.OK && !t.due(potential.Value) {
		return nil
	}
	c := src.culprit(own)
	c.Partitions = nil
	f := Finding{
		Code: QuietPartition, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s is silent because one of the %s that subtask %d of source %s reads is silent: records come from the subtask, but its watermark stays at %s.",
			t.title(), src.these(own), h.subtask, quoted(v.nameOf(src.op.ID)), held(t.in)),
		Why:     []string{"Which one it is takes gauges of splits or offsets from Kafka to tell."},
		Numbers: []Number{{"frozen_ms", v.spanMillis}},
		Unless:  []Unless{{StalledReader, "offsets from Kafka"}, {EventTimeSkew, "records from Kafka"}},
	}
	return []Finding{f.fix(t, SetIdleness, CheckProducer)}
}
