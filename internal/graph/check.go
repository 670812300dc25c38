package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Warning is something about a plan that is legal and faithful to Flink, but
// will surprise its author. It is shown before the job starts.
type Warning struct {
	// Code is stable, for tests and tools.
	Code     string
	Operator string
	// Where is the file and line of the API call that made the operator.
	Where   string
	Message string
	// Fixes are alternatives, best first.
	Fixes []string
}

func (w Warning) String() string {
	s := fmt.Sprintf("%s: %s: %s", w.Code, w.Operator, w.Message)
	if len(w.Fixes) > 0 {
		s += " Fix: " + w.Fix() + "."
	}
	return s
}

// Fix is the fixes in one sentence.
func (w Warning) Fix() string { return strings.Join(w.Fixes, ", or ") }

// checks is the registry of plan checks. Each looks at one node of a resolved
// graph.
var checks = []func(*Node) *Warning{
	overParallelSource,
	eventTimeWithoutStrategy,
	windowNeverFires,
	lateOutputUnused,
	deadLettersUnused,
	idlenessWithoutProbes,
	resultUnused,
}

// Check runs all plan checks. Call it after Plan, which resolves parallelism.
func (g *Graph) Check() []Warning {
	var out []Warning
	if w := outsideStateMemory(g); w != nil {
		out = append(out, *w)
	}
	for _, n := range g.Nodes {
		for _, check := range checks {
			if w := check(n); w != nil {
				w.Operator, w.Where = n.Name, n.Where
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
	if s == nil || s.Bounded || s.Splits < 0 {
		return nil
	}
	empty := s.empty(n.Parallelism)
	if empty == 0 {
		return nil
	}
	holding := holdsWithoutRecords(n)
	if holding == nil {
		return nil
	}
	consequence := "the watermark behind this source stands still"
	if reachesEventTime(n, map[*Node]bool{}) {
		consequence = "no event-time window behind this source will fire"
	}
	but := "but only " + count(s.Splits, "split")
	if s.Splits >= n.Parallelism {
		but = fmt.Sprintf("and %s, which are not dealt out evenly", count(s.Splits, "split"))
	}
	strategy := "its watermark strategy"
	if holding != n {
		strategy = fmt.Sprintf("the watermark strategy of %q", holding.Name)
	}
	fixes := []string{"add WithIdleness to " + strategy}
	fits := min(s.Splits, n.Parallelism)
	for fits > 0 && s.empty(fits) > 0 {
		fits--
	}
	if fits > 0 {
		fixes = slices.Insert(fixes, 0, fmt.Sprintf("lower the source's parallelism to %d (Parallelism(%[1]d))", fits))
	}
	return &Warning{
		Code: "over-parallel-source",
		Message: fmt.Sprintf("parallelism %d %s: the %s without a split will never send a watermark, "+
			"so %s.", n.Parallelism, but, count(empty, "subtask"), consequence),
		Fixes: fixes,
	}
}

// reachesEventTime reports whether an operator that waits for watermarks is behind n.
func reachesEventTime(n *Node, seen map[*Node]bool) bool {
	if seen[n] {
		return false
	}
	seen[n] = true
	return n.EventTime || slices.ContainsFunc(n.Outputs, func(e *Edge) bool { return reachesEventTime(e.To, seen) })
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
	silent := withoutWatermarks(n, map[*Node]bool{})
	if silent == nil {
		return nil
	}
	kind := "operator"
	if silent.Source != nil {
		kind = "source"
	}
	w := &Warning{
		Code:    "no-watermark-strategy",
		Message: fmt.Sprintf("its event-time windows wait for watermarks, but %s %q makes none.", kind, silent.Name),
		Fixes: []string{
			fmt.Sprintf("give the %s a strategy such as eventtime.ForBoundedOutOfOrderness", kind),
			"use processing-time windows",
		},
	}
	if n.Interval {
		w.Message = fmt.Sprintf("it forgets records by watermarks, but %s %q makes none: its state grows for ever.", kind, silent.Name)
		w.Fixes = w.Fixes[:1]
	}
	return w
}

// withoutWatermarks returns a node at or above n that makes no watermarks and
// behind which none are made. An operator with a strategy cuts off what comes from
// above, also if its own strategy makes nothing (spec watermarks 7.1).
func withoutWatermarks(n *Node, seen map[*Node]bool) *Node {
	if seen[n] {
		return nil
	}
	seen[n] = true
	switch w := n.Watermarks; {
	case w != nil && !w.None, n.Source != nil && n.Source.Bounded:
		return nil
	case n.Source != nil, w != nil && !bounded(n, map[*Node]bool{}):
		return n
	}
	for _, e := range n.Inputs {
		if silent := withoutWatermarks(e.From, seen); silent != nil {
			return silent
		}
	}
	return nil
}

// bounded reports whether all sources above n are.
func bounded(n *Node, seen map[*Node]bool) bool {
	if n.Source != nil {
		return n.Source.Bounded
	}
	if seen[n] {
		return true
	}
	seen[n] = true
	return !slices.ContainsFunc(n.Inputs, func(e *Edge) bool { return !bounded(e.From, seen) })
}

func windowNeverFires(n *Node) *Warning {
	if !n.NeverFires {
		return nil
	}
	if n.EventTime {
		return &Warning{
			Code: "window-never-fires", Message: "its trigger never fires.",
			Fixes: []string{"give it another trigger", "leave the trigger out: event-time windows fire at their end"},
		}
	}
	return &Warning{
		Code:    "window-never-fires",
		Message: "a global window has no end, so without a trigger it never fires.",
		Fixes:   []string{"give it a trigger such as window.CountTrigger", "use window.GlobalEndOfStream"},
	}
}

func lateOutputUnused(n *Node) *Warning {
	if n.LateSide == "" || n.consumed(n.LateSide) {
		return nil
	}
	return &Warning{
		Code:    "late-output-unused",
		Message: "nothing consumes its late output: late records are dropped and counted.",
		Fixes:   []string{"consume SideOutput of the same tag", "leave SideOutputLate out"},
	}
}

func deadLettersUnused(n *Node) *Warning {
	if n.Source == nil || n.Source.DeadLetters == "" || n.consumed(n.Source.DeadLetters) {
		return nil
	}
	return &Warning{
		Code:    "dead-letters-unused",
		Message: "records that cannot be decoded go to its dead-letter output, which nothing consumes: they are dropped and counted.",
		Fixes:   []string{"consume SideOutput(lowwater.DeadLetters)", "let such records fail the job"},
	}
}

// consumed reports whether a side output of n has a consumer.
func (n *Node) consumed(side string) bool {
	return slices.ContainsFunc(n.Outputs, func(e *Edge) bool { return e.Output == side })
}

// idlenessWithoutProbes: spec watermarks 4.7.
func idlenessWithoutProbes(n *Node) *Warning {
	if w := n.Watermarks; w == nil || !w.Idleness || !w.NoProbes {
		return nil
	}
	return &Warning{
		Code:    "idleness-without-interval",
		Message: "its strategy has idleness, but the auto-watermark interval is 0, so idleness is never detected.",
		Fixes:   []string{"leave WithAutoWatermarkInterval(0) out"},
	}
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
