package observe

import (
	"context"

	"github.com/lowwater/lowwater/status"
)

// Checkpoints is what a job with checkpointing shows of it and can be asked.
type Checkpoints interface {
	CheckpointConfig() status.CheckpointConfig
	CheckpointStats() status.Checkpoints
	// TriggerCheckpoint takes a checkpoint now and returns its id.
	TriggerCheckpoint(ctx context.Context) (id int64, err error)
	// TriggerSavepoint writes a savepoint below dir, the configured place if it is
	// empty, and returns where. It does not end the job.
	TriggerSavepoint(ctx context.Context, dir string) (path string, err error)
	// StopWithSavepoint writes a savepoint and ends the job behind it. drain sends the
	// final watermark first, so that all windows fire.
	StopWithSavepoint(ctx context.Context, dir string, drain bool) (path string, err error)
}
