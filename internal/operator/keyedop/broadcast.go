package keyedop

import (
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/state"
)

// BroadcastStates is the broadcast states of an operator: maps that do not belong to a key.
// Every subtask has its own copies, which are equal if the function that writes them
// goes by the broadcast records alone (spec windows 6.4).
type BroadcastStates struct {
	// backend has one key, which is always the current one.
	backend *keyed.Backend[struct{}]
	// writable is set while broadcast records are processed.
	writable bool
	// failed takes the function's mistakes.
	failed func(error)
}

func newBroadcastStates(failed func(error)) *BroadcastStates {
	s := &BroadcastStates{backend: keyed.NewBackend[struct{}](), failed: failed}
	s.backend.SetCurrentKey(0, struct{}{})
	return s
}

// store makes the states storable, if they must be. A part has the map of one state.
func (s *BroadcastStates) store(rt *operator.Runtime) error {
	if !isStored(rt) {
		return nil
	}
	return s.backend.Store(keyed.Storage{
		Kind: snapshot.Broadcast, Prefix: "broadcast/", Restored: rt.Restored, MaxParallelism: 1,
	})
}

// Map opens a broadcast state. It can be read at any time, and written while a broadcast
// record is processed; a write at another time changes nothing and ends the job.
func (s *BroadcastStates) Map[K comparable, V any](d state.MapDescriptor[K, V]) state.MapState[K, V] {
	if d.TTL() != (state.TTL{}) {
		s.failed(fmt.Errorf("broadcast state %q has a TTL: broadcast state does not expire", d.Name()))
		return nil
	}
	m, err := s.backend.Map(d)
	if err != nil {
		s.failed(err)
		return nil
	}
	return &broadcastState[K, V]{MapState: m, all: s, name: d.Name()}
}

// broadcastState lets a map be written only when it may be.
type broadcastState[K comparable, V any] struct {
	state.MapState[K, V]
	all  *BroadcastStates
	name string
}

// mayWrite notes the mistake if it may not be written.
func (s *broadcastState[K, V]) mayWrite() bool {
	if !s.all.writable {
		s.all.failed(fmt.Errorf("broadcast state %q was written outside of the processing of a broadcast record: "+
			"elsewhere it is read-only, because the copies of the subtasks would differ", s.name))
	}
	return s.all.writable
}

func (s *broadcastState[K, V]) Put(key K, v V) {
	if s.mayWrite() {
		s.MapState.Put(key, v)
	}
}

func (s *broadcastState[K, V]) Remove(key K) {
	if s.mayWrite() {
		s.MapState.Remove(key)
	}
}

func (s *broadcastState[K, V]) Clear() {
	if s.mayWrite() {
		s.MapState.Clear()
	}
}

// BroadcastFunction is a function of a keyed input and a broadcast one in one subtask.
type BroadcastFunction[T, U any] struct {
	Element   func(T) error
	Broadcast func(U) error
	Timer     TimerFunction
	// Close may be nil. It is called even if opening ended in an error.
	Close func() error
}

// OpenBroadcast makes the function of one subtask.
type OpenBroadcast[K comparable, T, U, R any] func(*Context[K], *BroadcastStates, *operator.Emitter[R]) (BroadcastFunction[T, U], error)

// keyedBroadcast runs a function of a keyed input and a broadcast one.
type keyedBroadcast[K comparable, T, U, R any] struct {
	core[K, R]
	states   *BroadcastStates
	open     OpenBroadcast[K, T, U, R]
	function BroadcastFunction[T, U]
}

// NewKeyedBroadcast returns the operator of a function of a keyed input and a broadcast
// one.
func NewKeyedBroadcast[K comparable, T, U, R any](open OpenBroadcast[K, T, U, R]) operator.Operator {
	return newKeyedBroadcast(open)
}

func newKeyedBroadcast[K comparable, T, U, R any](open OpenBroadcast[K, T, U, R]) *keyedBroadcast[K, T, U, R] {
	o := &keyedBroadcast[K, T, U, R]{core: newCore[K, R](), open: open}
	o.states = newBroadcastStates(o.context.backend.Fail)
	return o
}

func (o *keyedBroadcast[K, T, U, R]) Open(rt *operator.Runtime, out operator.Output) (err error) {
	if err := o.core.open(rt, out); err != nil {
		return err
	}
	if err := o.states.store(rt); err != nil {
		return err
	}
	o.function, err = o.open(o.context, o.states, o.emitter)
	o.onTimer, o.close = o.function.Timer, o.function.Close
	return o.opened(err)
}

// Snapshot implements operator.Stateful.
func (o *keyedBroadcast[K, T, U, R]) Snapshot(w snapshot.Writer) error {
	s := keyed.NewSnapshot(w)
	defer s.Start()
	if err := o.core.snapshot(s); err != nil {
		return err
	}
	return o.states.backend.Snapshot(s)
}

func (o *keyedBroadcast[K, T, U, R]) Process(input int, p exchange.Payload) error {
	if input == 0 {
		return o.each(p.(*exchange.KeyedBatch[K, T]), o.function.Element)
	}
	o.states.writable = true
	err := o.eachPlain(p.(*connector.Batch[U]), o.function.Broadcast)
	o.states.writable = false
	return err
}

// broadcast runs a function of an input without keys and a broadcast one.
type broadcast[T, U, R any] struct {
	*keyedBroadcast[struct{}, T, U, R]
}

// NewBroadcast returns the operator of a function of an input without keys, which can use
// neither state by key nor timers, and a broadcast one.
func NewBroadcast[T, U, R any](open OpenBroadcast[struct{}, T, U, R]) operator.Operator {
	return &broadcast[T, U, R]{newKeyedBroadcast(open)}
}

func (o *broadcast[T, U, R]) Process(input int, p exchange.Payload) error {
	if input == 0 {
		return o.eachPlain(p.(*connector.Batch[T]), o.function.Element)
	}
	return o.keyedBroadcast.Process(input, p)
}
