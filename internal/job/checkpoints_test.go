package job

import (
	"testing"

	"github.com/lowwater/lowwater/internal/graph"
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
