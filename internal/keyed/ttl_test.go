package keyed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/state"
)

type ttlCase struct {
	caseHead
	TTL struct {
		TTL        int64  `json:"ttl"`
		Update     string `json:"update"`
		Visibility string `json:"visibility"`
	} `json:"ttl"`
	Steps []ttlStep `json:"steps"`
}

type ttlStep struct {
	Now    int64           `json:"now"`
	Key    string          `json:"key"`
	Op     string          `json:"op"`
	Arg    json.RawMessage `json:"arg"`
	Result json.RawMessage `json:"result"`
}

// describedSum is an aggregator whose result is a text.
type describedSum struct{}

func (describedSum) New() int64               { return 0 }
func (describedSum) Add(a int64, v int) int64 { return a + int64(v) }
func (describedSum) Merge(a, b int64) int64   { return a + b }
func (describedSum) Result(a int64) string    { return "sum=" + strconv.FormatInt(a, 10) }

// allStates is a backend with a state of each kind.
type allStates struct {
	*Backend[string]
	value       state.ValueState[int]
	list        state.ListState[int]
	entries     state.MapState[string, int]
	reducing    state.ReducingState[int]
	aggregating state.AggregatingState[int, string]
}

func openAll(t testing.TB, ttl state.TTL) *allStates {
	t.Helper()
	b := NewBackend[string]()
	storeIn(t, b, nil)
	return openAllIn(t, b, ttl)
}

// openAllIn opens the states in a backend that is ready.
func openAllIn(t testing.TB, b *Backend[string], ttl state.TTL) *allStates {
	t.Helper()
	with := state.WithTTL(ttl)
	s := &allStates{Backend: b}
	var errs [5]error
	s.value, errs[0] = b.Value(state.Value[int]("value", with))
	s.list, errs[1] = b.List(state.List[int]("list", with))
	s.entries, errs[2] = b.Map(state.Map[string, int]("map", with))
	s.reducing, errs[3] = b.Reducing(state.Reducing("reducing", func(a, b int) int { return a + b }, with))
	s.aggregating, errs[4] = b.Aggregating(state.Aggregating("aggregating", describedSum{}, with))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// restored returns states that are restored from a snapshot of s.
func (s *allStates) restored(t testing.TB, ttl state.TTL) *allStates {
	t.Helper()
	taken := takeSnapshot(t, s.Backend)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	to := NewBackend[string]()
	to.SetTime(s.now)
	storeIn(t, to, readerOf(t, taken))
	return openAllIn(t, to, ttl)
}

func TestConformanceStateTTL(t *testing.T) {
	updates := map[string]state.TTLUpdate{
		"create_and_write": state.OnCreateAndWrite,
		"read_and_write":   state.OnReadAndWrite,
	}
	visibilities := map[string]state.TTLVisibility{
		"never_return_expired":             state.NeverReturnExpired,
		"return_expired_if_not_cleaned_up": state.ReturnExpiredIfNotCleanedUp,
	}
	replay(t, "ttl", func(t *testing.T, c ttlCase) {
		ttl := state.TTL{After: time.Duration(c.TTL.TTL) * time.Millisecond}
		var known [2]bool
		ttl.Update, known[0] = updates[c.TTL.Update]
		ttl.Visibility, known[1] = visibilities[c.TTL.Visibility]
		if known != [2]bool{true, true} {
			t.Fatalf("unknown TTL %v", c.TTL)
		}
		hash := hasherOf[string](t)
		s := openAll(t, ttl)
		for i, step := range c.Steps {
			s.SetTime(step.Now)
			if step.Op == "checkpoint_restore" {
				s = s.restored(t, ttl)
				continue
			}
			s.SetCurrentKey(hash(step.Key), step.Key)
			got := s.do(t, step)
			if step.Result == nil {
				continue
			}
			var want, have any
			unmarshalStrict(t, step.Result, &want)
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			unmarshalStrict(t, data, &have)
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("step %d, %s at %d: (-want +got):\n%s", i, step.Op, step.Now, diff)
			}
			if err := s.Err(); err != nil {
				t.Error(err)
			}
		}
	})
}

// do runs one step and returns its result.
func (s *allStates) do(t *testing.T, step ttlStep) any {
	t.Helper()
	switch step.Op {
	case "value.get":
		return orNull(s.value.Get())
	case "value.set":
		s.value.Set(argument[int](t, step))
	case "value.clear":
		s.value.Clear()
	case "list.get":
		return append([]int{}, s.list.Get()...)
	case "list.add":
		s.list.Add(argument[int](t, step))
	case "list.addAll":
		s.list.AddAll(argument[[]int](t, step))
	case "list.update":
		s.list.Set(argument[[]int](t, step))
	case "list.clear":
		s.list.Clear()
	case "map.get":
		return orNull(s.entries.Get(argument[string](t, step)))
	case "map.contains":
		return s.entries.Contains(argument[string](t, step))
	case "map.put":
		pair := argument[[2]json.RawMessage](t, step)
		var key string
		var value int
		unmarshalStrict(t, pair[0], &key)
		unmarshalStrict(t, pair[1], &value)
		s.entries.Put(key, value)
	case "map.remove":
		s.entries.Remove(argument[string](t, step))
	case "map.entries":
		return maps.Collect(s.entries.All())
	case "map.isEmpty":
		return s.entries.IsEmpty()
	case "map.clear":
		s.entries.Clear()
	case "reducing.get":
		return orNull(s.reducing.Get())
	case "reducing.add":
		s.reducing.Add(argument[int](t, step))
	case "reducing.clear":
		s.reducing.Clear()
	case "aggregating.get":
		return orNull(s.aggregating.Get())
	case "aggregating.add":
		s.aggregating.Add(argument[int](t, step))
	case "aggregating.clear":
		s.aggregating.Clear()
	default:
		t.Fatalf("unknown operation %q", step.Op)
	}
	return nil
}

func argument[A any](t *testing.T, step ttlStep) (a A) {
	t.Helper()
	unmarshalStrict(t, step.Arg, &a)
	return a
}

func orNull[V any](v V, ok bool) *V {
	if !ok {
		return nil
	}
	return &v
}

// stateModel restates the rules of TTL for one key, by lists that are searched.
// A state without TTL has after 0.
type stateModel struct {
	after            int64
	onRead, returned bool
	values           map[string]*modelValue // by kind, for one value per key
	list             []modelValue
	entries          []modelEntry
}

type modelValue struct {
	v  int
	at int64
}

type modelEntry struct {
	key string
	modelValue
}

func (m *stateModel) gone(v modelValue, now int64) bool { return m.after > 0 && v.at+m.after <= now }

// read returns what can be seen of a value, and whether the value remains.
func (m *stateModel) read(v *modelValue, now int64) (seen, remains bool) {
	if m.gone(*v, now) {
		return m.returned, false
	}
	if m.onRead {
		v.at = now
	}
	return true, true
}

func (m *stateModel) get(kind string, now int64) *int {
	v := m.values[kind]
	if v == nil {
		return nil
	}
	seen, remains := m.read(v, now)
	if !remains {
		delete(m.values, kind)
	}
	if !seen {
		return nil
	}
	result := v.v
	return &result
}

func (m *stateModel) set(kind string, v int, now int64) { m.values[kind] = &modelValue{v, now} }

func (m *stateModel) add(kind string, v int, now int64) {
	if old := m.values[kind]; old != nil && !m.gone(*old, now) {
		v += old.v
	}
	m.set(kind, v, now)
}

func (m *stateModel) getList(now int64) []int {
	live := slices.DeleteFunc(slices.Clone(m.list), func(v modelValue) bool { return m.gone(v, now) })
	all := m.list
	if len(live) == 0 || !m.returned {
		m.list = live
	}
	if !m.returned {
		all = live
	}
	var values []int
	for _, v := range all {
		values = append(values, v.v)
	}
	for i := range m.list {
		m.read(&m.list[i], now)
	}
	return values
}

func (m *stateModel) getEntry(key string, now int64) *int {
	for i := range m.entries {
		if e := &m.entries[i]; e.key == key {
			v := e.v
			seen, remains := m.read(&e.modelValue, now)
			if !remains {
				m.entries = slices.Delete(m.entries, i, i+1)
			}
			if seen {
				return &v
			}
			return nil
		}
	}
	return nil
}

func (m *stateModel) remove(key string) {
	m.entries = slices.DeleteFunc(m.entries, func(e modelEntry) bool { return e.key == key })
}

// Small keys and times make expiry frequent; map keys are many enough for maps
// of both forms.
func TestStatesAgainstModel(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		var ttl state.TTL
		if rapid.Bool().Draw(t, "with TTL") {
			ttl = state.TTL{
				After:      10 * time.Millisecond,
				Update:     rapid.SampledFrom([]state.TTLUpdate{state.OnCreateAndWrite, state.OnReadAndWrite}).Draw(t, "update"),
				Visibility: rapid.SampledFrom([]state.TTLVisibility{state.NeverReturnExpired, state.ReturnExpiredIfNotCleanedUp}).Draw(t, "visibility"),
			}
		}
		// Cleaning up is seen where what has expired can be.
		cleans := ttl.Visibility == state.NeverReturnExpired
		s := openAll(tt, ttl)
		hash := hasherOf[string](tt)
		models := map[string]*stateModel{}
		now := int64(-5)
		s.SetTime(now)
		key := rapid.SampledFrom([]string{"", "a", "b"})
		mapKey := rapid.Map(rapid.IntRange(0, 2*maxFew), strconv.Itoa)
		small := rapid.IntRange(0, 99)
		m := (*stateModel)(nil)
		check := func(t *rapid.T, what string, want, got any) {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s at %d (-want +got):\n%s", what, now, diff)
			}
		}
		action := func(do func(t *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				k := key.Draw(t, "key")
				if m = models[k]; m == nil {
					m = &stateModel{
						after: ttl.After.Milliseconds(), onRead: ttl.Update == state.OnReadAndWrite,
						returned: ttl.Visibility == state.ReturnExpiredIfNotCleanedUp, values: map[string]*modelValue{},
					}
					models[k] = m
				}
				s.SetCurrentKey(hash(k), k)
				do(t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now += rapid.Int64Range(0, 7).Draw(t, "ms")
				s.SetTime(now)
			},
			"clean up": func(t *rapid.T) {
				if cleans {
					s.CleanUp(rapid.IntRange(1, 20).Draw(t, "budget"))
				}
			},
			"restore": func(t *rapid.T) {
				if cleans { // a snapshot leaves out what has expired
					s = s.restored(tt, ttl)
				}
			},
			"set": action(func(t *rapid.T) {
				v := small.Draw(t, "value")
				s.value.Set(v)
				m.set("value", v, now)
			}),
			"add": action(func(t *rapid.T) {
				v := small.Draw(t, "value")
				s.reducing.Add(v)
				s.aggregating.Add(v)
				m.add("reducing", v, now)
				m.add("aggregating", v, now)
			}),
			"get": action(func(t *rapid.T) {
				check(t, "value", m.get("value", now), orNull(s.value.Get()))
				check(t, "reducing", m.get("reducing", now), orNull(s.reducing.Get()))
				var want *string
				if v := m.get("aggregating", now); v != nil {
					text := "sum=" + strconv.Itoa(*v)
					want = &text
				}
				check(t, "aggregating", want, orNull(s.aggregating.Get()))
			}),
			"clear": action(func(t *rapid.T) {
				switch rapid.IntRange(0, 4).Draw(t, "kind") {
				case 0:
					s.value.Clear()
					delete(m.values, "value")
				case 1:
					s.reducing.Clear()
					delete(m.values, "reducing")
				case 2:
					s.aggregating.Clear()
					delete(m.values, "aggregating")
				case 3:
					s.list.Clear()
					m.list = nil
				case 4:
					s.entries.Clear()
					m.entries = nil
				}
			}),
			"list add": action(func(t *rapid.T) {
				vs := rapid.SliceOfN(small, 0, 5).Draw(t, "values")
				if len(vs) == 1 {
					s.list.Add(vs[0])
				} else {
					s.list.AddAll(vs)
				}
				for _, v := range vs {
					m.list = append(m.list, modelValue{v, now})
				}
			}),
			"list set": action(func(t *rapid.T) {
				vs := rapid.SliceOfN(small, 0, 5).Draw(t, "values")
				s.list.Set(vs)
				m.list = nil
				for _, v := range vs {
					m.list = append(m.list, modelValue{v, now})
				}
			}),
			"list get": action(func(t *rapid.T) {
				check(t, "list", m.getList(now), append([]int(nil), s.list.Get()...))
			}),
			"list set a part of itself": action(func(t *rapid.T) {
				part := s.list.Get()
				m.getList(now)
				from := rapid.IntRange(0, len(part)).Draw(t, "from")
				want := slices.Clone(part[from:])
				s.list.Set(part[from:])
				m.list = nil
				for _, v := range want {
					m.list = append(m.list, modelValue{v, now})
				}
			}),
			"map put": action(func(t *rapid.T) {
				for _, k := range rapid.SliceOfN(mapKey, 1, 2*maxFew).Draw(t, "entries") {
					v := small.Draw(t, "value")
					s.entries.Put(k, v)
					m.remove(k)
					m.entries = append(m.entries, modelEntry{k, modelValue{v, now}})
				}
			}),
			"map get": action(func(t *rapid.T) {
				k := mapKey.Draw(t, "entry")
				if rapid.Bool().Draw(t, "contains") {
					check(t, "contains", m.getEntry(k, now) != nil, s.entries.Contains(k))
				} else {
					check(t, "entry", m.getEntry(k, now), orNull(s.entries.Get(k)))
				}
			}),
			"map remove": action(func(t *rapid.T) {
				k := mapKey.Draw(t, "entry")
				s.entries.Remove(k)
				m.remove(k)
			}),
			"map entries": action(func(t *rapid.T) {
				want := map[string]int{}
				for _, e := range slices.Clone(m.entries) {
					if v := m.getEntry(e.key, now); v != nil {
						want[e.key] = *v
					}
				}
				drop := rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "drop every")
				got := map[string]int{}
				for k, v := range s.entries.All() {
					if _, twice := got[k]; twice {
						t.Fatalf("entry %q visited twice", k)
					}
					if got[k] = v; drop > 0 && len(got)%drop == 0 {
						s.entries.Remove(k)
						m.remove(k)
					}
				}
				check(t, "entries", want, got)
			}),
			"map is empty": action(func(t *rapid.T) {
				want := len(m.entries) == 0
				if got := s.entries.IsEmpty(); got != want && !(cleans && got && m.allGone(now)) {
					t.Fatalf("empty: %v at %d, want %v", got, now, want)
				}
			}),
			"": func(t *rapid.T) {
				if err := s.Err(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

func (m *stateModel) allGone(now int64) bool {
	return !slices.ContainsFunc(m.entries, func(e modelEntry) bool { return !m.gone(e.modelValue, now) })
}

// EachKey visits the keys that have something to read, of every kind of state, in memory and on
// disk.
func TestEachKeyLeavesOutWhatHasExpired(t *testing.T) {
	const old, young = 1000, 10 // keys
	for _, budget := range []int64{0, 1} {
		for _, visibility := range []state.TTLVisibility{state.NeverReturnExpired, state.ReturnExpiredIfNotCleanedUp} {
			t.Run(fmt.Sprint(visibility, ", budget ", budget), func(t *testing.T) {
				hash := hasherOf[string](t)
				b := NewBackend[string]()
				if budget > 0 {
					b, _ = limited(t, budget, nil)
				}
				s := openAllIn(t, b, state.TTL{After: time.Second, Visibility: visibility})
				for i := range old + young {
					if i == old {
						b.SetTime(1000)
					}
					key := fmt.Sprint(i)
					b.SetCurrentKey(hash(key), key)
					s.value.Set(i)
					s.reducing.Add(i)
					s.list.Add(i)
					s.entries.Put("entry", i)
				}
				if budget > 0 && s.states[0].spilledLen() == 0 {
					t.Error("nothing is on disk")
				}
				want := young
				if visibility == state.ReturnExpiredIfNotCleanedUp {
					want += old
				}
				visits := map[string]int{}
				count := func(kind string) error { visits[kind]++; return nil }
				if err := errors.Join(
					b.EachKey(s.value, func(string, state.ValueState[int]) error { return count("value") }),
					b.EachKey(s.reducing, func(string, state.ReducingState[int]) error { return count("reducing") }),
					b.EachKey(s.list, func(string, state.ListState[int]) error { return count("list") }),
					b.EachKey(s.entries, func(string, state.MapState[string, int]) error { return count("map") }),
				); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string]int{"value": want, "reducing": want, "list": want, "map": want}, visits); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
