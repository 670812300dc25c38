package keyed

import (
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"strconv"
	"unsafe"
)

// layout is a key type taken apart: its parts are what is left of structs and
// arrays. Flink's tuple rule 31*h + hash(field) is linear, so the hash of any
// nesting is the sum of its parts' hashes, each times a power of 31.
type layout struct {
	parts    []part
	hasFloat bool
}

type part struct {
	kind   reflect.Kind
	weight uint32
	offset uintptr
}

// compile takes a key type apart, or says why it cannot be one.
func compile(t reflect.Type) (*layout, error) {
	c := &layout{}
	if err := c.add(t, 0, 1, ""); err != nil {
		return nil, fmt.Errorf("%v cannot be a key type: %w", t, err)
	}
	return c, nil
}

// add appends the parts of a value of type t at an offset. path says where it
// is, for errors.
func (c *layout) add(t reflect.Type, offset uintptr, weight uint32, path string) error {
	switch t.Kind() {
	case reflect.Struct:
		return c.addStruct(t, offset, weight, path)
	case reflect.Array:
		size := t.Elem().Size()
		for i := t.Len() - 1; i >= 0; i-- {
			at := path + "[" + strconv.Itoa(i) + "]"
			if err := c.add(t.Elem(), offset+uintptr(i)*size, weight, at); err != nil {
				return err
			}
			weight *= 31
		}
		return nil
	case reflect.Float32, reflect.Float64:
		c.hasFloat = true
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
	default:
		return refuse(t, path)
	}
	c.parts = append(c.parts, part{kind: t.Kind(), weight: weight, offset: offset})
	return nil
}

func (c *layout) addStruct(t reflect.Type, offset uintptr, weight uint32, path string) error {
	if t.PkgPath() == "time" && t.Name() == "Time" {
		return fmt.Errorf("%sequal instants differ as time.Time; use UnixMilli()", where(path))
	}
	for i := t.NumField() - 1; i >= 0; i-- {
		f := t.Field(i)
		if f.Name == "_" {
			continue // == ignores it
		}
		if err := c.add(f.Type, offset+f.Offset, weight, path+"."+f.Name); err != nil {
			return err
		}
		weight *= 31
	}
	return nil
}

func refuse(t reflect.Type, path string) error {
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Chan:
		return fmt.Errorf("%s%v is an address, which is another one in every process; "+
			"use the value it points to, or a string or integer that identifies it", where(path), t)
	case reflect.Interface:
		return fmt.Errorf("%s%v is an interface, whose values have no common hash; "+
			"use a concrete type: a string, an integer, or a struct of them", where(path), t)
	default:
		return fmt.Errorf("%s%v has no hash; use a string, an integer, or a struct of them", where(path), t)
	}
}

func where(path string) string {
	if path == "" {
		return ""
	}
	return "in " + path + ": "
}

// equality tells whether keys are the same: as == does, except that NaN is the
// same as NaN, as in Java. Otherwise each NaN would be a key that nothing finds
// again.
type equality[K comparable] struct {
	// floats is nil if K holds no floats.
	floats *layout
}

func equalityOf[K comparable]() equality[K] {
	if c, err := compile(reflect.TypeFor[K]()); err == nil && c.hasFloat {
		return equality[K]{c}
	}
	return equality[K]{}
}

func (e equality[K]) same(a, b K) bool {
	return a == b || e.floats != nil && e.floats.same(unsafe.Pointer(&a), unsafe.Pointer(&b))
}

// canonical returns the one of all keys that are the same as key that stands for them.
func (e equality[K]) canonical(key K) *K {
	e.floats.canonical(unsafe.Pointer(&key))
	return &key
}

// canonical makes the floats of the key at key what bits says of them.
func (c *layout) canonical(key unsafe.Pointer) {
	for i := range c.parts {
		switch p := &c.parts[i]; p.kind {
		case reflect.Float32:
			*(*uint32)(unsafe.Add(key, p.offset)) = uint32(p.bits(key))
		case reflect.Float64:
			*(*uint64)(unsafe.Add(key, p.offset)) = p.bits(key)
		}
	}
}

// same reports whether two keys have the same parts, NaN being the same as
// NaN.
func (c *layout) same(a, b unsafe.Pointer) bool {
	for i := range c.parts {
		p := &c.parts[i]
		if p.kind == reflect.String {
			if *(*string)(unsafe.Add(a, p.offset)) != *(*string)(unsafe.Add(b, p.offset)) {
				return false
			}
		} else if p.bits(a) != p.bits(b) {
			return false
		}
	}
	return true
}

// java returns the Java hash code of the key at key.
func (c *layout) java(key unsafe.Pointer) uint32 {
	var h uint32
	for i := range c.parts {
		p := &c.parts[i]
		h += p.weight * p.java(key)
	}
	return h
}

// table returns a hash of the key at key that agrees with same.
// maphash.Comparable would do but for NaN, which it hashes at random.
func (c *layout) table(key unsafe.Pointer) uint64 {
	var h uint64
	for i := range c.parts {
		p := &c.parts[i]
		var bits uint64
		if p.kind == reflect.String {
			bits = maphash.String(seed, *(*string)(unsafe.Add(key, p.offset)))
		} else {
			bits = p.bits(key)
		}
		h = maphash.Comparable(seed, [2]uint64{h, bits})
	}
	return h
}

// isLong reports whether a part is an integer of 64 bits.
func (p *part) isLong() bool {
	switch p.kind {
	case reflect.Int64, reflect.Uint64:
		return true
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return strconv.IntSize == 64
	default:
		return false
	}
}

func (p *part) java(key unsafe.Pointer) uint32 {
	switch p.kind {
	case reflect.String:
		return javaString(*(*string)(unsafe.Add(key, p.offset)))
	case reflect.Bool:
		if p.bits(key) != 0 {
			return 1231
		}
		return 1237
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr, reflect.Float64:
		v := p.bits(key)
		return uint32(v) ^ uint32(v>>32)
	default:
		return uint32(p.bits(key))
	}
}

// bits returns a part other than a string as an integer, sign-extended where it
// is signed. Equal parts have equal bits.
func (p *part) bits(key unsafe.Pointer) uint64 {
	at := unsafe.Add(key, p.offset)
	switch p.kind {
	case reflect.Int:
		return uint64(*(*int)(at))
	case reflect.Int8:
		return uint64(*(*int8)(at))
	case reflect.Int16:
		return uint64(*(*int16)(at))
	case reflect.Int32:
		return uint64(*(*int32)(at))
	case reflect.Uint:
		return uint64(*(*uint)(at))
	case reflect.Uintptr:
		return uint64(*(*uintptr)(at))
	case reflect.Uint8, reflect.Bool:
		return uint64(*(*uint8)(at))
	case reflect.Uint16:
		return uint64(*(*uint16)(at))
	case reflect.Uint32:
		return uint64(*(*uint32)(at))
	case reflect.Float32:
		return uint64(float32Bits(*(*float32)(at)))
	case reflect.Float64:
		return float64Bits(*(*float64)(at))
	default:
		return *(*uint64)(at)
	}
}

// float32Bits is Java's Float.floatToIntBits, with one zero instead of two.
func float32Bits(f float32) uint32 {
	switch {
	case f != f:
		return 0x7fc00000
	case f == 0:
		return 0
	default:
		return math.Float32bits(f)
	}
}

// float64Bits is Java's Double.doubleToLongBits, with one zero instead of two.
func float64Bits(f float64) uint64 {
	switch {
	case f != f:
		return 0x7ff8000000000000
	case f == 0:
		return 0
	default:
		return math.Float64bits(f)
	}
}
