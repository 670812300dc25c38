package keyed

import (
	"reflect"
	"slices"
)

// Table adds the entries of a table, as they are now. write is called once for each.
//
// Until the snapshot is over, an entry is written before it is handed out for change:
// by Get, Upsert, At and deletions, and by All if values hold pointers, slices or
// maps. A pointer from before must not be used for changes any more.
func (e *Encoder) Table[K comparable, V any](t *Table[K, V], write func(*Encoder, *Entry[K, V]) error) {
	e.table(t, 0, write)
}

// table adds the entries from number from on.
func (e *Encoder) table[K comparable, V any](t *Table[K, V], from int, write func(*Encoder, *Entry[K, V]) error) {
	if t.image != nil {
		t.image.Supersede()
	}
	// The first block of a small table may be replaced by a copy, and then stays as it was.
	blocks, shift := slices.Clone(t.blocks), t.blockShift
	t.image = e.Image(from, t.len, func(to *Encoder, i uint32) error {
		return write(to, &blocks[i>>shift][i&(1<<shift-1)])
	})
}

// keep has the image write entry i, if it needs to.
func (t *Table[K, V]) keep(i uint32) {
	if t.image.snapshot.Over() {
		t.image = nil
		return
	}
	t.image.Keep(i)
}

// IsShared reports whether a copy of a V may share memory with it that can be changed.
func IsShared[V any]() bool { return isShared(reflect.TypeFor[V]()) }

// IsFlat reports whether a V holds neither pointers nor text.
func IsFlat[V any]() bool { return !holds(reflect.TypeFor[V](), true) }

func isShared(t reflect.Type) bool { return holds(t, false) }

// holds reports whether values of a type point to something: with text also to that of a
// string, which nobody can change.
func holds(t reflect.Type, text bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface:
		return true
	case reflect.String:
		return text
	case reflect.Array:
		return holds(t.Elem(), text)
	case reflect.Struct:
		for i := range t.NumField() {
			if holds(t.Field(i).Type, text) {
				return true
			}
		}
	}
	return false
}
