package json

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// structField is one member of the JSON object of a struct, by the rules of
// encoding/json: names from tags, embedded structs flattened, and of several
// fields with one name the dominant one.
type structField struct {
	name   string
	tagged bool  // the name is from the tag
	index  []int // path as for reflect.Value.FieldByIndex
	order  int   // breadth first
	typ    reflect.Type
	tag    reflect.StructTag

	omitEmpty, omitZero, quoted bool
}

// level is a struct whose fields are to be listed.
type level struct {
	typ   reflect.Type
	index []int
	// again says that the type was met before. Its fields are listed once more,
	// to clash with those of the first meeting, but not those embedded in it.
	again bool
}

// structFields lists the members of the struct t in the order of their
// declaration. It reports false for a struct whose tags use what this package
// leaves to encoding/json: unusual names, or options other than omitempty,
// omitzero and string.
func structFields(t reflect.Type) ([]structField, bool) {
	var all []structField
	seen := map[reflect.Type]bool{t: true}
	for queue := []level{{typ: t}}; len(queue) > 0; queue = queue[1:] {
		l := queue[0]
		for i := range l.typ.NumField() {
			sf := l.typ.Field(i)
			f, ok := parseField(sf)
			if !ok {
				return nil, false
			}
			f.index = append(slices.Clone(l.index), i)
			if embedded, ok := embeddedStruct(sf); ok && !f.tagged {
				if !l.again {
					queue = append(queue, level{embedded, f.index, seen[embedded]})
				}
				seen[embedded] = true
				continue
			}
			if !sf.IsExported() && sf.Anonymous && f.tagged {
				return nil, false
			}
			if f.name == "" || !sf.IsExported() {
				continue
			}
			f.order = len(all)
			all = append(all, f)
		}
	}
	return dominant(all), true
}

// embeddedStruct returns the struct type that sf embeds by value or pointer.
func embeddedStruct(sf reflect.StructField) (reflect.Type, bool) {
	t := sf.Type
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	return t, sf.Anonymous && t.Kind() == reflect.Struct
}

// parseField reads a field's tag. The name is empty if the field is left out. It
// reports false for tags that are left to encoding/json.
func parseField(sf reflect.StructField) (structField, bool) {
	f := structField{name: sf.Name, typ: sf.Type, tag: sf.Tag}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return structField{}, true
	}
	name, options, _ := strings.Cut(tag, ",")
	if name != "" {
		if strings.ContainsAny(name, "\\'\"`") || !utf8.ValidString(name) {
			return f, false
		}
		f.name, f.tagged = name, true
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "string":
			f.quoted = true
		default:
			return f, false
		}
	}
	return f, true
}

// dominant keeps of the fields with one name the one that is least embedded and,
// among those, the one with a tag; none if that leaves several.
func dominant(all []structField) []structField {
	slices.SortStableFunc(all, func(a, b structField) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)),
			cmp.Compare(rank(a), rank(b)))
	})
	var kept []structField
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].name == all[0].name {
			n++
		}
		if n == 1 || len(all[0].index) != len(all[1].index) || all[0].tagged != all[1].tagged {
			kept = append(kept, all[0])
		}
		all = all[n:]
	}
	slices.SortFunc(kept, func(a, b structField) int { return slices.Compare(a.index, b.index) })
	return kept
}

func rank(f structField) int {
	if f.tagged {
		return 0
	}
	return 1
}

// locate returns the embedded pointers on the way to the field and its offset
// after the last one.
func (f *structField) locate(t reflect.Type) (hops []hop, offset uintptr) {
	var sf reflect.StructField
	for _, i := range f.index {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
			hops = append(hops, hop{offset, t, !sf.IsExported()})
			offset = 0
		}
		sf = t.Field(i)
		offset += sf.Offset
		t = sf.Type
	}
	return hops, offset
}

// hop is an embedded pointer: its offset and the struct it points to.
type hop struct {
	offset     uintptr
	target     reflect.Type
	unexported bool
}
