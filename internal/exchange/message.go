package exchange

import (
	"time"

	"github.com/lowwater/lowwater/internal/enum"
)

// Payload is a batch of records whose types only the operators at both ends
// know. The engine calls these methods once a batch, never once a record.
type Payload interface {
	Len() int
	// Release gives the batch back to its pool. Called by the last owner.
	Release()
}

// Kind tells what a Message carries.
type Kind uint8

const (
	// Records carries a Payload.
	Records Kind = iota
	// Watermark carries Time: no record at or before it is expected any more.
	Watermark
	// Status carries Idle: whether the sender takes part in event time.
	Status
	// EndOfData is the last message of a channel, except for barriers.
	EndOfData
	// BarrierKind carries a Barrier.
	BarrierKind
)

func (k Kind) String() string {
	return enum.Name(k, "records", "watermark", "status", "end-of-data", "barrier")
}

// Message is what travels on a channel, in order: a batch or one signal.
type Message struct {
	Kind Kind
	Idle bool
	// Drained is set on an EndOfData behind the final watermark of input that
	// really ended; unset, the job was stopped in the middle.
	Drained bool
	// Channel is the receiver's number of the channel; Send sets it.
	Channel int32
	// Time is the watermark in milliseconds.
	Time    int64
	Payload Payload
	Barrier *Barrier
}

// Barrier separates what a checkpoint covers from what comes behind it. It is shared by
// all tasks and never changed.
type Barrier struct {
	Checkpoint int64
	Triggered  time.Time
	// Stop says that nothing comes behind it: the job stops at this checkpoint.
	Stop bool
	// AlignmentTimeout is how long a task may wait for the barriers of its other channels
	// before it lets them overtake the records ahead of them; 0 means for ever.
	AlignmentTimeout time.Duration
}
