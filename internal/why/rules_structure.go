package why

import (
	"fmt"
	"slices"
)

// This file has the causes that lie in how the job is built: they never heal by
// themselves, and records are not to blame.

// withoutStrategy finds sources without a watermark generator.
func withoutStrategy(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var found []Finding
	for _, t := range v.targets() {
		if t.in.OK && t.in.Value != MinTime {
			continue // nothing holds it at the beginning of time
		}
		for _, f := range t.feeds {
			if f.src.gen.place != genNone {
				continue
			}
			if f.join != nil && t.otherInputHasWatermarks(f) {
				found = append(found, sideInput(t, f))
			} else {
				found = append(found, noStrategy(t, f))
			}
		}
	}
	return found
}

// otherInputHasWatermarks reports whether another input than that of f, of the same
// operator, has a generator on each of its sources.
func (t *target) otherInputHasWatermarks(f feed) bool {
	has := false
	for _, g := range t.feeds {
		if g.join != f.join || g.input == f.input {
			continue
		}
		if g.src.gen.place == genNone {
			return false
		}
		has = true
	}
	return has
}

func sideInput(t *target, f feed) Finding {
	v, name := t.v, t.v.nameOf(f.join.ID)
	out := Finding{
		Code: SideInputWithout, Severity: Stall,
		Culprit: Culprit{Source: f.src.op.ID, Topic: f.src.topic(nil), Operator: f.join.ID, Input: Know(f.input)},
		Answer: fmt.Sprintf("%s is silent because its watermark is that of the slower input of %s, and input %d, source %s, has no watermark strategy: it never sends one.",
			t.title(), quoted(name), f.input, quoted(v.nameOf(f.src.op.ID))),
	}
	for _, g := range t.feeds {
		if g.join == f.join && g.input != f.input {
			if w := g.src.watermark(); w.OK && w.Value != MinTime {
				out.Why = append(out.Why, fmt.Sprintf("Input %d of %s, source %s, has the watermark %s.", g.input, quoted(name), quoted(v.nameOf(g.src.op.ID)), instant(w.Value)))
				out.RuledOut = append(out.RuledOut, RuledOut{NoWatermarkStrategy, fmt.Sprintf("source %s has watermarks", quoted(v.nameOf(g.src.op.ID)))})
			}
		}
	}
	n, _ := v.sum(f.src.op.ID, recordsOut)
	if n.OK {
		out.Numbers = append(out.Numbers, Number{"side_records", n.Value})
		out.Why = append(out.Why, fmt.Sprintf("Source %s has sent %s and no watermark.", quoted(v.nameOf(f.src.op.ID)), count(n.Value, "record")))
	}
	out.RuledOut = append(out.RuledOut, RuledOut{QuietInput, "records of that input would not help either: without a strategy none of them makes a watermark"})
	return out.fix(t, StrategyOnSideInput)
}

func recordsOut(s *Subtask) Known[int64] { return s.RecordsOut }

func noStrategy(t *target, f feed) Finding {
	v, src := t.v, f.src
	out := Finding{
		Code: NoWatermarkStrategy, Severity: Stall,
		Culprit: Culprit{Source: src.op.ID, Topic: src.topic(nil)},
		Answer: fmt.Sprintf("%s is silent because source %s has no watermark strategy: records are flowing, but every subtask of it is without a watermark, so event time never begins.",
			t.title(), quoted(v.nameOf(src.op.ID))),
	}
	n, past := v.sum(src.op.ID, recordsOut)
	if n.OK {
		out.Numbers = append(out.Numbers, Number{"records_out", n.Value})
		s := fmt.Sprintf("Source %s has sent %s", quoted(v.nameOf(src.op.ID)), count(n.Value, "record"))
		if g := growth(n, past); g.OK {
			s += fmt.Sprintf(", %d of them in the last %s", g.Value, duration(v.spanMillis))
		}
		out.Why = append(out.Why, s+".")
	}
	if src.gen.inferred {
		out.Why = append(out.Why, "All its splits have records, and none has a watermark: that is how a source without a strategy looks.")
	}
	if len(src.empty) > 0 {
		out.Then = append(out.Then, OverParallelSource)
	}
	out.RuledOut = append(out.RuledOut,
		RuledOut{QuietPartition, "partitions with records have no watermark either"},
		RuledOut{AllInputsQuiet, "records arrive"})
	return out.fix(t, AddStrategy)
}

// overParallel finds source subtasks without a split that pin the minimum.
func overParallel(v *view) []Finding {
	if v.starting() {
		return nil
	}
	var found []Finding
	for _, t := range v.targets() {
		if t.in.OK && t.in.Value != MinTime {
			continue // they would hold it there
		}
		for _, f := range t.feeds {
			if out, ok := tooParallel(t, f); ok {
				found = append(found, out)
			}
		}
	}
	return found
}

func tooParallel(t *target, f feed) (Finding, bool) {
	v, src := t.v, f.src
	idle := src.gen.idleness()
	if idle.OK && idle.Value > 0 || src.gen.place == genNone {
		return Finding{}, false
	}
	if src.gen.place == genBehind && !forwardOnly(f, src.gen.op) {
		return Finding{}, false // the generators get records of other subtasks
	}
	partitions := len(src.splits)
	// Where nobody tells of subtasks, the plan does.
	planned := len(src.subs) == 0 && partitions > 0 && src.op.Parallelism > partitions && idle.OK
	pinning := slices.DeleteFunc(slices.Clone(src.empty), func(i int) bool {
		w := v.out(src.gen.opOr(src.op), i)
		return w.OK && w.Value != MinTime || v.isIdleSubtask(src.op.ID, i)
	})
	if len(pinning) == 0 && !planned {
		return Finding{}, false
	}
	spare := max(len(pinning), src.op.Parallelism-partitions)
	out := Finding{
		Code: OverParallelSource, Severity: Stall,
		Culprit: Culprit{Source: src.op.ID, Topic: src.topic(src.splits), Subtasks: pinning},
		Answer: fmt.Sprintf("%s is silent because source %s has parallelism %d for %s of topic %s: the %s without a partition never %s a watermark and %s event time at its beginning.",
			t.title(), quoted(v.nameOf(src.op.ID)), src.op.Parallelism, count(int64(partitions), "partition"), src.topic(src.splits),
			count(int64(spare), "subtask"), verb(spare, "has", "have"), verb(spare, "holds", "hold")),
		Numbers: []Number{{"parallelism", int64(src.op.Parallelism)}, {"partitions", int64(partitions)}, {"empty_subtasks", int64(spare)}},
	}
	if n := len(pinning); n > 0 {
		out.Why = append(out.Why, fmt.Sprintf("%s: no partition, no record sent, no watermark.", upper(numbered("subtask", pinning))))
	}
	if w := src.slowestWithRecords(); w.OK && w.Value != MinTime {
		out.Why = append(out.Why, fmt.Sprintf("The subtasks with partitions have reached %s.", instant(w.Value)))
		out.RuledOut = append(out.RuledOut,
			RuledOut{QuietPartition, "every subtask with a partition has a watermark"},
			RuledOut{NoWatermarkStrategy, "subtasks with records have watermarks"})
	}
	if !idle.OK {
		out.Why = append(out.Why, "No idle timeout can be seen; one would have excluded them.")
	}
	return out.fix(t, LowerSourceParallelism, SetIdleness), true
}

// opOr returns the operator of the generator.
func (g *generator) opOr(o *Operator) *Operator {
	if g.place == genBehind {
		return g.op
	}
	return o
}

// forwardOnly reports whether each generator behind the source gets the records of one of
// its subtasks: no edge between distributes them.
func forwardOnly(f feed, gen *Operator) bool {
	chain := []*Operator{f.src.op}
	for _, o := range slices.Backward(f.via) {
		chain = append(chain, o)
		if o == gen {
			break
		}
	}
	for i, o := range chain[1:] {
		for _, in := range o.Inputs {
			for _, e := range in.Edges {
				if e.From == chain[i].ID && (e.Ship != ShipForward || o.Parallelism != chain[i].Parallelism) {
					return false
				}
			}
		}
	}
	return true
}

func (v *view) isIdleSubtask(id string, index int) bool {
	for _, s := range v.subs[id] {
		if s.Index == index {
			return s.Idle.Or(false)
		}
	}
	return false
}

// watermark returns the smallest watermark of a source's generators that is not idle.
func (s *source) watermark() Known[int64] {
	w := Known[int64]{}
	for _, sub := range s.v.subs[s.gen.opOr(s.op).ID] {
		if !sub.Idle.Or(false) {
			w = lesser(w, sub.OutputWatermark)
		}
	}
	return w
}

// slowestWithRecords is watermark over the subtasks with a split.
func (s *source) slowestWithRecords() Known[int64] {
	w := Known[int64]{}
	for _, sub := range s.subs {
		if !slices.Contains(s.empty, sub.Index) {
			w = lesser(w, sub.OutputWatermark)
		}
	}
	return w
}

// droppedInOperator finds operators whose input moves and whose output does not.
func droppedInOperator(v *view) []Finding {
	var found []Finding
	for i := range v.e.Operators {
		o := &v.e.Operators[i]
		if o.Kind == KindSource || o.Kind == KindAssign || v.starting() {
			continue
		}
		in, pastIn := v.in(o.ID)
		if !in.OK {
			if l, allIdle, ok := v.smallestBefore(o, WholeOperator); ok && !allIdle {
				in = l.WatermarkMillis
			}
		}
		out, pastOut := v.outputs(o)
		if !in.OK || !out.OK || in.Value == MinTime || out.Value >= in.Value {
			continue
		}
		moved := growth(in, pastIn)
		if out.Value != MinTime && (!pastOut.OK || out.Value != pastOut.Value || !moved.OK || moved.Value < patienceMillis) {
			continue
		}
		if out.Value == MinTime && pastOut.OK && pastOut.Value != MinTime {
			continue
		}
		f := Finding{
			Code: WatermarkDropped, Severity: Stall,
			Culprit: Culprit{Operator: o.ID},
			Answer: fmt.Sprintf("Operator %s does not pass watermarks on: its input has reached %s, its output %s. What is behind it waits for event time that never comes.",
				quoted(v.nameOf(o.ID)), instant(in.Value), atInstant(out.Value)),
			Numbers:  []Number{{"input_watermark", in.Value}, {"output_watermark", out.Value}},
			RuledOut: []RuledOut{{QuietPartition, "the inputs of the operator have a watermark that is larger"}},
		}
		if moved.OK {
			f.Why = append(f.Why, fmt.Sprintf("In the last %s its input watermark went on by %s, its output stayed.", duration(v.spanMillis), duration(moved.Value)))
		}
		found = append(found, f.fix(nil, FixOperator, UpgradeEngine))
	}
	return found
}

// outputs returns the output watermark of an operator as it tells it, or as what is behind
// it, and behind nothing else, tells it.
func (v *view) outputs(o *Operator) (now, past Known[int64]) {
	for _, s := range v.subs[o.ID] {
		now = lesser(now, s.OutputWatermark)
		if s.past != nil {
			past = lesser(past, s.past.OutputWatermark)
		}
	}
	if now.OK {
		return now, past
	}
	for _, id := range v.consumers[o.ID] {
		if c := v.ops[id]; c != nil && len(c.Inputs) == 1 && len(c.Inputs[0].Edges) == 1 {
			return v.in(id)
		}
	}
	return now, past
}

func atInstant(millis int64) string {
	if millis == MinTime {
		return "has none"
	}
	return "stays at " + instant(millis)
}

// maxLeak finds watermarks at the end of time in a job that goes on.
func maxLeak(v *view) []Finding {
	var found []Finding
	for _, s := range v.sources {
		if s.op.Source != nil && s.op.Source.Bounded.Or(false) && !v.recordsGoOn(s) {
			continue
		}
		var ended []int
		for _, sub := range s.subs {
			if sub.OutputWatermark.OK && sub.OutputWatermark.Value == MaxTime {
				ended = append(ended, max(sub.Index, 0))
			}
		}
		if len(ended) == 0 {
			continue
		}
		for _, t := range v.targets() {
			if !slices.ContainsFunc(t.feeds, func(f feed) bool { return f.src == s }) || !t.in.OK || t.in.Value != MaxTime || !v.recordsFlow(t) || !t.goesOn() {
				continue
			}
			f := Finding{
				Code: MaxWatermarkLeak, Severity: t.late.severity(),
				Culprit: Culprit{Source: s.op.ID, Topic: s.topic(nil), Subtasks: ended, Operator: t.op.ID},
				Answer: fmt.Sprintf("%s takes every record for late because its watermark is the end of time: %s of source %s sent it when there was nothing more to read there, while records still come.",
					t.title(), numbered("subtask", ended), quoted(v.nameOf(s.op.ID))),
				RuledOut: []RuledOut{{FutureTimestamp, "the end of time is what a reader sends that has ended, not the time of a record"}},
			}
			f.addLate(t)
			fixes := []FixCode{UpgradeEngine, LowerSourceParallelism}
			if len(s.empty) > 0 {
				fixes = []FixCode{LowerSourceParallelism, UpgradeEngine}
			}
			found = append(found, f.fix(t, fixes...))
		}
	}
	return found
}

// goesOn reports whether some subtask that feeds a target has not ended.
func (t *target) goesOn() bool {
	for _, f := range t.feeds {
		for _, sub := range f.src.subs {
			if w := sub.OutputWatermark; w.OK && w.Value != MaxTime {
				return true
			}
		}
	}
	return false
}

func (v *view) recordsGoOn(s *source) bool {
	n, past := v.sum(s.op.ID, recordsOut)
	g := growth(n, past)
	return g.OK && g.Value > 0
}

// recordsFlow reports whether a target got records lately, or lost some.
func (v *view) recordsFlow(t *target) bool {
	return t.late.inGrown.Or(0) > 0 || t.late.grown.Or(0) > 0 || t.late.lost()
}
