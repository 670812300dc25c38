package status

import "time"

// CheckpointConfig is how a job takes checkpoints.
type CheckpointConfig struct {
	// Enabled is false if the job takes none; the rest is then of no meaning.
	Enabled bool
	// ExactlyOnce says that barriers are aligned; otherwise records may count twice.
	ExactlyOnce bool
	// Interval is the time from one trigger to the next, MinPause from the end of one to
	// the next trigger, Timeout how long one may take.
	Interval, MinPause, Timeout time.Duration
	MaxConcurrent               int
	// TolerableFailures is how many may fail in a row before the job does.
	TolerableFailures int
	// Retain says that the last checkpoint stays when the job is cancelled.
	Retain bool
	// SavepointDir is where savepoints go unless they are told; empty: they must be.
	SavepointDir string
	// Backend and Storage name where state lives and where checkpoints go.
	Backend, Storage string
}

// Checkpoints is what became of a job's checkpoints.
type Checkpoints struct {
	// Restored is how often the job was restored from one; the others count checkpoints
	// and savepoints by how they stand.
	Restored, Total, InProgress, Completed, Failed int64
	// History is the latest, oldest first, savepoints included.
	History []Checkpoint
	// LatestCompleted, LatestSavepoint and LatestFailed are the last of each kind, nil if
	// there is none. They stay when so many others followed that History has them no more.
	LatestCompleted, LatestSavepoint, LatestFailed *Checkpoint
	// RestoredFrom is nil if the job did not start from one.
	RestoredFrom *RestoredCheckpoint
}

// RestoredCheckpoint is a checkpoint that a job started from.
type RestoredCheckpoint struct {
	ID        int64
	At        time.Time
	Savepoint bool
	Path      string
}

// Checkpoint is one checkpoint or savepoint.
type Checkpoint struct {
	ID        int64
	State     CheckpointState
	Savepoint bool
	Triggered time.Time
	// LastAck is when the last subtask so far was done, zero before.
	LastAck time.Time
	// StateBytes is the size of all state, WrittenBytes what was written for this
	// checkpoint, without what it shares with earlier ones.
	StateBytes, WrittenBytes int64
	// Path is where a completed one is, Discarded that it has been removed since.
	Path      string
	Discarded bool
	// Failure says why it failed, at FailedAt.
	Failure  string
	FailedAt time.Time
	// Vertices are in the order of the plan.
	Vertices []VertexCheckpoint
}

// CheckpointState says how far a checkpoint has got.
type CheckpointState string

// The states, in Flink's words. The last two are ends.
const (
	CheckpointInProgress CheckpointState = "IN_PROGRESS"
	CheckpointCompleted  CheckpointState = "COMPLETED"
	CheckpointFailed     CheckpointState = "FAILED"
)

// VertexCheckpoint is what the subtasks of a vertex did for a checkpoint. Those that are
// not done have no Ack.
type VertexCheckpoint struct {
	Subtasks []SubtaskCheckpoint
}

// SubtaskCheckpoint is what one subtask did for a checkpoint.
type SubtaskCheckpoint struct {
	// Ack is when it was done, zero before.
	Ack time.Time
	// StartDelay is from the trigger to the first barrier, Alignment from there to the
	// last barrier, Sync how long the subtask stood still, Async the writing after it.
	StartDelay, Alignment, Sync, Async time.Duration
	StateBytes, WrittenBytes           int64
	// Unaligned says that the barrier overtook records, OvertakenRecords of them, which
	// are part of the checkpoint.
	Unaligned        bool
	OvertakenRecords int64
}
