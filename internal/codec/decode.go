package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// decodeFunc decodes a value from data into the zeroed or used memory that p points to
// and returns what is behind it. It overwrites the value and keeps nothing of data.
type decodeFunc func(data []byte, p unsafe.Pointer, depth int) (rest []byte, err error)

var (
	errShort  = errors.New("the data ends within a value")
	errVarint = errors.New("a number has more than 64 bits")
	errLength = errors.New("a length is larger than the data behind it")
	errNull   = errors.New("nil is stored, and the type has no nil")
)

func readLong(data []byte) (int64, []byte, error) {
	u, n := binary.Uvarint(data)
	switch {
	case n == 0:
		return 0, nil, errShort
	case n < 0:
		return 0, nil, errVarint
	}
	return int64(u>>1) ^ -int64(u&1), data[n:], nil
}

// readRaw reads a length and returns that many bytes, which belong to data.
func readRaw(data []byte) (raw, rest []byte, err error) {
	n, data, err := readLong(data)
	if err != nil {
		return nil, nil, err
	}
	if n < 0 || n > int64(len(data)) {
		return nil, nil, errLength
	}
	return data[:n], data[n:], nil
}

// wire says how a stored number is laid out.
type wire uint8

const (
	wireLong wire = iota // int and long
	wireUint64
	wireFloat
	wireDouble
)

// decodeInt reads an integer that must fit into I.
func decodeInt[I integer](stored wire) decodeFunc {
	unsigned := I(0)-1 > 0
	wide := unsafe.Sizeof(I(0)) == 8
	return func(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		n, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		v := I(n)
		sameSign := n >= 0 || unsigned == (stored == wireUint64)
		if !sameSign || !wide && int64(v) != n {
			return nil, outOfRange(n, stored, reflect.TypeFor[I]())
		}
		*(*I)(p) = v
		return data, nil
	}
}

func outOfRange(n int64, stored wire, t reflect.Type) error {
	if stored == wireUint64 {
		return fmt.Errorf("the stored number %d is too large for %v", uint64(n), t)
	}
	return fmt.Errorf("the stored number %d does not fit into %v", n, t)
}

func decodeIntOf(k reflect.Kind, stored wire) decodeFunc {
	switch k {
	case reflect.Int:
		return decodeInt[int](stored)
	case reflect.Int8:
		return decodeInt[int8](stored)
	case reflect.Int16:
		return decodeInt[int16](stored)
	case reflect.Int32:
		return decodeInt[int32](stored)
	case reflect.Int64:
		return decodeInt[int64](stored)
	case reflect.Uint:
		return decodeInt[uint](stored)
	case reflect.Uint8:
		return decodeInt[uint8](stored)
	case reflect.Uint16:
		return decodeInt[uint16](stored)
	case reflect.Uint32:
		return decodeInt[uint32](stored)
	default:
		return decodeInt[uint64](stored)
	}
}

func decodeBool(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	if len(data) == 0 {
		return nil, errShort
	}
	if data[0] > 1 {
		return nil, fmt.Errorf("a bool is stored as %d", data[0])
	}
	*(*bool)(p) = data[0] == 1
	return data[1:], nil
}

// decodeFloatBits reads a float or double without touching its bits.
func decodeFloatBits(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	if len(data) < 4 {
		return nil, errShort
	}
	*(*uint32)(p) = binary.LittleEndian.Uint32(data)
	return data[4:], nil
}

func decodeDoubleBits(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	if len(data) < 8 {
		return nil, errShort
	}
	*(*uint64)(p) = binary.LittleEndian.Uint64(data)
	return data[8:], nil
}

// decodeWidened reads a number that was stored as a narrower type than the float F.
func decodeWidened[F float32 | float64](stored wire) decodeFunc {
	return func(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		if stored == wireFloat {
			if len(data) < 4 {
				return nil, errShort
			}
			*(*F)(p) = F(math.Float32frombits(binary.LittleEndian.Uint32(data)))
			return data[4:], nil
		}
		n, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		if stored == wireUint64 {
			*(*F)(p) = F(uint64(n))
		} else {
			*(*F)(p) = F(n)
		}
		return data, nil
	}
}

func decodeString(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	raw, rest, err := readRaw(data)
	if err == nil {
		*(*string)(p) = string(raw)
	}
	return rest, err
}

func decodeBytes(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
	raw, rest, err := readRaw(data)
	if err == nil {
		*(*[]byte)(p) = append([]byte{}, raw...)
	}
	return rest, err
}

func decodeFixed(n int) decodeFunc {
	return func(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		if len(data) < n {
			return nil, errShort
		}
		copy(unsafe.Slice((*byte)(p), n), data)
		return data[n:], nil
	}
}

func decodeMarshaled(s *shape) decodeFunc {
	return func(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		raw, rest, err := readRaw(data)
		if err != nil {
			return nil, err
		}
		setZero(s.typ, p)
		if err := s.methods.unmarshal(p, raw); err != nil {
			return nil, fmt.Errorf("unmarshaling %v: %w", s.typ, err)
		}
		return rest, nil
	}
}

func setZero(t reflect.Type, p unsafe.Pointer) { reflect.NewAt(t, p).Elem().SetZero() }

// decodeTime returns a decoder that looks a zone up only once.
func decodeTime() decodeFunc {
	var zones sync.Map // name to *time.Location, nil if it is unknown here
	return func(data []byte, p unsafe.Pointer, _ int) ([]byte, error) {
		seconds, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		nanos, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		zone, data, err := readRaw(data)
		if err != nil {
			return nil, err
		}
		offset, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		if nanos < 0 || nanos >= 1e9 || !fits(offset) {
			return nil, fmt.Errorf("a time is stored with %d nanoseconds and the zone offset %d", nanos, offset)
		}
		*(*time.Time)(p) = time.Unix(seconds, nanos).In(time.UTC)
		if len(zone) > 0 || offset != 0 {
			*(*time.Time)(p) = inZone(&zones, time.Unix(seconds, nanos), string(zone), int(offset))
		}
		return data, nil
	}
}

// inZone puts t into the zone of that name if it has the offset there and then, otherwise
// into a fixed one.
func inZone(zones *sync.Map, t time.Time, name string, offset int) time.Time {
	known, ok := zones.Load(name)
	if !ok {
		var location *time.Location
		if name != "" {
			// An unknown zone is no error: the offset is known.
			location, _ = time.LoadLocation(name)
		}
		known, _ = zones.LoadOrStore(name, location)
	}
	if location := known.(*time.Location); location != nil {
		if _, there := t.In(location).Zone(); there == offset {
			return t.In(location)
		}
	}
	return t.In(time.FixedZone(name, offset))
}

// maxEmpty bounds how many elements without a byte of their own an array may have, and
// how much memory they take: no data vouches for their number.
const maxEmpty = 1 << 24

// readBlock reads the head of a block of an Avro array or map: the number of its
// elements, 0 after the last block. Each is at least minSize bytes long.
func readBlock(data []byte, minSize int) (n int, rest []byte, err error) {
	count, data, err := readLong(data)
	if err != nil {
		return 0, nil, err
	}
	if count < 0 { // the block's size in bytes follows
		if _, data, err = readLong(data); err != nil {
			return 0, nil, err
		}
		count = -count
	}
	limit := int64(maxEmpty)
	if minSize > 0 {
		limit = int64(len(data) / minSize)
	}
	if count < 0 || count > limit {
		return 0, nil, errLength
	}
	return int(count), data, nil
}

func decodeSlice(s *shape, elem decodeFunc, minSize int) decodeFunc {
	size := s.elem.typ.Size()
	return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		v := reflect.NewAt(s.typ, p).Elem()
		v.Set(reflect.MakeSlice(s.typ, 0, 0))
		for {
			n, rest, err := readBlock(data, minSize)
			if err != nil || n == 0 {
				return rest, err
			}
			done := v.Len()
			if minSize == 0 && (done+n)*max(1, int(size)) > maxEmpty {
				return nil, errLength
			}
			v.Grow(n)
			v.SetLen(done + n)
			first := v.UnsafePointer()
			for i := range n {
				if rest, err = elem(rest, unsafe.Add(first, uintptr(done+i)*size), depth); err != nil {
					return nil, err
				}
			}
			data = rest
		}
	}
}

func decodeArray(s *shape, elem decodeFunc, minSize int) decodeFunc {
	size, want := s.elem.typ.Size(), s.typ.Len()
	return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		done := 0
		for {
			n, rest, err := readBlock(data, minSize)
			if err != nil {
				return nil, err
			}
			if done+n > want || n == 0 && done < want {
				return nil, fmt.Errorf("an array of another length than %d is stored: the length of %v cannot change", want, s.typ)
			}
			if n == 0 {
				return rest, nil
			}
			for range n {
				if rest, err = elem(rest, unsafe.Add(p, uintptr(done)*size), depth); err != nil {
					return nil, err
				}
				done++
			}
			data = rest
		}
	}
}

func decodeMap(s *shape, key, elem decodeFunc, minSize int) decodeFunc {
	return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		m := reflect.NewAt(s.typ, p).Elem()
		m.Set(reflect.MakeMap(s.typ))
		k, v := reflect.New(s.key.typ), reflect.New(s.elem.typ)
		for {
			n, rest, err := readBlock(data, minSize)
			if err != nil || n == 0 {
				return rest, err
			}
			if m.Len() == 0 {
				m.Set(reflect.MakeMapWithSize(s.typ, n))
			}
			for range n {
				if rest, err = key(rest, k.UnsafePointer(), depth); err != nil {
					return nil, err
				}
				if rest, err = elem(rest, v.UnsafePointer(), depth); err != nil {
					return nil, err
				}
				m.SetMapIndex(k.Elem(), v.Elem())
			}
			data = rest
		}
	}
}

func decodePointer(s *shape, elem decodeFunc) decodeFunc {
	return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		to := reflect.New(s.elem.typ)
		*(*unsafe.Pointer)(p) = to.UnsafePointer()
		return elem(data, to.UnsafePointer(), depth)
	}
}

// decodeUnion decodes the branch that was stored; of several that are possible there
// is one decoder each.
func decodeUnion(branches []decodeFunc) decodeFunc {
	return func(data []byte, p unsafe.Pointer, depth int) ([]byte, error) {
		n, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		if n < 0 || n >= int64(len(branches)) {
			return nil, fmt.Errorf("branch %d of a union of %d is stored", n, len(branches))
		}
		return branches[n](data, p, depth)
	}
}
