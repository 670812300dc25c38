package lowwater

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
)

// StreamSink is a sink within a job. Its methods set what they say and return it.
type StreamSink struct {
	env  *Environment
	node *graph.Node
}

// Name sets the name of the sink in plans, metrics and errors. It must not be empty.
func (s *StreamSink) Name(name string) *StreamSink {
	setName(s.env, s.node, name)
	return s
}

// UID identifies the sink's state over versions of the job; see DataStream.UID.
func (s *StreamSink) UID(uid string) *StreamSink {
	setUID(s.env, s.node, uid)
	return s
}

// Parallelism sets the number of subtasks of the sink; see DataStream.Parallelism.
func (s *StreamSink) Parallelism(n int) *StreamSink {
	s.node.SetParallelism(n)
	return s
}

// DisableChaining gives the sink a task of its own.
func (s *StreamSink) DisableChaining() *StreamSink {
	s.node.DisableChaining = true
	return s
}

// SinkTo ends the stream in a connector's sink. What the sink says about its options is a
// build error; so is an exactly-once sink without WithCheckpoints.
func (s *DataStream[T]) SinkTo(sink connector.Sink[T]) *StreamSink {
	if sink == nil {
		s.env.fail("SinkTo: the sink is nil")
	} else if err := sink.Validate(); err != nil {
		s.env.fail("SinkTo: %w", err)
	}
	return addSink(s, "Sink", sink)
}

// SinkFunc calls f for every record. A subtask waits for f, so a slow f slows the
// job down to its speed; ctx ends when the job is cancelled. An error fails the job.
// Each subtask calls f from a goroutine of its own: with a parallelism above 1 f
// must be safe for concurrent use. After a restart records come again (at least once).
func (s *DataStream[T]) SinkFunc(f func(ctx context.Context, value T) error) *StreamSink {
	if f == nil {
		s.env.fail("SinkFunc: the function is nil")
	}
	return addSink(s, "Sink", &funcSink[T]{f})
}

// Print writes every record to standard output, one a line, formatted by fmt's %v.
// If the sink has several subtasks, a line starts with the number of its own, from 1, and
// "> ", as in Flink.
func (s *DataStream[T]) Print() *StreamSink { return s.PrintTo(os.Stdout) }

// PrintTo writes every record to w as Print does. Lines are written whole, with one
// Write each, and one at a time. An error of w fails the job.
func (s *DataStream[T]) PrintTo(w io.Writer) *StreamSink {
	if w == nil {
		s.env.fail("PrintTo: the writer is nil")
	}
	return addSink(s, "Print", &printSink[T]{w: w})
}

// Collect keeps all records in memory, for tests and small bounded jobs. After a restart
// records come again (at least once).
func (s *DataStream[T]) Collect() *Collected[T] {
	c := &Collected[T]{}
	addSink(s, "Collect", c)
	return c
}

func addSink[T any](s *DataStream[T], name string, sink connector.Sink[T]) *StreamSink {
	n := s.env.addNode(&graph.Node{Name: name, NewOperator: func() operator.Operator { return operator.NewSink(sink) }})
	if g, ok := sink.(connector.GuaranteedSink); ok {
		n.ExactlyOnce = g.Guarantee() == connector.ExactlyOnce
	}
	connect(s, n, 0)
	return &StreamSink{s.env, n}
}

// Collected is what Collect gathers. Its methods may be called at any time, from any
// goroutine.
type Collected[T any] struct {
	mu         sync.Mutex
	values     []T
	timestamps []int64
}

// Values returns a copy of the records so far. Records of one subtask are in order.
func (c *Collected[T]) Values() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]T(nil), c.values...)
}

// Timestamps returns a copy of the event times, in milliseconds since the epoch, of what
// Values returns; eventtime.MinTimestamp is none.
func (c *Collected[T]) Timestamps() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]int64(nil), c.timestamps...)
}

// Validate implements connector.Sink.
func (c *Collected[T]) Validate() error { return nil }

// NewWriter implements connector.Sink.
func (c *Collected[T]) NewWriter(context.Context, connector.WriterRuntime) (connector.Writer[T], error) {
	return collectWriter[T]{collected: c}, nil
}

// unbuffered is embedded by writers that hold nothing back.
type unbuffered struct{}

func (unbuffered) Flush(context.Context) error { return nil }
func (unbuffered) Close() error                { return nil }

type collectWriter[T any] struct {
	unbuffered
	collected *Collected[T]
}

func (w collectWriter[T]) Write(_ context.Context, b *connector.Batch[T]) error {
	c := w.collected
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = append(c.values, b.Values...)
	c.timestamps = append(c.timestamps, b.Timestamps...)
	return nil
}

type funcSink[T any] struct {
	f func(context.Context, T) error
}

func (s *funcSink[T]) Validate() error { return nil }

func (s *funcSink[T]) NewWriter(context.Context, connector.WriterRuntime) (connector.Writer[T], error) {
	return funcWriter[T]{f: s.f}, nil
}

type funcWriter[T any] struct {
	unbuffered
	f func(context.Context, T) error
}

func (w funcWriter[T]) Write(ctx context.Context, b *connector.Batch[T]) error {
	for _, v := range b.Values {
		if err := w.f(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// printSink serialises its subtasks' lines.
type printSink[T any] struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *printSink[T]) Validate() error { return nil }

func (s *printSink[T]) NewWriter(_ context.Context, rt connector.WriterRuntime) (connector.Writer[T], error) {
	w := &printWriter[T]{sink: s}
	if rt.Parallelism > 1 {
		w.prefix = fmt.Sprintf("%d> ", rt.Subtask+1)
	}
	return w, nil
}

type printWriter[T any] struct {
	unbuffered
	sink   *printSink[T]
	prefix string
	line   []byte
}

func (w *printWriter[T]) Write(_ context.Context, b *connector.Batch[T]) error {
	w.sink.mu.Lock()
	defer w.sink.mu.Unlock()
	for _, v := range b.Values {
		w.line = fmt.Appendf(append(w.line[:0], w.prefix...), "%v\n", v)
		if _, err := w.sink.w.Write(w.line); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
