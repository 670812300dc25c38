package keyedop

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/state"
)

// OperatorStates is the states of an operator that belong to the subtask instead of to a
// key.
type OperatorStates struct {
	rt    *operator.Runtime
	lists []storedList
	// opened has the lists by name.
	opened map[string]openedList
	// failed takes the function's mistakes.
	failed func(error)
}

// storedList is a list of any type.
type storedList interface{ snapshot(*keyed.Snapshot) error }

// openedList is a list with what it was declared as.
type openedList struct {
	list  storedList
	union bool
}

// listVersion is the layout of a list's part: an entry for each element.
const listVersion = 1

// List opens a list of the subtask. If that fails, it returns one that is used in vain until the
// error ends the job after the call: the function may use it at once.
func (s *OperatorStates) List[V any](d state.OperatorListDescriptor[V]) state.ListState[V] {
	l, err := openList(s, d)
	if err != nil {
		s.failed(err)
		return &operatorList[V]{}
	}
	return l
}

func openList[V any](s *OperatorStates, d state.OperatorListDescriptor[V]) (*operatorList[V], error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	now := openedList{union: d.IsUnion()}
	if before, ok := s.opened[d.Name()]; ok {
		l, same := before.list.(*operatorList[V])
		if !same || before.union != now.union {
			return nil, fmt.Errorf("operator state %q is declared twice, in different ways: give each state a name of its own", d.Name())
		}
		return l, nil
	}
	l := &operatorList[V]{name: d.Name(), kind: snapshot.List, shared: keyed.IsShared[V]()}
	if d.IsUnion() {
		l.kind = snapshot.Union
	}
	if isStored(s.rt) {
		if err := l.store(s.rt.Restored); err != nil {
			return nil, fmt.Errorf("operator state %q: %w", d.Name(), err)
		}
	}
	if s.opened == nil {
		s.opened = map[string]openedList{}
	}
	now.list = l
	s.opened[d.Name()] = now
	s.lists = append(s.lists, l)
	return l, nil
}

// isStored reports whether what an operator keeps must be storable.
func isStored(rt *operator.Runtime) bool { return rt.Checkpointing || rt.Restored != nil }

func (s *OperatorStates) snapshot(to *keyed.Snapshot) error {
	for _, l := range s.lists {
		if err := l.snapshot(to); err != nil {
			return err
		}
	}
	return nil
}

// operatorList is a list of the subtask.
type operatorList[V any] struct {
	name   string
	kind   snapshot.Kind
	codec  *codec.Codec[V]
	values []V
	// shared says that a copy of an element shares memory with it.
	shared bool
	// image is the list, as one entry, in the last snapshot, nil if that is known to be
	// written or elements are not shared.
	image *keyed.Image
}

func (l *operatorList[V]) store(from snapshot.Reader) (err error) {
	if l.codec, err = codec.For[V](); err != nil || from == nil {
		return err
	}
	part, ok := from.Part(l.part())
	if !ok {
		return nil
	}
	if stored := part.Part().Kind; stored != l.kind {
		return fmt.Errorf("it was stored as a %v and is now declared as a %v: give the new state another name", stored, l.kind)
	}
	decode, err := l.codec.Decoder(part.Part().Schemas["value"])
	if err != nil {
		return err
	}
	for e, err := range part.Entries() {
		if err != nil {
			return err
		}
		var v V
		if _, err := decode(e.Data, &v); err != nil {
			return err
		}
		l.values = append(l.values, v)
	}
	return nil
}

func (l *operatorList[V]) part() string { return "list/" + l.name }

func (l *operatorList[V]) snapshot(to *keyed.Snapshot) error {
	part, err := to.Part(snapshot.Part{
		Name: l.part(), Kind: l.kind, Version: listVersion, Schemas: map[string]string{"value": l.codec.Schema()},
	})
	if err != nil {
		return err
	}
	rest := l.values // the list appends behind them
	next := func(to *keyed.Encoder) (more bool, err error) {
		n := min(len(rest), elementsPerBlock)
		for i := range rest[:n] {
			if to.Data, err = l.codec.Append(to.Data, &rest[i]); err != nil {
				return false, err
			}
			to.End(part, 0)
		}
		rest = rest[n:]
		return len(rest) > 0, nil
	}
	if !l.shared {
		to.Add(next)
		return nil
	}
	if l.image != nil {
		l.image.Supersede()
	}
	l.image = to.Image(0, 1, func(to *keyed.Encoder, _ uint32) (err error) {
		for more := true; more && err == nil; {
			more, err = next(to)
		}
		return err
	})
	return nil
}

// elementsPerBlock is how many elements are written at a time.
const elementsPerBlock = 256

func (l *operatorList[V]) Get() []V {
	if l.image != nil {
		l.image.Keep(0)
		l.image = nil
	}
	return l.values
}

func (l *operatorList[V]) Add(v V) { l.values = append(l.values, v) }

func (l *operatorList[V]) AddAll(vs []V) { l.values = append(l.values, vs...) }

func (l *operatorList[V]) Set(vs []V) { l.values = append([]V(nil), vs...) }

func (l *operatorList[V]) Clear() { l.values = nil }
