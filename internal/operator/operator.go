// Package operator holds the operators that make up a running job, behind one
// type-erased interface, and the interface itself.
//
// An operator sees input batches, signals, its state and its timers, nothing
// else: no job, no exchange channels, no clock threads, no REST. That is what
// lets the same operator run in our tasks, in a test harness, or hosted by
// another engine. How operators are connected and driven is package task's.
package operator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// Operator is the logic of one node in one subtask. All methods are called by
// the subtask's goroutine, so an operator never locks. Errors end the job; the
// caller adds the operator's name.
type Operator interface {
	// Open is called once before anything else.
	Open(rt *Runtime, out Output) error
	// Process takes ownership of p, which arrived on the given input (0 for
	// operators with one input).
	Process(input int, p exchange.Payload) error
	// Watermark tells that event time reached t (milliseconds). It is called
	// with rising t, after valves and the combination of inputs. The operator
	// fires what is due and then forwards t.
	Watermark(t int64) error
	// Status tells that the operator's combined input went idle or active.
	Status(idle bool) error
	// Finish is called at the end of all input, after the last watermark. It is
	// not called when the job is stopped in the middle or cancelled.
	Finish() error
	// Close is called exactly once if Open was, also after errors.
	Close() error
}

// Flusher is implemented by operators that hold records back for the outside, such
// as sinks. Flush is called after the last input, both at the end of input (after
// Finish) and when the job is stopped gracefully, but not when it is cancelled.
type Flusher interface {
	Flush() error
}

// Stateful is implemented by operators, and sources, that keep something over a
// restart. What an earlier run kept is in Runtime.Restored when Open is called.
type Stateful interface {
	// Snapshot is called at a barrier, when everything before it has been processed
	// and nothing behind it has. The task stands still meanwhile: what takes time
	// belongs into w.Later.
	Snapshot(w snapshot.Writer) error
}

// BeforeBarrier is implemented by operators that emit something before a barrier, or
// have the outside make sure of what they hold.
type BeforeBarrier interface {
	// PrepareBarrier is called before Snapshot; what it emits is before the barrier.
	PrepareBarrier(checkpoint int64) error
}

// CheckpointListener is implemented by operators that act when a checkpoint can be
// relied on.
type CheckpointListener interface {
	// CheckpointCompleted tells that the checkpoint is stored as a whole, and so are
	// all before it for what they mean to the operator. Not every completed checkpoint
	// is told of, but a later one will be.
	CheckpointCompleted(checkpoint int64) error
}

// BackPressured is implemented by operators whose idle clocks stand still under back
// pressure (spec watermarks 4.10).
type BackPressured interface {
	// BackPressure tells of every change: soft, an output has no credit and the
	// task takes no input; hard, an emission is blocked.
	BackPressure(soft, hard bool)
}

// Source is the head of a source task. Its methods are called by the subtask's
// goroutine and never block, except where an Output does.
type Source interface {
	// Open opens the reader. Splits known at the start are added before the
	// first Poll.
	Open(rt *Runtime, out Output) error
	AddSplits(splits []connector.Split) error
	NoMoreSplits()
	// Poll emits what is at hand, at most about a batch.
	Poll() (connector.PollStatus, error)
	// Available delivers when Poll is worth calling again.
	Available() <-chan struct{}
	BackPressured
	// MaxAllowed takes the alignment coordinator's limit: the largest watermark, in
	// milliseconds, up to which the source may read.
	MaxAllowed(limit int64) error
	// EndOfInput emits the final watermark. It is called after Poll answered
	// EndOfInput.
	EndOfInput() error
	// Close is called exactly once if Open was, also after errors.
	Close() error
}

// Output is where an operator puts what it produces. Calls never reorder: what
// is emitted first arrives first. Errors must be returned at once.
type Output interface {
	// Emit takes ownership of p.
	Emit(p exchange.Payload) error
	// EmitSide takes ownership of p and sends it to the consumers of the side
	// output with that id, if there are any.
	EmitSide(id string, p exchange.Payload) error
	Watermark(t int64) error
	Status(idle bool) error
}

// HasSide reports whether the side output with that id has a consumer, as far as the
// output knows.
func HasSide(out Output, id string) bool {
	k, ok := out.(interface{ HasSide(id string) bool })
	return !ok || k.HasSide(id)
}

// ConsumedSide returns id if it is a side output with a consumer, otherwise "": what goes
// to it is then to be treated as dropped.
func ConsumedSide(out Output, id string) string {
	if id == "" || !HasSide(out, id) {
		return ""
	}
	return id
}

// Runtime is what an operator knows about where it runs.
type Runtime struct {
	// Node is the operator's number in the job, Where the file and line of the call
	// that made it.
	Node           int
	Where          string
	Name           string
	UID            string
	Subtask        int
	Parallelism    int
	MaxParallelism int
	// Context ends when the job is cancelled; for calls that may block.
	Context context.Context
	Logger  *slog.Logger
	Metrics *metric.Operator
	Timers  ProcessingTime
	// Post has f called in the subtask's goroutine, between batches. It is for an
	// operator's own goroutines: any may call it, and it waits while the subtask's
	// mailbox is full. It reports false if ctx or the subtask ended before.
	Post func(ctx context.Context, f func() error) bool
	// StateMemory is how many bytes the keyed state of functions, or the contents of windows
	// that can be spilled, may take before it goes to disk, 0 for no limit; StateDir is where, empty for the system's directory.
	StateMemory int64
	StateDir    string
	// Checkpointing says that barriers will come.
	Checkpointing bool
	// Restored is what the operator is restored from, nil if there is nothing.
	Restored snapshot.Reader
	// Resuming is true while Watermark is told, after Open and before anything else, what
	// the operator was told last in the run that it is restored from. What was due by then
	// has fired; what was set since for a time already past waits for the next watermark,
	// as it would have.
	Resuming bool
	// CommitUpTo is the checkpoint up to which output that was prepared and is part of
	// Restored may be made visible at once. The rest waits for CheckpointCompleted.
	CommitUpTo int64
	// Splits numbers the splits of all sources of the job.
	Splits *SplitRegistry
	// WatermarkInterval is the time between two periodic calls of a watermark
	// generator; 0 means none.
	WatermarkInterval time.Duration
	// Alignment is set on sources whose strategy aligns.
	Alignment Alignment
}

// Alignment is a source subtask's connection to the alignment of its group (spec
// watermarks 6).
type Alignment struct {
	// Report sends the subtask's watermark to the coordinator. It does not block.
	Report func(watermark int64)
	// Samples is the number of samples that limits are compared with.
	Samples int
}

// SplitRegistry numbers the splits of a job for connector.Origin. It is safe for
// concurrent use; look-ups happen once a split or once a message, never once a
// record.
type SplitRegistry struct {
	mu    sync.Mutex
	names []SplitName
	byID  map[SplitName]uint32
}

// SplitName places a split within a job. Sources may share a name, so the number of the
// node is part of it.
type SplitName struct {
	Node   int
	Source string
	Split  string
}

// Number returns the number of a split, from 1, the same for every call.
func (r *SplitRegistry) Number(node int, source, split string) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := SplitName{node, source, split}
	if n, ok := r.byID[name]; ok {
		return n
	}
	if r.byID == nil {
		r.byID = map[SplitName]uint32{}
	}
	r.names = append(r.names, name)
	n := uint32(len(r.names))
	r.byID[name] = n
	return n
}

// Name returns what a number stands for; ok is false for numbers that were
// never given out, such as the 0 of an unknown origin.
func (r *SplitRegistry) Name(number uint32) (name SplitName, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == 0 || int(number) > len(r.names) {
		return SplitName{}, false
	}
	return r.names[number-1], true
}

// ProcessingTime is the wall clock of a subtask.
type ProcessingTime interface {
	// Now returns milliseconds since the epoch.
	Now() int64
	// At calls f in the subtask's goroutine once Now is at or after t. The
	// returned function prevents the call if it has not happened yet.
	At(t int64, f func(now int64) error) (cancel func())
}

// Pass is embedded by operators that let signals through unchanged.
type Pass struct{ Out Output }

func (p *Pass) Open(_ *Runtime, out Output) error { p.Out = out; return nil }
func (p *Pass) Watermark(t int64) error           { return p.Out.Watermark(t) }
func (p *Pass) Status(idle bool) error            { return p.Out.Status(idle) }
func (p *Pass) Finish() error                     { return nil }
func (p *Pass) Close() error                      { return nil }
