package graph

import (
	"strings"
	"testing"
)

// A budget is divided among the subtasks of operators with keyed state, refused where there
// are none, and what it does not cover is named in one warning.
func TestStateMemory(t *testing.T) {
	g := &Graph{StateMemory: 1000}
	join := g.Add(&Node{Name: "pairs", Parallelism: 2, InMemory: "interval join"})
	if err := g.validateStateMemory(); err == nil || !strings.Contains(err.Error(), "leave it out") {
		t.Errorf("a budget for nothing: %v", err)
	}
	g.Add(&Node{Name: "a", Parallelism: 3, KeepsState: true})
	g.Add(&Node{Name: "b", Parallelism: 1, KeepsState: true, Assigner: "window.Tumbling(1s)"}) // which is not outside
	window := g.Add(&Node{Name: "w", Parallelism: 1, Assigner: "window.Tumbling(1s)"})
	if err := g.validateStateMemory(); err != nil {
		t.Error(err)
	}
	if n := g.StatePerSubtask(); n != 250 {
		t.Errorf("%d bytes a subtask, want 250", n)
	}
	w := outsideStateMemory(g)
	if w == nil || w.Operator != join.Name || !strings.Contains(w.Message, `"pairs" (interval join), "w" (windows) hold:`) || len(w.Fixes) == 0 {
		t.Errorf("warning %v", w)
	}
	join.InMemory, window.Assigner = "", ""
	if w := outsideStateMemory(g); w != nil {
		t.Errorf("warning %v, with nothing in memory", w)
	}
	g.StateMemory = 0
	if n := g.StatePerSubtask(); n != 0 || g.validateStateMemory() != nil {
		t.Errorf("%d bytes without a budget", n)
	}
}
