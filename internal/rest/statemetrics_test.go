package rest_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// TestStateInGraph: subtasks have the state of all operators of theirs with a budget, vertices
// that of all subtasks, and those without a budget have none.
func TestStateInGraph(t *testing.T) {
	server, base := listen(t, rest.Config{})
	job := newFakeJob(status.Running)
	window := &job.plan.Vertices[1]
	window.Operators = append(window.Operators, observe.Operator{ID: observe.OperatorID("total"), Name: "total", Kind: observe.KindProcess})
	count := status.Operator{State: status.KeyedState{BudgetBytes: 1000, MemoryBytes: 900, SpilledEntries: 7, DiskBytes: 5000}}
	total := status.Operator{State: status.KeyedState{BudgetBytes: 1000, MemoryBytes: 20}}
	job.status.Vertices[1].Subtasks = slices.Clone(job.status.Vertices[1].Subtasks)
	for i := range 2 {
		job.status.Vertices[1].Subtasks[i].Operators = []status.Operator{count, total}
	}
	server.Jobs().Add(job)
	jid := field(t, request(t, "GET", base+"/jobs", "").body, "jobs", 0, "id").(string)
	g := request(t, "GET", base+"/lowwater/jobs/"+jid+"/graph", "").body
	state := func(budget, memory, disk, entries float64) map[string]any {
		return map[string]any{"budgetBytes": budget, "memoryBytes": memory, "diskBytes": disk, "spilledEntries": entries, "spillReadsPerSecond": 0.0, "spillWritesPerSecond": 0.0}
	}
	for _, test := range []struct {
		path []any
		want any
	}{
		{[]any{"vertices", 0, "state"}, nil},
		{[]any{"vertices", 0, "subtasks", 0, "state"}, nil},
		{[]any{"vertices", 1, "subtasks", 0, "state"}, state(2000, 920, 5000, 7)},
		{[]any{"vertices", 1, "state"}, state(4000, 1840, 10_000, 14)},
	} {
		if diff := cmp.Diff(test.want, field(t, g, test.path...)); diff != "" {
			t.Errorf("graph %v (-want +got):\n%s", test.path, diff)
		}
	}
}

// TestStateMetrics: keyed state with a memory budget shows in REST and for Prometheus, and
// nothing of it where there is no budget.
func TestStateMetrics(t *testing.T) {
	server, base := listen(t, rest.Config{})
	job := newFakeJob(status.Running)
	job.status.Vertices[1].Subtasks[1].Operators = []status.Operator{{State: status.KeyedState{
		BudgetBytes: 1000, MemoryBytes: 900, SpilledEntries: 7, DiskBytes: 5000, SpillReads: 30, SpillWrites: 37,
	}}}
	server.Jobs().Add(job)
	jid := field(t, request(t, "GET", base+"/jobs", "").body, "jobs", 0, "id").(string)
	vertex := "/jobs/" + jid + "/vertices/" + observe.OperatorID("count") + "/metrics"
	text := request(t, "GET", base+"/metrics", "").text
	for name, want := range map[string]string{
		"stateBudgetBytes": "1000", "stateMemoryBytes": "900", "stateSpilledEntries": "7", "stateDiskBytes": "5000",
		"stateSpillReads": "30", "stateSpillWrites": "37", "stateSpillReadsPerSecond": "0.0", "stateSpillWritesPerSecond": "0.0",
	} {
		if got := value(t, base, vertex, "1.count."+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		series := regexp.MustCompile(`flink_taskmanager_job_task_operator_`+name+`\{[^}]*operator_name="count"[^}]*\} (\S+)`).FindAllStringSubmatch(text, -1)
		if len(series) != 1 || series[0][1] != strings.TrimSuffix(want, ".0") {
			t.Errorf("Prometheus has %v of %s, want %s once", series, name, want)
		}
	}
	if got := request(t, "GET", base+vertex, "").text; strings.Contains(got, `"0.count.state`) {
		t.Errorf("metrics of state without a budget: %s", got)
	}
}
