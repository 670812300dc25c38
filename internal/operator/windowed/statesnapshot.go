package windowed

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/window"
)

// States of triggers and functions become known when they are used, each with a type of
// its own. In an entry a value has a fingerprint of what it is before it; a part of its
// own says what the fingerprints mean. A restored value stays as it was stored until its
// State is used, and is stored again as it is if that does not happen.

// stateKind is what a fingerprint means.
type stateKind struct{ name, typ, schema string }

func (k stateKind) fingerprint() uint64 {
	sum := sha256.Sum256(k.entry())
	return binary.LittleEndian.Uint64(sum[:])
}

// entry is how the kind is stored, behind its fingerprint.
func (k stateKind) entry() []byte {
	var data []byte
	for _, s := range []string{k.name, k.typ, k.schema} {
		data = append(binary.AppendUvarint(data, uint64(len(s))), s...)
	}
	return data
}

func parseStateKind(data []byte) (k stateKind, err error) {
	for _, s := range []*string{&k.name, &k.typ, &k.schema} {
		if *s, data, err = parseString(data); err != nil {
			return k, err
		}
	}
	return k, nil
}

func parseString(data []byte) (s string, rest []byte, err error) {
	n, data := uvarint(data)
	if uint64(len(data)) < n || data == nil {
		return "", nil, errCutShort
	}
	return string(data[:n]), data[n:], nil
}

// stateWriter writes scopes for one side of a snapshot.
type stateWriter struct {
	part keyed.PartNumber
	// codecs are those of the states met so far, by name and type.
	codecs map[stateType]*stateCodec
	// told are the fingerprints that the part has from this side, or will have: untold
	// are those that it does not have yet.
	told   map[uint64]bool
	untold []toldKind
	value  []byte
}

// toldKind is a fingerprint and what it means.
type toldKind struct {
	fingerprint uint64
	kind        stateKind
}

// write writes an entry of the part with the states.
func (t *toldKind) write(to *keyed.Encoder, part keyed.PartNumber) {
	to.Data = append(binary.LittleEndian.AppendUint64(to.Data, t.fingerprint), t.kind.entry()...)
	to.End(part, 0)
}

type stateType struct {
	name string
	typ  reflect.Type
}

type stateCodec struct {
	*codec.Dynamic
	fingerprint uint64
}

func newStateWriter(part keyed.PartNumber) *stateWriter {
	return &stateWriter{part: part, codecs: map[stateType]*stateCodec{}, told: map[uint64]bool{}}
}

// append appends the states of a scope to dst.
func (w *stateWriter) append(dst []byte, s *window.Scope) ([]byte, error) {
	count := uint64(0)
	for range s.All() {
		count++
	}
	dst = binary.AppendUvarint(dst, count)
	for name, v := range s.All() {
		fingerprint, err := w.encode(name, v)
		if err != nil {
			return nil, fmt.Errorf("window state %q: %w", name, err)
		}
		dst = binary.LittleEndian.AppendUint64(dst, fingerprint)
		dst = binary.AppendUvarint(dst, uint64(len(w.value)))
		dst = append(dst, w.value...)
	}
	return dst, nil
}

// encode puts a value that window.Scope.All visits into w.value.
func (w *stateWriter) encode(name string, v reflect.Value) (fingerprint uint64, err error) {
	if r, ok := v.Interface().(*restoredState); ok {
		w.value = append(w.value[:0], r.data...)
		w.meet(r.fingerprint, r.kind)
		return r.fingerprint, nil
	}
	c, err := w.codec(stateType{name, v.Type().Elem()})
	if err != nil {
		return 0, err
	}
	w.value, err = c.Append(w.value[:0], v)
	return c.fingerprint, err
}

func (w *stateWriter) codec(t stateType) (*stateCodec, error) {
	if c := w.codecs[t]; c != nil {
		return c, nil
	}
	dynamic, err := codec.Of(t.typ)
	if err != nil {
		return nil, err
	}
	kind := stateKind{t.name, t.typ.String(), dynamic.Schema()}
	c := &stateCodec{dynamic, kind.fingerprint()}
	w.codecs[t] = c
	w.meet(c.fingerprint, kind)
	return c, nil
}

// meet sees to it that what a fingerprint means is told.
func (w *stateWriter) meet(fingerprint uint64, k stateKind) {
	if w.told[fingerprint] {
		return
	}
	w.told[fingerprint] = true
	w.untold = append(w.untold, toldKind{fingerprint, k})
}

// tell writes what new fingerprints mean. No entry must be begun.
func (w *stateWriter) tell(to *keyed.Encoder) {
	for _, t := range w.untold {
		t.write(to, w.part)
	}
	w.untold = w.untold[:0]
}

// restoredStates is what all restored values share.
type restoredStates struct {
	checkpoint int64
	kinds      map[uint64]stateKind
	decoders   map[restoredType]decoder
	// err is the first failure to decode a value. The operator asks after the calls it
	// makes.
	err error
}

// decoder sets the value that v points to.
type decoder func(data []byte, v reflect.Value) (rest []byte, err error)

// restoredType is a stored kind and the type that its State has now.
type restoredType struct {
	fingerprint uint64
	typ         reflect.Type
}

func newRestoredStates() *restoredStates {
	return &restoredStates{kinds: map[uint64]stateKind{}, decoders: map[restoredType]decoder{}}
}

func readStates(r snapshot.Reader) (*restoredStates, error) {
	s := newRestoredStates()
	s.checkpoint = r.Checkpoint()
	part, ok := r.Part(statesPart)
	if !ok {
		return s, nil
	}
	err := eachEntry(part, func(e snapshot.Entry) error {
		if len(e.Data) < 8 {
			return errCutShort
		}
		kind, err := parseStateKind(e.Data[8:])
		s.kinds[binary.LittleEndian.Uint64(e.Data)] = kind
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d cannot be restored: part %q of the windows: %w", r.Checkpoint(), statesPart, err)
	}
	return s, nil
}

// scope reads the states of a scope and returns the bytes behind them.
func (s *restoredStates) scope(data []byte, into *window.Scope) ([]byte, error) {
	count, data := uvarint(data)
	if data == nil {
		return nil, errCutShort
	}
	for range count {
		if len(data) < 8 {
			return nil, errCutShort
		}
		fingerprint := binary.LittleEndian.Uint64(data)
		kind, ok := s.kinds[fingerprint]
		if !ok {
			return nil, fmt.Errorf("a state with the fingerprint %x, which part %q does not know", fingerprint, statesPart)
		}
		value, rest, err := parseString(data[8:])
		if err != nil {
			return nil, err
		}
		into.Restore(kind.name, &restoredState{s, fingerprint, kind, []byte(value)})
		data = rest
	}
	return data, nil
}

// restoredState is a value that its State has not asked for yet.
type restoredState struct {
	states      *restoredStates
	fingerprint uint64
	kind        stateKind
	data        []byte
}

// Type implements window.Restored.
func (r *restoredState) Type() string { return r.kind.typ }

// Decode implements window.Restored.
func (r *restoredState) Decode(into reflect.Value) bool {
	err := r.states.decode(r, into)
	if err != nil && r.states.err == nil {
		r.states.err = fmt.Errorf("window state %q from checkpoint %d: %w; go back to the type that it had, "+
			"or give the state another name to start without", r.kind.name, r.states.checkpoint, err)
	}
	return err == nil
}

func (s *restoredStates) decode(r *restoredState, into reflect.Value) error {
	t := restoredType{r.fingerprint, into.Type().Elem()}
	decode := s.decoders[t]
	if decode == nil {
		c, err := codec.Of(t.typ)
		if err != nil {
			return err
		}
		if decode, err = c.Decoder(r.kind.schema); err != nil {
			return err
		}
		s.decoders[t] = decode
	}
	_, err := decode(r.data, into)
	return err
}
