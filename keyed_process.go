package lowwater

import (
	"errors"
	"io"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
	"github.com/lowwater/lowwater/state"
)

// KeyedProcessFunction handles the records of a keyed stream one by one, with state and
// timers by key (spec windows 4 and 5). One value serves all keys of one subtask; its
// methods are called by one goroutine. An error fails the job. Contexts and collectors
// are valid during the call only.
//
// A function that needs no states or no timers embeds KeyedBase. If it is an io.Closer, it
// is closed at the end, also after an error.
//
// After a failure the job makes new functions: what is to survive belongs into states. Their
// values for all keys, and timers, are part of checkpoints; the function's own fields are
// not.
type KeyedProcessFunction[K comparable, T, R any] interface {
	// Open is called once, before everything else. It opens the function's states.
	Open(ctx *OpenContext[K]) error
	// ProcessElement handles a record of the current key. What it emits has the record's
	// timestamp.
	ProcessElement(ctx *KeyedContext[K], value T, out *Collector[R]) error
	// OnTimer is called when a timer of the current key fires; at is its time in
	// milliseconds. What it emits has that time as its timestamp, or no timestamp if it
	// is a processing-time timer (spec windows 4).
	OnTimer(ctx *TimerContext[K], at int64, out *Collector[R]) error
}

// KeyedBase is embedded by keyed functions with results of type R that have nothing to
// open or no timers: it has both methods, and a function's own take their place.
type KeyedBase[K comparable, R any] struct{}

// Open does nothing.
func (KeyedBase[K, R]) Open(*OpenContext[K]) error { return nil }

// OnTimer returns an error, which fails the job: a function that registers timers must
// handle them.
func (KeyedBase[K, R]) OnTimer(*TimerContext[K], int64, *Collector[R]) error {
	return errors.New("a timer fired, but the function has no OnTimer of its own: it embeds lowwater.KeyedBase")
}

// TimeDomain is the kind of time that a timer waits for: EventTime or ProcessingTime.
type TimeDomain = keyedop.Domain

// The two kinds of time: EventTime goes by the watermark, ProcessingTime by the wall clock.
const (
	EventTime      = keyedop.EventTime
	ProcessingTime = keyedop.ProcessingTime
)

// OpenContext opens the states of a keyed function. A state that is declared wrongly, or
// twice in different ways, fails the job when Open returns; the same declaration twice is
// the same state. States belong to the current key: using one where there is none,
// such as in Open, fails the job. With checkpoints, a state of a type that cannot be stored
// fails the job too.
type OpenContext[K comparable] struct{ context *keyedop.Context[K] }

// Subtask returns the number of the subtask, from 0.
func (c *OpenContext[K]) Subtask() int { return c.context.Runtime().Subtask }

// Parallelism returns the number of subtasks of the operator.
func (c *OpenContext[K]) Parallelism() int { return c.context.Runtime().Parallelism }

// Value opens a value state: one value per key (spec windows 5.2).
func (c *OpenContext[K]) Value[V any](d state.ValueDescriptor[V]) state.ValueState[V] {
	return c.context.Value(d)
}

// List opens a list state: a list per key.
func (c *OpenContext[K]) List[V any](d state.ListDescriptor[V]) state.ListState[V] {
	return c.context.List(d)
}

// Map opens a map state: a map per key, whose entries expire one by one.
func (c *OpenContext[K]) Map[MK comparable, MV any](d state.MapDescriptor[MK, MV]) state.MapState[MK, MV] {
	return c.context.Map(d)
}

// Reducing opens a reducing state: per key, one value that others are combined with.
func (c *OpenContext[K]) Reducing[V any](d state.ReducingDescriptor[V]) state.ReducingState[V] {
	return c.context.Reducing(d)
}

// Aggregating opens an aggregating state: per key, an accumulator that values are added to.
func (c *OpenContext[K]) Aggregating[In, Acc, Out any](d state.AggregatingDescriptor[In, Acc, Out]) state.AggregatingState[In, Out] {
	return c.context.Aggregating(d)
}

// OperatorList opens a list that belongs to the subtask instead of to a key: it can be used
// at any time, also in Open. What slices it returns must not be changed; what their elements
// point to may be, in the call of the function in which they were read.
func (c *OpenContext[K]) OperatorList[V any](d state.OperatorListDescriptor[V]) state.ListState[V] {
	return c.context.Operator.List(d)
}

// KeyedContext is what a keyed function may ask and do besides emitting, for the current
// key. Times are in milliseconds since the epoch.
//
// Timers are a set per key and kind of time: registering one that is there, and deleting
// one that is not, does nothing. One that lies in the past fires at the next opportunity,
// not at once. Timers of all keys of a subtask fire in the order of their times; for equal
// times there is no order. At the end of a bounded input all event-time timers fire, and
// processing-time timers that are still to come do not (spec windows 4). Timers are part of
// checkpoints; processing-time timers that became due while the job was down fire when it
// runs again.
type KeyedContext[K comparable] struct{ context *keyedop.Context[K] }

// Key returns the current key.
func (c *KeyedContext[K]) Key() K { return c.context.Key() }

// Timestamp returns the event time of the record, eventtime.MinTimestamp if it has none,
// or the time of the timer, of whichever domain.
func (c *KeyedContext[K]) Timestamp() int64 { return c.context.At }

// CurrentWatermark returns the operator's watermark, eventtime.MinTimestamp if there was
// none yet. It is part of checkpoints: after a restart it is the one of the checkpoint. A timer
// sees the one that made it fire, which may be far past its time.
func (c *KeyedContext[K]) CurrentWatermark() int64 { return c.context.Watermark }

// CurrentProcessingTime returns the wall clock.
func (c *KeyedContext[K]) CurrentProcessingTime() int64 { return c.context.Runtime().Timers.Now() }

// Subtask returns the number of the subtask, from 0.
func (c *KeyedContext[K]) Subtask() int { return c.context.Runtime().Subtask }

// RegisterEventTimeTimer sets a timer that fires when the watermark reaches at. If it has
// passed at already, the timer fires at the next watermark. A timer that registers itself
// again for its own time never ends.
func (c *KeyedContext[K]) RegisterEventTimeTimer(at int64) { c.context.RegisterEventTimer(at) }

// DeleteEventTimeTimer removes the current key's event-time timer for that time, if there is
// one.
func (c *KeyedContext[K]) DeleteEventTimeTimer(at int64) { c.context.DeleteEventTimer(at) }

// RegisterProcessingTimeTimer sets a timer that fires when the wall clock has passed at,
// so at at+1 the earliest, and as soon as possible if that is over.
func (c *KeyedContext[K]) RegisterProcessingTimeTimer(at int64) {
	c.context.RegisterProcessingTimer(at)
}

// DeleteProcessingTimeTimer removes the current key's processing-time timer for that time,
// if there is one.
func (c *KeyedContext[K]) DeleteProcessingTimeTimer(at int64) { c.context.DeleteProcessingTimer(at) }

// Output emits v to a side output, with what Timestamp returns as its timestamp: unlike
// what is emitted to a collector, also for processing-time timers.
func (c *KeyedContext[K]) Output[X any](tag OutputTag[X], v X) {
	operator.Side[X](c.context.Element, tag.key()).Append(v, c.context.At, c.context.Origin)
}

// TimerContext is the context of a timer.
type TimerContext[K comparable] struct {
	KeyedContext[K]
	domain TimeDomain
}

// Domain tells which kind of time the timer waited for.
func (c *TimerContext[K]) Domain() TimeDomain { return c.domain }

// Process handles the records of each key with a function that has state and timers (spec
// windows 4 and 5). factory makes one function for each subtask, and again after a restart:
//
//	orders.KeyBy(customer).Process(func() *Alarm { return &Alarm{} })
func (s *KeyedStream[K, T]) Process[R any, F KeyedProcessFunction[K, T, R]](factory func() F) *DataStream[R] {
	env := s.stream.env
	if factory == nil {
		env.fail("Process: the factory is nil")
	}
	n := env.addNode(&graph.Node{
		Name:          "Keyed Process",
		WantsConsumer: true,
		KeepsState:    true,
		Timers:        true,
		NewOperator: func() operator.Operator {
			return keyedop.NewProcess(openKeyed[K, T, R](func() KeyedProcessFunction[K, T, R] { return factory() }))
		},
	})
	s.connect(n, 0)
	return &DataStream[R]{env: env, from: []port{{node: n}}, node: n}
}

// openKeyed gives a function of one subtask the public types.
func openKeyed[K comparable, T, R any](factory func() KeyedProcessFunction[K, T, R]) keyedop.Open[K, R, keyedop.Function[T]] {
	return func(x *keyedop.Context[K], emitter *operator.Emitter[R]) (keyedop.Function[T], error) {
		f := factory()
		ctx, out := &KeyedContext[K]{x}, &Collector[R]{element: x.Element, emitter: emitter}
		return keyedop.Function[T]{
			Element: func(v T) error { return f.ProcessElement(ctx, v, out) },
			Timer:   timerFunction(x, out, f.OnTimer),
			Close:   closeFunction(f),
		}, f.Open(&OpenContext[K]{x})
	}
}

func timerFunction[K comparable, R any](x *keyedop.Context[K], out *Collector[R], onTimer func(*TimerContext[K], int64, *Collector[R]) error) keyedop.TimerFunction {
	ctx := &TimerContext[K]{KeyedContext: KeyedContext[K]{x}}
	return func(at int64, d keyedop.Domain) error {
		ctx.domain = d
		return onTimer(ctx, at, out)
	}
}

// closeFunction returns a function's Close, nil if it has none.
func closeFunction(f any) func() error {
	if c, ok := f.(io.Closer); ok {
		return c.Close
	}
	return nil
}

// KeyedCoProcessFunction handles the records of two keyed streams, which share state and
// timers by key. Everything else is as for KeyedProcessFunction (spec windows 6.3).
type KeyedCoProcessFunction[K comparable, T, U, R any] interface {
	// Open is called once, before everything else. It opens the function's states.
	Open(ctx *OpenContext[K]) error
	// ProcessFirst handles a record of the first stream, ProcessSecond one of the second.
	// There is no order between the two.
	ProcessFirst(ctx *KeyedContext[K], value T, out *Collector[R]) error
	ProcessSecond(ctx *KeyedContext[K], value U, out *Collector[R]) error
	// OnTimer is KeyedProcessFunction.OnTimer.
	OnTimer(ctx *TimerContext[K], at int64, out *Collector[R]) error
}

// Connect brings two keyed streams with the same type of key into one operator. Its
// watermark is the smaller of both inputs, idle ones left out: an input without a
// watermark strategy holds it back for ever (spec watermarks 2.5).
func (s *KeyedStream[K, T]) Connect[U any](other *KeyedStream[K, U]) *ConnectedKeyedStreams[K, T, U] {
	return &ConnectedKeyedStreams[K, T, U]{pairing(s, other, "Connect")}
}

// ConnectedKeyedStreams is two keyed streams on their way into one operator.
type ConnectedKeyedStreams[K comparable, T, U any] struct{ pair pair[K, T, U] }

// Process handles the records of both streams with functions from factory, one for each
// subtask.
func (c *ConnectedKeyedStreams[K, T, U]) Process[R any, F KeyedCoProcessFunction[K, T, U, R]](factory func() F) *DataStream[R] {
	if factory == nil {
		c.pair.env.fail("Connect.Process: the factory is nil")
	}
	open := openKeyedCo[K, T, U, R](func() KeyedCoProcessFunction[K, T, U, R] { return factory() })
	s := addKeyedPair[K, T, U, R](c.pair, "Keyed Co-Process", func() operator.Operator { return keyedop.NewCoProcess(open) })
	if s.node != nil {
		s.node.KeepsState, s.node.Timers = true, true
	}
	return s
}

// openKeyedCo gives a function of one subtask the public types.
func openKeyedCo[K comparable, T, U, R any](factory func() KeyedCoProcessFunction[K, T, U, R]) keyedop.Open[K, R, keyedop.CoFunction[T, U]] {
	return func(x *keyedop.Context[K], emitter *operator.Emitter[R]) (keyedop.CoFunction[T, U], error) {
		f := factory()
		ctx, out := &KeyedContext[K]{x}, &Collector[R]{element: x.Element, emitter: emitter}
		return keyedop.CoFunction[T, U]{
			First:  func(v T) error { return f.ProcessFirst(ctx, v, out) },
			Second: func(v U) error { return f.ProcessSecond(ctx, v, out) },
			Timer:  timerFunction(x, out, f.OnTimer),
			Close:  closeFunction(f),
		}, f.Open(&OpenContext[K]{x})
	}
}

// addKeyedPair adds an operator with the two streams of a pair as inputs.
func addKeyedPair[K comparable, T, U, R any](p pair[K, T, U], name string, make func() operator.Operator) *DataStream[R] {
	if p.right == nil {
		return &DataStream[R]{env: p.env}
	}
	n := p.env.addNode(&graph.Node{Name: name, WantsConsumer: true, NewOperator: make})
	p.left.connect(n, 0)
	p.right.connect(n, 1)
	return &DataStream[R]{env: p.env, from: []port{{node: n}}, node: n}
}
