package keyed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// contents returns what all states hold, by key.
func (s *allStates) contents(keys []string, hash func(string) uint64) map[string]string {
	all := map[string]string{}
	for _, k := range keys {
		s.SetCurrentKey(hash(k), k)
		var b strings.Builder
		if v, ok := s.value.Get(); ok {
			fmt.Fprintf(&b, "value %d ", v)
		}
		if v, ok := s.reducing.Get(); ok {
			fmt.Fprintf(&b, "reducing %d ", v)
		}
		if v, ok := s.aggregating.Get(); ok {
			fmt.Fprintf(&b, "aggregating %s ", v)
		}
		fmt.Fprint(&b, s.list.Get())
		pairs := maps.Collect(s.entries.All())
		for _, mk := range slices.Sorted(maps.Keys(pairs)) {
			fmt.Fprintf(&b, " %s=%d", mk, pairs[mk])
		}
		all[k] = b.String()
	}
	s.ClearCurrentKey()
	return all
}

// States of all kinds are changed at random while snapshots are being written; what is
// restored is what they held when the snapshot began, also in other numbers of subtasks.
func TestBackendSnapshot(t *testing.T) {
	r := newRand(t)
	hash := hasherOf[string](t)
	for round := range 60 {
		var ttl state.TTL
		if round%2 == 1 {
			ttl = state.TTL{After: 40 * time.Millisecond}
		}
		keys := make([]string, 1+r.IntN(40))
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
		}
		s := openAll(t, ttl)
		now := int64(1000)
		change := func() {
			if r.IntN(20) == 0 {
				now++
			}
			s.SetTime(now)
			k := keys[r.IntN(len(keys))]
			s.SetCurrentKey(hash(k), k)
			switch r.IntN(14) {
			case 0:
				s.value.Set(r.IntN(100))
			case 1:
				s.value.Clear()
			case 2:
				s.reducing.Add(1)
				s.aggregating.Add(1)
			case 3:
				s.reducing.Clear()
			case 4:
				s.list.Set([]int{r.IntN(9), r.IntN(9)})
			case 5:
				if r.IntN(8) == 0 {
					s.list.Clear()
				}
			case 6:
				s.list.AddAll(slices.Repeat([]int{r.IntN(9)}, r.IntN(300)))
			case 7:
				if r.IntN(8) == 0 {
					s.entries.Clear()
				}
			case 8:
				s.entries.Remove(fmt.Sprint(r.IntN(200)))
			default:
				s.entries.Put(fmt.Sprint(r.IntN(200)), r.IntN(100))
			}
			s.ClearCurrentKey()
			s.CleanUp(r.IntN(4))
		}
		for range r.IntN(4000) {
			change()
		}
		for range 2 {
			s.SetTime(now)
			want, at := s.contents(keys, hash), now
			taken := takeSnapshot(t, s.Backend)
			for more := true; more; {
				for range r.IntN(10) {
					change()
				}
				var err error
				if more, err = taken.Step(); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]string{}
			parallelism := 1 + r.IntN(4)
			readers, err := snapshottest.Readers([]*snapshottest.Snapshot{taken}, parallelism, 128)
			if err != nil {
				t.Fatal(err)
			}
			for subtask, reader := range readers {
				to := NewBackend[string]()
				to.SetTime(at)
				storeIn(t, to, reader)
				restored := openAllIn(t, to, ttl)
				var own []string
				for _, k := range keys {
					if SubtaskOf(KeyGroup(hash(k), 128), parallelism, 128) == subtask {
						own = append(own, k)
					}
				}
				maps.Copy(got, restored.contents(own, hash))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("round %d (-want +got):\n%s", round, diff)
			}
		}
	}
}

// What a state is restored from must fit its declaration; what fits is converted.
func TestRestoreAsSomethingElse(t *testing.T) {
	type first struct{ A, B int32 }
	type second struct {
		A int64
		C string `avro:"C,default=new"`
	}
	type hidden struct{ a int }
	minute := state.WithTTL(state.TTL{After: time.Minute})
	sum := func(a, b int) int { return a + b }
	hash := hasherOf[string](t)

	from := NewBackend[string]()
	storeIn(t, from, nil)
	from.SetTime(1000)
	from.SetCurrentKey(hash("k"), "k")
	record, err := from.Value(state.Value[first]("record"))
	if err != nil {
		t.Fatal(err)
	}
	record.Set(first{1, 2})
	aged, err := from.Value(state.Value[int]("aged", minute))
	if err != nil {
		t.Fatal(err)
	}
	aged.Set(7)
	taken := takeSnapshot(t, from)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	restoring := func(now int64) *Backend[string] {
		b := NewBackend[string]()
		b.SetTime(now)
		storeIn(t, b, readerOf(t, taken))
		b.SetCurrentKey(hash("k"), "k")
		return b
	}

	evolved, err := restoring(0).Value(state.Value[second]("record"))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := evolved.Get(); !ok || v != (second{1, "new"}) {
		t.Errorf("evolved record %v, %v", v, ok)
	}
	for _, tt := range []struct {
		name    string
		options []state.Option
		now     int64
		want    bool
	}{
		{"TTL goes on", []state.Option{minute}, 60_999, true},
		{"TTL counts while the job is down", []state.Option{minute}, 61_000, false},
		{"TTL removed", nil, 100_000, true},
	} {
		s, err := restoring(tt.now).Value(state.Value[int]("aged", tt.options...))
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := s.Get(); ok != tt.want || ok && v != 7 {
			t.Errorf("%s: %v, %v", tt.name, v, ok)
		}
	}
	b := restoring(5000)
	added, err := b.Value(state.Value[first]("record", minute))
	if err != nil {
		t.Fatal(err)
	}
	b.SetTime(64_999)
	if _, ok := added.Get(); !ok {
		t.Error("TTL added: the value expired before a minute after the restore")
	}

	failing := func(_ any, err error) error { return err }
	numbers := NewBackend[int]()
	if err := numbers.Store(Storage{Prefix: "state/", MaxParallelism: 128, Restored: readerOf(t, taken)}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		err  error
		want []string
	}{
		{"another kind", failing(restoring(0).Reducing(state.Reducing("aged", sum))), []string{`"aged"`, "value state", "reducing state", "long"}},
		{"a list", failing(restoring(0).List(state.List[int]("aged"))), []string{`"aged"`, "stored as value state", "declared as list state"}},
		{"another type", failing(restoring(0).Value(state.Value[string]("aged"))), []string{`"aged"`, "long", "string"}},
		{"another field type", failing(restoring(0).Value(state.Value[struct{ A string }]("record"))), []string{`"record"`, "A", "int", "string"}},
		{"another key type", failing(numbers.Value(state.Value[int]("aged"))), []string{`"aged"`, "key", "string", "long"}},
		{"no codec", failing(restoring(0).Value(state.Value[func()]("f"))), []string{`"f"`, "func()"}},
		{"unexported", failing(restoring(0).Map(state.Map[string, hidden]("m"))), []string{`"m"`, "hidden", "a"}},
		{"map key", failing(restoring(0).Map(state.Map[[1]hidden, int]("m2"))), []string{`"m2"`, "key of the map", "hidden"}},
	} {
		if tt.err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(tt.err.Error(), part) {
				t.Errorf("%s: error %q lacks %q", tt.name, tt.err, part)
			}
		}
	}
	if err := failing(NewBackend[string]().Value(state.Value[func()]("f"))); err != nil {
		t.Errorf("without storage a state may have any type: %v", err)
	}
	if _, err := NewBackend[string]().Aggregating(state.Aggregating("a", window.Count[int]())); err != nil {
		t.Error(err)
	}
}

// A key whose hash is another one now must not be restored.
func TestRestoreChecksKeyGroups(t *testing.T) {
	from := NewBackend[string]()
	storeIn(t, from, nil)
	from.SetCurrentKey(12345<<32, "k") // not its hash
	s, err := from.Value(state.Value[int]("v"))
	if err != nil {
		t.Fatal(err)
	}
	s.Set(1)
	taken := takeSnapshot(t, from)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	to := NewBackend[string]()
	storeIn(t, to, readerOf(t, taken))
	if _, err := to.Value(state.Value[int]("v")); err == nil || !strings.Contains(err.Error(), "key k was stored in key group") {
		t.Errorf("error %v", err)
	}
}
