package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// StatePerSubtask returns the part of StateMemory that each subtask of an operator with
// KeepsState has, 0 without a budget. Call it after Plan, which resolves parallelism.
func (g *Graph) StatePerSubtask() int64 {
	if g.StateMemory == 0 {
		return 0
	}
	subtasks := 0
	for _, n := range g.Nodes {
		if n.KeepsState {
			subtasks += n.Parallelism
		}
	}
	return max(g.StateMemory/int64(max(subtasks, 1)), 1)
}

// validateStateMemory refuses a budget for nothing.
func (g *Graph) validateStateMemory() error {
	if g.StateMemory == 0 || slices.ContainsFunc(g.Nodes, func(n *Node) bool { return n.KeepsState }) {
		return nil
	}
	return errors.New("WithStateMemory: no operator of the job keeps state that the budget is for, that of functions of keyed streams, of rolling aggregations and of windows: " +
		"leave it out; windows of aggregators in order of arrival, interval joins, sorting and timers stay in memory")
}

// outsideStateMemory names what holds state that the budget does not cover.
func outsideStateMemory(g *Graph) *Warning {
	if g.StateMemory == 0 {
		return nil
	}
	var first *Node
	var all []string
	for _, n := range g.Nodes {
		what := n.InMemory
		if n.Assigner != "" && !n.KeepsState {
			what = "windows"
		}
		if what == "" {
			continue
		}
		if first == nil {
			first = n
		}
		all = append(all, fmt.Sprintf("%q (%s)", n.Name, what))
	}
	if first == nil {
		return nil
	}
	holds := "hold"
	if len(all) == 1 {
		holds = "holds"
	}
	return &Warning{
		Code:     "state-outside-budget",
		Operator: first.Name,
		Where:    first.Where,
		Message: fmt.Sprintf("the memory budget of WithStateMemory does not cover what %s %s: it stays in memory, however much it is.",
			strings.Join(all, ", "), holds),
		Fixes: []string{
			"leave room for it beside the budget",
			"hold less: shorter windows, bounds of joins and out-of-orderness, less allowed lateness, or aggregate as records come instead of keeping them",
		},
	}
}
