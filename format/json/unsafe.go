package json

import (
	"encoding/binary"
	"reflect"
	"unsafe"
)

// This file is the only one of the package that imports unsafe. It rests on
// four invariants:
//
//  1. A slot is made from a live *T (slotOf) and from then on only moves to
//     places inside that value or inside memory it points to: fields at the
//     offsets reflect reported for the slot's type, elements below the
//     capacity of a slice or the length of an array, and pointer targets.
//  2. A slot is read and written only as a type whose kind, and so whose size
//     and pointer layout, is the one reflect reported for the place; the same
//     holds for the keys and elements of a map. The tables of compile.go and
//     encodecompile.go carry that type beside every offset.
//  3. A slot holds an unsafe.Pointer, never a uintptr, so the collector sees
//     what it points into; slots live in arguments and locals only.
//  4. A string view is either made of bytes that nobody writes again (ownString)
//     or does not outlive the call it is passed to (borrowString).

// slot is a typed place in memory whose type only the caller's table knows.
type slot struct{ p unsafe.Pointer }

func slotOf[T any](v *T) slot { return slot{unsafe.Pointer(v)} }

// slotIn returns the place that a non-nil pointer made by reflect.New points to.
func slotIn(ptr reflect.Value) slot { return slot{ptr.UnsafePointer()} }

// at moves to the field or array element at offset off of the slot's value.
func (s slot) at(off uintptr) slot { return slot{unsafe.Add(s.p, off)} }

// as reads the slot as a T. T must have the kind of the slot's type.
func as[T any](s slot) *T { return (*T)(s.p) }

// value returns the slot as an addressable reflect.Value of its type.
func (s slot) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, s.p).Elem() }

// pointer returns the slot's address as an interface holding a *t.
func (s slot) pointer(t reflect.Type) any { return reflect.NewAt(t, s.p).Interface() }

// target returns the place that the pointer in s points to. It reports false
// if that pointer is nil.
func (s slot) target() (slot, bool) {
	p := *(*unsafe.Pointer)(s.p)
	return slot{p}, p != nil
}

// targetOrNew is target for decoding: a nil pointer is first set to a new t.
func (s slot) targetOrNew(t reflect.Type) slot {
	p := (*unsafe.Pointer)(s.p)
	if *p == nil {
		*p = reflect.New(t).UnsafePointer()
	}
	return slot{*p}
}

// clearPointer sets a slot of pointer or map type to nil.
func (s slot) clearPointer() { *(*unsafe.Pointer)(s.p) = nil }

// sliceHeader is the memory layout of every slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// slice reads a slot of slice type. The header may be written only to change
// len within cap.
func (s slot) slice() *sliceHeader { return (*sliceHeader)(s.p) }

// elem returns the place of element i, i < cap, of a slice whose elements have
// the given size.
func (h *sliceHeader) elem(i int, size uintptr) slot {
	return slot{unsafe.Add(h.data, uintptr(i)*size)}
}

// ownString turns b into a string without a copy. The caller gives b away.
func ownString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// borrowString views b as a string for the length of one call that keeps
// nothing of its argument.
func borrowString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// loadWord returns the eight bytes at i, the first in the lowest byte. The
// caller has checked that they are inside d: 0 <= i and i+8 <= len(d).
func loadWord(d []byte, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(d)), i))[:])
}

// borrowBytes views s as bytes that nobody writes, for the length of one call
// that keeps nothing of its argument.
func borrowBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
