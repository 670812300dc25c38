package rest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

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
