package codec

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/twmb/avro"
)

// resolver makes decoders that read what was stored under one schema into the types of
// another.
type resolver struct {
	root *avro.SchemaNode
	// named has the stored schema's records and fixed by name.
	named map[string]*avro.SchemaNode
	// records has the decoders of pairs of records, from when their making begins.
	records map[recordPair]*decodeFunc
	skips   map[*avro.SchemaNode]*skipFunc
	// sizes has the least number of bytes of records.
	sizes map[*avro.SchemaNode]int
}

type recordPair struct {
	stored *avro.SchemaNode
	wanted *shape
}

func newResolver(root *avro.SchemaNode) *resolver {
	r := &resolver{
		root:    root,
		named:   map[string]*avro.SchemaNode{},
		records: map[recordPair]*decodeFunc{},
		skips:   map[*avro.SchemaNode]*skipFunc{},
		sizes:   map[*avro.SchemaNode]int{},
	}
	r.collect(root)
	return r
}

func (r *resolver) collect(n *avro.SchemaNode) {
	if n.Name != "" && (n.Type == "record" || n.Type == "fixed" || n.Type == "enum") {
		name := n.Name
		if n.Namespace != "" {
			name = n.Namespace + "." + name
		}
		r.named[name] = n
	}
	for i := range n.Fields {
		r.collect(&n.Fields[i].Type)
	}
	for i := range n.Branches {
		r.collect(&n.Branches[i])
	}
	for _, inner := range []*avro.SchemaNode{n.Items, n.Values} {
		if inner != nil {
			r.collect(inner)
		}
	}
}

// definition follows the name of a type to the type.
func (r *resolver) definition(n *avro.SchemaNode) *avro.SchemaNode {
	if named, ok := r.named[n.Type]; ok {
		return named
	}
	return n
}

func (r *resolver) decoder(wanted *shape) (decodeFunc, error) { return r.value(r.root, wanted) }

// misfit is the error of a stored schema that a type cannot be read from. The callers
// of value put the path to it in front.
func misfit(stored *avro.SchemaNode, wanted *shape) error {
	return fmt.Errorf("%s is stored, and %v is wanted: give the new field another name, or convert the state in a job of its own",
		describe(stored), wanted.typ)
}

func describe(n *avro.SchemaNode) string {
	switch {
	case n.LogicalType != "":
		return n.LogicalType
	case n.Name != "":
		return n.Type + " " + n.Name
	}
	return n.Type
}

func at(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

// value resolves any stored schema with any shape.
func (r *resolver) value(stored *avro.SchemaNode, wanted *shape) (decodeFunc, error) {
	stored = r.definition(stored)
	if stored.Type != "union" {
		return r.present(stored, wanted)
	}
	branches := make([]decodeFunc, len(stored.Branches))
	for i := range stored.Branches {
		branch := r.definition(&stored.Branches[i])
		if branch.Type == "null" {
			branches[i] = decodeNull(wanted)
			continue
		}
		decode, err := r.present(branch, wanted)
		if err != nil {
			return nil, err
		}
		branches[i] = decode
	}
	return decodeUnion(branches), nil
}

func decodeNull(wanted *shape) decodeFunc {
	return func(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		if !wanted.kind.nullable() {
			return nil, fmt.Errorf("%w: %v", errNull, wanted.typ)
		}
		setZero(wanted.typ, p)
		return data, nil
	}
}

// wireOf returns how a stored number is laid out.
func wireOf(stored *avro.SchemaNode) (w wire, ok bool) {
	switch stored.Type {
	case "int":
		return wireLong, true
	case "long":
		if stored.LogicalType == uint64Logical {
			return wireUint64, true
		}
		return wireLong, true
	case "float":
		return wireFloat, true
	case "double":
		return wireDouble, true
	}
	return 0, false
}

// present resolves a stored schema that is not a union. A nullable shape takes
// what is not null.
func (r *resolver) present(stored *avro.SchemaNode, wanted *shape) (decodeFunc, error) {
	switch wanted.kind {
	case intKind, long, uint64Kind, float, double:
		return number(stored, wanted)
	case boolean:
		if stored.Type == "boolean" {
			return decodeBool, nil
		}
	case str:
		if stored.Type == "string" || stored.Type == "bytes" {
			return decodeString, nil
		}
	case bytes:
		if stored.Type == "string" || stored.Type == "bytes" {
			return decodeBytes, nil
		}
	case marshaled:
		if stored.Type == "bytes" {
			return decodeMarshaled(wanted), nil
		}
	case fixed:
		if stored.Type == "fixed" && stored.Size == wanted.typ.Len() {
			return decodeFixed(stored.Size), nil
		}
	case timeKind:
		if isStoredTime(stored) {
			return decodeTime(), nil
		}
	case record:
		if stored.Type == "record" {
			return r.record(stored, wanted)
		}
	case array, slice:
		if stored.Type == "array" {
			return r.elements(stored, wanted)
		}
	case stringMap, pairs:
		return r.maps(stored, wanted)
	case pointer:
		if wanted.name != "" && stored.Type == "record" && len(stored.Fields) == 1 {
			stored = &stored.Fields[0].Type
		}
		decode, err := r.value(stored, wanted.elem)
		if err != nil {
			return nil, err
		}
		return decodePointer(wanted, decode), nil
	}
	return nil, misfit(stored, wanted)
}

func number(stored *avro.SchemaNode, wanted *shape) (decodeFunc, error) {
	w, ok := wireOf(stored)
	if !ok {
		return nil, misfit(stored, wanted)
	}
	isInt := w == wireLong || w == wireUint64
	switch {
	case wanted.kind == intKind && stored.Type == "int", (wanted.kind == long || wanted.kind == uint64Kind) && isInt:
		return decodeIntOf(wanted.typ.Kind(), w), nil
	case wanted.kind == float && w == wireFloat:
		return decodeFloatBits, nil
	case wanted.kind == double && w == wireDouble:
		return decodeDoubleBits, nil
	case wanted.kind == float && isInt:
		return decodeWidened[float32](w), nil
	case wanted.kind == double:
		return decodeWidened[float64](w), nil
	}
	return nil, misfit(stored, wanted)
}

func isStoredTime(n *avro.SchemaNode) bool {
	if n.Type != "record" || len(n.Fields) != 4 {
		return false
	}
	for i, want := range [][2]string{{"seconds", "long"}, {"nanoseconds", "int"}, {"zone", "string"}, {"offset", "int"}} {
		if f := &n.Fields[i]; f.Name != want[0] || f.Type.Type != want[1] {
			return false
		}
	}
	return true
}

func (r *resolver) elements(stored *avro.SchemaNode, wanted *shape) (decodeFunc, error) {
	decode, err := r.value(stored.Items, wanted.elem)
	if err != nil {
		return nil, at("element", err)
	}
	size := r.minSize(stored.Items)
	if wanted.kind == array {
		return decodeArray(wanted, decode, size), nil
	}
	return decodeSlice(wanted, decode, size), nil
}

func (r *resolver) maps(stored *avro.SchemaNode, wanted *shape) (decodeFunc, error) {
	key, elem := &avro.SchemaNode{Type: "string"}, stored.Values
	if wanted.kind == pairs {
		if stored.Type != "array" {
			return nil, misfit(stored, wanted)
		}
		pair := r.definition(stored.Items)
		if pair.Type != "record" || len(pair.Fields) != 2 || pair.Fields[0].Name != "key" || pair.Fields[1].Name != "value" {
			return nil, misfit(stored, wanted)
		}
		key, elem = &pair.Fields[0].Type, &pair.Fields[1].Type
	} else if stored.Type != "map" {
		return nil, misfit(stored, wanted)
	}
	decodeKey, err := r.value(key, wanted.key)
	if err != nil {
		return nil, at("key", err)
	}
	decodeElem, err := r.value(elem, wanted.elem)
	if err != nil {
		return nil, at("value", err)
	}
	// If neither has a byte there is only one such key, and the end of the map behind it.
	size := max(1, r.minSize(key)+r.minSize(elem))
	return decodeMap(wanted, decodeKey, decodeElem, size), nil
}

// step decodes or skips one stored field.
type step struct {
	offset uintptr
	name   string
	decode decodeFunc
	skip   skipFunc // instead of decode
}

func (r *resolver) record(stored *avro.SchemaNode, wanted *shape) (decodeFunc, error) {
	pair := recordPair{stored, wanted}
	if known, ok := r.records[pair]; ok {
		return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
			if depth >= maxDepth {
				return nil, errTooDeep
			}
			return (*known)(data, p, depth+1)
		}, nil
	}
	made := new(decodeFunc)
	r.records[pair] = made
	steps := make([]step, len(stored.Fields))
	taken := make([]bool, len(wanted.fields))
	for i := range stored.Fields {
		f := &stored.Fields[i]
		to := slices.IndexFunc(wanted.fields, func(w field) bool {
			return w.name == f.Name || slices.Contains(w.aliases, f.Name)
		})
		if to < 0 {
			steps[i] = step{name: f.Name, skip: r.skip(&f.Type)}
			continue
		}
		w := &wanted.fields[to]
		if taken[to] {
			return nil, fmt.Errorf("%v.%s: the stored record %s has several fields for it", wanted.typ, w.goName, stored.Name)
		}
		taken[to] = true
		decode, err := r.value(&f.Type, w.shape)
		if err != nil {
			return nil, at(wanted.typ.String()+"."+w.goName, err)
		}
		steps[i] = step{offset: w.offset, name: w.goName, decode: decode}
	}
	*made = decodeRecord(wanted, steps, taken)
	return *made, nil
}

func decodeRecord(wanted *shape, steps []step, taken []bool) decodeFunc {
	// What is not stored must not keep what it had.
	clear := len(wanted.fields) < wanted.typ.NumField() || slices.Contains(taken, false)
	var fill []field
	for i, f := range wanted.fields {
		if !taken[i] && f.missing.IsValid() {
			fill = append(fill, f)
		}
	}
	return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		if clear {
			setZero(wanted.typ, p)
			for _, f := range fill {
				reflect.NewAt(f.shape.typ, unsafe.Add(p, f.offset)).Elem().Set(f.missing)
			}
		}
		var err error
		for i := range steps {
			s := &steps[i]
			if s.skip != nil {
				data, err = s.skip(data, depth)
			} else {
				data, err = s.decode(data, unsafe.Add(p, s.offset), depth)
			}
			if err == errTooDeep {
				return nil, err // with 10000 names in front, nobody would read it
			}
			if err != nil {
				return nil, at(s.name, err)
			}
		}
		return data, nil
	}
}
