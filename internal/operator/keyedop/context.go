package keyedop

import (
	"errors"

	"github.com/lowwater/lowwater/internal/enum"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/state"
)

// Domain is the kind of time that a timer waits for.
type Domain uint8

const (
	// EventTime: the watermark.
	EventTime Domain = iota
	// ProcessingTime: the wall clock.
	ProcessingTime
)

func (d Domain) String() string {
	return enum.Name(d, "event time", "processing time")
}

// Context is what the function of a keyed operator sees of it: the record or timer it
// is called for, states, timers and side outputs. Mistakes in its use do not
// interrupt the function: the first one ends the job after the call, before the next one.
type Context[K comparable] struct {
	// Element's Timestamp is the one that results get.
	*operator.Element
	// At is the time of the record or timer, in milliseconds;
	// eventtime.MinTimestamp if the record has none. Results of a processing-time
	// timer have no timestamp, while the timer has a time.
	At int64

	// Operator opens states that do not belong to a key.
	Operator *OperatorStates

	backend *keyed.Backend[K]
	timers  *keyed.TimerService[K, struct{}]
}

// Key returns the current key.
func (c *Context[K]) Key() K {
	_, key, _ := c.backend.CurrentKey()
	return key
}

// RegisterEventTimer sets a timer for the current key. It fires at the first
// watermark from now on that is not below at.
func (c *Context[K]) RegisterEventTimer(at int64) {
	if t, ok := c.timer(at); ok {
		c.timers.Event.Register(t)
	}
}

// DeleteEventTimer removes a timer of the current key, if there is one.
func (c *Context[K]) DeleteEventTimer(at int64) {
	if t, ok := c.timer(at); ok {
		c.timers.Event.Delete(t)
	}
}

// RegisterProcessingTimer sets a timer for the current key. It fires when the clock
// shows more than at.
func (c *Context[K]) RegisterProcessingTimer(at int64) {
	if t, ok := c.timer(at); ok {
		c.timers.Processing.Register(t)
	}
}

// DeleteProcessingTimer removes a timer of the current key, if there is one.
func (c *Context[K]) DeleteProcessingTimer(at int64) {
	if t, ok := c.timer(at); ok {
		c.timers.Processing.Delete(t)
	}
}

var errTimerWithoutKey = errors.New("a timer was registered or deleted without a current key: " +
	"use timers only while a record or a timer of a keyed stream is processed")

func (c *Context[K]) timer(at int64) (t keyed.Timer[K, struct{}], ok bool) {
	hash, key, ok := c.backend.CurrentKey()
	if !ok {
		c.backend.Fail(errTimerWithoutKey)
	}
	return keyed.Timer[K, struct{}]{At: at, Hash: hash, Key: key}, ok
}

// Value opens a value state.
func (c *Context[K]) Value[V any](d state.ValueDescriptor[V]) state.ValueState[V] {
	s, err := c.backend.Value(d)
	c.backend.Fail(err)
	return s
}

// List opens a list state.
func (c *Context[K]) List[V any](d state.ListDescriptor[V]) state.ListState[V] {
	s, err := c.backend.List(d)
	c.backend.Fail(err)
	return s
}

// Map opens a map state.
func (c *Context[K]) Map[MK comparable, MV any](d state.MapDescriptor[MK, MV]) state.MapState[MK, MV] {
	s, err := c.backend.Map(d)
	c.backend.Fail(err)
	return s
}

// Reducing opens a reducing state.
func (c *Context[K]) Reducing[V any](d state.ReducingDescriptor[V]) state.ReducingState[V] {
	s, err := c.backend.Reducing(d)
	c.backend.Fail(err)
	return s
}

// Aggregating opens an aggregating state.
func (c *Context[K]) Aggregating[In, Acc, Out any](d state.AggregatingDescriptor[In, Acc, Out]) state.AggregatingState[In, Out] {
	s, err := c.backend.Aggregating(d)
	c.backend.Fail(err)
	return s
}

// EachKey calls visit for every key that has a value in s, which is a state of the
// operator. Afterwards there is no current key.
func (c *Context[K]) EachKey[S any](s S, visit func(key K, s S) error) error {
	return c.backend.EachKey(s, visit)
}
