package keyedop

import (
	"fmt"
	"reflect"

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
	// misused takes the function's mistakes.
	misused func(error)
}

// storedList is a list of any type.
type storedList interface{ snapshot(*keyed.Snapshot) error }

// openedList is a list with what it was declared as.
type openedList struct {
	list       storedList
	descriptor reflect.Type
	union      bool
}

// listVersion is the layout of a list's part: an entry for each element.
const listVersion = 1

// List opens a list of the subtask.
func (s *OperatorStates) List[V any](d state.OperatorListDescriptor[V]) state.ListState[V] {
	l, err := openList(s, d)
	s.misused(err)
	return l
}

func openList[V any](s *OperatorStates, d state.OperatorListDescriptor[V]) (*operatorList[V], error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	now := openedList{descriptor: reflect.TypeOf(d), union: d.IsUnion()}
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
	// image is what is left to be written by the last snapshot, nil if it is over.
	image *listImage[V]
}

// listImage is the elements that a list had when a snapshot began, less those that are
// written. The list appends behind them.
type listImage[V any] struct {
	to    *keyed.Snapshot
	part  snapshot.PartWriter
	codec *codec.Codec[V]
	rest  []V
	buf   []byte
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
	l.image = &listImage[V]{to: to, part: part, codec: l.codec, rest: l.values}
	to.Add(l.image.next)
	return nil
}

// elementsPerBlock is how many elements are written at a time.
const elementsPerBlock = 256

func (m *listImage[V]) next() (more bool, err error) {
	n := min(len(m.rest), elementsPerBlock)
	for i := range m.rest[:n] {
		if m.buf, err = m.codec.Append(m.buf[:0], &m.rest[i]); err != nil {
			return false, err
		}
		if err := m.part.Append(0, m.buf); err != nil {
			return false, err
		}
	}
	m.rest = m.rest[n:]
	return len(m.rest) > 0, nil
}

func (m *listImage[V]) all() error {
	for more := true; more; {
		var err error
		if more, err = m.next(); err != nil {
			return err
		}
	}
	return nil
}

// isBeingWritten reports whether a snapshot may still read the elements.
func (l *operatorList[V]) isBeingWritten() bool {
	if l.image != nil && l.image.to.Over() {
		l.image = nil
	}
	return l.image != nil
}

func (l *operatorList[V]) Get() []V {
	if l.shared && l.isBeingWritten() {
		l.image.to.Before(l.image.all)
	}
	return l.values
}

func (l *operatorList[V]) Add(v V) { l.values = append(l.values, v) }

func (l *operatorList[V]) AddAll(vs []V) { l.values = append(l.values, vs...) }

func (l *operatorList[V]) Set(vs []V) { l.values = append([]V(nil), vs...) }

func (l *operatorList[V]) Clear() { l.values = nil }
