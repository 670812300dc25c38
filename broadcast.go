package lowwater

import (
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
	"github.com/lowwater/lowwater/state"
)

// KeyedBroadcastFunction handles the records of a keyed stream in the light of those of a
// broadcast one: rules, rates, settings (spec windows 6.4). What the broadcast side
// learns it keeps in broadcast state, which every subtask has a copy of. The keyed side
// has state and timers by key as a KeyedProcessFunction, and reads the broadcast state.
//
// A record sees what was broadcast to its subtask before it arrived there: there is no
// order between the two streams. The watermark is the smaller one of both, so a
// broadcast stream without a watermark strategy holds all event-time timers back (spec
// watermarks 2.5).
//
// Who calls the methods, what errors do, and Close are as for KeyedProcessFunction. A
// function without timers embeds KeyedBase.
type KeyedBroadcastFunction[K comparable, T, U, R any] interface {
	// Open is called once, before everything else. It opens the function's states.
	Open(ctx *KeyedBroadcastOpenContext[K]) error
	// ProcessElement handles a record of the keyed stream. It may read broadcast state but
	// not write it.
	ProcessElement(ctx *KeyedContext[K], value T, out *Collector[R]) error
	// ProcessBroadcast handles a record of the broadcast stream. All subtasks get it and
	// must do the same to broadcast state.
	ProcessBroadcast(ctx *KeyedBroadcastContext[K], value U, out *Collector[R]) error
	// OnTimer is KeyedProcessFunction.OnTimer.
	OnTimer(ctx *TimerContext[K], at int64, out *Collector[R]) error
}

// KeyedBroadcastOpenContext opens the states of a KeyedBroadcastFunction.
type KeyedBroadcastOpenContext[K comparable] struct {
	OpenContext[K]
	states *keyedop.BroadcastStates
}

// Broadcast opens a broadcast state: a map that each subtask has a copy of. With a TTL the
// job fails when Open returns. It may be written by ProcessBroadcast only: a write from
// elsewhere changes nothing and fails the job. It can be read at any time, also in Open of
// a restored job.
func (c *KeyedBroadcastOpenContext[K]) Broadcast[MK comparable, MV any](d state.MapDescriptor[MK, MV]) state.MapState[MK, MV] {
	return c.states.Map(d)
}

// KeyedBroadcastContext is what ProcessBroadcast may ask and do besides emitting. There is
// no current key, so there are neither states by key nor timers, except in EachKey.
type KeyedBroadcastContext[K comparable] struct{ context *keyedop.Context[K] }

// Timestamp returns the record's event time in milliseconds, eventtime.MinTimestamp if it
// has none.
func (c *KeyedBroadcastContext[K]) Timestamp() int64 { return c.context.At }

// CurrentWatermark returns the operator's watermark in milliseconds,
// eventtime.MinTimestamp if there was none yet.
func (c *KeyedBroadcastContext[K]) CurrentWatermark() int64 { return c.context.Watermark }

// CurrentProcessingTime returns the wall clock in milliseconds since the epoch.
func (c *KeyedBroadcastContext[K]) CurrentProcessingTime() int64 {
	return c.context.Runtime().Timers.Now()
}

// Subtask returns the number of the subtask, from 0.
func (c *KeyedBroadcastContext[K]) Subtask() int { return c.context.Runtime().Subtask }

// Output emits v to a side output, with the record's timestamp.
func (c *KeyedBroadcastContext[K]) Output[X any](tag OutputTag[X], v X) {
	operator.Side[X](c.context.Element, tag.key()).Append(v, c.context.At, c.context.Origin)
}

// EachKey calls visit for every key of this subtask that has a value in s, a state by key
// of the function, with that key as the current one. visit may change or clear the state
// of its key. The first error ends the visits and is returned; so is an error if s is not
// a state by key of the function.
func (c *KeyedBroadcastContext[K]) EachKey[S any](s S, visit func(key K, s S) error) error {
	return c.context.EachKey(s, visit)
}

// ConnectBroadcast sends every record of other to all subtasks of an operator that also
// gets this stream's records, by key (spec windows 6.4).
func (s *KeyedStream[K, T]) ConnectBroadcast[U any](other *DataStream[U]) *KeyedBroadcastStreams[K, T, U] {
	return &KeyedBroadcastStreams[K, T, U]{s, broadcastInput(s.stream.env, other)}
}

// broadcastInput returns other as an input that all subtasks get; nil after a mistake.
func broadcastInput[U any](env *Environment, other *DataStream[U]) *DataStream[U] {
	switch {
	case other == nil:
		env.fail("ConnectBroadcast: the other stream is nil")
		return nil
	case other.env != env:
		env.fail("ConnectBroadcast: the streams belong to different environments")
	case other.partitioning != graph.Auto && other.partitioning != graph.Broadcast:
		env.fail("ConnectBroadcast: %v has no effect before ConnectBroadcast, which broadcasts", other.partitioning)
	}
	return other.Broadcast()
}

// KeyedBroadcastStreams is a keyed stream and a broadcast one on their way into one operator.
type KeyedBroadcastStreams[K comparable, T, U any] struct {
	keyed     *KeyedStream[K, T]
	broadcast *DataStream[U]
}

// Process handles the records of both streams with functions from factory, one for each
// subtask.
func (c *KeyedBroadcastStreams[K, T, U]) Process[R any, F KeyedBroadcastFunction[K, T, U, R]](factory func() F) *DataStream[R] {
	env := c.keyed.stream.env
	if factory == nil {
		env.fail("ConnectBroadcast.Process: the factory is nil")
	}
	if c.broadcast == nil {
		return &DataStream[R]{env: env}
	}
	open := func(x *keyedop.Context[K], states *keyedop.BroadcastStates, emitter *operator.Emitter[R]) (keyedop.BroadcastFunction[T, U], error) {
		f := factory()
		ctx, onBroadcast, out := &KeyedContext[K]{x}, &KeyedBroadcastContext[K]{x}, &Collector[R]{element: x.Element, emitter: emitter}
		return keyedop.BroadcastFunction[T, U]{
			Element:   func(v T) error { return f.ProcessElement(ctx, v, out) },
			Broadcast: func(v U) error { return f.ProcessBroadcast(onBroadcast, v, out) },
			Timer:     timerFunction(x, out, f.OnTimer),
			Close:     closeFunction(f),
		}, f.Open(&KeyedBroadcastOpenContext[K]{OpenContext[K]{x}, states})
	}
	n := env.addNode(&graph.Node{
		Name:          "Keyed Broadcast Process",
		WantsConsumer: true,
		KeepsState:    true,
		Timers:        true,
		NewOperator:   func() operator.Operator { return keyedop.NewKeyedBroadcast(open) },
	})
	c.keyed.connect(n, 0)
	connect(c.broadcast, n, 1)
	return &DataStream[R]{env: env, from: []port{{node: n}}, node: n}
}

// BroadcastFunction is a KeyedBroadcastFunction for a stream without keys: it has
// broadcast state, but neither state by key nor timers.
type BroadcastFunction[T, U, R any] interface {
	// Open is called once, before everything else. It opens the function's states.
	Open(ctx *BroadcastOpenContext) error
	// ProcessElement handles a record of the other stream. It may read broadcast state but
	// not write it.
	ProcessElement(ctx *ProcessContext, value T, out *Collector[R]) error
	// ProcessBroadcast handles a record of the broadcast stream. All subtasks get it and
	// must do the same to broadcast state.
	ProcessBroadcast(ctx *ProcessContext, value U, out *Collector[R]) error
}

// BroadcastOpenContext opens the states of a BroadcastFunction.
type BroadcastOpenContext struct {
	context *keyedop.Context[struct{}]
	states  *keyedop.BroadcastStates
}

// Subtask returns the number of the subtask, from 0.
func (c *BroadcastOpenContext) Subtask() int { return c.context.Runtime().Subtask }

// OperatorList opens a list of the subtask; see OpenContext.OperatorList.
func (c *BroadcastOpenContext) OperatorList[V any](d state.OperatorListDescriptor[V]) state.ListState[V] {
	return c.context.Operator.List(d)
}

// Broadcast opens a broadcast state; see KeyedBroadcastOpenContext.Broadcast.
func (c *BroadcastOpenContext) Broadcast[MK comparable, MV any](d state.MapDescriptor[MK, MV]) state.MapState[MK, MV] {
	return c.states.Map(d)
}

// ConnectBroadcast sends every record of other to all subtasks of an operator that also
// gets this stream's records, each in one subtask.
func (s *DataStream[T]) ConnectBroadcast[U any](other *DataStream[U]) *BroadcastStreams[T, U] {
	return &BroadcastStreams[T, U]{s, broadcastInput(s.env, other)}
}

// BroadcastStreams is a stream and a broadcast one on their way into one operator.
type BroadcastStreams[T, U any] struct {
	stream    *DataStream[T]
	broadcast *DataStream[U]
}

// Process handles the records of both streams with functions from factory, one for each
// subtask.
func (c *BroadcastStreams[T, U]) Process[R any, F BroadcastFunction[T, U, R]](factory func() F) *DataStream[R] {
	env := c.stream.env
	if factory == nil {
		env.fail("ConnectBroadcast.Process: the factory is nil")
	}
	if c.broadcast == nil {
		return &DataStream[R]{env: env}
	}
	open := func(x *keyedop.Context[struct{}], states *keyedop.BroadcastStates, emitter *operator.Emitter[R]) (keyedop.BroadcastFunction[T, U], error) {
		f := factory()
		ctx, out := &ProcessContext{element: x.Element}, &Collector[R]{element: x.Element, emitter: emitter}
		return keyedop.BroadcastFunction[T, U]{
			Element:   func(v T) error { return f.ProcessElement(ctx, v, out) },
			Broadcast: func(v U) error { return f.ProcessBroadcast(ctx, v, out) },
			Close:     closeFunction(f),
		}, f.Open(&BroadcastOpenContext{x, states})
	}
	n := env.addNode(&graph.Node{
		Name:          "Broadcast Process",
		WantsConsumer: true,
		NewOperator:   func() operator.Operator { return keyedop.NewBroadcast(open) },
	})
	connect(c.stream, n, 0)
	connect(c.broadcast, n, 1)
	return &DataStream[R]{env: env, from: []port{{node: n}}, node: n}
}
