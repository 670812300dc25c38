package connector

import (
	"context"
	"log/slog"
	"time"

	"github.com/lowwater/lowwater/eventtime"
)

// Boundedness says whether a source ends by itself.
type Boundedness bool

const (
	// Unbounded: the source goes on until the job ends.
	Unbounded Boundedness = false
	// Bounded: the source ends, and event time with it.
	Bounded Boundedness = true
)

// Split is one independently read part of a source: for Kafka one partition
// with its start and stop offsets. The engine assigns splits to subtasks and
// gives each split a watermark generator of its own.
type Split interface {
	// ID is unique within the source and stable over restarts.
	ID() string
}

// Source is what a source connector implements. The value describes the source
// and holds no connection; it may be used by several jobs.
type Source[T any] interface {
	// Validate reports wrong options. It must not do I/O: it is called while
	// the job is built.
	Validate() error
	// Boundedness says whether the source ends by itself.
	Boundedness() Boundedness
	// NewEnumerator connects to the outside system. Called once per job run, before any
	// reader exists: at the start, where an error fails it, and again at every restart.
	NewEnumerator(ctx context.Context, rt SourceRuntime) (Enumerator, error)
	// NewReader opens the reader of one subtask. It must not block on I/O.
	NewReader(ctx context.Context, rt ReaderRuntime) (Reader[T], error)
}

// Discoverer is implemented by enumerators that can find splits which appear while
// the job runs.
type Discoverer interface {
	// DiscoveryInterval returns the time between two calls of Discover; 0 means that
	// there are none after the first.
	DiscoveryInterval() time.Duration
}

// DeadLetterSource is implemented by sources that can hand records they cannot decode to
// a side output.
type DeadLetterSource interface {
	// EmitsDeadLetters reports whether the source is told to.
	EmitsDeadLetters() bool
}

// SourceRuntime is what the engine tells an enumerator.
type SourceRuntime struct {
	// Operator is the source's name in this job, for messages.
	Operator string
	Logger   *slog.Logger
}

// Enumerator finds the splits of a source and says which subtask owns each.
// The engine calls it from one goroutine at a time.
type Enumerator interface {
	// Discover returns the splits that appeared since the last call; the first
	// call returns all there are. An error of the first call fails the start
	// of the job.
	Discover(ctx context.Context) ([]Split, error)
	// Owner returns the subtask, from 0 to parallelism-1, that reads split.
	Owner(split Split, parallelism int) int
	// Close releases everything. It is called exactly once, when the run has ended.
	Close() error
}

// ReaderRuntime is what the engine tells a reader.
type ReaderRuntime struct {
	// Operator is the source's name in this job, for messages.
	Operator string
	// Subtask is the number of the subtask, from 0 to Parallelism-1.
	Subtask     int
	Parallelism int
	Logger      *slog.Logger
	// CountDropped counts one record that the reader did not pass on, by
	// reason, in the source's metrics. sample describes the record.
	CountDropped func(reason, sample string)
	// CountBytes adds to the bytes of records that the reader passed on, as they are in
	// the outside system. It is called once a batch. It may be nil.
	CountBytes func(n int64)
	// Checkpointing says that checkpoints will be taken.
	Checkpointing bool
}

// PollStatus is a reader's answer to Poll.
type PollStatus uint8

const (
	// MoreAvailable: call Poll again without waiting.
	MoreAvailable PollStatus = iota
	// NothingAvailable: call Poll again after Available delivered.
	NothingAvailable
	// EndOfInput: all splits are read to their end and no more will come.
	EndOfInput
)

// Reader reads the splits of one subtask. All methods but Available's channel
// are called by the subtask's goroutine and none may block; a reader fetches in
// goroutines of its own, with bounded buffers.
type Reader[T any] interface {
	// AddSplits gives the reader splits to read. Splits present at the start
	// of the job arrive before the first Poll.
	AddSplits(splits []Split) error
	// NoMoreSplits says that AddSplits will not be called again. A reader
	// that has read all its splits to the end then answers EndOfInput.
	NoMoreSplits()
	// Poll passes on what is at hand, at most about one batch, in offset
	// order per split. An error ends the job; it should name topic, partition
	// and offset, or whatever places the record.
	Poll(out ReaderOutput[T]) (PollStatus, error)
	// Available delivers when Poll may find something after it answered
	// NothingAvailable. Spurious deliveries are allowed.
	Available() <-chan struct{}
	// Close ends all goroutines of the reader and waits for them.
	Close() error
}

// SplitPauser is implemented by readers that can stop and resume reading single
// splits, which watermark alignment needs (spec watermarks 6.4).
type SplitPauser interface {
	// PauseSplits stops reading splits. Records of them that are at hand may still be
	// passed on. Ids of splits that the reader does not have are passed over.
	PauseSplits(ids []string)
	// ResumeSplits reads on.
	ResumeSplits(ids []string)
}

// SplitPositions is implemented by readers that know how far they have read. Other goroutines
// than the subtask's call it, at any time and even after Close: of all subtasks, it is the
// blocked ones whose backlog matters.
type SplitPositions interface {
	// Positions calls yield for each assigned split with the offset of the
	// next record to read and the split's end offset, -1 where unknown.
	Positions(yield func(splitID string, next, end int64))
}

// PartitionSplit is implemented by splits that are a partition of a topic, for metrics that
// show both.
type PartitionSplit interface {
	Split
	// TopicPartition returns the topic's name and the partition's number, from 0.
	TopicPartition() (topic string, partition int32)
}

// OffsetCommitter is implemented by readers that commit positions to the outside, for
// metrics that show them. Like SplitPositions, any goroutine calls it.
type OffsetCommitter interface {
	// Committed calls yield for each split with the offset last committed, -1 if there
	// is none.
	Committed(yield func(splitID string, offset int64))
}

// EndReporter is implemented by readers that hear from the outside where their splits
// end, which honest idleness needs.
type EndReporter interface {
	// CaughtUp calls yield for each split that is not finished. caughtUp means that all
	// its records have been passed on and that nothing was appended from since to
	// asOf, the time of the last answer, both on this machine's clock. asOf stands
	// still while there are no answers.
	CaughtUp(yield func(splitID string, caughtUp bool, since, asOf time.Time))
}

// TimestampType says what a record timestamp means; see eventtime.TimestampType.
type TimestampType = eventtime.TimestampType

// The types of timestamps, those of package eventtime.
const (
	NoTimestamp   = eventtime.NoTimestamp
	CreateTime    = eventtime.CreateTime
	LogAppendTime = eventtime.LogAppendTime
)

// ReaderOutput is where a reader puts its records. It is valid only during Poll.
type ReaderOutput[T any] interface {
	// Batch returns an empty batch for the reader to fill.
	Batch() *Batch[T]
	// Emit takes ownership of b, whose records all come from one split.
	// Timestamps are the records' own (Kafka's), which the timestamp assigner
	// sees as previous timestamps. The reader appends zero Origins; Emit
	// stamps them from offsets, which is parallel to b.Values and stays the
	// reader's.
	Emit(splitID string, b *Batch[T], offsets []int64, timestamps TimestampType) error
	// EmitSide sends one record that could not be decoded to the source's
	// dead-letter output.
	EmitSide(record DeadLetter) error
	// FinishSplit says that the split was read to its end; its watermark no
	// longer counts.
	FinishSplit(splitID string) error
	// EmitWatermark, MarkIdle and MarkActive are for readers that know more of event time
	// than their records tell; with them the strategy is usually one that emits nothing
	// (spec watermarks 5.14). They are as eventtime.WatermarkOutput's, for one split, or
	// with an empty splitID for the reader as a whole. As with everything of a split,
	// MarkActive shows when the splits' next watermark does.
	// Times are in milliseconds since the epoch.
	EmitWatermark(splitID string, t int64) error
	MarkIdle(splitID string) error
	MarkActive(splitID string) error
}

// DeadLetter is a record that could not be decoded, with the reason.
type DeadLetter struct {
	// SplitID, Topic, Partition and Offset say where it was; Topic is empty for sources
	// without topics.
	SplitID   string
	Topic     string
	Partition int32
	Offset    int64
	// Timestamp is the record's own, in milliseconds since the epoch;
	// eventtime.MinTimestamp is none.
	Timestamp int64
	// Key and Value are the bytes as they were read, nil for none.
	Key   []byte
	Value []byte
	// Err says why it could not be decoded.
	Err error
}
