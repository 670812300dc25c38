package codec

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// kind is how a Go type is laid out in Avro.
type kind uint8

const (
	boolean kind = iota
	intKind      // Avro int: at most 32 bits signed
	long
	uint64Kind // long with the same 64 bits
	float
	double
	str
	bytes     // union of null and bytes
	fixed     // [n]byte
	array     // [n]T
	slice     // union of null and array
	stringMap // union of null and map
	pairs     // other maps: union of null and array of records
	pointer   // union of null and the element
	record
	timeKind  // record of seconds, nanoseconds, zone and offset
	marshaled // bytes by the type's own methods
)

// nullable reports whether the kind is a union with null. Avro allows no union
// directly in another.
func (k kind) nullable() bool {
	return k == bytes || k == slice || k == stringMap || k == pairs || k == pointer
}

// shape is a Go type with all decisions about its Avro form made.
type shape struct {
	kind kind
	typ  reflect.Type
	// name is that of the record or fixed; of pairs, the record of one pair; of a
	// pointer to something nullable, the record around it. Otherwise it is empty.
	name   string
	fields []field
	// leftOut is the Go name of a field that a record's tag leaves out, if any.
	leftOut string
	// elem is what an array, slice, map or pointer holds, key a map's key.
	elem, key *shape
	methods   methods
}

type field struct {
	name    string
	goName  string
	aliases []string
	offset  uintptr
	shape   *shape
	// missing is what a field gets that was not stored; invalid for zero.
	missing reflect.Value
}

// methods are how a type of kind marshaled does it.
type methods struct {
	marshal   func(p unsafe.Pointer) ([]byte, error)
	unmarshal func(p unsafe.Pointer, data []byte) error
}

// shaper makes shapes, one for each type.
type shaper struct {
	shapes map[reflect.Type]*shape
	// open has the types under way that are not records.
	open  map[reflect.Type]bool
	names map[string]bool
}

func shapeOf(t reflect.Type) (*shape, error) {
	b := shaper{shapes: map[reflect.Type]*shape{}, open: map[reflect.Type]bool{}, names: map[string]bool{}}
	for _, reserved := range []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string",
		"record", "enum", "array", "map", "fixed", "union", "error"} {
		b.names[reserved] = true
	}
	return b.shape(t)
}

// unique returns an Avro name made of a Go one.
func (b *shaper) unique(goName string) string {
	name, _, _ := strings.Cut(goName, "[")
	clean := []byte(name)
	for i, c := range clean {
		if !isNameByte(c, i) {
			clean[i] = '_'
		}
	}
	name = string(clean)
	if name == "" {
		name = "Record"
	}
	free := name
	for n := 2; b.names[free]; n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	b.names[free] = true
	return free
}

func isNameByte(c byte, at int) bool {
	return c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || at > 0 && '0' <= c && c <= '9'
}

func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i], i) {
			return false
		}
	}
	return s != ""
}

func (b *shaper) shape(t reflect.Type) (*shape, error) {
	if s, ok := b.shapes[t]; ok {
		return s, nil
	}
	if b.open[t] {
		return nil, fmt.Errorf("%v contains itself without a struct in between: put one there", t)
	}
	s := &shape{typ: t}
	if t.Kind() == reflect.Struct {
		b.shapes[t] = s // fields may point back
	} else {
		b.open[t] = true
		defer delete(b.open, t)
	}
	if err := b.fill(s); err != nil {
		return nil, err
	}
	b.shapes[t] = s
	return s, nil
}

func (b *shaper) fill(s *shape) error {
	t := s.typ
	if t == reflect.TypeFor[time.Time]() {
		s.kind, s.name = timeKind, b.unique("Time")
		return nil
	}
	if m, ok := methodsOf(t); ok {
		s.kind, s.methods = marshaled, m
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		s.kind = boolean
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16:
		s.kind = intKind
	case reflect.Int, reflect.Int64, reflect.Uint32:
		s.kind = long
	case reflect.Uint, reflect.Uint64:
		s.kind = uint64Kind
	case reflect.Float32:
		s.kind = float
	case reflect.Float64:
		s.kind = double
	case reflect.String:
		s.kind = str
	case reflect.Struct:
		s.kind, s.name = record, b.unique(t.Name())
		return b.fillFields(s)
	case reflect.Array, reflect.Slice, reflect.Pointer, reflect.Map:
		return b.fillElems(s)
	default:
		return refusal(t)
	}
	return nil
}

func refusal(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Interface:
		return fmt.Errorf("the interface type %v does not say what is in it: use a concrete type, or a struct with a pointer to each possible one", t)
	case reflect.Complex64, reflect.Complex128:
		return fmt.Errorf("%v has no Avro form: use two floats", t)
	}
	return fmt.Errorf("%v means nothing in another process: keep what it is made from instead", t)
}

// fillElems fills the shape of a type that holds others.
func (b *shaper) fillElems(s *shape) error {
	t := s.typ
	elem, err := b.shape(t.Elem())
	if err != nil {
		return err
	}
	s.elem = elem
	isByte := t.Elem().Kind() == reflect.Uint8 && elem.kind == intKind
	switch t.Kind() {
	case reflect.Array:
		s.kind = array
		if isByte && t.Len() > 0 {
			s.kind, s.name = fixed, b.unique("fixed_"+strconv.Itoa(t.Len()))
		}
	case reflect.Slice:
		s.kind = slice
		if isByte {
			s.kind = bytes
		}
	case reflect.Pointer:
		s.kind = pointer
		if elem.kind.nullable() {
			s.name = b.unique("Pointer")
		}
	case reflect.Map:
		if s.key, err = b.shape(t.Key()); err != nil {
			return err
		}
		s.kind = stringMap
		if s.key.kind != str {
			s.kind, s.name = pairs, b.unique("Pair")
		}
	}
	return nil
}

func (b *shaper) fillFields(s *shape) error {
	named := map[string]string{}
	for sf := range s.typ.Fields() {
		tag, err := parseTag(sf.Tag.Get("avro"))
		if err != nil {
			return fmt.Errorf("%v.%s: %w", s.typ, sf.Name, err)
		}
		if sf.Name == "_" {
			continue
		}
		if tag.leaveOut {
			s.leftOut = sf.Name
			continue
		}
		if !sf.IsExported() && !(sf.Anonymous && structBehind(sf.Type)) {
			return fmt.Errorf("%v has the unexported field %s, which would be lost: export it, tag it `avro:\"-\"` if it need not survive a restart and is in no key, "+
				"or give %v the methods MarshalBinary and UnmarshalBinary", s.typ, sf.Name, s.typ)
		}
		f := field{name: tag.name, goName: sf.Name, aliases: tag.aliases, offset: sf.Offset}
		if f.name == "" {
			f.name = sf.Name
		}
		for _, n := range append([]string{f.name}, f.aliases...) {
			if !isName(n) {
				return fmt.Errorf("%v.%s: %q is no Avro name, which has the letters a to z, digits and _: give one in the tag, such as `avro:\"name\"`", s.typ, sf.Name, n)
			}
			if other, taken := named[n]; taken {
				return fmt.Errorf("%v.%s has the name or alias %q, and so has %s: state could go to either", s.typ, sf.Name, n, other)
			}
			named[n] = sf.Name
		}
		if f.shape, err = b.shape(sf.Type); err != nil {
			return fmt.Errorf("%v.%s: %w", s.typ, sf.Name, err)
		}
		if tag.hasDefault {
			if f.missing, err = scalar(sf.Type, tag.value); err != nil {
				return fmt.Errorf("%v.%s: default=%s: %w", s.typ, sf.Name, tag.value, err)
			}
		}
		s.fields = append(s.fields, f)
	}
	return nil
}

// missed returns the name of a field of s, or of what is in it, that is left out, "" if there
// is none.
func (s *shape) missed() string {
	switch s.kind {
	case array:
		return s.elem.missed()
	case record:
		if s.leftOut != "" {
			return fmt.Sprintf("%v.%s", s.typ, s.leftOut)
		}
		for _, f := range s.fields {
			if name := f.shape.missed(); name != "" {
				return name
			}
		}
	}
	return ""
}

func structBehind(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// methodsOf returns how t marshals itself. A struct that embeds a type which does so
// has the methods too, but they would lose its other fields: it does not count.
func methodsOf(t reflect.Type) (methods, bool) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return methods{}, false // what is behind it counts
	}
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			if f.Anonymous && marshals(f.Type) {
				return methods{}, false
			}
		}
	}
	ptr := reflect.PointerTo(t)
	switch {
	case implements[encoding.BinaryMarshaler](ptr) && implements[encoding.BinaryUnmarshaler](ptr):
		return methods{
			func(p unsafe.Pointer) ([]byte, error) {
				return reflect.NewAt(t, p).Interface().(encoding.BinaryMarshaler).MarshalBinary()
			},
			func(p unsafe.Pointer, data []byte) error {
				return reflect.NewAt(t, p).Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(data)
			},
		}, true
	case implements[gobEncoder](ptr) && implements[gobDecoder](ptr):
		return methods{
			func(p unsafe.Pointer) ([]byte, error) {
				return reflect.NewAt(t, p).Interface().(gobEncoder).GobEncode()
			},
			func(p unsafe.Pointer, data []byte) error {
				return reflect.NewAt(t, p).Interface().(gobDecoder).GobDecode(data)
			},
		}, true
	}
	return methods{}, false
}

// The interfaces of package gob, which is not linked in for them.
type (
	gobEncoder interface{ GobEncode() ([]byte, error) }
	gobDecoder interface{ GobDecode([]byte) error }
)

func implements[I any](t reflect.Type) bool { return t.Implements(reflect.TypeFor[I]()) }

// marshals reports whether a struct that embeds t gets a method of t that marshals.
func marshals(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		t = reflect.PointerTo(t)
	}
	return implements[encoding.BinaryMarshaler](t) || implements[encoding.BinaryUnmarshaler](t) ||
		implements[gobEncoder](t) || implements[gobDecoder](t)
}

// scalar parses the default of a field.
func scalar(t reflect.Type, text string) (v reflect.Value, err error) {
	v = reflect.New(t).Elem()
	switch {
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, t.Bits())
		v.SetInt(n)
		return v, err
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, t.Bits())
		v.SetUint(n)
		return v, err
	case v.CanFloat():
		n, err := strconv.ParseFloat(text, t.Bits())
		v.SetFloat(n)
		return v, err
	case t.Kind() == reflect.Bool:
		n, err := strconv.ParseBool(text)
		v.SetBool(n)
		return v, err
	case t.Kind() == reflect.String:
		v.SetString(text)
		return v, nil
	}
	return v, errors.New("only numbers, strings and bool can have a default")
}
