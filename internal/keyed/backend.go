package keyed

import (
	"fmt"
	"reflect"

	"github.com/lowwater/lowwater/state"
)

// Backend holds the keyed states of one operator in one subtask, in memory.
//
// The operator opens its states at the start, then sets the key before each
// record or timer that it hands to a function; states are that key's. The time
// that TTL counts is what the operator sets, once a batch.
type Backend[K comparable] struct {
	key  K
	hash uint64
	// use is a new number whenever the current key changes, 0 without one.
	use, uses uint64
	now       int64
	states    []keyedState[K]
	opened    map[string]opened[K]
	err       error
}

// keyedState is a state of any kind and type.
type keyedState[K comparable] interface {
	len() int
	keyAt(i int) (hash uint64, key K)
	touch(hashes []uint64)
	cleanUp(budget int)
}

// opened is a state with what it was declared as.
type opened[K comparable] struct {
	state      keyedState[K]
	descriptor reflect.Type
	ttl        state.TTL
}

// descriptor is what the descriptors of all kinds have.
type descriptor interface {
	Name() string
	TTL() state.TTL
	Validate() error
}

// NewBackend returns a backend without states.
func NewBackend[K comparable]() *Backend[K] {
	return &Backend[K]{opened: map[string]opened[K]{}}
}

// SetCurrentKey makes key the one whose state is read and written. hash is the
// one that came with it.
func (b *Backend[K]) SetCurrentKey(hash uint64, key K) {
	b.hash, b.key = hash, key
	b.uses++
	b.use = b.uses
}

// ClearCurrentKey makes states unusable until the next SetCurrentKey.
func (b *Backend[K]) ClearCurrentKey() {
	var none K
	b.hash, b.key, b.use = 0, none, 0
}

// CurrentKey returns the current key and its hash; ok is false without one.
func (b *Backend[K]) CurrentKey() (hash uint64, key K, ok bool) {
	return b.hash, b.key, b.use != 0
}

// SetTime sets the processing time by which states expire, in milliseconds.
func (b *Backend[K]) SetTime(now int64) { b.now = now }

// Touch brings the states of keys near the processor, before a batch with those
// hashes is processed key by key. It changes nothing else.
func (b *Backend[K]) Touch(hashes []uint64) {
	for _, s := range b.states {
		s.touch(hashes)
	}
}

// CleanUp looks at the next values of every state with TTL, at most budget of
// each, and removes those that have expired. Called once a batch and now and
// then without input, it removes in the end what nobody reads any more.
func (b *Backend[K]) CleanUp(budget int) {
	for _, s := range b.states {
		s.cleanUp(budget)
	}
}

// Err returns the first misuse of a state by the function: a use without a
// current key. The operator asks after the calls it makes and ends the job.
func (b *Backend[K]) Err() error { return b.err }

func (b *Backend[K]) misused(name string) {
	if b.err == nil {
		b.err = fmt.Errorf("state %q was used without a current key: "+
			"use states only while a record or a timer of a keyed stream is processed", name)
	}
}

// EachKey calls visit for every key that has a value in s, which is a state of
// this backend, with that key as the current one. visit may change the state of
// its key. Afterwards there is no current key.
func (b *Backend[K]) EachKey[S any](s S, visit func(key K, s S) error) error {
	defer b.ClearCurrentKey()
	keys, ok := any(s).(keyedState[K])
	if !ok {
		return fmt.Errorf("%T is not a state of this operator", s)
	}
	// Downwards, because a deletion moves the last key, which is done.
	for i := keys.len() - 1; i >= 0; i-- {
		hash, key := keys.keyAt(i)
		b.SetCurrentKey(hash, key)
		if err := visit(key, s); err != nil {
			return err
		}
	}
	return nil
}

// Value opens a value state.
func (b *Backend[K]) Value[V any](d state.ValueDescriptor[V]) (state.ValueState[V], error) {
	return open(b, d, func(name string, ttl expiry) state.ValueState[V] {
		if ttl.none() {
			return &valueState[K, V]{newStore[K, V](b, name)}
		}
		return &agingValue[K, V]{newAging[K, V](b, name, ttl)}
	})
}

// Reducing opens a reducing state.
func (b *Backend[K]) Reducing[V any](d state.ReducingDescriptor[V]) (state.ReducingState[V], error) {
	return open(b, d, func(name string, ttl expiry) state.ReducingState[V] {
		if ttl.none() {
			return &reducingState[K, V]{newStore[K, V](b, name), d.Combine()}
		}
		return &agingReducing[K, V]{newAging[K, V](b, name, ttl), d.Combine()}
	})
}

// Aggregating opens an aggregating state.
func (b *Backend[K]) Aggregating[In, Acc, Out any](d state.AggregatingDescriptor[In, Acc, Out]) (state.AggregatingState[In, Out], error) {
	return open(b, d, func(name string, ttl expiry) state.AggregatingState[In, Out] {
		if ttl.none() {
			return &aggregatingState[K, In, Acc, Out]{newStore[K, Acc](b, name), d.Aggregator()}
		}
		return &agingAggregating[K, In, Acc, Out]{newAging[K, Acc](b, name, ttl), d.Aggregator()}
	})
}

// List opens a list state.
func (b *Backend[K]) List[V any](d state.ListDescriptor[V]) (state.ListState[V], error) {
	return open(b, d, func(name string, ttl expiry) state.ListState[V] {
		if ttl.none() {
			return &listState[K, V]{newStore[K, []V](b, name)}
		}
		return &agingList[K, V]{store: newStore[K, datedList[V]](b, name), expiry: ttl}
	})
}

// Map opens a map state. It fails if MK cannot be hashed.
func (b *Backend[K]) Map[MK comparable, MV any](d state.MapDescriptor[MK, MV]) (state.MapState[MK, MV], error) {
	keys, err := newMapKeys[MK]()
	if err != nil {
		return nil, fmt.Errorf("map state %q: %w", d.Name(), err)
	}
	return open(b, d, func(name string, ttl expiry) state.MapState[MK, MV] {
		if ttl.none() {
			s := &mapState[K, MK, MV]{store: newStore[K, entries[MK, MV]](b, name), mapKeys: keys}
			s.all = s.each
			return s
		}
		s := &agingMap[K, MK, MV]{store: newStore[K, entries[MK, dated[MV]]](b, name), mapKeys: keys, expiry: ttl}
		s.all = s.each
		return s
	})
}

// open returns the state that d declares: the one of that name if it was opened
// before with the same declaration, else a new one.
func open[K comparable, D descriptor, S any](b *Backend[K], d D, build func(name string, ttl expiry) S) (S, error) {
	var none S
	if err := d.Validate(); err != nil {
		return none, err
	}
	now := opened[K]{descriptor: reflect.TypeFor[D](), ttl: d.TTL()}
	if before, ok := b.opened[d.Name()]; ok {
		switch s, _ := any(before.state).(S); {
		case before.descriptor != now.descriptor:
			return none, fmt.Errorf("state %q is declared twice, as %v and as %v: give each state a name of its own",
				d.Name(), before.descriptor, now.descriptor)
		case before.ttl != now.ttl:
			return none, fmt.Errorf("state %q is declared twice, with TTL %+v and with %+v: give each state a name of its own",
				d.Name(), before.ttl, now.ttl)
		default:
			return s, nil
		}
	}
	s := build(d.Name(), newExpiry(d.TTL()))
	now.state = any(s).(keyedState[K])
	b.opened[d.Name()] = now
	b.states = append(b.states, now.state)
	return s, nil
}
