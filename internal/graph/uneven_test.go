package graph

import (
	"strings"
	"testing"
)

// Two topics of one partition each can meet in one subtask.
func TestSplitsThatAreNotDealtOutEvenly(t *testing.T) {
	build := func(explicit int) (*Graph, *Node) {
		g := &Graph{Name: "uneven", Parallelism: 2}
		n := g.Add(&Node{Name: "orders", Watermarks: &WatermarkInfo{}, Source: &SourceInfo{
			Splits: 2,
			Empty: func(parallelism int) int {
				return parallelism - 1
			},
		}})
		if explicit > 0 {
			n.SetParallelism(explicit)
		}
		if _, err := g.Plan(); err != nil {
			t.Fatal(err)
		}
		return g, n
	}
	if g, n := build(0); n.Parallelism != 1 || len(g.Check()) > 0 {
		t.Errorf("without a parallelism of its own the source takes %d subtasks, warnings %v; want 1 and none", n.Parallelism, g.Check())
	}
	g, _ := build(2)
	warnings := g.Check()
	if len(warnings) != 1 || warnings[0].Code != "over-parallel-source" || !strings.Contains(warnings[0].Message, "1 subtask without a split") ||
		!strings.Contains(warnings[0].Fix(), "Parallelism(1)") {
		t.Errorf("warnings %v, want one that counts the empty subtask", warnings)
	}
}
