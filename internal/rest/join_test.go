package rest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// TestInputWatermarksOfAJoin: each input has its own gauge, and the operator's is the plain
// minimum although an idle input holds nothing back.
func TestInputWatermarksOfAJoin(t *testing.T) {
	job := newFakeJob(status.Running)
	job.status.Vertices[1].Subtasks = slices.Clone(job.status.Vertices[1].Subtasks)
	job.status.Vertices[1].Subtasks[0].Operators = []status.Operator{{
		CurrentInputWatermark: 70, CurrentOutputWatermark: 70, InputWatermarks: []int64{eventtime.MinTimestamp, 70},
	}}
	base, ids := serveFake(t, job)
	path := "/jobs/" + ids[0] + "/vertices/" + observe.OperatorID("count") + "/metrics"
	for id, want := range map[string]string{
		"0.count.currentInput1Watermark": "-9223372036854775808",
		"0.count.currentInput2Watermark": "70",
		"0.count.currentInputWatermark":  "-9223372036854775808",
		"0.currentInputWatermark":        "-9223372036854775808",
		"0.count.currentOutputWatermark": "70",
	} {
		if got := value(t, base, path, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if text := request(t, "GET", base+path, "").text; strings.Contains(text, "1.count.currentInput1Watermark") {
		t.Error("a subtask with one input has gauges of several")
	}
	graph := request(t, "GET", base+"/lowwater/jobs/"+ids[0]+"/graph", "").body
	if got := field(t, graph, "vertices", 1, "subtasks", 0, "inputWatermark"); got != 70.0 {
		t.Errorf("the graph shows %v, want 70, which the operator has reached", got)
	}
}
