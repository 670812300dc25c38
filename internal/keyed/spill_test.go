package keyed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/state"
)

// limited returns a backend with a budget, and its numbers.
func limited(t testing.TB, bytes int64, restored snapshot.Reader) (*Backend[string], *metric.State) {
	t.Helper()
	b, numbers := NewBackend[string](), &metric.State{}
	storeIn(t, b, restored)
	b.Limit(Budget{Bytes: bytes, Dir: t.TempDir(), Numbers: numbers})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, numbers
}

// randomUse uses a state of the current key in a random way, the same in all backends, and
// returns what each has seen.
func randomUse(r *rand.Rand, backends ...*allStates) (seen []string) {
	op, a, b, n := r.IntN(16), r.IntN(100), r.IntN(60), r.IntN(40)
	mapKey := fmt.Sprint(b)
	for _, s := range backends {
		var got any
		switch op {
		case 0, 1:
			s.value.Set(a)
		case 2:
			s.value.Clear()
		case 3, 4:
			s.reducing.Add(a)
			s.aggregating.Add(a)
		case 5:
			s.reducing.Clear()
		case 6:
			s.list.Set([]int{a, b})
		case 7:
			s.list.AddAll(slices.Repeat([]int{a}, n))
		case 8:
			s.list.Clear()
		case 9:
			s.entries.Remove(mapKey)
		case 10, 11:
			s.entries.Put(mapKey, a)
		case 12:
			v, ok := s.value.Get()
			got = []any{v, ok, s.entries.Contains(mapKey)}
		case 13:
			got = slices.Clone(s.list.Get())
		case 14:
			v, ok := s.entries.Get(mapKey)
			got = []any{v, ok}
		default:
			v, ok := s.reducing.Get()
			w, okAlso := s.aggregating.Get()
			got = []any{v, ok, w, okAlso}
		}
		seen = append(seen, fmt.Sprint(op, got))
	}
	return seen
}

// eachKey returns the keys that EachKey visits with their values, sorted, and changes some
// of them.
func eachKey(t *testing.T, s *allStates) (visited []string) {
	t.Helper()
	if err := s.EachKey(s.value, func(key string, v state.ValueState[int]) error {
		n, ok := v.Get()
		if !ok { // expired, and not cleaned up yet
			return nil
		}
		visited = append(visited, fmt.Sprint(key, "=", n))
		switch n % 5 {
		case 0:
			v.Clear()
		case 1:
			v.Set(n + 1)
		}
		s.reducing.Add(n)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(visited)
	return visited
}

// A backend whose budget holds a few of its keys does what one without a budget does: in
// reads, in EachKey, in snapshots taken at any time while both go on, and in what is
// restored from them, also in another number of subtasks and with another budget.
func TestSpillingChangesNothing(t *testing.T) {
	for _, ttl := range []state.TTL{{}, {After: 40 * time.Millisecond}, {After: 40 * time.Millisecond, Update: state.OnReadAndWrite}} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			r := newRand(t)
			spillAtRandom(t, r, ttl)
		})
	}
}

// twins are two backends that are used alike: one with a budget, which holds a few of its
// keys, and one without.
type twins struct {
	r           *rand.Rand
	hash        func(string) uint64
	keys        []string
	free, tight *allStates
	numbers     *metric.State
	now         int64
}

func newTwins(t testing.TB, r *rand.Rand, ttl state.TTL) *twins {
	t.Helper()
	w := &twins{r: r, hash: hasherOf[string](t), keys: make([]string, 400+r.IntN(2000)), free: openAll(t, ttl), now: 1000}
	for i := range w.keys {
		w.keys[i] = fmt.Sprint("key", i)
	}
	b, numbers := limited(t, 1<<(9+r.IntN(7)), nil)
	w.tight, w.numbers = openAllIn(t, b, ttl), numbers
	return w
}

// use uses a state of a key in both.
func (w *twins) use(t testing.TB) {
	t.Helper()
	r := w.r
	if r.IntN(400) == 0 {
		w.now++
	}
	key := w.keys[min(r.IntN(len(w.keys)), r.IntN(len(w.keys)))]
	if r.IntN(4) == 0 {
		touchAtRandom(r, w.tight, w.keys)
	}
	for _, s := range []*allStates{w.free, w.tight} {
		s.SetTime(w.now)
		s.SetCurrentKey(w.hash(key), key)
	}
	if seen := randomUse(r, w.free, w.tight); seen[0] != seen[1] {
		t.Fatalf("key %s: %s with a budget, %s without", key, seen[1], seen[0])
	}
	budget := r.IntN(6)
	for _, s := range []*allStates{w.free, w.tight} {
		s.ClearCurrentKey()
		s.CleanUp(budget)
	}
	if err := w.tight.Err(); err != nil {
		t.Fatal(err)
	}
}

// visit sees that EachKey finds the same in both.
func (w *twins) visit(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(eachKey(t, w.free), eachKey(t, w.tight)); diff != "" {
		t.Fatalf("EachKey without (-) and with (+) a budget:\n%s", diff)
	}
}

func spillAtRandom(t *testing.T, r *rand.Rand, ttl state.TTL) {
	w := newTwins(t, r, ttl)
	for range 2 {
		for range r.IntN(10_000) {
			w.use(t)
		}
		w.visit(t)
		reference, taken, at := takeSnapshot(t, w.free.Backend), takeSnapshot(t, w.tight.Backend), w.now
		for more := true; more; {
			for range r.IntN(1000) {
				w.use(t)
			}
			var err error
			if more, err = taken.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := reference.Finish(); err != nil {
			t.Fatal(err)
		}
		want := restoredContents(t, reference, 1, at, 1<<40, ttl, w.keys)
		got := restoredContents(t, taken, 1+r.IntN(4), at, 1<<(9+r.IntN(7)), ttl, w.keys)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("restored without (-) and with (+) a budget:\n%s", diff)
		}
	}
	if ttl.After == 0 && (w.numbers.SpillReads.Value() == 0 || w.numbers.SpillWrites.Value() == 0) {
		t.Errorf("%d reads and %d writes: the budget is too large for this test", w.numbers.SpillReads.Value(), w.numbers.SpillWrites.Value())
	}
}

// What nobody reads any more leaves the disk, and memory stays within the budget.
func TestSpilledStateExpires(t *testing.T) {
	hash := hasherOf[string](t)
	const budget = 64 << 10
	b, numbers := limited(t, budget, nil)
	s := openAllIn(t, b, state.TTL{After: time.Second})
	const keys = 20_000
	for i := range keys {
		key := fmt.Sprint(i)
		s.SetCurrentKey(hash(key), key)
		s.value.Set(i)
		s.list.Add(i)
		s.entries.Put(key, i)
	}
	if n, bytes := numbers.SpilledEntries.Value(), numbers.MemoryBytes.Value(); n < 2*keys || bytes > 20*keys+budget {
		t.Errorf("%d cells are on disk, %d bytes in memory", n, bytes)
	}
	if got := numbers.BudgetBytes.Value(); got != budget || numbers.DiskBytes.Value() <= 0 {
		t.Errorf("a budget of %d is shown as %d, with %d bytes on disk", budget, got, numbers.DiskBytes.Value())
	}
	s.ClearCurrentKey()
	s.SetTime(1000)
	for range 3 * keys / 1000 {
		s.CleanUp(1000)
	}
	s.settle()
	if n := numbers.SpilledEntries.Value(); n != 0 {
		t.Errorf("%d cells are still on disk", n)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// A disk that fails is an error of the backend that names the state and the directory.
func TestSpillingFails(t *testing.T) {
	hash := hasherOf[string](t)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b := NewBackend[string]()
	storeIn(t, b, nil)
	b.Limit(Budget{Bytes: 100, Dir: file})
	s := openAllIn(t, b, state.TTL{})
	for i := range 1000 {
		key := fmt.Sprint(i)
		s.SetCurrentKey(hash(key), key)
		s.value.Set(i)
	}
	err := s.Err()
	for _, part := range []string{`state "value"`, file, "WithStateMemory"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}

// A function that panics while EachKey walks over what is on disk leaves nothing behind there.
func TestEachKeyPanics(t *testing.T) {
	hash := hasherOf[string](t)
	dir := t.TempDir()
	b := NewBackend[string]()
	storeIn(t, b, nil)
	b.Limit(Budget{Bytes: 1, Dir: dir})
	s := openAllIn(t, b, state.TTL{})
	for i := range 1000 {
		key := fmt.Sprint(i)
		s.SetCurrentKey(hash(key), key)
		s.value.Set(i)
	}
	visits, inTable := 0, b.states[0].len()
	func() {
		defer func() {
			if recover() == nil {
				t.Errorf("nothing has panicked in %d visits", visits)
			}
		}()
		_ = s.EachKey(s.value, func(string, state.ValueState[int]) error {
			if visits++; visits > inTable+10 {
				panic("user code")
			}
			return nil
		})
	}()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// BenchmarkBudget counts by key, without a budget, with one that holds all keys, and with
// one that holds a tenth of them, by keys that are all alike and by a skewed choice. ns/op
// is per record.
func BenchmarkBudget(b *testing.B) {
	const keys, batch = 1 << 17, 1024
	hash := hasherOf[string](b)
	names, hashes := make([]string, keys), make([]uint64, keys)
	for i := range names {
		names[i] = fmt.Sprintf("user%07d", i)
		hashes[i] = hash(names[i])
	}
	const all = keys * 80
	for _, budget := range []struct {
		name  string
		bytes int64
	}{{"none", 0}, {"enough", 2 * all}, {"tenth", all / 10}} {
		for _, skewed := range []bool{false, true} {
			b.Run(fmt.Sprintf("budget=%s/skewed=%v", budget.name, skewed), func(b *testing.B) {
				backend := NewBackend[string]()
				storeIn(b, backend, nil)
				if budget.bytes > 0 {
					backend, _ = limited(b, budget.bytes, nil)
				}
				count, err := backend.Value(state.Value[int64]("count"))
				if err != nil {
					b.Fatal(err)
				}
				var (
					batchHashes [batch]uint64
					batchNames  [batch]string
				)
				use := func(n int, choose func() int) {
					for n > 0 {
						m := min(n, batch)
						for i := range m {
							key := choose()
							batchHashes[i], batchNames[i] = hashes[key], names[key]
						}
						backend.Touch(batchHashes[:m], batchNames[:m])
						for i := range m {
							backend.SetCurrentKey(batchHashes[i], batchNames[i])
							n, _ := count.Get()
							count.Set(n + 1)
						}
						backend.ClearCurrentKey()
						n -= m
					}
				}
				next := -1
				use(keys, func() int { next++; return next })
				r := rand.New(rand.NewPCG(1, 2))
				zipf := rand.NewZipf(r, 1.1, 1, keys-1)
				choose := func() int { return r.IntN(keys) }
				if skewed {
					choose = func() int { return int(zipf.Uint64() * 7919 % keys) }
				}
				b.ResetTimer()
				use(b.N, choose)
				if err := backend.Err(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
