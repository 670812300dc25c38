package lowwater

import (
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
)

// Connect brings two streams of different types into one operator. There is no order
// between their records. The operator's watermark is the smaller of both inputs, idle
// ones left out: an input without a watermark strategy holds it back for ever (spec
// watermarks 2.5).
func (s *DataStream[T]) Connect[U any](other *DataStream[U]) *ConnectedStreams[T, U] {
	if other == nil {
		s.env.fail("Connect: the other stream is nil")
	} else if other.env != s.env {
		s.env.fail("Connect: the streams belong to different environments")
	}
	return &ConnectedStreams[T, U]{s, other}
}

// ConnectedStreams is two streams on their way into one operator.
type ConnectedStreams[T, U any] struct {
	first  *DataStream[T]
	second *DataStream[U]
}

// Map applies first to every record of the first stream and second to every record of
// the second. Results have the timestamp of their record.
func (c *ConnectedStreams[T, U]) Map[R any](first func(T) R, second func(U) R) *DataStream[R] {
	if first == nil || second == nil {
		c.first.env.fail("Connect.Map: a function is nil")
	}
	return addConnected(c, "Co-Map", func(e *operator.Element, out *operator.Emitter[R]) (func(T) error, func(U) error) {
		return func(v T) error { out.Append(first(v), e.Timestamp, e.Origin); return nil },
			func(v U) error { out.Append(second(v), e.Timestamp, e.Origin); return nil }
	})
}

// FlatMap is Map with functions that pass any number of results to the function they are
// given, which they must not keep.
func (c *ConnectedStreams[T, U]) FlatMap[R any](first func(T, func(R)), second func(U, func(R))) *DataStream[R] {
	if first == nil || second == nil {
		c.first.env.fail("Connect.FlatMap: a function is nil")
	}
	return addConnected(c, "Co-Flat Map", func(e *operator.Element, out *operator.Emitter[R]) (func(T) error, func(U) error) {
		emit := func(r R) { out.Append(r, e.Timestamp, e.Origin) }
		return func(v T) error { first(v, emit); return nil },
			func(v U) error { second(v, emit); return nil }
	})
}

// Process calls first for every record of the first stream and second for every record
// of the second. A subtask calls both from the same goroutine, several subtasks call
// them at the same time. An error fails the job.
func (c *ConnectedStreams[T, U]) Process[R any](first ProcessFunction[T, R], second ProcessFunction[U, R]) *DataStream[R] {
	if first == nil || second == nil {
		c.first.env.fail("Connect.Process: a function is nil")
	}
	return addConnected(c, "Co-Process", func(e *operator.Element, emitter *operator.Emitter[R]) (func(T) error, func(U) error) {
		ctx, out := &ProcessContext{element: e}, &Collector[R]{element: e, emitter: emitter}
		return func(v T) error { return first(ctx, v, out) },
			func(v U) error { return second(ctx, v, out) }
	})
}

func addConnected[T, U, R any](c *ConnectedStreams[T, U], name string, open func(*operator.Element, *operator.Emitter[R]) (func(T) error, func(U) error)) *DataStream[R] {
	env := c.first.env
	if c.second == nil {
		return &DataStream[R]{env: env}
	}
	n := env.addNode(&graph.Node{
		Name:          name,
		WantsConsumer: true,
		NewOperator:   func() operator.Operator { return operator.NewCoProcess(open) },
	})
	connect(c.first, n, 0)
	connect(c.second, n, 1)
	return &DataStream[R]{env: env, from: []port{{node: n}}, node: n}
}
