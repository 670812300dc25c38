package graph

import (
	"fmt"
	"slices"
)

// Warning is something about a plan that is legal and faithful to Flink, but
// will surprise its author. It is shown before the job starts.
type Warning struct {
	// Code is stable, for tests and tools.
	Code     string
	Operator string
	Message  string
	// Fixes are alternatives, best first.
	Fixes []string
}

func (w Warning) String() string {
	s := fmt.Sprintf("%s: %s: %s", w.Code, w.Operator, w.Message)
	for i, f := range w.Fixes {
		if i == 0 {
			s += " Fix: " + f
		} else {
			s += ", or " + f
		}
	}
	if len(w.Fixes) > 0 {
		s += "."
	}
	return s
}

// checks is the registry of plan checks. Each looks at one node of a resolved
// graph.
var checks = []func(*Node) *Warning{
	overParallelSource,
	eventTimeWithoutStrategy,
	resultUnused,
}

// Check runs all plan checks. Call it after Plan, which resolves parallelism.
func (g *Graph) Check() []Warning {
	var out []Warning
	for _, n := range g.Nodes {
		for _, check := range checks {
			if w := check(n); w != nil {
				w.Operator = n.Name
				out = append(out, *w)
			}
		}
	}
	return out
}

// overParallelSource: spec watermarks 5.13, first case. A subtask without splits
// needs idleness in every strategy that it runs: its own, and those behind it that
// get no records from other subtasks and cut off its idleness (7.2).
func overParallelSource(n *Node) *Warning {
	s := n.Source
	if s == nil || s.Bounded || s.Splits < 0 || n.Parallelism <= s.Splits {
		return nil
	}
	holding := holdsWithoutRecords(n)
	if holding == nil {
		return nil
	}
	strategy := "its watermark strategy"
	if holding != n {
		strategy = fmt.Sprintf("the watermark strategy of %q", holding.Name)
	}
	fixes := []string{"add WithIdleness to " + strategy}
	if s.Splits > 0 {
		fixes = slices.Insert(fixes, 0, fmt.Sprintf("lower the source's parallelism to %d (Parallelism(%[1]d))", s.Splits))
	}
	return &Warning{
		Code: "over-parallel-source",
		Message: fmt.Sprintf("parallelism %d but only %s: the %s without a split will never send a watermark, "+
			"so no event-time window behind this source will fire.", n.Parallelism, count(s.Splits, "split"), count(n.Parallelism-s.Splits, "subtask")),
		Fixes: fixes,
	}
}

// holdsWithoutRecords returns the first node, from n on and within one subtask,
// whose watermark stays at its beginning if the subtask gets no records.
func holdsWithoutRecords(n *Node) *Node {
	if w := n.Watermarks; w != nil && !w.None && !w.Idleness {
		return n
	}
	for _, e := range n.Outputs {
		if e.Partitioning == Forward && len(e.To.Inputs) == 1 {
			if holding := holdsWithoutRecords(e.To); holding != nil {
				return holding
			}
		}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// eventTimeWithoutStrategy looks upstream of an event-time operator for a path
// on which nothing makes watermarks. At the end of a bounded source MAX comes
// all the same, so only unbounded sources count.
func eventTimeWithoutStrategy(n *Node) *Warning {
	if !n.EventTime {
		return nil
	}
	silent := withoutWatermarks(n)
	if silent == nil {
		return nil
	}
	kind := "operator"
	if silent.Source != nil {
		kind = "source"
	}
	return &Warning{
		Code:    "no-watermark-strategy",
		Message: fmt.Sprintf("its event-time windows wait for watermarks, but %s %q makes none.", kind, silent.Name),
		Fixes: []string{
			fmt.Sprintf("give the %s a strategy such as eventtime.ForBoundedOutOfOrderness", kind),
			"use processing-time windows",
		},
	}
}

// withoutWatermarks returns a node at or above n that makes no watermarks and
// behind which none are made. An operator with a strategy cuts off what comes from
// above, also if its own strategy makes nothing (spec watermarks 7.1).
func withoutWatermarks(n *Node) *Node {
	switch w := n.Watermarks; {
	case w != nil && !w.None, n.Source != nil && n.Source.Bounded:
		return nil
	case n.Source != nil, w != nil && !bounded(n):
		return n
	}
	for _, e := range n.Inputs {
		if silent := withoutWatermarks(e.From); silent != nil {
			return silent
		}
	}
	return nil
}

// bounded reports whether all sources above n are.
func bounded(n *Node) bool {
	if n.Source != nil {
		return n.Source.Bounded
	}
	return !slices.ContainsFunc(n.Inputs, func(e *Edge) bool { return !bounded(e.From) })
}

func resultUnused(n *Node) *Warning {
	if !n.WantsConsumer || len(n.Outputs) > 0 {
		return nil
	}
	return &Warning{
		Code:    "result-unused",
		Message: "nothing consumes its result.",
		Fixes:   []string{"end the stream with a sink such as Print, Collect or SinkTo"},
	}
}
