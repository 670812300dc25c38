package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// encodeFunc appends the encoding of the value that p points to. depth counts how
// often a type has been met inside of itself.
//
// Code that works on memory of a type known only at run time is in this file and in
// decode.go. An encodeFunc is only ever called with a pointer to the type of the shape
// that it was made for.
type encodeFunc func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error)

// maxDepth bounds how deep a value is nested in values of its own type.
const maxDepth = 10_000

var errTooDeep = errors.New("a value is nested more than 10000 deep in values of its own type: does it contain itself?")

// uint64Logical is the logical type of a long that holds the 64 bits of a uint64.
const uint64Logical = "uint64"

func encoderOf(s *shape) encodeFunc {
	return encoders{}.of(s)
}

// encoders has the encoder of each record, from when its making begins.
type encoders map[*shape]*encodeFunc

func (e encoders) of(s *shape) encodeFunc {
	switch s.kind {
	case boolean:
		return encodeBool
	case intKind, long, uint64Kind:
		return encodeIntOf(s.typ.Kind())
	case float:
		return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
			return binary.LittleEndian.AppendUint32(dst, *(*uint32)(p)), nil
		}
	case double:
		return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
			return binary.LittleEndian.AppendUint64(dst, *(*uint64)(p)), nil
		}
	case str:
		return encodeString
	case fixed:
		n := s.typ.Len()
		return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
			return append(dst, unsafe.Slice((*byte)(p), n)...), nil
		}
	case timeKind:
		return encodeTime
	case marshaled:
		return encodeMarshaled(s)
	case array:
		encode := encodeRun(s.elem, e.of(s.elem))
		n := s.typ.Len()
		return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) { return encode(dst, p, n, depth) }
	case record:
		return e.record(s)
	case bytes:
		return encodeBytes
	case slice:
		return e.slice(s)
	case pointer:
		return e.pointer(s)
	default: // stringMap, pairs
		return e.maps(s)
	}
}

func appendLong(dst []byte, v int64) []byte {
	return binary.AppendUvarint(dst, uint64(v)<<1^uint64(v>>63))
}

func encodeBool(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	if *(*bool)(p) {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

type integer interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64
}

func encodeInt[I integer](dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	return appendLong(dst, int64(*(*I)(p))), nil
}

func encodeIntOf(k reflect.Kind) encodeFunc {
	switch k {
	case reflect.Int:
		return encodeInt[int]
	case reflect.Int8:
		return encodeInt[int8]
	case reflect.Int16:
		return encodeInt[int16]
	case reflect.Int32:
		return encodeInt[int32]
	case reflect.Int64:
		return encodeInt[int64]
	case reflect.Uint:
		return encodeInt[uint]
	case reflect.Uint8:
		return encodeInt[uint8]
	case reflect.Uint16:
		return encodeInt[uint16]
	case reflect.Uint32:
		return encodeInt[uint32]
	default:
		return encodeInt[uint64]
	}
}

func encodeString(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	s := *(*string)(p)
	return append(appendLong(dst, int64(len(s))), s...), nil
}

// Every union is of null and something else, in this order.
const (
	absent  = 0
	present = 2 // the zigzag of 1
)

func encodeBytes(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	b := *(*[]byte)(p)
	if b == nil {
		return append(dst, absent), nil
	}
	return append(appendLong(append(dst, present), int64(len(b))), b...), nil
}

func encodeTime(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	t := (*time.Time)(p)
	zone, offset := "", 0
	if t.Location() != time.UTC {
		zone = t.Location().String()
		_, offset = t.Zone()
	}
	dst = appendLong(dst, t.Unix())
	dst = appendLong(dst, int64(t.Nanosecond()))
	dst = append(appendLong(dst, int64(len(zone))), zone...)
	return appendLong(dst, int64(offset)), nil
}

func encodeMarshaled(s *shape) encodeFunc {
	return func(dst []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		data, err := s.methods.marshal(p)
		if err != nil {
			return dst, fmt.Errorf("marshaling %v: %w", s.typ, err)
		}
		return append(appendLong(dst, int64(len(data))), data...), nil
	}
}

// encodeRun returns a function that writes n elements from p on as an Avro array.
func encodeRun(elem *shape, encode encodeFunc) func(dst []byte, p unsafe.Pointer, n, depth int) ([]byte, error) {
	size := elem.typ.Size()
	return func(dst []byte, p unsafe.Pointer, n, depth int) ([]byte, error) {
		if n > 0 {
			dst = appendLong(dst, int64(n))
		}
		var err error
		for i := range n {
			if dst, err = encode(dst, unsafe.Add(p, uintptr(i)*size), depth); err != nil {
				return dst, err
			}
		}
		return append(dst, 0), nil
	}
}

func (e encoders) record(s *shape) encodeFunc {
	if known, ok := e[s]; ok {
		return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
			if depth >= maxDepth {
				return dst, errTooDeep
			}
			return (*known)(dst, p, depth+1)
		}
	}
	made := new(encodeFunc)
	e[s] = made
	type step struct {
		offset uintptr
		encode encodeFunc
	}
	steps := make([]step, len(s.fields))
	for i, f := range s.fields {
		steps[i] = step{f.offset, e.of(f.shape)}
	}
	*made = func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		var err error
		for i := range steps {
			if dst, err = steps[i].encode(dst, unsafe.Add(p, steps[i].offset), depth); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	return *made
}

func (e encoders) slice(s *shape) encodeFunc {
	encode := encodeRun(s.elem, e.of(s.elem))
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		v := reflect.NewAt(s.typ, p).Elem()
		if v.IsNil() {
			return append(dst, absent), nil
		}
		return encode(append(dst, present), v.UnsafePointer(), v.Len(), depth)
	}
}

func (e encoders) pointer(s *shape) encodeFunc {
	encode := e.of(s.elem)
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		to := *(*unsafe.Pointer)(p)
		if to == nil {
			return append(dst, absent), nil
		}
		return encode(append(dst, present), to, depth)
	}
}

// maps encodes both kinds of maps: key and value are written one after the other in
// an Avro map as well as in a record of the two.
func (e encoders) maps(s *shape) encodeFunc {
	encodeKey, encodeElem := e.of(s.key), e.of(s.elem)
	return func(dst []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		m := reflect.NewAt(s.typ, p).Elem()
		if m.IsNil() {
			return append(dst, absent), nil
		}
		dst = append(dst, present)
		if m.Len() > 0 {
			dst = appendLong(dst, int64(m.Len()))
		}
		key, elem := reflect.New(s.key.typ), reflect.New(s.elem.typ)
		var err error
		for entries := m.MapRange(); entries.Next(); {
			key.Elem().SetIterKey(entries)
			elem.Elem().SetIterValue(entries)
			if dst, err = encodeKey(dst, key.UnsafePointer(), depth); err != nil {
				return dst, err
			}
			if dst, err = encodeElem(dst, elem.UnsafePointer(), depth); err != nil {
				return dst, err
			}
		}
		return append(dst, 0), nil
	}
}

// fits reports whether a number of 64 bits can be an Avro int.
func fits(v int64) bool { return math.MinInt32 <= v && v <= math.MaxInt32 }
