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
// In a table that is larger than the processor's caches this is several times
// as fast as Upsert key by key: the lookups wait for memory together.
func (t *Table[K, V]) UpsertBatch(hashes []uint64, keys []K, at []int32) {
	for len(hashes) > chunk {
		t.upsertChunk(hashes[:chunk], keys[:chunk], at[:chunk])
		hashes, keys, at = hashes[chunk:], keys[chunk:], at[chunk:]
	}
	t.upsertChunk(hashes, keys, at)
}

func (t *Table[K, V]) upsertChunk(hashes []uint64, keys []K, at []int32) {
	far := t.isFar()
	if far {
		t.guess(hashes, at)
	}
	for i, hash := range hashes {
		if n := at[i]; far && n >= 0 {
			if e := t.entry(uint32(n)); e.Hash == hash && t.same(e.Key, keys[i]) {
				continue
			}
		}
		n, e := t.find(hash, keys[i])
		if e == nil {
			n = uint32(t.len)
			t.insert(hash, keys[i])
		}
		at[i] = int32(n)
	}
}

// isFar reports whether the table is so large that the processor's nearest
// caches do not hold it.
func (t *Table[K, V]) isFar() bool { return len(t.directory) >= 16 }

// Touch brings near what looking up keys with these hashes will read, if the
// table is so large that it is not near anyway. It changes nothing.
func (t *Table[K, V]) Touch(hashes []uint64) {
	if !t.isFar() {
		return
	}
	var at [chunk]int32
	for len(hashes) > 0 {
		n := min(chunk, len(hashes))
		t.guess(hashes[:n], at[:n])
		hashes = hashes[n:]
	}
}

// guess writes for each hash the number of the first entry with the same table
// half, or -1, and touches what comparing the keys will read. The loops that
// touch have no branch that depends on it, so that the reads overlap.
func (t *Table[K, V]) guess(hashes []uint64, at []int32) {
	var touched slot
	for _, hash := range hashes {
		slots := t.directory[t.dir(hash)]
		touched ^= slots[uint32(hash)&uint32(len(slots)-1)]
	}
	t.touched ^= uint64(touched)
	for i, hash := range hashes {
		slots := t.directory[t.dir(hash)]
		mask := uint32(len(slots) - 1)
		at[i] = -1
		for s := uint32(hash) & mask; slots[s] != 0; s = (s + 1) & mask {
			if slots[s].tag() == uint32(hash) {
				at[i] = int32(slots[s].entry())
				break
			}
		}
	}
	for _, n := range at {
		if n >= 0 {
			t.touched ^= t.entry(uint32(n)).Hash
		}
	}
	if !t.textKeys {
		return
	}
	for _, n := range at {
		if n >= 0 {
			text := *(*string)(unsafe.Pointer(&t.entry(uint32(n)).Key))
			if len(text) > 0 {
				t.touched ^= uint64(text[0])
			}
		}
	}
}
