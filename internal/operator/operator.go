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

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
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
	// Finish is called at the end of all input, after the last watermark.
	// It is not called when the job is cancelled.
	Finish() error
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

// Runtime is what an operator knows about where it runs.
type Runtime struct {
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
	// SplitName resolves the split number of an Origin to the source and the
	// split, for messages.
	SplitName func(split uint32) (source, splitID string)
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
