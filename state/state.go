// Package state is the vocabulary of keyed state: the kinds of state that a
// keyed function may keep for each key, the descriptors that declare them, and
// time-to-live.
//
// It holds declarations only. Where values live, how they expire and how they
// become part of a snapshot is internal/keyed's.
//
// A function declares a state once, when it is opened, and then uses it for one
// record or timer after the other: each use reads and writes the value of the
// current key (spec windows 5.2). States are not safe for concurrent use and
// must not be used outside of the function's calls. Methods return no errors:
// a use that is wrong, such as without a current key, fails the job when the
// function returns.
//
// What a value points to (pointers, slices, maps) may be changed without a Set or Put, but only
// in the call of the function in which the value was read or set: afterwards a snapshot may be
// reading it, or it may be on disk. No two keys may share it. With checkpoints, types must be
// such that they can be stored; docs/state.md says which.
package state

import "iter"

// ValueState is one value per key.
type ValueState[V any] interface {
	// Get returns the value; ok is false if none is set.
	Get() (v V, ok bool)
	// Set sets the value, in place of the one that was.
	Set(V)
	// Clear removes the value, so that the key takes no memory.
	Clear()
}

// ListState is a list per key. A key without one has the empty list.
type ListState[V any] interface {
	// Get returns the elements in the order in which they were added. The slice
	// is valid until the next use of the state and must not be changed.
	Get() []V
	// Add adds an element to the end of the list.
	Add(V)
	// AddAll copies the elements to the end of the list.
	AddAll([]V)
	// Set replaces the list by a copy of the elements; none clears it.
	Set([]V)
	// Clear removes all elements.
	Clear()
}

// MapState is a map per key. A key without one has the empty map.
type MapState[K comparable, V any] interface {
	// Get returns the value of an entry; ok is false if there is none.
	Get(K) (v V, ok bool)
	// Contains reports whether there is an entry.
	Contains(K) bool
	// Put sets the value of an entry.
	Put(K, V)
	// Remove removes an entry, if there is one.
	Remove(K)
	// All visits the entries, in an order that depends only on the calls made; with TTL also
	// on when expired entries were removed.
	// Meanwhile only the entry being visited may be put or removed.
	All() iter.Seq2[K, V]
	// IsEmpty reports whether there are no entries. It does not ask whether
	// those that there are have expired (spec windows 5.3).
	IsEmpty() bool
	// Clear removes all entries.
	Clear()
}

// ReducingState combines all values added for a key into one.
type ReducingState[V any] interface {
	// Get returns the combined value; ok is false if none was added.
	Get() (v V, ok bool)
	// Add combines a value with the ones before.
	Add(V)
	// Clear removes the combined value; the next one that is added is the first.
	Clear()
}

// AggregatingState folds all values added for a key into an accumulator, whose
// result it returns.
type AggregatingState[In, Out any] interface {
	// Get returns the result; ok is false if nothing was added.
	Get() (out Out, ok bool)
	// Add adds a value to the accumulator.
	Add(In)
	// Clear removes the accumulator; the next value that is added goes to a new one.
	Clear()
}
