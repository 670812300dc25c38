package json

import (
	"bytes"
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// EncodeError says why a value has no JSON. Encoding it again gives the same
// error.
type EncodeError struct {
	// Path leads to the value at fault by JSON names, as in order.items[3].price.
	// It is empty at the top.
	Path string
	Err  error
}

func (e *EncodeError) Error() string {
	if e.Path == "" {
		return "json: " + e.Err.Error()
	}
	return "json: at " + e.Path + ": " + e.Err.Error()
}

func (e *EncodeError) Unwrap() error { return e.Err }

var errTooDeep = errors.New("more than 10000 arrays and objects inside each other; does the value contain itself?")

func (e *EncodeError) in(name string) *EncodeError {
	e.Path = joinPath(name, e.Path)
	return e
}

// form is the table entry for one Go type: how its values are written.
type form struct {
	op     op
	bits   uint8        // opFloat32, opFloat64, opInt, opUint and their quoted forms: width
	len    int          // opArray: number of elements
	typ    reflect.Type // the type itself
	elem   *form        // opPointer, opSlice, opArray: what it holds
	fields []formField  // opStruct
	// wrap is struct{F T `json:"f,..."`}, which has T at offset 0 (opStdField).
	wrap reflect.Type
}

// formField is one member that a struct is written with.
type formField struct {
	name   string
	label  string // comma, quoted name, colon
	hops   []hop
	offset uintptr
	form   *form
	// omit reports that the field in the given place is left out; nil if it never
	// is.
	omit func(slot) bool
}

// place returns where in s the field is, or false if it is in an embedded struct
// that is not there.
func (f *formField) place(s slot) (slot, bool) {
	for _, h := range f.hops {
		target, ok := s.at(h.offset).target()
		if !ok {
			return s, false
		}
		s = target
	}
	return s.at(f.offset), true
}

// encode appends the value in s. depth is the number of arrays and objects
// around it.
func (f *form) encode(dst []byte, s slot, depth int) ([]byte, *EncodeError) {
	switch f.op {
	case opString:
		return appendQuoted(dst, *as[string](s)), nil
	case opInt:
		return strconv.AppendInt(dst, f.int(s), 10), nil
	case opUint:
		return strconv.AppendUint(dst, f.uint(s), 10), nil
	case opFloat64:
		return appendFloat(dst, *as[float64](s), 64)
	case opFloat32:
		return appendFloat(dst, float64(*as[float32](s)), 32)
	case opBool:
		return strconv.AppendBool(dst, *as[bool](s)), nil
	case opStruct:
		return f.encodeStruct(dst, s, depth+1)
	case opPointer:
		target, ok := s.target()
		if !ok {
			return append(dst, "null"...), nil
		}
		return f.elem.encode(dst, target, depth)
	case opSlice:
		h := s.slice()
		if h.data == nil {
			return append(dst, "null"...), nil
		}
		return f.encodeList(dst, h.elem(0, 0), h.len, depth+1)
	case opArray:
		return f.encodeList(dst, s, f.len, depth+1)
	default:
		return f.encodeRare(dst, s)
	}
}

func (f *form) encodeRare(dst []byte, s slot) ([]byte, *EncodeError) {
	switch f.op {
	case opTime:
		return appendTime(dst, *as[time.Time](s))
	case opBytes:
		b := *as[[]byte](s)
		if b == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '"')
		return append(base64.StdEncoding.AppendEncode(dst, b), '"'), nil
	case opMap:
		return appendStringMap(dst, *as[map[string]string](s)), nil
	case opQuotedInt:
		dst = strconv.AppendInt(append(dst, '"'), f.int(s), 10)
		return append(dst, '"'), nil
	case opQuotedUint:
		dst = strconv.AppendUint(append(dst, '"'), f.uint(s), 10)
		return append(dst, '"'), nil
	case opStdField:
		return appendStdField(dst, s.pointer(f.wrap))
	default:
		return appendStd(dst, s.pointer(f.typ))
	}
}

func (f *form) int(s slot) int64 {
	switch f.bits {
	case 64:
		return *as[int64](s)
	case 32:
		return int64(*as[int32](s))
	case 16:
		return int64(*as[int16](s))
	default:
		return int64(*as[int8](s))
	}
}

func (f *form) uint(s slot) uint64 {
	switch f.bits {
	case 64:
		return *as[uint64](s)
	case 32:
		return uint64(*as[uint32](s))
	case 16:
		return uint64(*as[uint16](s))
	default:
		return uint64(*as[uint8](s))
	}
}

func (f *form) encodeStruct(dst []byte, s slot, depth int) ([]byte, *EncodeError) {
	if depth > maxDepth {
		return dst, &EncodeError{Err: errTooDeep}
	}
	start := len(dst)
	for i := range f.fields {
		member := &f.fields[i]
		place, ok := member.place(s)
		if !ok || member.omit != nil && member.omit(place) {
			continue
		}
		dst = append(dst, member.label...)
		var err *EncodeError
		if dst, err = member.form.encode(dst, place, depth); err != nil {
			return dst, err.in(member.name)
		}
	}
	if len(dst) == start {
		return append(dst, "{}"...), nil
	}
	dst[start] = '{' // in place of the first label's comma
	return append(dst, '}'), nil
}

// encodeList appends n elements, the first of which is in s.
func (f *form) encodeList(dst []byte, s slot, n, depth int) ([]byte, *EncodeError) {
	if depth > maxDepth {
		return dst, &EncodeError{Err: errTooDeep}
	}
	dst = append(dst, '[')
	size := f.elem.typ.Size()
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err *EncodeError
		if dst, err = f.elem.encode(dst, s.at(uintptr(i)*size), depth); err != nil {
			return dst, err.in("[" + strconv.Itoa(i) + "]")
		}
	}
	return append(dst, ']'), nil
}

// appendFloat appends x in the shortest form that reads back as x, with an
// exponent for very large and very small numbers, as JavaScript does.
func appendFloat(dst []byte, x float64, bits int) ([]byte, *EncodeError) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return dst, &EncodeError{Err: fmt.Errorf("JSON has no number for %v", x)}
	}
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) &&
		(bits == 64 || float32(abs) < 1e-6 || float32(abs) >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, x, format, -1, bits)
	if n := len(dst); format == 'e' && dst[n-4] == 'e' && dst[n-2] == '0' {
		// strconv writes two digits: 1e-09.
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

func appendTime(dst []byte, t time.Time) ([]byte, *EncodeError) {
	dst, err := t.AppendText(append(dst, '"'))
	if err != nil {
		return dst, &EncodeError{Err: err}
	}
	return append(dst, '"'), nil
}

// appendStringMap appends m with its keys in order.
func appendStringMap(dst []byte, m map[string]string) []byte {
	if m == nil {
		return append(dst, "null"...)
	}
	var buf [16]string
	keys := buf[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, k), ':')
		dst = appendQuoted(dst, m[k])
	}
	return append(dst, '}')
}

// appendStd appends the value that ptr points to as encoding/json writes it.
func appendStd(dst []byte, ptr any) ([]byte, *EncodeError) {
	w := bytes.NewBuffer(dst)
	enc := stdjson.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ptr); err != nil {
		return dst, &EncodeError{Err: err}
	}
	return bytes.TrimSuffix(w.Bytes(), []byte("\n")), nil
}

// appendStdField appends a field whose tag has options that change how it is
// written. ptr points to a struct with just that field, named f.
func appendStdField(dst []byte, ptr any) ([]byte, *EncodeError) {
	const before, after = `{"f":`, `}`
	start := len(dst)
	dst, err := appendStd(dst, ptr)
	if err != nil {
		return dst, err
	}
	value := dst[start+len(before) : len(dst)-len(after)]
	return append(dst[:start], value...), nil
}
