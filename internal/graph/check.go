package graph

import "fmt"

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

// overParallelSource: spec watermarks 5.13, first case.
func overParallelSource(n *Node) *Warning {
	s := n.Source
	if s == nil || s.Bounded || s.Splits < 0 || n.Parallelism <= s.Splits {
		return nil
	}
	if n.Watermarks == nil || n.Watermarks.None || n.Watermarks.Idleness {
		return nil
	}
	return &Warning{
		Code: "over-parallel-source",
		Message: fmt.Sprintf("parallelism %d but only %d splits: the %d subtasks without a split never send a watermark, "+
			"so no event-time window behind this source will fire.", n.Parallelism, s.Splits, n.Parallelism-s.Splits),
		Fixes: []string{
			fmt.Sprintf("lower the source's parallelism to %d (Parallelism(%d))", s.Splits, s.Splits),
			"add WithIdleness to its watermark strategy",
		},
	}
}

// eventTimeWithoutStrategy looks upstream of an event-time operator for a path
// on which nothing makes watermarks. At the end of a bounded source MAX comes
// all the same, so only unbounded sources count.
func eventTimeWithoutStrategy(n *Node) *Warning {
	if !n.EventTime {
		return nil
	}
	silent := sourceWithoutWatermarks(n)
	if silent == nil {
		return nil
	}
	return &Warning{
		Code:    "no-watermark-strategy",
		Message: fmt.Sprintf("its event-time windows wait for watermarks, but source %q makes none.", silent.Name),
		Fixes: []string{
			"give the source a strategy such as eventtime.ForBoundedOutOfOrderness",
			"use processing-time windows",
		},
	}
}

func sourceWithoutWatermarks(n *Node) *Node {
	if w := n.Watermarks; w != nil && !w.None {
		return nil
	}
	if n.Source != nil {
		if n.Source.Bounded {
			return nil
		}
		return n
	}
	for _, e := range n.Inputs {
		if s := sourceWithoutWatermarks(e.From); s != nil {
			return s
		}
	}
	return nil
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
