package json

import (
	"math/bits"
	"strings"
	"sync/atomic"
)

// names finds the field that a member name stands for, by the rule of
// encoding/json: the field with exactly that name, else the first one, breadth
// first, whose name is equal under Unicode case folding.
//
// The table is hashed with linear probing, at most a quarter full. The hash
// ignores bit 0x20 of each byte, so an ASCII name and all its spellings in upper
// and lower case are in one run of slots.
//
// In front of the table is a guess. The records of a topic have their members in
// one order, so each member remembers which one came after it first, and the
// name at hand is compared with that one before it is read and hashed.
type names struct {
	slots []nameSlot
	shift uint
	// fields are all fields, for names that folding can change in length.
	fields []*field
	// unicode says that a field's name is not ASCII.
	unicode bool

	start  member       // stands before the first member
	other  member       // stands for the unknown members that are not remembered
	strays atomic.Int32 // number of unknown members that are remembered
}

// member is a member name that records have.
type member struct {
	// label is what stands in the record: the quoted name and the colon.
	label string
	// field is where the value goes, nil if it is left out.
	field *field
	// next is the member that came after this one when first asked, nil before.
	next atomic.Pointer[member]
}

const (
	// maxStrays and maxLabel bound what one struct remembers of names that it has
	// no field for. Goroutines that look at the same time may add a few more.
	maxStrays = 256
	maxLabel  = 64
)

// nameSlot is one entry; field is nil in a free one.
type nameSlot struct {
	nameKey
	field *field
}

// nameKey holds a name's first and, if it is longer than eight bytes, last eight
// bytes, and its length. It identifies names of up to 16 bytes.
type nameKey struct {
	head, tail uint64
	n          int
}

// keyOf returns the key of the name d[from:to].
func keyOf(d []byte, from, to int) nameKey {
	n := to - from
	head := load8(d, from)
	switch {
	case n < 8:
		return nameKey{head: below(head, n), n: n}
	case n == 8:
		return nameKey{head: head, n: n}
	default:
		return nameKey{head: head, tail: load8(d, to-8), n: n}
	}
}

// caseBits are the bits in which ASCII letters differ from their other case.
const caseBits = 0x20 * lowBits

func (k nameKey) hash(shift uint) uint {
	h := (k.head|caseBits)*0x9e3779b97f4a7c15 ^ (k.tail|caseBits)*0xc2b2ae3d27d4eb4f ^ uint64(k.n)*0x165667b19e3779f9
	return uint(h >> shift)
}

// newNames makes the table for fields, which are in the order of declaration.
func newNames(fields []*field) *names {
	size := 8
	for size < 4*len(fields) {
		size *= 2
	}
	t := &names{slots: make([]nameSlot, size), shift: uint(64 - bits.Len(uint(size-1))), fields: fields}
	for _, f := range fields {
		f.member.label = string(append(appendQuoted(nil, f.name), ':'))
		f.member.field = f
		name := []byte(f.name)
		key := keyOf(name, 0, len(name))
		h := key.hash(t.shift)
		for t.slots[h].field != nil {
			h = (h + 1) & uint(size-1)
		}
		t.slots[h] = nameSlot{key, f}
		t.unicode = t.unicode || !isASCII(f.name)
	}
	return t
}

// next reads the member name at i, which follows last, and its colon. It returns
// the member and the first byte of its value.
func (t *names) next(d []byte, i int, last *member) (*member, int, *DecodeError) {
	if m := last.next.Load(); m != nil && hasPrefix(d, i, m.label) {
		return m, skipSpace(d, i+len(m.label)), nil
	}
	return t.find(d, i, last)
}

// find is next for a name that was not guessed.
func (t *names) find(d []byte, i int, last *member) (*member, int, *DecodeError) {
	from := i + 1
	end, kind, err := scanString(d, from)
	if err != nil {
		return nil, end, err
	}
	if i, err = scanColon(d, end+1); err != nil {
		return nil, i, err
	}
	var f *field
	if kind&textEscaped != 0 {
		name := unquote(d[from:end])
		f = t.lookup(name, 0, len(name), true)
	} else {
		f = t.lookup(d, from, end, kind != textASCII)
	}
	return t.remember(last, f, d[from-1:i]), i, nil
}

// remember returns the member for field f, or for an unknown name if f is nil,
// and notes that it came after last.
func (t *names) remember(last *member, f *field, label []byte) *member {
	m := &t.other
	first := last != &t.other && last.next.Load() == nil
	switch {
	case f != nil:
		m = &f.member
	case first && len(label) <= maxLabel && t.strays.Load() < maxStrays:
		t.strays.Add(1)
		m = &member{label: string(label)}
	}
	if first && m != &t.other {
		last.next.CompareAndSwap(nil, m)
	}
	return m
}

// lookup returns the field for the name d[from:to], which has no escapes, or
// nil. unicode says that the name may hold bytes that are not ASCII.
func (t *names) lookup(d []byte, from, to int, unicode bool) *field {
	key := keyOf(d, from, to)
	var folded *field
	for h := key.hash(t.shift); ; h++ {
		s := &t.slots[h&uint(len(t.slots)-1)]
		if s.field == nil {
			break
		}
		if s.nameKey == key && (key.n <= 16 || string(d[from:to]) == s.field.name) {
			return s.field
		}
		if s.n == key.n && (folded == nil || s.field.order < folded.order) &&
			strings.EqualFold(s.field.name, borrowString(d[from:to])) {
			folded = s.field
		}
	}
	if unicode || t.unicode {
		return t.foldAll(d[from:to])
	}
	return folded
}

// foldAll compares a name with every field. Some letters have another length in
// the other case (the Kelvin sign folds to k), so the hash is no help.
func (t *names) foldAll(name []byte) *field {
	s := string(toUTF8(name))
	var folded *field
	for _, f := range t.fields {
		if f.name == s {
			return f
		}
		if (folded == nil || f.order < folded.order) && strings.EqualFold(f.name, s) {
			folded = f
		}
	}
	return folded
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
