package why

import (
	"fmt"
	"slices"
)

// This file has the cause where an operator is slow for few of its keys only.

// hotSubtasks are the subtasks of a task that get most of its records.
type hotSubtasks struct {
	subtasks []int
	// records and all are what they and what all subtasks got between the snapshots.
	records, all int64
	// busy is the least of them, othersBusy the most of the others, in ms/s.
	busy, othersBusy int64
}

// hotSubtasks returns the subtasks of an operator's task that have no time left, if that
// is because of the keys they have: each gets more than twice the records of any other
// subtask, and the others have time. ok is false if it is not so, or not known.
func (v *view) hotSubtasks(o *Operator) (h hotSubtasks, ok bool) {
	head, tasks := v.keyedHead(o), v.tasks[vertexOf(o)]
	if head == nil {
		return h, false
	}
	h.busy = 1000
	for _, t := range tasks {
		switch {
		case !t.BusyMillis.OK:
			return h, false
		case t.BusyMillis.Value >= saturated:
			h.subtasks = append(h.subtasks, t.Subtask)
			h.busy = min(h.busy, t.BusyMillis.Value)
		default:
			h.othersBusy = max(h.othersBusy, t.BusyMillis.Value)
		}
	}
	if len(h.subtasks) == 0 || len(h.subtasks)*2 > len(tasks) || h.othersBusy > saturated/2 {
		return h, false
	}
	least, most := MaxTime, int64(0) // of the hot ones, of the others
	for _, sub := range v.subs[head.ID] {
		if sub.past == nil {
			return h, false
		}
		n := growth(sub.RecordsIn, sub.past.RecordsIn)
		if !n.OK || sub.Index == WholeOperator {
			return h, false
		}
		h.all += n.Value
		if slices.Contains(h.subtasks, sub.Index) {
			h.records += n.Value
			least = min(least, n.Value)
		} else {
			most = max(most, n.Value)
		}
	}
	return h, h.records > 0 && least > 2*most
}

// keyedHead returns the operator that takes the records of an operator's task, if they come
// by key.
func (v *view) keyedHead(o *Operator) *Operator {
	for i := range v.e.Operators {
		head := &v.e.Operators[i]
		if vertexOf(head) != vertexOf(o) {
			continue
		}
		for _, in := range head.Inputs {
			for _, edge := range in.Edges {
				from := v.ops[edge.From]
				if from != nil && vertexOf(from) != vertexOf(o) && edge.Ship == ShipHash {
					return head
				}
			}
		}
	}
	return nil
}

// dataSkewFinding tells of an operator that blocks a source because some of its keys have
// most of the records.
func dataSkewFinding(t *target, s *source, slow *Operator, h hotSubtasks, lag string, age int64) Finding {
	v := s.v
	who := fmt.Sprintf("%s of operator %s", numbered("subtask", h.subtasks), quoted(v.nameOf(slow.ID)))
	share := h.records * 100 / h.all
	f := Finding{
		Code: DataSkew, Severity: Slow,
		Culprit: Culprit{Source: s.op.ID, Topic: s.topic(s.splits), Operator: slow.ID, Subtasks: h.subtasks},
		Answer: fmt.Sprintf("Results of %s come late because %s %s %d %% of its records, more than can be handled, and %s source %s: event time falls behind by %s.",
			quoted(v.nameOf(t.op.ID)), who, verb(len(h.subtasks), "gets", "get"), share, verb(len(h.subtasks), "blocks", "block"), quoted(v.nameOf(s.op.ID)), duration(age)),
		Numbers: []Number{{"behind_ms", age}, {"records", h.records}, {"records_of_all", h.all}, {"busy_ms_per_s", h.busy}, {"others_busy_ms_per_s", h.othersBusy}},
		Why: []string{
			upper(lag) + ".",
			fmt.Sprintf("Records come to the operator by key: in the last %s, %d of %d had a key of %s.", duration(v.spanMillis), h.records, h.all, numbered("subtask", h.subtasks)),
			fmt.Sprintf("It is busy %s of the time, no other subtask more than %s.", percent(Know(h.busy)), percent(Know(h.othersBusy))),
		},
		RuledOut: []RuledOut{
			{Backpressure, "the other subtasks have time left, so more of them would not help"},
			{PartitionLag, "the readers are not at their limit, they are blocked"},
			{QuietPartition, "records come and are read"},
		},
	}
	if len(h.subtasks) > 1 {
		f.Why[2] = fmt.Sprintf("They are busy %s of the time or more, no other subtask more than %s.", percent(Know(h.busy)), percent(Know(h.othersBusy)))
	}
	return f.fix(t, SplitHotKeys, RemoveBottleneck)
}
