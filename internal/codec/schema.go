package codec

import (
	"fmt"
	"strings"
)

// schemaOf returns a shape's Avro schema in a canonical form: no spaces, the
// attributes in the order name, type, fields, items, values, size, logicalType.
func schemaOf(s *shape) string {
	w := schemaWriter{defined: map[*shape]bool{}}
	w.write(s)
	return w.out.String()
}

type schemaWriter struct {
	out strings.Builder
	// defined has the shapes whose named type has been written out; after that the
	// name stands for it.
	defined map[*shape]bool
}

// timeFields are the schema's fields of a time.Time.
const timeFields = `{"name":"seconds","type":"long"},{"name":"nanoseconds","type":"int"},` +
	`{"name":"zone","type":"string"},{"name":"offset","type":"int"}`

func (w *schemaWriter) write(s *shape) {
	switch s.kind {
	case boolean:
		w.out.WriteString(`"boolean"`)
	case intKind:
		w.out.WriteString(`"int"`)
	case long:
		w.out.WriteString(`"long"`)
	case uint64Kind:
		w.out.WriteString(`{"type":"long","logicalType":"` + uint64Logical + `"}`)
	case float:
		w.out.WriteString(`"float"`)
	case double:
		w.out.WriteString(`"double"`)
	case str:
		w.out.WriteString(`"string"`)
	case marshaled:
		w.out.WriteString(`"bytes"`)
	case fixed:
		w.named(s, func() { fmt.Fprintf(&w.out, `{"name":"%s","type":"fixed","size":%d}`, s.name, s.typ.Len()) })
	case array:
		w.array(func() { w.write(s.elem) })
	case timeKind:
		w.named(s, func() { w.record(s.name, func() { w.out.WriteString(timeFields) }) })
	case record:
		w.named(s, func() {
			w.record(s.name, func() {
				for i, f := range s.fields {
					if i > 0 {
						w.out.WriteByte(',')
					}
					w.field(f.name, f.shape)
				}
			})
		})
	default:
		w.out.WriteString(`["null",`)
		w.present(s)
		w.out.WriteByte(']')
	}
}

// present writes the branch of a nullable shape that is not null.
func (w *schemaWriter) present(s *shape) {
	switch s.kind {
	case bytes:
		w.out.WriteString(`"bytes"`)
	case slice:
		w.array(func() { w.write(s.elem) })
	case stringMap:
		w.out.WriteString(`{"type":"map","values":`)
		w.write(s.elem)
		w.out.WriteByte('}')
	case pairs:
		w.array(func() {
			w.named(s, func() {
				w.record(s.name, func() {
					w.field("key", s.key)
					w.out.WriteByte(',')
					w.field("value", s.elem)
				})
			})
		})
	case pointer:
		if s.name == "" {
			w.write(s.elem)
			return
		}
		w.named(s, func() { w.record(s.name, func() { w.field("value", s.elem) }) })
	}
}

// named writes the definition of a named type, or only its name if it has been
// defined.
func (w *schemaWriter) named(s *shape, define func()) {
	if w.defined[s] {
		w.out.WriteString(`"` + s.name + `"`)
		return
	}
	w.defined[s] = true
	define()
}

func (w *schemaWriter) record(name string, fields func()) {
	w.out.WriteString(`{"name":"` + name + `","type":"record","fields":[`)
	fields()
	w.out.WriteString(`]}`)
}

func (w *schemaWriter) field(name string, s *shape) {
	w.out.WriteString(`{"name":"` + name + `","type":`)
	w.write(s)
	w.out.WriteByte('}')
}

func (w *schemaWriter) array(items func()) {
	w.out.WriteString(`{"type":"array","items":`)
	items()
	w.out.WriteByte('}')
}
