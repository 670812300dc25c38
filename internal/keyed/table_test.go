package keyed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tableModel is what a Table is for: a list of entries in order, in which a
// deletion moves the last entry into the gap.
type tableModel struct{ entries []Entry[int, string] }

func (m *tableModel) index(key int) int {
	for i, e := range m.entries {
		if e.Key == key {
			return i
		}
	}
	return -1
}

func (m *tableModel) upsert(hash uint64, key int) (i int, created bool) {
	if i := m.index(key); i >= 0 {
		return i, false
	}
	m.entries = append(m.entries, Entry[int, string]{Hash: hash, Key: key})
	return len(m.entries) - 1, true
}

func (m *tableModel) deleteAt(i int) {
	last := len(m.entries) - 1
	m.entries[i] = m.entries[last]
	m.entries = m.entries[:last]
}

func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few distinct hash bits make probe sequences long and hashes equal.
		table, flink := rapid.Uint32().Draw(t, "table half"), rapid.SampledFrom([]uint32{0, 1<<31 - 1}).Draw(t, "Flink's half")
		hashOf := func(key int) uint64 {
			h := uint64(key+1) * 0x9e3779b97f4a7c15
			return h>>1&(uint64(flink)<<32) | h>>16&uint64(table)
		}
		keys := rapid.IntRange(0, 60)
		tested := NewTable[int, string]()
		var model tableModel
		t.Repeat(map[string]func(*rapid.T){
			"upsert": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				want, wantCreated := model.upsert(hashOf(key), key)
				v, created := tested.Upsert(hashOf(key), key)
				if created != wantCreated || *v != model.entries[want].Value {
					t.Fatalf("%q created %v, want %q created %v", *v, created, model.entries[want].Value, wantCreated)
				}
				text := rapid.StringN(0, 3, 5).Draw(t, "value")
				*v, model.entries[want].Value = text, text
			},
			"upsert batch": func(t *rapid.T) {
				batch := rapid.SliceOfN(keys, 0, 2*chunk).Draw(t, "keys")
				var hashes []uint64
				var want []int32
				for _, key := range batch {
					hashes = append(hashes, hashOf(key))
					i, _ := model.upsert(hashOf(key), key)
					want = append(want, int32(i))
				}
				at := make([]int32, len(batch))
				tested.UpsertBatch(hashes, batch, at)
				if diff := cmp.Diff(want, at[:len(want):len(want)]); len(want) > 0 && diff != "" {
					t.Fatalf("numbers (-want +got):\n%s", diff)
				}
			},
			"get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				v, i := tested.Get(hashOf(key), key), model.index(key)
				if (v != nil) != (i >= 0) || v != nil && *v != model.entries[i].Value {
					t.Fatalf("got %v, want entry %d", v, i)
				}
			},
			"delete": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				i := model.index(key)
				if got := tested.Delete(hashOf(key), key); got != (i >= 0) {
					t.Fatalf("deleted: %v, want %v", got, i >= 0)
				}
				if i >= 0 {
					model.deleteAt(i)
				}
			},
			"delete at": func(t *rapid.T) {
				if len(model.entries) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(model.entries)-1).Draw(t, "number")
				tested.DeleteAt(i)
				model.deleteAt(i)
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					tested.Reset()
					model.entries = nil
				}
			},
			"": func(t *rapid.T) { checkTable(t, tested, model.entries) },
		})
	})
}

// checkTable compares a table with its expected entries, by number and in
// iteration, and checks that nothing is kept beyond them.
func checkTable[K comparable, V any](t interface{ Fatalf(string, ...any) }, table *Table[K, V], want []Entry[K, V]) {
	var all, byNumber []Entry[K, V]
	for e := range table.All() {
		all = append(all, *e)
	}
	for i := range table.Len() {
		byNumber = append(byNumber, *table.At(i))
	}
	if len(want) == 0 {
		want = nil
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Fatalf("iteration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, byNumber); diff != "" {
		t.Fatalf("entries (-want +got):\n%s", diff)
	}
	var zero Entry[K, V]
	for i := table.Len(); i < len(table.blocks)<<table.blockShift; i++ {
		if b := table.blocks[i>>table.blockShift]; i&int(table.blockMask) < len(b) {
			if diff := cmp.Diff(zero, *table.entry(uint32(i))); diff != "" {
				t.Fatalf("entry %d of %d is kept (-want +got):\n%s", i, table.Len(), diff)
			}
		}
	}
}

// A table of many segments, grown by single keys and by batches, and shrunk. Two
// keys at a time have the same hash.
func TestTableGrows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := hasherOf[int](t)
	hashOf := func(key int) uint64 { return h(key / 2) }
	table := NewTable[int, int]()
	var order []Entry[int, int]
	number := map[int]int{}
	want := func(key int) (i int, created bool) {
		i, known := number[key]
		if !known {
			i = len(order)
			number[key] = i
			order = append(order, Entry[int, int]{Hash: hashOf(key), Key: key})
		}
		order[i].Value++
		return i, !known
	}
	for step := range 200_000 {
		key := r.IntN(60_000)
		if at, known := number[key]; known && step > 100_000 && r.IntN(3) > 0 {
			last := order[len(order)-1]
			order[at] = last
			order = order[:len(order)-1]
			number[last.Key] = at
			delete(number, key)
			if !table.Delete(hashOf(key), key) {
				t.Fatalf("step %d: key %d is not there to delete", step, key)
			}
			continue
		}
		i, wantCreated := want(key)
		v, created := table.Upsert(hashOf(key), key)
		*v++
		if created != wantCreated || *v != order[i].Value {
			t.Fatalf("step %d: key %d has %d, created %v; want %d", step, key, *v, created, order[i].Value)
		}
		if step%1000 == 0 {
			var keys []int
			var hashes []uint64
			var numbers []int32
			for range r.IntN(2 * chunk) {
				key := r.IntN(60_000)
				i, _ := want(key)
				keys, hashes, numbers = append(keys, key), append(hashes, hashOf(key)), append(numbers, int32(i))
			}
			at := make([]int32, len(keys))
			table.UpsertBatch(hashes, keys, at)
			for i, n := range at {
				if n != numbers[i] {
					t.Fatalf("step %d: key %d of a batch has number %d, want %d", step, keys[i], n, numbers[i])
				}
				table.At(int(n)).Value++
			}
		}
	}
	if !table.isFar() || len(table.blocks) < 2 {
		t.Fatalf("%d segments and %d blocks exercise little", len(table.directory), len(table.blocks))
	}
	checkTable(t, table, order)
	table.Reset()
	checkTable(t, table, nil)
	for _, e := range order {
		*first(table.Upsert(e.Hash, e.Key)) = e.Value
	}
	checkTable(t, table, order)
}

func first[A, B any](a A, _ B) A { return a }

// Hashes that cannot be told apart make a table slow, not large or wrong.
func TestTableWithOneHash(t *testing.T) {
	const n = maxSegment + 10
	table := NewTable[int, int]()
	for key := range n {
		v, created := table.Upsert(7, key)
		if !created {
			t.Fatalf("key %d was there", key)
		}
		*v = key
	}
	if got := len(table.directory); got > 1<<maxDepth {
		t.Errorf("directory of %d", got)
	}
	for key := range n {
		if v := table.Get(7, key); v == nil || *v != key {
			t.Fatalf("key %d: %v", key, v)
		}
	}
}

func TestTableFindsNaN(t *testing.T) {
	type point struct {
		X, Y float64
		Name string
	}
	h := hasherOf[point](t)
	table := NewTable[point, int]()
	nan := math.NaN()
	otherNaN := math.Float64frombits(math.Float64bits(nan) ^ 1)
	for _, p := range []point{{nan, 1, "a"}, {otherNaN, 1, "a"}, {nan, 2, "a"}, {nan, 1, "b"}, {otherNaN, 1, "b"}} {
		*first(table.Upsert(h(p), p))++
	}
	var counts []string
	for e := range table.All() {
		counts = append(counts, fmt.Sprint(e.Key, e.Value))
	}
	want := []string{"{NaN 1 a} 2", "{NaN 2 a} 1", "{NaN 1 b} 2"}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A warm table allocates nothing, also when keys come and go.
func TestTableDoesNotAllocate(t *testing.T) {
	h := hasherOf[string](t)
	var keys []string
	var hashes []uint64
	for i := range 20_000 {
		keys = append(keys, fmt.Sprint("key", i))
		hashes = append(hashes, h(keys[i]))
	}
	table := NewTable[string, int64]()
	at := make([]int32, benchBatch)
	round := func() {
		table.UpsertBatch(hashes[:benchBatch], keys[:benchBatch], at)
		for i, k := range keys {
			*first(table.Upsert(hashes[i], k))++
		}
		for i, k := range keys[:len(keys)/2] {
			table.Delete(hashes[i], k)
		}
		table.Reset()
	}
	if n := testing.AllocsPerRun(5, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// What is trimmed away was not needed, and comes back when it is.
func TestTrim(t *testing.T) {
	table, hash := NewTable[int, int](), hasherOf[int](t)
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			v, _ := table.Upsert(hash(i), i)
			*v = i
		}
	}
	const n = 3 << maxBlockShift
	fill(0, n)
	for i := n - 1; i >= 10; i-- {
		table.DeleteAt(i)
	}
	table.Trim()
	if got := len(table.blocks); got != 2 {
		t.Errorf("%d blocks for 10 entries, want 2", got)
	}
	fill(10, n)
	for i := range n {
		if at := table.Index(hash(i), i); at < 0 || table.At(at).Value != i {
			t.Fatalf("key %d is entry %d", i, at)
		}
	}
	if at := table.Index(hash(n), n); at != -1 {
		t.Errorf("a key that is not there is entry %d", at)
	}
}
