package window

import (
	"iter"
	"reflect"
)

// Scope holds the State of one window of one key, or of one key. Triggers get it from their
// TriggerContext, window functions from WindowState and KeyState of their context. It is
// valid during the call only, and part of checkpoints.
type Scope struct {
	cells []cell
	// restored is the number of cells that hold a Restored.
	restored int
}

type cell struct {
	name string
	held holder
}

// holder is a *held of any type, or a restored.
type holder interface{ content() reflect.Value }

type held[S any] struct{ value S }

func (h *held[S]) content() reflect.Value { return reflect.ValueOf(&h.value) }

// Restored is a value from a snapshot that no State has asked for yet, so that its type
// is known by name only.
type Restored interface {
	// Type is the name of the type that the State had.
	Type() string
	// Decode sets what a pointer to the type that the State has now points to. If it
	// cannot, it reports false and tells its operator.
	Decode(into reflect.Value) bool
}

type restored struct{ Restored }

func (r restored) content() reflect.Value { return reflect.ValueOf(r.Restored) }

// All visits the names and contents of all that is set: a pointer to the value, or the
// Restored that nobody has asked for since. It is for operators that store scopes.
func (s *Scope) All() iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for _, c := range s.cells {
			if !yield(c.name, c.held.content()) {
				return
			}
		}
	}
}

// Restore adds a value from a snapshot. It is for operators that store scopes.
func (s *Scope) Restore(name string, v Restored) {
	s.cells = append(s.cells, cell{name, restored{v}})
	s.restored++
}

// IsEmpty reports whether no State is set.
func (s *Scope) IsEmpty() bool { return len(s.cells) == 0 }

// State is a value that triggers and window functions keep by scope. It is made
// once, and stands for the value in whatever scope it is used with.
type State[S any] struct{ name string }

// NewState returns the state of that name. It must be unique among the states of
// its type that share scopes: those of a trigger and the triggers inside it, and
// those of a window function.
func NewState[S any](name string) State[S] { return State[S]{name} }

// find returns the state's place among the cells of a scope.
func (s State[S]) find(in *Scope) (i int, h *held[S]) {
	for i, c := range in.cells {
		if h, ok := c.held.(*held[S]); ok && c.name == s.name {
			return i, h
		}
	}
	if in.restored > 0 {
		return s.claim(in)
	}
	return 0, nil
}

// claim decodes the state's value from a snapshot: the one of its name and type, or the
// only one of its name if the type has got another one.
func (s State[S]) claim(in *Scope) (i int, h *held[S]) {
	found, named := -1, 0
	for i, c := range in.cells {
		r, ok := c.held.(restored)
		if !ok || c.name != s.name {
			continue
		}
		if found, named = i, named+1; r.Type() == reflect.TypeFor[S]().String() {
			named = 1
			break
		}
	}
	if named != 1 {
		return 0, nil
	}
	h = &held[S]{}
	if !in.cells[found].held.(restored).Decode(h.content()) {
		return 0, nil
	}
	in.cells[found].held = h
	in.restored--
	return found, h
}

// Get returns the value; ok is false if none is set.
func (s State[S]) Get(in *Scope) (v S, ok bool) {
	if _, h := s.find(in); h != nil {
		return h.value, true
	}
	return v, false
}

// Set sets the value, in place of the one that was.
func (s State[S]) Set(in *Scope, v S) {
	if _, h := s.find(in); h != nil {
		h.value = v
		return
	}
	in.cells = append(in.cells, cell{s.name, &held[S]{v}})
}

// Clear removes the value, if there is one.
func (s State[S]) Clear(in *Scope) {
	if i, h := s.find(in); h != nil {
		last := len(in.cells) - 1
		in.cells[i] = in.cells[last]
		in.cells[last] = cell{}
		in.cells = in.cells[:last]
	}
}

// MergingState is a State whose values can be combined when windows become one.
type MergingState[S any] struct {
	State[S]
	merge func(a, b S) S
}

// NewMergingState is NewState with the function that combines two values.
func NewMergingState[S any](name string, merge func(a, b S) S) MergingState[S] {
	return MergingState[S]{NewState[S](name), merge}
}

// Merge moves the values of other scopes into the one of in.
func (s MergingState[S]) Merge(in *Scope, others []*Scope) {
	for _, other := range others {
		v, ok := s.Get(other)
		if !ok {
			continue
		}
		s.Clear(other)
		if own, ok := s.Get(in); ok {
			v = s.merge(own, v)
		}
		s.Set(in, v)
	}
}
