package job

import (
	"testing"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/status"
)

// TestBackend: what is shown of a job's checkpoints says where its state is.
func TestBackend(t *testing.T) {
	for bytes, want := range map[int64]string{0: "memory", 1 << 20: "memory and disk"} {
		j := &Job{graph: &graph.Graph{StateMemory: bytes}, checkpoints: &checkpoints{}}
		if got := j.CheckpointConfig().Backend; got != want {
			t.Errorf("with a budget of %d bytes state is in %s, want %s", bytes, got, want)
		}
	}
}

// TestLatestCheckpointsStay: of each kind the last is known, however many others followed.
func TestLatestCheckpointsStay(t *testing.T) {
	c := &checkpoints{job: &Job{}}
	c.job.checkpoints = c
	c.note(status.Checkpoint{ID: 1, State: status.CheckpointCompleted, Path: "/chk-1"})
	c.note(status.Checkpoint{ID: 2, State: status.CheckpointCompleted, Path: "/savepoint-2", Savepoint: true})
	for id := int64(3); id < 3+2*historyLength; id++ {
		c.note(status.Checkpoint{ID: id, State: status.CheckpointInProgress})
		c.note(status.Checkpoint{ID: id, State: status.CheckpointFailed})
	}
	records, _ := c.job.Checkpoints()
	if len(records.History) != historyLength || records.History[0].State != status.CheckpointFailed {
		t.Fatalf("a history of %d: %+v", len(records.History), records.History[0])
	}
	if l := records.LatestCompleted; l == nil || l.Path != "/chk-1" {
		t.Errorf("the latest checkpoint that completed: %+v", l)
	}
	if l := records.LatestSavepoint; l == nil || l.Path != "/savepoint-2" {
		t.Errorf("the latest savepoint: %+v", l)
	}
	if l := records.LatestFailed; l == nil || l.ID != 2+2*historyLength {
		t.Errorf("the latest that failed: %+v", l)
	}
}
