package keyed

import "unsafe"

// chunk is how many keys of a batch are looked up together: enough for the
// processor to wait for many cache misses at once, few enough for what they
// bring to stay near.
const chunk = 256

// UpsertBatch finds or creates the entries of many keys and writes their
// numbers to at, which must be as long as keys and hashes. Entries are created
// in the order of the keys, so the first key with a number of Len() before the
// call or above is the one that created it. Numbers are valid until the next
// deletion.
//
// In a table that is larger than the processor's caches this is about three times as
// fast as Upsert key by key (BenchmarkUpsert): the lookups wait for memory together.
func (t *Table[K, V]) UpsertBatch(hashes []uint64, keys []K, at []int32) {
	for len(hashes) > chunk {
		t.upsertChunk(hashes[:chunk], keys[:chunk], at[:chunk])
		hashes, keys, at = hashes[chunk:], keys[chunk:], at[chunk:]
	}
	t.upsertChunk(hashes, keys, at)
}

// fewKeys is how many keys are not worth preparing for.
const fewKeys = 16

func (t *Table[K, V]) upsertChunk(hashes []uint64, keys []K, at []int32) {
	if t.len == 0 || len(hashes) < fewKeys {
		for i, hash := range hashes {
			at[i] = t.upsert(hash, &keys[i])
		}
		return
	}
	var found [chunk]*Entry[K, V]
	entries := t.guess(hashes, at, &found)
	if t.textKeys {
		if t.isFar() {
			t.touchTexts(entries)
			t.touchKeys(keys)
		}
		for i, e := range entries {
			if at[i] < 0 || !equalText(*asText(&e.Key), *asText(&keys[i])) {
				at[i] = t.upsert(hashes[i], &keys[i])
			}
		}
		return
	}
	for i, e := range entries {
		if at[i] < 0 || !t.same(e.Key, keys[i]) {
			at[i] = t.upsert(hashes[i], &keys[i])
		}
	}
}

// upsert returns the number of a key's entry, made if need be.
func (t *Table[K, V]) upsert(hash uint64, key *K) int32 {
	n, e := t.find(hash, *key)
	if e == nil {
		n = uint32(t.len)
		t.insert(hash, *key)
	}
	return int32(n)
}

// isFar reports whether the table is so large that the processor's nearest
// caches do not hold it.
func (t *Table[K, V]) isFar() bool { return t.len >= farLen }

const farLen = 1 << 12

// Touch brings near what looking up keys with these hashes will read, if the
// table is so large that it is not near anyway. It changes nothing.
func (t *Table[K, V]) Touch(hashes []uint64) {
	if !t.isFar() {
		return
	}
	var at [chunk]int32
	var found [chunk]*Entry[K, V]
	for len(hashes) > 0 {
		n := min(chunk, len(hashes))
		entries := t.guess(hashes[:n], at[:n], &found)
		if t.textKeys {
			t.touchTexts(entries)
		}
		hashes = hashes[n:]
	}
}

// How guess, touchTexts and touchKeys bring memory near: reads that do not depend on each
// other overlap, up to what the processor can have under way. It limits all reads that have
// not retired, those of what is near too, so that a loop with eight reads a key, one of them
// far, waits for less than half as many at a time as one with two. Therefore addresses are
// worked out first and then read in a loop that does nothing else. And as a branch that is
// guessed wrong holds up the reads behind it, the search for slots has none that is a toss-up.

// guess writes for each hash the number of the first entry with the same table half, or
// -1, and returns those entries in found, any entry for -1. If the table is far it touches
// them. The table is not empty.
func (t *Table[K, V]) guess(hashes []uint64, at []int32, found *[chunk]*Entry[K, V]) []*Entry[K, V] {
	var homes [chunk]*slot
	directory, shift := t.directory, t.dirShift&63
	home := homes[:len(hashes)]
	at = at[:len(hashes)]
	for i, hash := range hashes {
		slots := directory[int(uint64(uint32(hash))>>shift)]
		home[i] = &slots[uint32(hash)&uint32(len(slots)-1)]
	}
	far := t.isFar()
	var touched uint64
	if far {
		for _, s := range home {
			touched ^= uint64(*s)
		}
	}
	// Keys whose slot is another's are looked for one slot further, all of them in turn,
	// until none is left.
	var pending [chunk]uint8
	left := 0
	for i, hash := range hashes {
		s := *home[i]
		at[i] = int32(s.entry())
		pending[left&(chunk-1)] = uint8(i)
		left += s.isOther(hash)
	}
	for step := uint32(1); left > 0; step++ {
		todo := pending[:left]
		left = 0
		for _, i := range todo {
			hash := hashes[i]
			slots := directory[int(uint64(uint32(hash))>>shift)]
			s := slots[(uint32(hash)+step)&uint32(len(slots)-1)]
			at[i] = int32(s.entry())
			pending[left] = i
			left += s.isOther(hash)
		}
	}
	entries := found[:len(hashes)]
	blocks, blockShift, blockMask := t.blocks, t.blockShift&31, t.blockMask
	for i, n := range at {
		n := uint32(max(n, 0))
		entries[i] = &blocks[n>>blockShift][n&blockMask]
	}
	if far {
		for _, e := range entries {
			touched ^= e.Hash ^ uint64(*(*byte)(unsafe.Pointer(&e.Key)))
		}
	}
	t.touched ^= touched
	return entries
}

// isOther returns 1 if a slot is that of an entry with another table half, else 0,
// without a branch.
func (s slot) isOther(hash uint64) int {
	other, full := 0, 0
	if s.tag() != uint32(hash) {
		other = 1
	}
	if uint32(s) != 0 {
		full = 1
	}
	return other & full
}

// touchTexts touches the texts of entries whose keys are strings.
func (t *Table[K, V]) touchTexts(entries []*Entry[K, V]) {
	var none byte
	var texts [chunk]*byte
	for i, e := range entries {
		texts[i&(chunk-1)] = &none
		if text := *asText(&e.Key); len(text) > 0 {
			texts[i&(chunk-1)] = unsafe.StringData(text)
		}
	}
	var touched byte
	for _, p := range texts[:len(entries)] {
		touched ^= *p
	}
	t.touched ^= uint64(touched)
}

// touchKeys touches the texts of keys that are strings.
func (t *Table[K, V]) touchKeys(keys []K) {
	var touched byte
	for i := range keys {
		if text := *asText(&keys[i]); len(text) > 0 {
			touched ^= text[0]
		}
	}
	t.touched ^= uint64(touched)
}

// asText returns a key whose type is made of string as a string.
func asText[K comparable](key *K) *string { return (*string)(unsafe.Pointer(key)) }

// equalText is ==, for texts of 8 to 16 bytes without a call.
func equalText(a, b string) bool {
	n := len(a)
	if n < 8 || n > 16 {
		return a == b
	}
	return n == len(b) && load8(a) == load8(b) && load8(a[n-8:]) == load8(b[n-8:])
}
