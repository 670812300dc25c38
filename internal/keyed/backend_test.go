package keyed

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

func TestOpenTwice(t *testing.T) {
	b := NewBackend[int]()
	sum := func(a, b int) int { return a + b }
	open := func(_ any, err error) error { return err }
	first, err := b.Value(state.Value[int]("x"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Value(state.Value[int]("x"))
	if err != nil || again != first {
		t.Errorf("the same declaration gave %v, %v", again, err)
	}
	hour := state.WithTTL(state.TTL{After: time.Hour})
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"another type", open(b.Value(state.Value[string]("x"))), []string{`"x"`, "ValueDescriptor[int]", "ValueDescriptor[string]"}},
		{"another kind", open(b.Reducing(state.Reducing("x", sum))), []string{`"x"`, "ValueDescriptor[int]", "ReducingDescriptor[int]"}},
		{"another TTL", open(b.Value(state.Value[int]("x", hour))), []string{`"x"`, "TTL", "1h"}},
		{"invalid", open(b.Value(state.Value[int](""))), []string{"no name"}},
		{"no function", open(b.Reducing(state.Reducing[int]("y", nil))), []string{`"y"`}},
		{"map keys without a hash", open(b.Map(state.Map[any, int]("m"))), []string{`map state "m"`, "interface"}},
		{"another name", open(b.Aggregating(state.Aggregating("y", window.Count[string]()))), nil},
		{"aggregate looks like reduce", open(b.Reducing(state.Reducing("y", sum))), []string{"AggregatingDescriptor"}},
	}
	for _, tt := range tests {
		if (tt.err == nil) != (tt.want == nil) {
			t.Errorf("%s: error %v", tt.name, tt.err)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(tt.err.Error(), part) {
				t.Errorf("%s: error %q lacks %q", tt.name, tt.err, part)
			}
		}
	}
}

// Without a current key nothing is read or written, and the backend remembers
// the first state that was used so.
func TestUseWithoutKey(t *testing.T) {
	for _, ttl := range []state.TTL{{}, {After: time.Hour}} {
		uses := []func(*allStates){
			func(s *allStates) { s.value.Get() },
			func(s *allStates) { s.value.Set(1) },
			func(s *allStates) { s.value.Clear() },
			func(s *allStates) { s.list.Add(1) },
			func(s *allStates) { s.entries.Put("a", 1) },
			func(s *allStates) { s.reducing.Add(1) },
			func(s *allStates) { s.aggregating.Add(1) },
		}
		for i, use := range uses {
			s := openAll(t, ttl)
			s.SetCurrentKey(1, "")
			s.value.Set(7)
			s.ClearCurrentKey()
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			use(s)
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), "current key") {
				t.Errorf("use %d: error %v", i, err)
			}
			if _, _, ok := s.CurrentKey(); ok {
				t.Errorf("use %d: there is a current key", i)
			}
			s.SetCurrentKey(1, "")
			got := []any{orNull(s.value.Get()), len(s.list.Get()), s.entries.IsEmpty(), orNull(s.reducing.Get()), orNull(s.aggregating.Get())}
			seven := 7
			if diff := cmp.Diff([]any{&seven, 0, true, (*int)(nil), (*string)(nil)}, got); diff != "" {
				t.Errorf("use %d changed something (-want +got):\n%s", i, diff)
			}
		}
	}
}

// The state of a key is that key's, whatever happens to others meanwhile.
func TestKeysAreApart(t *testing.T) {
	s := openAll(t, state.TTL{})
	hash := hasherOf[string](t)
	use := func(key string) { s.SetCurrentKey(hash(key), key) }
	const keys = 1000
	for i := range keys {
		use(fmt.Sprint(i))
		s.value.Set(i)
		s.list.AddAll([]int{i, i + 1})
		s.entries.Put("k", i)
	}
	for i := range keys {
		use(fmt.Sprint(i))
		if v, ok := s.value.Get(); !ok || v != i {
			t.Fatalf("key %d has %d %v", i, v, ok)
		}
		use(fmt.Sprint((i + 1) % keys))
		s.list.Clear()
		use(fmt.Sprint(i))
		if i%2 == 0 {
			s.value.Clear()
		}
		if got := s.list.Get(); len(got) != 0 && i != 0 {
			t.Fatalf("key %d has list %v", i, got)
		}
		if v, _ := s.entries.Get("k"); v != i {
			t.Fatalf("key %d has entry %d", i, v)
		}
	}
	sizes := []int{}
	for _, st := range s.states {
		sizes = append(sizes, st.len())
	}
	if diff := cmp.Diff([]int{keys / 2, 0, keys, 0, 0}, sizes); diff != "" {
		t.Errorf("keys with a value (-want +got):\n%s", diff)
	}
}

func TestEachKey(t *testing.T) {
	s := openAll(t, state.TTL{})
	for i := range 10 {
		s.SetCurrentKey(uint64(i), fmt.Sprint(i))
		s.value.Set(i)
	}
	var visited []int
	err := s.EachKey(s.value, func(key string, v state.ValueState[int]) error {
		got, _ := v.Get()
		if fmt.Sprint(got) != key {
			t.Errorf("key %q has %d", key, got)
		}
		visited = append(visited, got)
		if got%3 == 0 {
			v.Clear()
		} else {
			v.Set(got + 100)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(visited)
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, visited); diff != "" {
		t.Errorf("visited (-want +got):\n%s", diff)
	}
	if _, _, ok := s.CurrentKey(); ok {
		t.Error("there is a current key")
	}
	stop := errors.New("stop")
	var left []int
	err = s.EachKey(s.value, func(_ string, v state.ValueState[int]) error {
		got, _ := v.Get()
		if left = append(left, got); len(left) == 6 {
			return stop
		}
		return nil
	})
	slices.Sort(left)
	if diff := cmp.Diff([]int{101, 102, 104, 105, 107, 108}, left); diff != "" || err != stop {
		t.Errorf("error %v, left (-want +got):\n%s", err, diff)
	}
	if err := s.EachKey("value", func(string, string) error { return nil }); err == nil {
		t.Error("a string was taken for a state")
	}
}

// What has expired is removed without reads, a bounded number of values a call.
func TestCleanUpWithoutReads(t *testing.T) {
	const keys, budget = 100, 7
	s := openAll(t, state.TTL{After: time.Second})
	for i := range keys {
		s.SetTime(int64(i % 2)) // half of the values live a millisecond longer
		s.SetCurrentKey(uint64(i), fmt.Sprint(i))
		s.value.Set(i)
		s.reducing.Add(i)
		s.aggregating.Add(i)
		s.list.AddAll([]int{1, 2, 3})
		for e := range i % 40 {
			s.entries.Put(fmt.Sprint(e), e)
		}
		s.entries.Put("x", i)
	}
	sizes := func() (values, elements [5]int) {
		for i, st := range s.states {
			values[i] = st.len()
			for n := range st.len() {
				elements[i]++
				switch st := st.(type) {
				case *agingList[string, int]:
					elements[i] += len(st.table.At(n).Value.values) - 1
				case *agingMap[string, string, int]:
					elements[i] += st.table.At(n).Value.len() - 1
				}
			}
		}
		return values, elements
	}
	_, before := sizes()
	for _, step := range []struct {
		now  int64
		left int
	}{{999, keys}, {1000, keys / 2}, {1001, 0}} {
		s.SetTime(step.now)
		for range 2 * slices.Max(before[:]) / budget {
			_, was := sizes()
			s.CleanUp(budget)
			_, is := sizes()
			for i := range is {
				if was[i]-is[i] > budget {
					t.Fatalf("%d values of state %d removed at once", was[i]-is[i], i)
				}
			}
		}
		want := [5]int{step.left, step.left, step.left, step.left, step.left}
		if values, elements := sizes(); values != want || step.now == 999 && elements != before {
			t.Errorf("at %d: %v keys and %v values left, want %v and at first %v", step.now, values, elements, want, before)
		}
	}
}

// Cleaning up may remove the value that was just read, or put another into its
// place.
func TestCleanUpUnderCurrentKey(t *testing.T) {
	s := openAll(t, state.TTL{After: time.Second})
	for i := range 3 {
		s.SetTime(int64(100 * i))
		s.SetCurrentKey(uint64(i), fmt.Sprint(i))
		s.value.Set(i)
	}
	s.SetCurrentKey(0, "0")
	if v, ok := s.value.Get(); !ok || v != 0 {
		t.Fatalf("key 0 has %d %v", v, ok)
	}
	s.SetTime(1000)
	s.CleanUp(3)
	if v, ok := s.value.Get(); ok {
		t.Errorf("key 0 still has %d", v)
	}
	s.value.Set(7)
	for i, want := range []int{7, 1, 2} {
		s.SetCurrentKey(uint64(i), fmt.Sprint(i))
		if v, ok := s.value.Get(); !ok || v != want {
			t.Errorf("key %d has %d %v, want %d", i, v, ok, want)
		}
	}
}

// Neither form of a map keeps what was removed from it.
func TestEntriesForget(t *testing.T) {
	keys, err := newMapKeys[string]()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{maxFew, maxFew + 1} {
		var m entries[string, string]
		for i := range n {
			*m.put(&keys, fmt.Sprint(i)) = "kept"
		}
		if (m.many != nil) != (n > maxFew) {
			t.Fatalf("%d entries are in a table: %v", n, m.many != nil)
		}
		few := m.few
		for m.len() > 0 {
			m.deleteAt(0)
		}
		if slices.ContainsFunc(few, func(e Entry[string, string]) bool { return e.Key != "" || e.Value != "" }) {
			t.Errorf("kept: %v", few)
		}
	}
}

// A list that is only partly out of date loses that part.
func TestCleanUpPartOfList(t *testing.T) {
	s := openAll(t, state.TTL{After: time.Second})
	s.SetCurrentKey(1, "")
	s.list.AddAll([]int{1, 2, 3})
	s.SetTime(500)
	s.list.Add(4)
	s.SetTime(1100)
	for range 4 {
		s.CleanUp(2)
	}
	if got := s.list.(*agingList[string, int]).table.At(0).Value.values; !slices.Equal(got, []int{4}) {
		t.Errorf("left %v, want [4]", got)
	}
	if diff := cmp.Diff([]int{4}, s.list.Get()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExpirySaturates(t *testing.T) {
	e := newExpiry(state.TTL{After: math.MaxInt64})
	for _, then := range []int64{math.MinInt64, 0, math.MaxInt64} {
		if got, want := e.expired(then, math.MaxInt64), then == math.MinInt64 || then == 0; got != want {
			t.Errorf("last access %d: expired %v at the end of time", then, got)
		}
	}
	if e := (expiry{afterMillis: 10}); e.expired(math.MaxInt64-5, math.MaxInt64-1) || e.expired(math.MaxInt64-10, math.MaxInt64-1) {
		t.Error("the sum of time and TTL wrapped around")
	}
}

func TestStatesDoNotAllocate(t *testing.T) {
	for _, ttl := range []state.TTL{{}, {After: time.Hour, Update: state.OnReadAndWrite}} {
		s := openAll(t, ttl)
		keys := make([]string, 100)
		hashes := make([]uint64, len(keys))
		hash := hasherOf[string](t)
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
			hashes[i] = hash(keys[i])
		}
		sum := 0
		round := func() {
			s.Touch(hashes, keys)
			for i, key := range keys {
				s.SetCurrentKey(hashes[i], key)
				v, _ := s.value.Get()
				s.value.Set(v + 1)
				s.reducing.Add(1)
				s.aggregating.Add(1)
				s.list.Set(keysOf[:])
				for _, v := range s.list.Get() {
					sum += v
				}
				s.entries.Put(key, 1)
				s.entries.Put("x", 1)
				s.entries.Remove(key)
			}
			s.CleanUp(10)
		}
		if n := testing.AllocsPerRun(10, round); n != 0 {
			t.Errorf("TTL %v: %v allocations a round", ttl, n)
		}
	}
}

var keysOf = [3]int{1, 2, 3}

// BenchmarkValueState counts records by key with Get and Set, key by key after
// touching the batch, and the same with a map of pointers, in turn.
func BenchmarkValueState(b *testing.B) {
	for _, distinct := range []int{1000, 1_000_000} {
		in := newUpsertInput(b, distinct, max(2*distinct, 1<<17)/benchBatch*benchBatch, userKey)
		boxed := map[string]*int64{}
		turns := []turn[string]{{"map-pointer", func(_ []uint64, keys []string) {
			for _, k := range keys {
				v := boxed[k]
				if v == nil {
					v = new(int64)
					boxed[k] = v
				}
				*v++
			}
		}}}
		for _, ttl := range []state.TTL{{}, {After: time.Hour}} {
			backend := NewBackend[string]()
			count, err := backend.Value(state.Value[int64]("count", state.WithTTL(ttl)))
			if err != nil {
				b.Fatal(err)
			}
			turns = append(turns, turn[string]{fmt.Sprintf("ttl=%v", ttl.After), func(hashes []uint64, keys []string) {
				backend.Touch(hashes, keys)
				for i, k := range keys {
					backend.SetCurrentKey(hashes[i], k)
					n, _ := count.Get()
					count.Set(n + 1)
				}
				backend.CleanUp(benchBatch / 8)
			}})
		}
		b.Run(fmt.Sprintf("keys=%d", distinct), func(b *testing.B) { in.takeTurns(b, turns) })
	}
}
