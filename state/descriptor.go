package state

import (
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/window"
)

// Declaration is what all descriptors have: the name, which must be unique within
// a function, and options. The name identifies the state in snapshots, so a job
// that is to be restored keeps it.
type Declaration struct {
	name string
	ttl  TTL
}

// Option is an option of a state by key.
type Option func(*Declaration)

// WithTTL makes values expire (spec windows 5.3). The zero TTL is none. A wrong one fails
// the job when the state is opened.
func WithTTL(ttl TTL) Option { return func(d *Declaration) { d.ttl = ttl } }

func declare(name string, options []Option) Declaration {
	d := Declaration{name: name}
	for _, o := range options {
		o(&d)
	}
	return d
}

// Name returns the state's name.
func (d Declaration) Name() string { return d.name }

// TTL returns the state's time-to-live; the zero TTL if values do not expire.
func (d Declaration) TTL() TTL { return d.ttl }

// Validate returns an error if the declaration cannot be used: without a name, or with a
// wrong TTL. The engine calls it when the state is opened; an error fails the job.
func (d Declaration) Validate() error {
	if d.name == "" {
		return errors.New("a state has no name")
	}
	if err := d.ttl.validate(); err != nil {
		return fmt.Errorf("state %q: %w", d.name, err)
	}
	return nil
}

// ValueDescriptor declares a ValueState.
type ValueDescriptor[V any] struct{ Declaration }

// Value declares a value per key. name must not be empty and is unique in the function.
func Value[V any](name string, options ...Option) ValueDescriptor[V] {
	return ValueDescriptor[V]{declare(name, options)}
}

// ListDescriptor declares a ListState.
type ListDescriptor[V any] struct{ Declaration }

// List declares a list per key. For name see Value.
func List[V any](name string, options ...Option) ListDescriptor[V] {
	return ListDescriptor[V]{declare(name, options)}
}

// MapDescriptor declares a MapState.
type MapDescriptor[K comparable, V any] struct{ Declaration }

// Map declares a map per key. K must be a type that a stream can be keyed by. For name see
// Value.
func Map[K comparable, V any](name string, options ...Option) MapDescriptor[K, V] {
	return MapDescriptor[K, V]{declare(name, options)}
}

// ReducingDescriptor declares a ReducingState.
type ReducingDescriptor[V any] struct {
	Declaration
	combine func(a, b V) V
}

// Reducing declares a combined value per key. combine gets the value so far and
// the one that is added; one function serves all keys of all subtasks. It must not be nil
// or change its arguments. For name see Value.
func Reducing[V any](name string, combine func(a, b V) V, options ...Option) ReducingDescriptor[V] {
	return ReducingDescriptor[V]{declare(name, options), combine}
}

// Combine returns the function given to Reducing.
func (d ReducingDescriptor[V]) Combine() func(a, b V) V { return d.combine }

// Validate is Declaration.Validate, and refuses a nil function.
func (d ReducingDescriptor[V]) Validate() error {
	if d.combine == nil {
		return fmt.Errorf("reducing state %q has no function that combines values", d.name)
	}
	return d.Declaration.Validate()
}

// AggregatingDescriptor declares an AggregatingState with accumulators of type
// Acc.
type AggregatingDescriptor[In, Acc, Out any] struct {
	Declaration
	aggregator window.Aggregator[In, Acc, Out]
}

// Aggregating declares an aggregate per key. agg serves all keys of all subtasks and must
// not be nil. For name see Value.
func Aggregating[In, Acc, Out any](name string, agg window.Aggregator[In, Acc, Out], options ...Option) AggregatingDescriptor[In, Acc, Out] {
	return AggregatingDescriptor[In, Acc, Out]{declare(name, options), agg}
}

// Aggregator returns the aggregator given to Aggregating.
func (d AggregatingDescriptor[In, Acc, Out]) Aggregator() window.Aggregator[In, Acc, Out] {
	return d.aggregator
}

// Validate is Declaration.Validate, and refuses a nil aggregator.
func (d AggregatingDescriptor[In, Acc, Out]) Validate() error {
	if d.aggregator == nil {
		return fmt.Errorf("aggregating state %q has no aggregator", d.name)
	}
	return d.Declaration.Validate()
}
