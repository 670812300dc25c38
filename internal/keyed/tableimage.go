package keyed

import (
	"reflect"
	"sync/atomic"
)

// tableImage is what a table held when a snapshot of it began.
//
// It shares the table's blocks. Entry i belongs to the image as long as bit i of
// written is clear, and then nobody changes it; both goroutines set bits under the
// snapshot's lock, after writing.
type tableImage[K comparable, V any] struct {
	snapshot *Snapshot
	write    func(*Entry[K, V]) error
	// blocks are the table's at the beginning. The first of a small table may have been
	// replaced since by a copy, and then stays as it was.
	blocks     []([]Entry[K, V])
	blockShift uint8
	// from and to are the numbers of the first entry and the one after the last.
	from, to uint32
	written  []atomic.Uint64
	// word is the word of written that the goroutine comes to next.
	word int
}

// Table adds the entries of a table, as they are now. write is called once for each.
//
// Until the snapshot is over, an entry is written before it is handed out for change:
// by Get, Upsert, At and deletions, and by All if values hold pointers, slices or
// maps. A pointer from before must not be used for changes any more.
func (s *Snapshot) Table[K comparable, V any](t *Table[K, V], write func(*Entry[K, V]) error) {
	s.table(t, 0, write)
}

// table adds the entries from number from on.
func (s *Snapshot) table[K comparable, V any](t *Table[K, V], from int, write func(*Entry[K, V]) error) {
	if t.image != nil {
		t.image.snapshot.supersede()
	}
	m := &tableImage[K, V]{
		snapshot: s, write: write,
		blocks: append([][]Entry[K, V](nil), t.blocks...), blockShift: t.blockShift,
		from: uint32(from), to: uint32(t.len),
		written: make([]atomic.Uint64, (t.len+63)/64),
		word:    from / 64,
	}
	t.image = m
	s.blocks = append(s.blocks, m)
}

// next writes what is left of 64 entries, or some of it if the subtask wants to go on.
func (m *tableImage[K, V]) next() (bool, error) {
	if m.word == len(m.written) {
		return false, nil
	}
	w := &m.written[m.word]
	done, first := w.Load(), uint32(m.word)*64
	for i := max(first, m.from); i < min(first+64, m.to); i++ {
		bit := uint64(1) << (i & 63)
		if done&bit != 0 {
			continue
		}
		if err := m.write(m.entry(i)); err != nil {
			return false, err
		}
		done |= bit
		if m.snapshot.wanted.Load() {
			w.Store(done)
			return true, nil
		}
	}
	w.Store(1<<64 - 1)
	m.word++
	return true, nil
}

func (m *tableImage[K, V]) entry(i uint32) *Entry[K, V] {
	return &m.blocks[i>>m.blockShift][i&(1<<m.blockShift-1)]
}

// keep writes entry i before it is changed.
func (m *tableImage[K, V]) keep(i uint32) {
	if i < m.from || i >= m.to || m.isWritten(i) {
		return
	}
	m.snapshot.Before(func() error {
		if m.isWritten(i) {
			return nil
		}
		err := m.write(m.entry(i))
		m.written[i/64].Or(1 << (i & 63))
		return err
	})
}

func (m *tableImage[K, V]) isWritten(i uint32) bool {
	return m.written[i/64].Load()>>(i&63)&1 != 0
}

// keep has the image write entry i, if it needs to.
func (t *Table[K, V]) keep(i uint32) {
	if t.image.snapshot.Over() {
		t.image = nil
		return
	}
	t.image.keep(i)
}

// IsShared reports whether a copy of a V may share memory with it that can be changed.
func IsShared[V any]() bool { return isShared(reflect.TypeFor[V]()) }

// isFlat reports whether a V holds neither pointers nor text.
func isFlat[V any]() bool { return !holds(reflect.TypeFor[V](), true) }

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
