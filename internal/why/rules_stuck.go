package why

import (
	"cmp"
	"fmt"
	"slices"
)

// This file tells a source that waits for its job from one that waits for records.

// loadsOf returns the tasks of the present with their load since the past. Rates of a short
// time say little: an operator may work for long on one batch, and a source blocks by turns.
func (v *view) loadsOf() map[string][]Task {
	tasks := tasksOf(v.now)
	if v.past == nil {
		return tasks
	}
	type place struct {
		vertex  string
		subtask int
	}
	type total struct{ spent, of int64 }
	var busy, blocked, idle = map[place]total{}, map[place]total{}, map[place]total{}
	add := func(to map[place]total, at place, rate Known[int64], millis int64) {
		if t := to[at]; rate.OK {
			to[at] = total{t.spent + rate.Value*millis, t.of + millis}
		}
	}
	before := v.past.AtMillis
	for i := range v.e.History {
		s := &v.e.History[i]
		if s.AtMillis <= before {
			continue
		}
		for _, t := range s.Tasks {
			at := place{t.Vertex, t.Subtask}
			add(busy, at, t.BusyMillis, s.AtMillis-before)
			add(blocked, at, t.BackPressuredMillis, s.AtMillis-before)
			add(idle, at, t.IdleMillis, s.AtMillis-before)
		}
		before = s.AtMillis
	}
	mean := func(of map[place]total, at place) Known[int64] {
		t := of[at]
		return KnowIf(t.spent/max(t.of, 1), t.of > 0)
	}
	for _, all := range tasks {
		for i := range all {
			at := place{all[i].Vertex, all[i].Subtask}
			all[i].BusyMillis, all[i].BackPressuredMillis, all[i].IdleMillis = mean(busy, at), mean(blocked, at), mean(idle, at)
		}
	}
	return tasks
}

// occupied reports whether the subtask that reads a split has hardly any time to read: it
// is busy or blocked. What it says of ends and records is old then.
func (sp split) occupied() bool {
	o, v := sp.src.op, sp.src.v
	return v.loadAt(o, sp.Subtask, busyOf).Or(0)+v.loadAt(o, sp.Subtask, backPressuredOf).Or(0) >= saturated
}

// stuck reports whether the subtask that reads a split has time for nothing and passes on
// nothing: it does not get on, and says nothing about its input.
func (sp split) stuck() bool {
	v := sp.src.v
	if v.past == nil || v.spanMillis < patienceMillis || !sp.occupied() {
		return false
	}
	if n := sp.read(); n.OK {
		return n.Value == 0 && sp.src.subtaskRead(sp).Or(0) == 0
	}
	n := sp.src.subtaskRead(sp)
	return n.OK && n.Value == 0
}

// stuckReaders finds sources whose subtasks do not get on because of what is behind them,
// or chained to them.
func stuckReaders(v *view) []Finding {
	var found []Finding
	for _, s := range v.sources {
		if v.starting() || !v.feeds(s) || s.heldBySlower() {
			continue
		}
		var stuck []split
		for _, sp := range s.splits {
			if !sp.Unassigned && !sp.isPaused() && sp.stuck() {
				stuck = append(stuck, sp)
			}
		}
		if len(stuck) > 0 {
			found = append(found, stuckFinding(s, stuck))
		}
	}
	return found
}

func stuckFinding(s *source, stuck []split) Finding {
	v, t := s.v, s.v.targetOf(s)
	f := Finding{Code: Backpressure, Severity: Stall, Culprit: Culprit{Source: s.op.ID, Topic: s.topic(s.splits)}}
	busy, blocked := v.loadAt(s.op, stuck[0].Subtask, busyOf), v.loadAt(s.op, stuck[0].Subtask, backPressuredOf)
	who := "an operator behind source " + quoted(v.nameOf(s.op.ID))
	o := v.bottleneck(s)
	if busy.Or(0) > blocked.Or(0) {
		o = s.chained()
		who = "source " + quoted(v.nameOf(s.op.ID)) + " itself"
	}
	if o != nil {
		f.Culprit.Operator, who = o.ID, "operator "+v.withChain(o, s.op)
	}
	f.Answer = fmt.Sprintf("%s is silent because %s is stuck, or that slow: source %s has passed on no record in the last %s.",
		t.title(), who, quoted(v.nameOf(s.op.ID)), duration(v.spanMillis))
	if t.moves() {
		f.Answer = fmt.Sprintf("Records of %s are missing in the results of %s because %s is stuck, or that slow: none was passed on in the last %s.",
			s.these(stuck), quoted(v.nameOf(t.op.ID)), who, duration(v.spanMillis))
	}
	f.Why = append(f.Why, fmt.Sprintf("The subtask that reads %s is busy %s of the time, and %s of it blocked by what is behind it.",
		stuck[0].called(), percent(busy), percent(blocked)))
	f.Numbers = append(f.Numbers, Number{"stalled_ms", v.spanMillis}, Number{"busy_ms_per_s", busy.Or(0)}, Number{"backpressured_ms_per_s", blocked.Or(0)})
	if worst := slices.MaxFunc(stuck, func(a, b split) int { return cmp.Compare(a.lag().Or(-1), b.lag().Or(-1)) }); worst.lag().OK {
		n := worst.lag().Value
		f.Numbers = append(f.Numbers, Number{"lag", n})
		f.Why = append(f.Why, fmt.Sprintf("%s of %s %s still to be read.", upper(count(n, "record")), worst.called(), verb(int(min(n, 2)), "is", "are")))
	}
	f.RuledOut = append(f.RuledOut,
		RuledOut{AllInputsQuiet, "a subtask that waits for records is idle, and this one is not"},
		RuledOut{StalledReader, "the reader is not waiting for Kafka"})
	return f.fix(t, RemoveBottleneck)
}

// chained returns the first operator that runs in the task of a source, nil if there is none.
func (s *source) chained() *Operator {
	for i := range s.v.e.Operators {
		if o := &s.v.e.Operators[i]; o.Kind != KindSource && vertexOf(o) == vertexOf(s.op) {
			return o
		}
	}
	return nil
}

// withChain names an operator and those that run in its task, which no load tells apart.
func (v *view) withChain(o, except *Operator) string {
	var others []string
	for i := range v.e.Operators {
		if c := &v.e.Operators[i]; c.ID != o.ID && c.ID != except.ID && vertexOf(c) == vertexOf(o) {
			others = append(others, quoted(v.nameOf(c.ID)))
		}
	}
	if len(others) == 0 {
		return quoted(v.nameOf(o.ID))
	}
	return fmt.Sprintf("%s (or %s, chained to it)", quoted(v.nameOf(o.ID)), list(others))
}

// unheard returns the partitions that nothing was read of, and of whose ends the reader hears
// nothing any more: it asks all the time, so the brokers do not answer.
func (s *source) unheard() []split {
	var lost []split
	for _, sp := range s.splits {
		if n := sp.read(); sp.EndLost && !sp.lag().OK && n.OK && n.Value == 0 {
			lost = append(lost, sp)
		}
	}
	if len(lost) > 0 && s.v.targetOf(s).moves() {
		return nil
	}
	return lost
}

// unheardFinding tells of brokers that do not answer.
func unheardFinding(s *source, lost []split) Finding {
	t := s.v.targetOf(s)
	f := Finding{
		Code: StalledReader, Severity: Stall, Culprit: s.culprit(lost),
		Answer: fmt.Sprintf("%s is silent because Kafka does not answer the reader of %s: where they end is not known any more.", t.title(), s.these(lost)),
		Why:    []string{"The reader asks for the ends of partitions that are quiet, and did not get the last answer. Its log says why."},
		Unless: []Unless{{AllInputsQuiet, "an answer from Kafka"}},
	}
	return f.fix(t, CheckBrokerAccess)
}
