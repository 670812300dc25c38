package connector

import (
	"context"

	"github.com/lowwater/lowwater/internal/enum"
)

// SplitCodec is implemented by sources whose position can be stored in a checkpoint.
// A job with checkpoints refuses a source without it.
type SplitCodec interface {
	// EncodeSplit returns a split, with the position in it, as bytes that later
	// versions of the connector can decode.
	EncodeSplit(s Split) ([]byte, error)
	// DecodeSplit returns the split of bytes that EncodeSplit of this or an earlier version
	// returned. An error fails the start of the job.
	DecodeSplit(data []byte) (Split, error)
}

// SplitSnapshotter is implemented by the readers of such sources.
type SplitSnapshotter interface {
	// SnapshotSplits returns the assigned splits that are not finished, each such that
	// a reader that is given it begins with the first record not yet passed on. It does
	// not block.
	SnapshotSplits() ([]Split, error)
}

// CheckpointListener is implemented by readers that tell the outside how far a
// completed checkpoint reaches, such as Kafka's group offsets.
type CheckpointListener interface {
	// SnapshotTaken is called by the subtask's goroutine when SnapshotSplits has been
	// called for a checkpoint, CheckpointCompleted when that one or a later one is
	// stored; of savepoints only one that ends the job counts. Neither blocks.
	SnapshotTaken(checkpoint int64)
	CheckpointCompleted(checkpoint int64)
}

// RestorableEnumerator is implemented by enumerators that find splits while the job runs.
// Without it, splits found by the first Discover after a restart are compared by ID
// with those in the checkpoint, and those whose ID is new are read from where Discover
// says; finished ones would be read again.
type RestorableEnumerator interface {
	// SnapshotEnumerator returns what Discover has found so far, in a form that later
	// versions of the connector can decode. It is not called at the same time as
	// Discover.
	SnapshotEnumerator() ([]byte, error)
	// RestoreEnumerator is called before the first Discover, which then returns only
	// what is new since.
	RestoreEnumerator(data []byte) error
}

// TwoPhaseWriter is implemented by writers whose output becomes visible with the
// checkpoint that covers it: exactly once, if the source can be read again.
//
// The order of calls is: Recover, then any number of Write, Prepare and Commit. All
// are called by the subtask's goroutine. With such a writer, Flush is not called at
// the end; a last Prepare and Commit are.
type TwoPhaseWriter interface {
	// Recover is called once, before the first Write. prepared is what Prepare gave in
	// an earlier run and may or may not have been committed, oldest first: Recover
	// commits it. undecided was prepared, too, and is given to Commit later, before
	// what this run prepares: Recover leaves it as it is. It then gives up everything
	// else that earlier runs left unfinished, also those with a larger parallelism.
	//
	// Subtask i of n answers for what the subtasks i, i+n, i+2n and so on of earlier
	// runs did: prepared and undecided are all of theirs that the checkpoint names, and what other
	// subtasks left is not to be touched.
	//
	// A sink that is exactly-once no longer has Recover called when the job is restored,
	// and then none of the other methods.
	Recover(ctx context.Context, prepared, undecided [][]byte) error
	// Prepare ends what was written since the last call: when it returns, only a Commit
	// is missing, and can be done by another process that knows the bytes returned. No
	// bytes mean that there is nothing to commit.
	Prepare(ctx context.Context, checkpoint int64) ([]byte, error)
	// Commit makes what was prepared visible. Calls are in the order of Prepare, and come
	// when a checkpoint has completed that names it. For what has been committed it
	// does nothing. Recover may be given that again, in later runs too, until a
	// checkpoint has completed that does not name it: for as long a repeated commit
	// must be recognised.
	Commit(ctx context.Context, prepared []byte) error
}

// SinkGuarantee says what a sink promises after a failure.
type SinkGuarantee uint8

const (
	// NoGuarantee: records may be lost or doubled.
	NoGuarantee SinkGuarantee = iota
	// AtLeastOnce: a checkpoint waits until everything written before it is safe
	// outside. Records may be doubled.
	AtLeastOnce
	// ExactlyOnce: with a TwoPhaseWriter.
	ExactlyOnce
)

// String returns the guarantee in words, such as "at-least-once".
func (g SinkGuarantee) String() string {
	return enum.Name(g, "none", "at-least-once", "exactly-once")
}

// GuaranteedSink is implemented by sinks that let the author choose. Sinks without it
// give AtLeastOnce: their writers are flushed before every checkpoint.
type GuaranteedSink interface {
	// Guarantee returns what was chosen. ExactlyOnce without checkpoints is a build error.
	Guarantee() SinkGuarantee
}
