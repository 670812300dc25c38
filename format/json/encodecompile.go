package json

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// formCompiler builds the encoding table of a type and of all types it holds.
type formCompiler struct {
	trail
	// forms holds one entry per type, also for those still being built.
	forms map[reflect.Type]*form
}

// compileEncoder returns the table for t, or an error that names every field
// whose type JSON has no value for.
func compileEncoder(t reflect.Type) (*form, error) {
	c := formCompiler{forms: map[reflect.Type]*form{}}
	f := c.form(t)
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("json: cannot encode %v: %w", t, err)
	}
	return f, nil
}

var (
	marshalerType     = reflect.TypeFor[stdjson.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	textAppenderType  = reflect.TypeFor[encoding.TextAppender]()
	isZeroerType      = reflect.TypeFor[isZeroer]()
)

type isZeroer interface{ IsZero() bool }

// form returns the entry for t.
func (c *formCompiler) form(t reflect.Type) *form {
	if f := c.forms[t]; f != nil {
		return f
	}
	f := &form{typ: t}
	c.forms[t] = f
	switch {
	case t == timeType:
		f.op = opTime
	case encodesItself(t):
		f.op = opStd
	default:
		c.kind(f)
	}
	return f
}

// encodesItself reports whether t has a method that writes it.
func encodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	ptr := reflect.PointerTo(t)
	_, toEncoder := ptr.MethodByName("MarshalJSONTo")
	return toEncoder || ptr.Implements(marshalerType) || ptr.Implements(textMarshalerType) || ptr.Implements(textAppenderType)
}

// plainString reports whether t is written as the string it is.
func plainString(t reflect.Type) bool { return t.Kind() == reflect.String && !encodesItself(t) }

// kind fills in the entry of a type that is written by its kind.
func (c *formCompiler) kind(f *form) {
	t := f.typ
	switch t.Kind() {
	case reflect.String:
		f.op = opString
	case reflect.Bool:
		f.op = opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.op, f.bits = opInt, uint8(t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		f.op, f.bits = opUint, uint8(t.Bits())
	case reflect.Float32:
		f.op = opFloat32
	case reflect.Float64:
		f.op = opFloat64
	case reflect.Struct:
		c.structKind(f)
	case reflect.Pointer:
		if cyclicPointer(t) {
			c.unsupported(t)
			return
		}
		f.op, f.elem = opPointer, c.form(t.Elem())
	case reflect.Slice:
		f.op, f.elem = opSlice, c.form(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 {
			f.op = opBytes
			if encodesItself(t.Elem()) {
				f.op = opStd
			}
		}
	case reflect.Array:
		f.op, f.elem, f.len = opArray, c.form(t.Elem()), t.Len()
	case reflect.Map:
		f.op, f.elem = opStd, c.form(t.Elem())
		if plainString(t.Key()) && plainString(t.Elem()) {
			f.op = opMap
		}
	case reflect.Interface:
		f.op = opStd
	default:
		c.unsupported(t)
		delete(c.forms, t) // so that the next field of the type is named too
	}
}

func (c *formCompiler) structKind(f *form) {
	members, ok := structFields(f.typ)
	if !ok {
		f.op = opStd
		return
	}
	f.op = opStruct
	for i := range members {
		m := &members[i]
		c.enter(m.name)
		field := formField{name: m.name, label: string(append(appendQuoted([]byte{','}, m.name), ':'))}
		field.hops, field.offset = m.locate(f.typ)
		field.form = c.form(m.typ)
		if m.quoted {
			field.form = quotedForm(field.form)
		}
		field.omit = omitFunc(m)
		f.fields = append(f.fields, field)
		c.leave()
	}
}

// quotedForm returns the entry for a field tagged ",string" whose type has the
// entry f.
func quotedForm(f *form) *form {
	q := &form{op: opStdField, bits: f.bits, typ: f.typ, wrap: quotedWrap(f.typ)}
	switch f.op {
	case opInt:
		q.op = opQuotedInt
	case opUint:
		q.op = opQuotedUint
	}
	return q
}

// omitFunc returns how to tell that field m is left out, nil if it never is.
func omitFunc(m *structField) func(slot) bool {
	var empty, zero func(slot) bool
	if m.omitEmpty {
		empty = emptyFunc(m.typ)
	}
	if m.omitZero {
		zero = zeroFunc(m.typ)
	}
	switch {
	case zero == nil:
		return empty
	case empty == nil:
		return zero
	default:
		return func(s slot) bool { return empty(s) || zero(s) }
	}
}

// emptyFunc returns how to tell that a value is empty in the sense of the option
// omitempty: false, 0, a nil pointer or interface, or of length 0. It returns nil
// for kinds that never are.
func emptyFunc(t reflect.Type) func(slot) bool {
	switch t.Kind() {
	case reflect.String:
		return func(s slot) bool { return *as[string](s) == "" }
	case reflect.Slice:
		return func(s slot) bool { return s.slice().len == 0 }
	case reflect.Map:
		return func(s slot) bool { return s.value(t).Len() == 0 }
	case reflect.Array:
		return func(slot) bool { return t.Len() == 0 }
	case reflect.Float32:
		return func(s slot) bool { return *as[float32](s) == 0 }
	case reflect.Float64:
		return func(s slot) bool { return *as[float64](s) == 0 }
	case reflect.Struct:
		return nil
	default:
		return func(s slot) bool { return s.value(t).IsZero() }
	}
}

// zeroFunc returns how to tell that a value is zero in the sense of the option
// omitzero: by its method IsZero if it has one.
func zeroFunc(t reflect.Type) func(slot) bool {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(isZeroerType) {
		return func(s slot) bool { return s.pointer(t).(isZeroer).IsZero() }
	}
	if !t.Implements(isZeroerType) {
		return func(s slot) bool { return s.value(t).IsZero() }
	}
	return func(s slot) bool {
		v := s.value(t)
		if v.IsNil() || v.Kind() == reflect.Interface && v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
			return true
		}
		return v.Interface().(isZeroer).IsZero()
	}
}
