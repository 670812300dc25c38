package window

// Scope holds the State of one window of one key, or of one key.
type Scope struct{ cells []cell }

type cell struct {
	name string
	held holder
}

// holder is a *held of any type.
type holder interface{ held() }

type held[S any] struct{ value S }

func (*held[S]) held() {}

// Empty reports whether no State is set.
func (s *Scope) Empty() bool { return len(s.cells) == 0 }

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
	return 0, nil
}

// Get returns the value; ok is false if none is set.
func (s State[S]) Get(in *Scope) (v S, ok bool) {
	if _, h := s.find(in); h != nil {
		return h.value, true
	}
	return v, false
}

// Set sets the value.
func (s State[S]) Set(in *Scope, v S) {
	if _, h := s.find(in); h != nil {
		h.value = v
		return
	}
	in.cells = append(in.cells, cell{s.name, &held[S]{v}})
}

// Clear removes the value.
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
