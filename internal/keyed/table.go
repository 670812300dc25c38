package keyed

import (
	"iter"
	"math/bits"
	"reflect"
	"unsafe"
)

// Table maps keys to values: an index of small open-addressed segments over
// entries that lie densely in the order of their insertion.
//
//	hash  ....high bits..........low bits
//	          |                  |
//	  directory: 2^depth     home slot in the segment, linear probing
//	  entries, each a        each slot: 32 bits of hash, entry number + 1
//	  segment of at most     |
//	  maxSegment slots       entry i: block i>>blockShift, at i&blockMask
//
// A segment that fills up is split in two, and entries never move because of
// others' insertion (except in the first block of a small table). So no insertion
// costs more than one split, however large the table is.
//
// Entries are numbered from 0 to Len()-1. Numbers follow insertion; deleting
// an entry gives its number to the last one. They depend on the sequence of
// calls only, never on hashes, so iteration is the same in every run.
//
// Callers pass hashes made by HasherFor or Mix: a key must always come with the
// same hash.
type Table[K comparable, V any] struct {
	// directory has 2^depth elements. A segment of local depth d stands in
	// 2^(depth-d) neighbouring ones; its fill is kept at the first of them.
	directory []([]slot)
	segments  []segmentInfo
	// dirShift is 32-depth.
	dirShift uint8

	blockShift uint8
	blockMask  uint32
	blocks     []([]Entry[K, V])
	len        int

	equality[K]
	// textKeys is set if K's values are strings.
	textKeys bool
	// shared is set if a copy of a value shares memory with it.
	shared bool
	// image is what the last snapshot holds of the table, nil if it is known to be over.
	image *Image
	// touched keeps reads that are done for their side effect alive.
	touched uint64
}

// Entry is one key of a Table. Only Value may be changed.
type Entry[K comparable, V any] struct {
	Hash  uint64
	Value V
	Key   K
}

// entryOverhead is about what the index takes for an entry, in bytes.
const entryOverhead = 16

// EntryBytes returns about how many bytes an entry takes in a table, besides what its key and
// its value point to.
func EntryBytes[K comparable, V any]() int { return int(unsafe.Sizeof(Entry[K, V]{})) + entryOverhead }

// slot holds the table half of a hash in its upper half and an entry number
// plus one in its lower half; 0 is empty.
type slot uint64

func makeSlot(hash uint64, entry uint32) slot { return slot(hash<<32) | slot(entry+1) }
func (s slot) tag() uint32                    { return uint32(s >> 32) }
func (s slot) entry() uint32                  { return uint32(s) - 1 }

type segmentInfo struct {
	used  uint32
	depth uint8
}

const (
	minSegment = 8
	maxSegment = 1 << 12
	// maxDepth bounds the directory should all hashes be alike.
	maxDepth = 20

	blockBytes    = 128 << 10
	minBlock      = 8
	maxBlockShift = 12
	minBlockShift = 4
)

// NewTable returns an empty table.
func NewTable[K comparable, V any]() *Table[K, V] {
	size := max(int(unsafe.Sizeof(Entry[K, V]{})), 1)
	shift := min(max(bits.Len(uint(blockBytes/size))-1, minBlockShift), maxBlockShift)
	return &Table[K, V]{
		directory:  [][]slot{make([]slot, minSegment)},
		segments:   make([]segmentInfo, 1),
		dirShift:   32,
		blockShift: uint8(shift),
		blockMask:  1<<shift - 1,
		equality:   equalityOf[K](),
		textKeys:   reflect.TypeFor[K]().Kind() == reflect.String,
		shared:     IsShared[V](),
	}
}

// Len returns the number of entries.
func (t *Table[K, V]) Len() int { return t.len }

// At returns entry i, whose value may be changed. It is valid until the next
// insertion, deletion or snapshot.
func (t *Table[K, V]) At(i int) *Entry[K, V] {
	if t.image != nil {
		t.keep(uint32(i))
	}
	return t.entry(uint32(i))
}

// All visits the entries in the order of their numbers, for reading: only what their
// values point to may be changed. The table must not be changed meanwhile.
func (t *Table[K, V]) All() iter.Seq[*Entry[K, V]] {
	return func(yield func(*Entry[K, V]) bool) {
		for rest, b := t.len, 0; rest > 0; b++ {
			block := t.blocks[b]
			n := min(rest, len(block))
			for i := range block[:n] {
				if t.image != nil && t.shared {
					t.keep(uint32(b)<<t.blockShift + uint32(i))
				}
				if !yield(&block[i]) {
					return
				}
			}
			rest -= n
		}
	}
}

// Get returns the value of a key, nil if it has none. The pointer is valid
// until the next insertion, deletion or snapshot.
func (t *Table[K, V]) Get(hash uint64, key K) *V {
	i, e := t.find(hash, key)
	if e == nil {
		return nil
	}
	if t.image != nil {
		t.keep(i)
	}
	return &e.Value
}

// Index returns the number of a key's entry, -1 if it has none.
func (t *Table[K, V]) Index(hash uint64, key K) int {
	i, e := t.find(hash, key)
	if e == nil {
		return -1
	}
	return int(i)
}

// Upsert returns the value of a key, which is the zero value if it was created.
// The pointer is valid until the next insertion, deletion or snapshot.
func (t *Table[K, V]) Upsert(hash uint64, key K) (v *V, created bool) {
	if i, e := t.find(hash, key); e != nil {
		if t.image != nil {
			t.keep(i)
		}
		return &e.Value, false
	}
	return &t.insert(hash, key).Value, true
}

// Delete removes a key and reports whether it was there.
func (t *Table[K, V]) Delete(hash uint64, key K) bool {
	i, e := t.find(hash, key)
	if e == nil {
		return false
	}
	t.DeleteAt(int(i))
	return true
}

// DeleteAt removes entry i. The last entry takes its number, so a loop that
// deletes as it goes counts down.
func (t *Table[K, V]) DeleteAt(i int) {
	last := uint32(t.len - 1)
	if t.image != nil {
		t.keep(uint32(i))
	}
	if t.image != nil {
		t.keep(last)
	}
	e, moved := t.entry(uint32(i)), t.entry(last)
	t.freeSlot(e.Hash, t.slotOf(e.Hash, uint32(i)))
	if moved != e {
		to := &t.directory[t.dir(moved.Hash)][t.slotOf(moved.Hash, last)]
		*to = makeSlot(moved.Hash, uint32(i))
		*e = *moved
	}
	*moved = Entry[K, V]{}
	t.len--
}

// Trim gives up memory that entries do not need any more, but for a block and the index.
func (t *Table[K, V]) Trim() {
	if needed := t.len>>t.blockShift + 2; needed < len(t.blocks) {
		clear(t.blocks[needed:])
		t.blocks = t.blocks[:needed]
	}
}

// Reset removes all entries and keeps the memory, unless a snapshot is being written,
// which then keeps it.
func (t *Table[K, V]) Reset() {
	if t.image != nil && !t.image.snapshot.Over() {
		t.blocks = nil
	}
	t.image = nil
	rest := t.len
	for _, block := range t.blocks {
		n := min(rest, len(block))
		clear(block[:n])
		rest -= n
	}
	for i, slots := range t.directory {
		if t.first(i) == i {
			clear(slots)
		}
		t.segments[i].used = 0
	}
	t.len = 0
}

func (t *Table[K, V]) entry(i uint32) *Entry[K, V] {
	return &t.blocks[i>>(t.blockShift&31)][i&t.blockMask]
}

// dir returns the directory position of a hash.
func (t *Table[K, V]) dir(hash uint64) int {
	return int(uint64(uint32(hash)) >> (t.dirShift & 63))
}

// first returns the first directory position of the segment at position d.
func (t *Table[K, V]) first(d int) int {
	return d &^ (1<<(32-t.dirShift-t.segments[d].depth) - 1)
}

// find returns the number and the entry of a key, nil if there is none.
func (t *Table[K, V]) find(hash uint64, key K) (i uint32, e *Entry[K, V]) {
	slots := t.directory[t.dir(hash)]
	mask := uint32(len(slots) - 1)
	for at := uint32(hash) & mask; slots[at] != 0; at = (at + 1) & mask {
		if s := slots[at]; s.tag() == uint32(hash) {
			if e := t.entry(s.entry()); e.Hash == hash && t.same(e.Key, key) {
				return s.entry(), e
			}
		}
	}
	return 0, nil
}

// slotOf returns the number of entry i's slot within its segment.
func (t *Table[K, V]) slotOf(hash uint64, i uint32) uint32 {
	slots := t.directory[t.dir(hash)]
	mask := uint32(len(slots) - 1)
	at := uint32(hash) & mask
	for slots[at].entry() != i {
		at = (at + 1) & mask
	}
	return at
}

// insert adds a key that is not in the table.
func (t *Table[K, V]) insert(hash uint64, key K) *Entry[K, V] {
	d := t.dir(hash)
	first := t.first(d)
	if n := len(t.directory[d]); int(t.segments[first].used) >= n-n/4 {
		t.grow(first)
		d = t.dir(hash)
		first = t.first(d)
	}
	i := uint32(t.len)
	e := t.addEntry()
	e.Hash, e.Key = hash, key
	place(t.directory[d], makeSlot(hash, i))
	t.segments[first].used++
	return e
}

// addEntry makes room for one entry at the end. Entries past the end are zero.
func (t *Table[K, V]) addEntry() *Entry[K, V] {
	b := t.len >> t.blockShift
	switch {
	case b == len(t.blocks) && b == 0:
		t.blocks = append(t.blocks, make([]Entry[K, V], minBlock))
	case b == len(t.blocks):
		t.blocks = append(t.blocks, make([]Entry[K, V], 1<<t.blockShift))
	case b == 0 && t.len == len(t.blocks[0]):
		larger := make([]Entry[K, V], 2*t.len)
		copy(larger, t.blocks[0])
		t.blocks[0] = larger
	}
	t.len++
	return t.entry(uint32(t.len - 1))
}

// place puts a slot into the first free place from its home.
func place(slots []slot, s slot) {
	mask := uint32(len(slots) - 1)
	at := s.tag() & mask
	for slots[at] != 0 {
		at = (at + 1) & mask
	}
	slots[at] = s
}

// grow makes room in the segment at directory position first.
func (t *Table[K, V]) grow(first int) {
	old, info := t.directory[first], t.segments[first]
	if len(old) < maxSegment || info.depth == maxDepth {
		larger := make([]slot, 2*len(old))
		for _, s := range old {
			if s != 0 {
				place(larger, s)
			}
		}
		t.setSegment(first, larger, info)
		return
	}
	if 32-t.dirShift == info.depth {
		t.doubleDirectory()
		first *= 2
	}
	info.depth++
	halves := [2][]slot{make([]slot, maxSegment), make([]slot, maxSegment)}
	var used [2]uint32
	for _, s := range old {
		if s != 0 {
			half := s >> (64 - info.depth) & 1
			place(halves[half], s)
			used[half]++
		}
	}
	t.setSegment(first, halves[0], segmentInfo{used[0], info.depth})
	t.setSegment(first+1<<(32-t.dirShift-info.depth), halves[1], segmentInfo{used[1], info.depth})
}

// setSegment puts a segment into all its directory positions.
func (t *Table[K, V]) setSegment(first int, slots []slot, info segmentInfo) {
	for d := first; d < first+1<<(32-t.dirShift-info.depth); d++ {
		t.directory[d], t.segments[d] = slots, info
	}
}

func (t *Table[K, V]) doubleDirectory() {
	directory := make([][]slot, 2*len(t.directory))
	segments := make([]segmentInfo, len(directory))
	for d := range directory {
		directory[d], segments[d] = t.directory[d/2], t.segments[d/2]
	}
	t.directory, t.segments = directory, segments
	t.dirShift--
}

// freeSlot empties slot gap of a hash's segment and moves later ones back, so
// that every slot can still be reached from its home.
func (t *Table[K, V]) freeSlot(hash uint64, gap uint32) {
	d := t.dir(hash)
	slots := t.directory[d]
	mask := uint32(len(slots) - 1)
	for at := (gap + 1) & mask; slots[at] != 0; at = (at + 1) & mask {
		home := slots[at].tag() & mask
		if (at-home)&mask >= (at-gap)&mask {
			slots[gap] = slots[at]
			gap = at
		}
	}
	slots[gap] = 0
	t.segments[t.first(d)].used--
}
