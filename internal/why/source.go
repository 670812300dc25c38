package why

import (
	"cmp"
	"fmt"
	"slices"
)

// source is one source with its splits, and the generator of its watermarks.
type source struct {
	v      *view
	op     *Operator
	topics []string
	subs   []subtask
	splits []split
	// assigned: it is known which subtask reads what; empty are the subtasks without a
	// split then.
	assigned bool
	empty    []int
	gen      generator
	// misread is the unit of times in payloads that the job converts and whoever read them
	// back did not, false as misreads if there is none. What they told is left out.
	misread  unit
	misreads bool
}

// place says where watermarks are made.
type place int

const (
	genUnknown place = iota
	genAtSource
	genBehind // by an operator behind the source
	genNone
)

// generator is where the watermarks of a source's records are made, and how.
type generator struct {
	place    place
	op       *Operator // the source, or the operator behind it
	strategy *Strategy // nil if unknown
	inferred bool      // from watermarks, not from a description of the job
}

// split is one partition now and in the past.
type split struct {
	*Split
	past *Split // nil if unknown
	src  *source
}

func (v *view) source(o *Operator) *source {
	s := &source{v: v, op: o, subs: v.subs[o.ID]}
	if o.Source != nil {
		s.topics = o.Source.Topics
	}
	type place struct {
		id, topic string
		partition int32
	}
	past := map[place]*Split{}
	if v.past != nil {
		for i := range v.past.Splits {
			if p := &v.past.Splits[i]; p.Source == o.ID {
				past[place{p.ID, p.Topic, p.Partition}] = p
			}
		}
	}
	for i := range v.now.Splits {
		if sp := &v.now.Splits[i]; sp.Source == o.ID {
			s.splits = append(s.splits, split{sp, past[place{sp.ID, sp.Topic, sp.Partition}], s})
		}
	}
	slices.SortFunc(s.splits, func(a, b split) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	s.findEmpty()
	s.gen = v.generatorOf(s)
	s.dropMisread()
	return s
}

// findEmpty finds the subtasks without splits. If nobody tells the assignment, the number
// of partitions tells how many there are, and those without records are they.
func (s *source) findEmpty() {
	reads := map[int]bool{}
	read := 0
	for _, sp := range s.splits {
		if sp.Subtask.OK {
			reads[sp.Subtask.Value] = true
			s.assigned = true
		}
		if !sp.Unassigned {
			read++
		}
	}
	if !s.assigned && (read == 0 || s.op.Parallelism <= read) {
		return
	}
	for _, sub := range s.subs {
		if sub.Index < 0 || reads[sub.Index] || sub.RecordsOut.Or(0) > 0 {
			continue
		}
		s.empty = append(s.empty, sub.Index)
	}
	if !s.assigned && len(s.empty) < s.op.Parallelism-read {
		s.empty = nil // the counters do not tell them
	}
}

// generatorOf finds out where the watermarks of a source are made.
func (v *view) generatorOf(s *source) generator {
	if behind := v.assignerBehind(s.op, 0); behind != nil {
		return generator{place: genBehind, op: behind, strategy: behind.Strategy} // it ignores those before it
	}
	if d := s.op.Source; d != nil && d.Strategy != nil && d.Strategy.Kind != StrategyUnknown {
		if d.Strategy.Kind != StrategyNone {
			return generator{place: genAtSource, op: s.op, strategy: d.Strategy}
		}
		return generator{place: genNone}
	}
	g := generator{inferred: true}
	if d := s.op.Source; d != nil {
		g.strategy = d.Strategy
	}
	switch {
	case s.hasWatermark():
		g.place, g.op = genAtSource, s.op
	case s.neverHasWatermark():
		g.place = genNone
	}
	return g
}

// assignerBehind returns the operator that assigns watermarks to the records of o, if
// there is one on each way. depth is how far o is behind the source.
func (v *view) assignerBehind(o *Operator, depth int) *Operator {
	var found *Operator
	if depth > len(v.e.Operators) {
		return nil // the graph is not one
	}
	for _, id := range v.consumers[o.ID] {
		next := v.ops[id]
		switch {
		case next == nil:
			return nil
		case next.Kind == KindAssign:
			found = next
		case next.Kind == KindFilter || next.Kind == KindPlain || next.Kind == KindMaybeTimers:
			if found = v.assignerBehind(next, depth+1); found == nil {
				return nil
			}
		default:
			return nil
		}
	}
	return found
}

func (s *source) hasWatermark() bool {
	for _, sub := range s.subs {
		if w := sub.OutputWatermark; w.OK && w.Value != MinTime {
			return true
		}
	}
	return slices.ContainsFunc(s.splits, func(sp split) bool { return sp.Watermark.OK && sp.Watermark.Value != MinTime })
}

// neverHasWatermark reports whether every subtask and split with records is without a
// watermark: no generator has seen them.
func (s *source) neverHasWatermark() bool {
	seen := false
	for _, sub := range s.subs {
		if !sub.OutputWatermark.OK || sub.OutputWatermark.Value != MinTime {
			return false
		}
		if sub.RecordsOut.Or(0) == 0 || s.hasSplitWithoutRecords(sub.Index) {
			continue // as it is for a good reason
		}
		seen = true
	}
	for _, sp := range s.splits {
		if sp.Watermark.OK && sp.Watermark.Value == MinTime && sp.Records.Or(0) > 0 {
			seen = true
		}
	}
	return seen
}

// hasSplitWithoutRecords reports whether a subtask reads a split that has no records, or
// of which that is not known.
func (s *source) hasSplitWithoutRecords(index int) bool {
	if len(s.of(index)) == 1 && s.assigned {
		return false // it is the one that the subtask's records came from
	}
	for _, sp := range s.splits {
		if sp.Subtask.OK && sp.Subtask.Value != index && index >= 0 {
			continue
		}
		read := greater(sp.Records, sp.PositionOffset)
		if !read.OK && len(s.splits) > 1 || read.OK && read.Value <= 0 {
			return true
		}
	}
	return false
}

// idleness returns the idle timeout of the source's generator, 0 if there is none.
func (g *generator) idleness() Known[int64] {
	if g.place == genNone {
		return Know[int64](0)
	}
	if g.strategy == nil {
		return Known[int64]{}
	}
	return g.strategy.IdlenessMillis
}

// bound returns the out-of-orderness bound.
func (g *generator) bound() Known[int64] {
	if g.strategy == nil {
		return Known[int64]{}
	}
	if g.strategy.Kind == StrategyMonotonous {
		return Know[int64](0)
	}
	return g.strategy.BoundMillis
}

// fromRecord reports whether event times are the timestamps of the Kafka records.
func (g *generator) fromRecord() bool {
	return g.place == genNone || g.strategy != nil && g.strategy.Timestamps == FromRecord
}

// topic returns the topic to name for splits.
func (s *source) topic(splits []split) string {
	if len(splits) > 0 && splits[0].Topic != "" {
		return splits[0].Topic
	}
	if len(s.topics) > 0 {
		return s.topics[0]
	}
	return ""
}

// kafka reports whether a source may read Kafka: its splits are not known to be others.
func (s *source) kafka() bool {
	return !slices.ContainsFunc(s.splits, func(sp split) bool { return sp.ID != "" })
}

// these names splits of a source within a sentence.
func (s *source) these(splits []split) string {
	if s.kafka() {
		return fmt.Sprintf("%s of topic %s", numbered("partition", s.culprit(splits).Partitions), s.topic(splits))
	}
	var names []string
	for _, sp := range splits {
		names = append(names, sp.name())
	}
	return fmt.Sprintf("%s %s of source %s", verb(len(names), "split", "splits"), list(names), quoted(s.v.nameOf(s.op.ID)))
}

// name is what a split is called.
func (sp *Split) name() string { return cmp.Or(sp.ID, fmt.Sprintf("%s-%d", sp.Topic, sp.Partition)) }

// culprit names splits of a source.
func (s *source) culprit(splits []split) Culprit {
	c := Culprit{Source: s.op.ID, Topic: s.topic(splits)}
	for _, sp := range splits {
		if sp.ID == "" {
			c.Partitions = append(c.Partitions, sp.Partition)
		}
		if sp.Subtask.OK && !slices.Contains(c.Subtasks, sp.Subtask.Value) {
			c.Subtasks = append(c.Subtasks, sp.Subtask.Value)
		}
	}
	slices.Sort(c.Partitions)
	slices.Sort(c.Subtasks)
	return c
}

// of returns the splits of one subtask, all of them if the assignment is unknown.
func (s *source) of(index int) []split {
	if !s.assigned || index < 0 {
		return s.splits
	}
	var own []split
	for _, sp := range s.splits {
		if sp.Subtask.OK && sp.Subtask.Value == index {
			own = append(own, sp)
		}
	}
	return own
}

// lag returns the records that are still to be read, as the consumer or Kafka tells it: the
// consumer of a subtask that is blocked knows of none that came since.
func (sp *Split) lag() Known[int64] {
	return greater(sp.Lag, KnowIf(max(sp.EndOffset.Value-sp.PositionOffset.Value, 0), sp.EndOffset.OK && sp.PositionOffset.OK))
}

// lag is that of the Split, but for what offsets alone say of a consumer that has time: it
// knows itself what it has not read. The markers of transactions stay behind the last record,
// and positions are some seconds older than the ends that Kafka tells. Only if it reads
// nothing of what comes are they right.
func (sp split) lag() Known[int64] {
	all := sp.Split.lag()
	if !sp.Lag.OK || all.Value <= sp.Lag.Value || sp.occupied() {
		return all
	}
	if n := sp.appended(); n.OK && n.Value > 0 && sp.read().Or(0) == 0 {
		return all
	}
	return sp.Lag
}

// read returns how many records were read between the snapshots.
func (sp split) read() Known[int64] {
	if sp.past == nil {
		return Known[int64]{}
	}
	if n := growth(sp.Records, sp.past.Records); n.OK {
		return n
	}
	return growth(sp.PositionOffset, sp.past.PositionOffset)
}

// appended returns how many records were appended between the snapshots.
func (sp split) appended() Known[int64] {
	if sp.past == nil {
		return Known[int64]{}
	}
	return growth(sp.EndOffset, sp.past.EndOffset)
}

// silence is a time without records.
type silence struct {
	// millis is how long it lasts, at least. sinceMillis is when it began, Never if there
	// was never a record.
	millis, sinceMillis int64
	never               bool
	// drained: it is known that there is nothing left to read.
	drained bool
	// atLeast: it began before anybody looked.
	atLeast bool
}

// maybePaused reports whether alignment holds a split, or may do so.
func (sp split) maybePaused() bool {
	k := sp.src.gen.strategy
	return sp.isPaused() || !sp.State.OK && k != nil && k.Alignment != nil
}

// silent returns for how long a split has had no records, false if it has some or that is
// unknown.
func (sp split) silent() (silence, bool) {
	lag := sp.lag()
	if !lag.OK && sp.maybePaused() {
		return silence{}, false
	}
	return sp.quietFor()
}

// quietFor is silent for a split that alignment does not hold.
func (sp split) quietFor() (silence, bool) {
	v := sp.src.v
	lag := sp.lag()
	if sp.Unassigned || lag.OK && lag.Value > 0 || sp.stuck() {
		return silence{}, false
	}
	if !(sp.EndOffset.OK && sp.PositionOffset.OK) && sp.occupied() {
		return silence{}, false // that is what the subtask says, which has not looked
	}
	q := silence{drained: lag.OK}
	last := sp.LastAppendMillis
	if !last.OK {
		last = sp.LastReadMillis
	}
	if !last.OK && (sp.EndOffset.OK && sp.EndOffset.Value == 0 || sp.Records.OK && sp.Records.Value == 0) {
		last = Know(Never)
	}
	if last.OK {
		if q.never = last.Value == Never; q.never {
			q.millis, q.sinceMillis = v.upMillis(), Never
		} else {
			q.millis, q.sinceMillis = max(v.now.AtMillis-last.Value, 0), last.Value
		}
		return q, true
	}
	n := sp.read()
	if a := sp.appended(); a.OK && (!n.OK || a.Value > n.Value) {
		n = a
	}
	if !n.OK {
		n = sp.src.subtaskRead(sp)
	}
	if !n.OK || n.Value > 0 {
		return silence{}, false
	}
	q.millis, q.sinceMillis, q.atLeast = v.spanMillis, v.past.AtMillis, true
	return q, true
}

// subtaskRead returns how much the subtask of a split read between the snapshots. That of
// a subtask of several splits says something about each only if it is nothing.
func (s *source) subtaskRead(sp split) Known[int64] {
	for _, sub := range s.subs {
		if sp.Subtask.OK && sub.Index == sp.Subtask.Value && sub.past != nil {
			n := growth(sub.RecordsOut, sub.past.RecordsOut)
			if n.OK && (n.Value == 0 || len(s.of(sub.Index)) == 1) {
				return n
			}
		}
	}
	return Known[int64]{}
}

// isIdle reports whether a split takes no part in the minimum.
func (sp split) isIdle() bool {
	return sp.State.OK && (sp.State.Value == SplitIdle || sp.State.Value == SplitFinished)
}

// typicalGapMillis returns the mean time between two records of a split.
func (sp split) typicalGapMillis() Known[int64] {
	v := sp.src.v
	if p := sp.Profile; p != nil && p.Records >= 3 {
		return Know((p.LastAppendMillis - p.FirstAppendMillis) / p.Records)
	}
	n := sp.Records
	if !n.OK && sp.src.readsAll() {
		n = sp.EndOffset
	}
	last := sp.LastAppendMillis
	if !last.OK {
		last = sp.LastReadMillis
	}
	if !n.OK || n.Value < 3 || !last.OK || last.Value == Never {
		return Known[int64]{}
	}
	lived := last.Value - (v.now.AtMillis - v.upMillis())
	return KnowIf(lived/n.Value, lived > 0)
}

// readsAll reports whether the topics of a source are no older than the job, as far as
// counters tell: offsets then count records since its start.
func (s *source) readsAll() bool {
	sent, _ := s.v.sum(s.op.ID, recordsOut)
	if !sent.OK {
		return true
	}
	read := int64(0)
	for _, sp := range s.splits {
		read += max(0, sp.EndOffset.Or(0)-sp.lag().Or(0))
	}
	return read <= sent.Value+sent.Value/10+10
}

// lastEvent returns the event time of the last record that was appended, as the job
// assigns it.
func (sp split) lastEvent() Known[int64] {
	g := &sp.src.gen
	if g.fromRecord() {
		return timeOf(sp.LastRecordMillis)
	}
	return timeOf(sp.LastPayloadMillis)
}

// topEvent returns the largest event time that was read, as far as it is known: from the
// split, from its watermark, or from the last record if all was read.
func (sp split) topEvent() Known[int64] {
	g := &sp.src.gen
	if g.place != genBehind {
		if t := timeOf(sp.MaxEventMillis); t.OK {
			return t
		}
		if w := sp.Watermark; w.OK && w.Value != MinTime && g.bound().OK && g.strategy.Kind != StrategyWallClock {
			return Know(plus(w.Value, g.bound().Value+1))
		}
	}
	if lag := sp.lag(); !lag.OK || lag.Value > 0 {
		return Known[int64]{} // what was appended last is not what was read last
	}
	return sp.lastEvent()
}

// timeOf returns t, unknown if it is MinTime, which stands for nothing.
func timeOf(t Known[int64]) Known[int64] { return KnowIf(t.Value, t.OK && t.Value != MinTime) }

// fewRecords is how many do not tell yet how often they come: the first ones may be a batch.
const fewRecords = 5

// patience returns how long a split may be silent before that is worth telling: longer
// than its idle timeout needs, and than it usually takes. Where records come in batches the
// mean says little, and the longest pause what to expect.
func (sp split) patience() int64 {
	v := sp.src.v
	p := int64(patienceMillis)
	if idle := sp.src.gen.idleness(); idle.OK && idle.Value > 0 {
		p = max(p, min(idle.Value+5*v.intervalMillis()+1000, longestPatienceMillis))
	}
	pause := sp.LongestPauseMillis
	if pause.OK {
		p = max(p, min(pause.Value*3/2, longestPatienceMillis))
	}
	if gap := sp.typicalGapMillis(); pause.OK && sp.Records.Or(fewRecords) < fewRecords {
		p = longestPatienceMillis
	} else if gap.OK {
		p = max(p, min(3*gap.Value, longestPatienceMillis))
	} else if at := greater(timeOf(sp.LastAppendMillis), timeOf(sp.LastReadMillis)); at.OK {
		p = max(p, 2*patienceMillis) // it had records, nobody knows how often
		if v.past == nil {
			p = longestPatienceMillis
		}
	}
	return p
}
