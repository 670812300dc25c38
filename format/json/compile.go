package json

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// compiler builds the decoding table of a type and of all types it holds.
type compiler struct {
	trail
	// values holds one entry per type, also for those still being built, so that
	// types may contain themselves.
	values map[reflect.Type]*value
}

// compileDecoder returns the table for t, or an error that names every field
// whose type JSON has no value for.
func compileDecoder(t reflect.Type) (*value, error) {
	c := compiler{values: map[reflect.Type]*value{}}
	v := c.value(t)
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("json: cannot decode into %v: %w", t, err)
	}
	return v, nil
}

var (
	unmarshalerType     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType            = reflect.TypeFor[time.Time]()
	numberType          = reflect.TypeFor[stdjson.Number]()
)

// value returns the entry for t.
func (c *compiler) value(t reflect.Type) *value {
	if v := c.values[t]; v != nil {
		return v
	}
	v := &value{typ: t}
	c.values[t] = v
	if !v.custom() {
		c.kind(v)
	}
	return v
}

// custom fills in the entry of a type that decodes itself.
func (v *value) custom() bool {
	t := v.typ
	ptr := reflect.PointerTo(t)
	_, fromDecoder := ptr.MethodByName("UnmarshalJSONFrom")
	switch {
	case t == timeType:
		v.op, v.want = opTime, "an RFC 3339 time in quotes"
	case t == numberType:
		v.op, v.want = opNumber, "a number"
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return false
	case fromDecoder:
		v.op, v.want = opStd, "a value for "+t.String()
	case ptr.Implements(unmarshalerType):
		v.op, v.want = opUnmarshaler, "a value for "+t.String()
	case ptr.Implements(textUnmarshalerType):
		v.op, v.want = opText, "a string for "+t.String()
	default:
		return false
	}
	return true
}

// kind fills in the entry of a type that decodes by its kind.
func (c *compiler) kind(v *value) {
	t := v.typ
	switch t.Kind() {
	case reflect.String:
		v.op, v.want = opString, "a string"
	case reflect.Bool:
		v.op, v.want = opBool, "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.op, v.bits, v.want = opInt, uint8(t.Bits()), "a number that fits "+t.Kind().String()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.op, v.bits, v.want = opUint, uint8(t.Bits()), "a number that fits "+t.Kind().String()
	case reflect.Float32:
		v.op, v.want = opFloat32, "a number that fits float32"
	case reflect.Float64:
		v.op, v.want = opFloat64, "a number that fits float64"
	case reflect.Struct:
		c.structKind(v)
	case reflect.Pointer:
		if cyclicPointer(t) {
			c.unsupported(t)
			return
		}
		v.op, v.elem = opPointer, c.value(t.Elem())
	case reflect.Slice:
		v.op, v.elem, v.want = opSlice, c.value(t.Elem()), "an array"
		if t.Elem() == reflect.TypeFor[byte]() {
			v.op, v.want = opBytes, "base64 in quotes"
		} else if t.Elem().Kind() == reflect.Uint8 {
			v.op, v.want = opStd, "base64 in quotes or an array"
		}
	case reflect.Array:
		v.op, v.elem, v.len, v.want = opArray, c.value(t.Elem()), t.Len(), "an array"
	case reflect.Map:
		c.mapKind(v)
	case reflect.Interface:
		v.op = opAny
		if t.NumMethod() > 0 {
			v.op, v.want = opStd, "null: nothing says which type to make for "+t.String()
		}
	default:
		c.unsupported(t)
		delete(c.values, t) // so that the next field of the type is named too
	}
}

// cyclicPointer reports whether t is a pointer that only ever leads to itself.
func cyclicPointer(t reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if seen[t] {
			return true
		}
		seen[t] = true
	}
	return false
}

func (c *compiler) mapKind(v *value) {
	key := v.typ.Key()
	v.op, v.elem, v.want = opMap, c.value(v.typ.Elem()), "an object"
	if key.Kind() != reflect.String || reflect.PointerTo(key).Implements(textUnmarshalerType) || key == numberType {
		v.op = opStd
	}
}

func (c *compiler) structKind(v *value) {
	t := v.typ
	v.op, v.want = opStruct, "an object for "+t.String()
	members, ok := structFields(t)
	if !ok {
		v.op = opStd
		return
	}
	fields := make([]*field, 0, len(members))
	for i := range members {
		m := &members[i]
		c.enter(m.name)
		f := &field{name: m.name, order: m.order}
		f.hops, f.offset = m.locate(t)
		f.value = c.field(m, f.hops)
		fields = append(fields, f)
		c.leave()
	}
	v.names = newNames(fields)
}

// field returns the entry for a struct field: that of its type unless a tag
// says otherwise.
func (c *compiler) field(m *structField, hops []hop) *value {
	v := c.value(m.typ)
	if slices.ContainsFunc(hops, func(h hop) bool { return h.unexported }) {
		c.wrong("it is in an embedded pointer to an unexported struct; embed the struct itself")
	}
	if m.quoted {
		v = quotedValue(v)
	}
	switch tag, ok := m.tag.Lookup("lowwater"); {
	case !ok:
	case tag != "intern":
		c.wrong(`tag lowwater:%q is unknown; the only one is "intern"`, tag)
	case v.op != opString:
		c.wrong(`tag lowwater:"intern" is for strings, not for %v`, m.typ)
	default:
		v = &value{op: opIntern, typ: v.typ, want: v.want, intern: new(internTable)}
	}
	return v
}

// quotedValue returns the entry for a field tagged ",string" whose type has the
// entry v.
func quotedValue(v *value) *value {
	q := &value{
		op: opStdField, bits: v.bits, typ: v.typ, want: "in quotes, " + v.want,
		wrap: quotedWrap(v.typ),
	}
	switch v.op {
	case opInt:
		q.op = opQuotedInt
	case opUint:
		q.op = opQuotedUint
	case opFloat64:
		q.op = opQuotedFloat
	}
	return q
}
