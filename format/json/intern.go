package json

import "sync/atomic"

// internTable keeps one copy of each of the strings that a field held lately, so
// that a field with few values costs no allocation. It forgets: a new string
// takes the place of an old one. It may be used by many goroutines at once.
type internTable struct {
	slots [1 << internBits]atomic.Pointer[string]
}

const (
	internBits = 9
	// maxInterned is the length in bytes above which strings are not kept.
	maxInterned = 64
)

// get returns d[from:to] as a string.
func (t *internTable) get(d []byte, from, to int) string {
	if to-from > maxInterned {
		return string(d[from:to])
	}
	raw := d[from:to]
	h := keyOf(d, from, to).hash(64 - internBits)
	// Two neighbouring slots, so that two frequent strings of one hash can stay.
	first, second := &t.slots[h], &t.slots[h^1]
	if p := first.Load(); p != nil && *p == string(raw) {
		return *p
	}
	if p := second.Load(); p != nil && *p == string(raw) {
		return *p
	}
	s := string(raw)
	if first.Load() != nil && second.Load() == nil {
		first = second
	}
	first.Store(&s)
	return s
}
