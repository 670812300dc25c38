package json

import (
	"encoding"
	"encoding/base64"
	stdjson "encoding/json"
	"reflect"
	"time"
	"unicode/utf8"
)

// op says by which code a Go type is decoded and encoded.
type op uint8

const (
	opNone op = iota // the entry is still being built
	opString
	opIntern
	opInt
	opUint
	opFloat64
	opFloat32
	opBool
	opTime
	opStruct
	opPointer
	opSlice
	opArray
	opBytes
	opMap
	opAny
	opNumber
	opQuotedInt
	opQuotedUint
	opQuotedFloat
	opText
	// The ops from here on see null themselves.
	opUnmarshaler
	opStd
	opStdField
)

// value is the table entry for one Go type: how its JSON is decoded.
type value struct {
	op    op
	bits  uint8        // opInt, opUint and their quoted forms: width
	len   int          // opArray: number of elements
	typ   reflect.Type // the type itself
	elem  *value       // opPointer, opSlice, opArray, opMap: what it holds
	names *names       // opStruct
	// intern holds the strings seen lately (opIntern).
	intern *internTable
	// wrap is struct{F T `json:"f,..."`}, which has T at offset 0 (opStdField).
	wrap reflect.Type
	want string // what the JSON must be, for errors
}

// field is one member of an object that the struct has a place for.
type field struct {
	name  string
	order int // breadth first, as encoding/json ranks fields
	// hops are the embedded pointers on the way to the field, outermost first.
	// offset counts from the target of the last one.
	hops   []hop
	offset uintptr
	value  *value
	member member
}

// place returns where in s the field is, allocating embedded structs.
func (f *field) place(s slot) slot {
	for _, h := range f.hops {
		s = s.at(h.offset).targetOrNew(h.target)
	}
	return s.at(f.offset)
}

// decode reads the value at byte i into s and returns the byte after it. depth
// is the number of arrays and objects around it.
func (v *value) decode(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	c := at(d, i)
	if c == 'n' && v.op < opUnmarshaler {
		return v.decodeNull(d, i, s)
	}
	switch v.op {
	case opString:
		if c != '"' {
			break
		}
		end, kind, err := scanString(d, i+1)
		if err != nil {
			return end, err
		}
		*as[string](s) = newString(d[i+1:end], kind)
		return end + 1, nil
	case opInt:
		if c != '-' && !isDigit(c) {
			break
		}
		return v.decodeInt(d, i, s)
	case opFloat64:
		if c != '-' && !isDigit(c) {
			break
		}
		n, end, err := scanDecimal(d, i)
		if err != nil {
			return end, err
		}
		f, ok := n.float64(d[i:end])
		if !ok {
			break
		}
		*as[float64](s) = f
		return end, nil
	case opStruct:
		if c != '{' {
			break
		}
		return v.decodeStruct(d, i, s, depth+1)
	case opBool:
		return v.decodeBool(d, i, s)
	case opSlice:
		if c != '[' {
			break
		}
		return v.decodeSlice(d, i, s, depth+1)
	case opPointer:
		return v.elem.decode(d, i, s.targetOrNew(v.elem.typ), depth)
	default:
		return v.decodeRare(d, i, s, depth)
	}
	return i, wanted(d, i, v.want)
}

// decodeRare is decode for the less frequent types.
func (v *value) decodeRare(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	switch v.op {
	case opUint:
		return v.decodeUint(d, i, s)
	case opFloat32:
		return v.decodeFloat32(d, i, s)
	case opIntern:
		return v.decodeIntern(d, i, s)
	case opTime:
		return v.decodeTime(d, i, s)
	case opArray:
		return v.decodeArray(d, i, s, depth+1)
	case opBytes:
		return v.decodeBytes(d, i, s, depth)
	case opMap:
		return v.decodeMap(d, i, s, depth+1)
	case opAny:
		x, i, err := decodeAny(d, i, depth)
		*as[any](s) = x
		return i, err
	case opNumber:
		return v.decodeNumber(d, i, s, depth)
	case opQuotedInt, opQuotedUint, opQuotedFloat:
		return v.decodeQuoted(d, i, s, depth)
	case opText:
		return v.decodeText(d, i, s)
	default:
		return v.decodeOther(d, i, s, depth)
	}
}

// decodeNull reads null: pointers, slices and maps become nil, anything else
// stays as it is.
func (v *value) decodeNull(d []byte, i int, s slot) (int, *DecodeError) {
	i, err := scanWord(d, i, "null")
	if err != nil {
		return i, err
	}
	switch v.op {
	case opPointer, opMap:
		s.clearPointer()
	case opSlice, opBytes, opAny:
		s.value(v.typ).SetZero()
	}
	return i, nil
}

// decodeStruct reads the object at i into a struct; depth counts the object.
// Members that the struct has no field for are checked and left out.
func (v *value) decodeStruct(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	i, done, err := openObject(d, i, depth)
	m := &v.names.start
	for !done && err == nil {
		start := i
		if m, i, err = v.names.next(d, i, m); err != nil {
			return i, err
		}
		if f := m.field; f == nil {
			i, err = skipValue(d, i, depth)
		} else {
			i, err = f.value.decode(d, i, f.place(s), depth)
		}
		if err != nil {
			return i, err.inField(nameAt(d, start))
		}
		i, done, err = nextMember(d, i)
	}
	return i, err
}

// nameAt returns the start of the member name at i, for errors.
func nameAt(d []byte, i int) string {
	end, _, _ := scanString(d, i+1)
	return string(d[i+1 : min(end, i+1+maxExcerpt)])
}

func (v *value) decodeInt(d []byte, i int, s slot) (int, *DecodeError) {
	n, end, err := scanInteger(d, i)
	if err != nil {
		return end, err
	}
	x, ok := n.int64(uint(v.bits))
	if !ok {
		return i, wanted(d, i, v.want)
	}
	v.setInt(s, x)
	return end, nil
}

func (v *value) setInt(s slot, x int64) {
	switch v.bits {
	case 64:
		*as[int64](s) = x
	case 32:
		*as[int32](s) = int32(x)
	case 16:
		*as[int16](s) = int16(x)
	default:
		*as[int8](s) = int8(x)
	}
}

func (v *value) decodeUint(d []byte, i int, s slot) (int, *DecodeError) {
	if c := at(d, i); c != '-' && !isDigit(c) {
		return i, wanted(d, i, v.want)
	}
	n, end, err := scanInteger(d, i)
	if err != nil {
		return end, err
	}
	x, ok := n.uint64(uint(v.bits))
	if !ok {
		return i, wanted(d, i, v.want)
	}
	v.setUint(s, x)
	return end, nil
}

func (v *value) setUint(s slot, x uint64) {
	switch v.bits {
	case 64:
		*as[uint64](s) = x
	case 32:
		*as[uint32](s) = uint32(x)
	case 16:
		*as[uint16](s) = uint16(x)
	default:
		*as[uint8](s) = uint8(x)
	}
}

func (v *value) decodeFloat32(d []byte, i int, s slot) (int, *DecodeError) {
	if c := at(d, i); c != '-' && !isDigit(c) {
		return i, wanted(d, i, v.want)
	}
	n, end, err := scanDecimal(d, i)
	if err != nil {
		return end, err
	}
	f, ok := n.float32(d[i:end])
	if !ok {
		return i, wanted(d, i, v.want)
	}
	*as[float32](s) = f
	return end, nil
}

func (v *value) decodeBool(d []byte, i int, s slot) (int, *DecodeError) {
	switch {
	case hasPrefix(d, i, "true"):
		*as[bool](s) = true
		return i + len("true"), nil
	case hasPrefix(d, i, "false"):
		*as[bool](s) = false
		return i + len("false"), nil
	default:
		return i, wanted(d, i, v.want)
	}
}

func (v *value) decodeIntern(d []byte, i int, s slot) (int, *DecodeError) {
	if at(d, i) != '"' {
		return i, wanted(d, i, v.want)
	}
	end, kind, err := scanString(d, i+1)
	if err != nil {
		return end, err
	}
	if kind == textASCII || kind == textUnicode && utf8.Valid(d[i+1:end]) {
		*as[string](s) = v.intern.get(d, i+1, end)
	} else {
		*as[string](s) = newString(d[i+1:end], kind)
	}
	return end + 1, nil
}

// scanText reads a string and returns its text. The result may be part of d, but
// appending to it does not write into d.
func (v *value) scanText(d []byte, i int) ([]byte, int, *DecodeError) {
	if at(d, i) != '"' {
		return nil, i, wanted(d, i, v.want)
	}
	end, kind, err := scanString(d, i+1)
	if err != nil {
		return nil, end, err
	}
	raw := d[i+1 : end : end]
	switch {
	case kind&textEscaped != 0:
		raw = unquote(raw)
	case kind&textUnicode != 0:
		raw = toUTF8(raw)
	}
	return raw, end + 1, nil
}

func (v *value) decodeTime(d []byte, i int, s slot) (int, *DecodeError) {
	raw, end, err := v.scanText(d, i)
	if err != nil {
		return end, err
	}
	if err := as[time.Time](s).UnmarshalText(raw); err != nil {
		return i, v.rejected(d, i, err)
	}
	return end, nil
}

func (v *value) decodeText(d []byte, i int, s slot) (int, *DecodeError) {
	raw, end, err := v.scanText(d, i)
	if err != nil {
		return end, err
	}
	if err := s.pointer(v.typ).(encoding.TextUnmarshaler).UnmarshalText(raw); err != nil {
		return i, v.rejected(d, i, err)
	}
	return end, nil
}

// rejected reports that a method or encoding/json refused the value at i.
func (v *value) rejected(d []byte, i int, err error) *DecodeError {
	e := wanted(d, i, v.want)
	e.Err = err
	return e
}

func (v *value) decodeBytes(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	if at(d, i) == '[' {
		return v.decodeStd(d, i, s, depth)
	}
	raw, end, err := v.scanText(d, i)
	if err != nil {
		return end, err
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, decodeErr := base64.StdEncoding.Decode(b, raw)
	if decodeErr != nil {
		return i, v.rejected(d, i, decodeErr)
	}
	*as[[]byte](s) = b[:n]
	return end, nil
}

func (v *value) decodeNumber(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	if c := at(d, i); c != '-' && !isDigit(c) {
		return v.decodeStd(d, i, s, depth)
	}
	end, err := scanNumber(d, i)
	if err != nil {
		return end, err
	}
	*as[string](s) = string(d[i:end])
	return end, nil
}

// decodeQuoted reads a number inside a string, for fields tagged ",string". What
// is not plainly that, encoding/json decides.
func (v *value) decodeQuoted(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	if at(d, i) == '"' {
		if end, ok := v.plainQuoted(d, i+1, s); ok {
			return end + 1, nil
		}
	}
	return v.decodeStdField(d, i, s, depth)
}

// plainQuoted reads the number at i if a quote follows it.
func (v *value) plainQuoted(d []byte, i int, s slot) (end int, ok bool) {
	if v.op == opQuotedFloat {
		n, end, err := scanDecimal(d, i)
		if err != nil || at(d, end) != '"' {
			return 0, false
		}
		f, ok := n.float64(d[i:end])
		*as[float64](s) = f
		return end, ok
	}
	n, end, err := scanInteger(d, i)
	if err != nil || at(d, end) != '"' {
		return 0, false
	}
	if v.op == opQuotedInt {
		x, ok := n.int64(uint(v.bits))
		v.setInt(s, x)
		return end, ok
	}
	x, ok := n.uint64(uint(v.bits))
	v.setUint(s, x)
	return end, ok
}

// decodeOther hands the value to the type's own method or to encoding/json.
func (v *value) decodeOther(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	switch v.op {
	case opStd:
		return v.decodeStd(d, i, s, depth)
	case opStdField:
		return v.decodeStdField(d, i, s, depth)
	}
	end, err := skipValue(d, i, depth)
	if err != nil {
		return end, err
	}
	if err := s.pointer(v.typ).(stdjson.Unmarshaler).UnmarshalJSON(d[i:end:end]); err != nil {
		return i, v.rejected(d, i, err)
	}
	return end, nil
}

func (v *value) decodeStd(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	end, err := skipValue(d, i, depth)
	if err != nil {
		return end, err
	}
	if err := stdjson.Unmarshal(d[i:end], s.pointer(v.typ)); err != nil {
		return i, v.rejected(d, i, err)
	}
	return end, nil
}

// decodeStdField lets encoding/json decode a field whose tag has options that
// change how the value is read. The field is taken for the only one of a struct
// with the same tag.
func (v *value) decodeStdField(d []byte, i int, s slot, depth int) (int, *DecodeError) {
	end, err := skipValue(d, i, depth)
	if err != nil {
		return end, err
	}
	object := make([]byte, 0, len(`{"f":}`)+end-i)
	object = append(object, `{"f":`...)
	object = append(object, d[i:end]...)
	object = append(object, '}')
	if err := stdjson.Unmarshal(object, s.pointer(v.wrap)); err != nil {
		// The text of err is about the struct made up here.
		return i, wanted(d, i, v.want)
	}
	return end, nil
}
