package keyed

import (
	"fmt"
	"reflect"

	"github.com/lowwater/lowwater/internal/snapshot"
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
	storage   Storage
	// keys is how keys are stored, nil if they are not.
	keys *KeyCodec[K]
	// overflow is nil without a budget.
	overflow *overflow
	// walked is the state whose table is being visited, which must stay as it is.
	walked keyedState[K]
}

// Storage says how the states of a backend are stored and restored.
type Storage struct {
	// Kind is that of the states' parts: snapshot.Keyed or snapshot.Broadcast.
	Kind snapshot.Kind
	// Prefix comes before the names of states in the names of parts.
	Prefix string
	// Restored is what states are restored from, nil if there is nothing.
	Restored snapshot.Reader
	// MaxParallelism is the number of key groups, 1 for states that are not keyed, and Groups
	// are those of the subtask.
	MaxParallelism int
	Groups         GroupRange
}

func (s *Storage) part(state string) string { return s.Prefix + state }

// keyedState is a state of any kind and type.
type keyedState[K comparable] interface {
	len() int
	keyAt(i int) (hash uint64, key K)
	// hasValueAt reports whether what there is of a key can be read, or has expired.
	hasValueAt(i int) bool
	touch(hashes []uint64)
	cleanUp(budget int)
	snapshot(*Snapshot) error
	restore(snapshot.PartReader) error

	// The following are called with a budget only.

	bytes() (table, filter int)
	spilledLen() int
	diskNumber() int
	restoreDisk(cells snapshot.PartReader, livesAt int64) error
	spillSome(bytes int) error
	bringAll(hashes []uint64, keys []K) error
	eachOnDisk(visit func(hash uint64, key K) error) error
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

// Store makes states storable. It comes before the states are opened, which then take up
// what was stored under their names, except for what RestoreSpilled does; without it, their
// types may be any. It fails if keys cannot be stored.
func (b *Backend[K]) Store(s Storage) error {
	keys, err := NewKeyCodec[K](s.MaxParallelism)
	b.storage, b.keys = s, keys
	return err
}

// Keys returns how keys are stored, nil without Store.
func (b *Backend[K]) Keys() *KeyCodec[K] { return b.keys }

// Snapshot adds the states that have been opened, each as a part of its own. What has
// expired is left out.
func (b *Backend[K]) Snapshot(s *Snapshot) error {
	if b.err != nil {
		return b.err
	}
	if b.use != 0 { // states remember where their values are
		b.uses++
		b.use = b.uses
	}
	if err := b.snapshotImage(s); err != nil {
		return err
	}
	for _, state := range b.states {
		if err := state.snapshot(s); err != nil {
			return err
		}
	}
	return nil
}

// SetCurrentKey makes key the one whose state is read and written. hash is the
// one that came with it.
func (b *Backend[K]) SetCurrentKey(hash uint64, key K) {
	if b.overflow != nil {
		b.watch()
	}
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

// Touch brings the states of keys near, before a batch with those keys and hashes is
// processed key by key: from disk into memory, and near the processor. Nothing else
// changes. There is no current key.
func (b *Backend[K]) Touch(hashes []uint64, keys []K) {
	if b.overflow != nil {
		b.bringAll(hashes, keys)
	}
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

// Err returns the first error: a misuse of a state by the function, such as a use without a
// current key, or what went wrong on disk. From then on states may lack what they should have,
// so the operator asks before each call that it makes of the function, and ends the job.
func (b *Backend[K]) Err() error { return b.err }

// Fail notes an error, if it is one and the first.
func (b *Backend[K]) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Backend[K]) misused(name string) {
	b.Fail(fmt.Errorf("state %q was used without a current key: "+
		"use states only while a record or a timer of a keyed stream is processed", name))
}

// EachKey calls visit for every key that has a value in s, which is a state of
// this backend, with that key as the current one. What has expired and cannot be read is no
// value. visit may change the state of
// its key. Afterwards there is no current key.
func (b *Backend[K]) EachKey[S any](s S, visit func(key K, s S) error) error {
	defer b.ClearCurrentKey()
	keys, ok := any(s).(keyedState[K])
	if !ok {
		return fmt.Errorf("%T is not a state of this operator", s)
	}
	visitKey := func(hash uint64, key K) error {
		b.SetCurrentKey(hash, key)
		if b.err != nil {
			return b.err
		}
		return visit(key, s)
	}
	b.walked = keys
	defer func() { b.walked = nil }()
	// Downwards, because a deletion moves the last key, which is done.
	for i := keys.len() - 1; i >= 0; i-- {
		if !keys.hasValueAt(i) {
			continue
		}
		if err := visitKey(keys.keyAt(i)); err != nil {
			return err
		}
	}
	if b.overflow == nil {
		return nil
	}
	return keys.eachOnDisk(func(hash uint64, key K) error {
		b.walked = nil // what goes to disk from now on is not visited again
		return visitKey(hash, key)
	})
}

// Value opens a value state.
func (b *Backend[K]) Value[V any](d state.ValueDescriptor[V]) (state.ValueState[V], error) {
	return open(b, d, func(name string, ttl expiry) (state.ValueState[V], error) {
		if ttl.none() {
			s, err := newPlain[K, V](b, name, valueLayout)
			return &valueState[K, V]{s}, err
		}
		s, err := newAging[K, V](b, name, ttl, valueLayout)
		return &agingValue[K, V]{s}, err
	})
}

// Reducing opens a reducing state.
func (b *Backend[K]) Reducing[V any](d state.ReducingDescriptor[V]) (state.ReducingState[V], error) {
	return open(b, d, func(name string, ttl expiry) (state.ReducingState[V], error) {
		if ttl.none() {
			s, err := newPlain[K, V](b, name, reducingLayout)
			return &reducingState[K, V]{s, d.Combine()}, err
		}
		s, err := newAging[K, V](b, name, ttl, reducingLayout)
		return &agingReducing[K, V]{s, d.Combine()}, err
	})
}

// Aggregating opens an aggregating state.
func (b *Backend[K]) Aggregating[In, Acc, Out any](d state.AggregatingDescriptor[In, Acc, Out]) (state.AggregatingState[In, Out], error) {
	return open(b, d, func(name string, ttl expiry) (state.AggregatingState[In, Out], error) {
		if ttl.none() {
			s, err := newPlain[K, Acc](b, name, aggregatingLayout)
			return &aggregatingState[K, In, Acc, Out]{s, d.Aggregator()}, err
		}
		s, err := newAging[K, Acc](b, name, ttl, aggregatingLayout)
		return &agingAggregating[K, In, Acc, Out]{s, d.Aggregator()}, err
	})
}

// List opens a list state.
func (b *Backend[K]) List[V any](d state.ListDescriptor[V]) (state.ListState[V], error) {
	return open(b, d, func(name string, ttl expiry) (state.ListState[V], error) {
		if ttl.none() {
			return newList[K, V](b, name)
		}
		return newAgingList[K, V](b, name, ttl)
	})
}

// Map opens a map state. It fails if MK cannot be hashed.
func (b *Backend[K]) Map[MK comparable, MV any](d state.MapDescriptor[MK, MV]) (state.MapState[MK, MV], error) {
	keys, err := newMapKeys[MK]()
	if err != nil {
		return nil, fmt.Errorf("map state %q: %w", d.Name(), err)
	}
	return open(b, d, func(name string, ttl expiry) (state.MapState[MK, MV], error) {
		if ttl.none() {
			return newMap[K, MK, MV](b, name, keys)
		}
		return newAgingMap[K, MK, MV](b, name, keys, ttl)
	})
}

// open returns the state that d declares: the one of that name if it was opened
// before with the same declaration, else a new one.
func open[K comparable, D descriptor, S any](b *Backend[K], d D, build func(name string, ttl expiry) (S, error)) (S, error) {
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
	s, err := build(d.Name(), newExpiry(d.TTL()))
	if err != nil {
		return none, fmt.Errorf("state %q: %w", d.Name(), err)
	}
	now.state = any(s).(keyedState[K])
	b.states = append(b.states, now.state)
	if err := b.restore(d.Name(), now.state); err != nil {
		return none, fmt.Errorf("state %q cannot be restored: %w", d.Name(), err)
	}
	b.opened[d.Name()] = now
	return s, nil
}

// restore lets a state that was just opened take up what was stored under its name.
func (b *Backend[K]) restore(name string, s keyedState[K]) error {
	if b.storage.Restored == nil {
		return nil
	}
	part, ok := b.storage.Restored.Part(b.storage.part(name))
	if !ok {
		return nil
	}
	return s.restore(part)
}
