package connector

import (
	"context"
	"log/slog"
)

// Sink is what a sink connector implements. The value describes the sink and
// holds no connection.
type Sink[T any] interface {
	// Validate reports wrong options. It must not do I/O.
	Validate() error
	// NewWriter opens the writer of one subtask, again at every restart. An error fails the
	// job.
	NewWriter(ctx context.Context, rt WriterRuntime) (Writer[T], error)
}

// WriterRuntime is what the engine tells a writer.
type WriterRuntime struct {
	// Operator is the sink's name in this job, for messages.
	Operator string
	// Subtask is the number of the subtask, from 0 to Parallelism-1.
	Subtask     int
	Parallelism int
	Logger      *slog.Logger
	// CountBytes adds to the bytes of records that the writer has written, as they are in
	// the outside system. It is called by Write, once a batch. It may be nil.
	CountBytes func(n int64)
}

// Writer writes the records of one subtask. It is called by the subtask's
// goroutine only; a Write that blocks is what makes the job back-pressured.
type Writer[T any] interface {
	// Write writes b. The batch stays the caller's; the writer must not keep
	// its slices, but may keep the values. An error fails the job.
	Write(ctx context.Context, b *Batch[T]) error
	// Flush returns once everything written is safe in the outside system. Called
	// before every checkpoint, at the end of input and when the job stops gracefully; for
	// a TwoPhaseWriter, Prepare and Commit take its place.
	Flush(ctx context.Context) error
	// Close releases everything and waits for the writer's goroutines. It is
	// called exactly once, also after an error; it must not wait for
	// outstanding records, which Flush did if they matter.
	Close() error
}

// FailureReporter is implemented by writers that may fail after Write has returned. The
// engine asks now and then, so that a job does not go on for as long as no record comes.
type FailureReporter interface {
	// Failure returns the first error of what was written, nil if there is none. It
	// does not block.
	Failure() error
}

// WatermarkWriter is implemented by writers that want to see event time
// progress.
type WatermarkWriter interface {
	// WriteWatermark is called with each watermark, in milliseconds since the
	// epoch, after all records before it.
	WriteWatermark(ctx context.Context, watermark int64) error
}
