package keyed

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type testTimer = Timer[int32, int8]

func makeTimer(at int64, key int32, namespace int8) testTimer {
	return testTimer{At: at, Key: key, Namespace: namespace, Hash: uint64(uint32(key)) * 0x9e3779b97f4a7c15 >> 1}
}

// timerModel is a set of timers.
type timerModel map[testTimer]bool

func (m timerModel) next() (at int64, ok bool) {
	at = math.MaxInt64
	for t := range m {
		at, ok = min(at, t.At), true
	}
	return at, ok
}

func (m timerModel) sorted() []testTimer {
	var all []testTimer
	for t := range m {
		all = append(all, t)
	}
	slices.SortFunc(all, compareTimers)
	return all
}

func compareTimers(a, b testTimer) int {
	return cmp.Or(compareTimes(a, b), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Namespace, b.Namespace))
}

func compareTimes(a, b testTimer) int { return cmp.Compare(a.At, b.At) }

// Small and clustered times make few leaves with many changes, wide ones many;
// runs of registrations fill logs and groups.
func TestTimerQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewTimerQueue[int32, int8]()
		model := timerModel{}
		clock := int64(0)
		timer := rapid.Custom(func(t *rapid.T) testTimer {
			at := rapid.OneOf(
				rapid.Int64Range(clock-3, clock+3),
				rapid.Int64Range(clock-100, clock+3000),
				rapid.Int64Range(0, math.MaxInt32),
				rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}),
			).Draw(t, "at")
			return makeTimer(at, rapid.Int32Range(0, 3).Draw(t, "key"), rapid.Int8Range(0, 1).Draw(t, "namespace"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				tm := timer.Draw(t, "timer")
				q.Register(tm)
				model[tm] = true
			},
			"delete": func(t *rapid.T) {
				tm := timer.Draw(t, "timer")
				q.Delete(tm)
				delete(model, tm)
			},
			"delete some that are there": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				sorted := model.sorted()
				from := rapid.IntRange(0, len(sorted)-1).Draw(t, "first")
				for _, tm := range sorted[from:min(from+rapid.IntRange(1, leafSize).Draw(t, "timers"), len(sorted))] {
					q.Delete(tm)
					delete(model, tm)
				}
			},
			"register many": func(t *rapid.T) {
				n := rapid.IntRange(1, 2*leafSize).Draw(t, "timers")
				first := timer.Draw(t, "first")
				step := rapid.SampledFrom([]int64{-7, -1, 0, 0, 1, 5}).Draw(t, "step")
				keys := rapid.Int32Range(1, 5000).Draw(t, "keys")
				for i := range n {
					tm := makeTimer(first.At+int64(i)*step, int32(i)%keys, first.Namespace)
					q.Register(tm)
					model[tm] = true
				}
			},
			"pop": func(t *rapid.T) {
				until := rapid.Int64Range(clock-10, clock+2000).Draw(t, "until")
				clock = max(clock, until)
				for range rapid.IntRange(1, 2*frontSize).Draw(t, "times") {
					if !popBoth(t, q, model, until) {
						break
					}
				}
			},
			"next": func(t *rapid.T) {
				at, ok := q.Next()
				wantAt, want := model.next()
				if ok != want || ok && at != wantAt {
					t.Fatalf("next %d %v, want %d %v", at, ok, wantAt, want)
				}
			},
			"compare": func(t *rapid.T) {
				var all []testTimer
				for tm := range q.All() {
					all = append(all, tm)
				}
				if !slices.IsSortedFunc(all, compareTimes) {
					t.Fatal("not in the order of times")
				}
				slices.SortFunc(all, compareTimers)
				if want := model.sorted(); !slices.Equal(want, all) {
					t.Fatalf("timers (-want +got):\n%s", gocmp.Diff(want, all))
				}
				if q.Len() != len(model) {
					t.Fatalf("length %d, want %d", q.Len(), len(model))
				}
			},
			"": func(t *rapid.T) { checkTimerQueue(t, q) },
		})
		var rest []testTimer
		for tm, ok := q.Pop(math.MaxInt64); ok; tm, ok = q.Pop(math.MaxInt64) {
			rest = append(rest, tm)
		}
		if !slices.IsSortedFunc(rest, compareTimes) {
			t.Fatal("the rest did not come out in the order of times")
		}
		slices.SortFunc(rest, compareTimers)
		if want := model.sorted(); !slices.Equal(want, rest) {
			t.Fatalf("the rest (-want +got):\n%s", gocmp.Diff(want, rest))
		}
	})
}

func popBoth(t *rapid.T, q *TimerQueue[int32, int8], model timerModel, until int64) bool {
	at, ok := model.next()
	ok = ok && at <= until
	tm, popped := q.Pop(until)
	if popped != ok || ok && (tm.At != at || !model[tm]) {
		t.Fatalf("popped %v %v, want one at %d %v", tm, popped, at, ok)
	}
	if ok {
		delete(model, tm)
	}
	return ok
}

// checkTimerQueue checks that all is where its time belongs.
func checkTimerQueue[K, N comparable](t *rapid.T, q *TimerQueue[K, N]) {
	for i, l := range q.leaves {
		hi := int64(math.MaxInt64)
		if i+1 < len(q.leaves) {
			hi = q.leaves[i+1].lo - 1
		}
		if hi < l.lo {
			t.Fatalf("leaf %d covers nothing: [%d, %d]", i, l.lo, hi)
		}
		if l.group != nil {
			if l.group.at != l.lo {
				t.Fatalf("leaf %d from %d is a group at %d", i, l.lo, l.group.at)
			}
			continue
		}
		if len(l.log) >= leafSize || cap(l.log) > leafSize {
			t.Fatalf("leaf %d is too long: %d, %d", i, len(l.log), cap(l.log))
		}
		for j, tm := range l.log[l.start:] {
			if tm.At < l.lo || tm.At > hi {
				t.Fatalf("leaf %d [%d, %d] holds %d", i, l.lo, hi, tm.At)
			}
			if l.start+j < l.settled && j > 0 && l.log[l.start+j-1].At > tm.At {
				t.Fatalf("leaf %d is not sorted where it is settled", i)
			}
		}
	}
	for i, tm := range q.front {
		if i > 0 && q.front[i-1].At < tm.At {
			t.Fatal("the front is not sorted")
		}
		if len(q.leaves) > 0 && tm.At >= q.leaves[0].lo {
			t.Fatalf("front holds %d, which belongs to a leaf", tm.At)
		}
	}
}

// timerShapes are ways in which the times of many timers may be spread.
var timerShapes = map[string]func(r *rand.Rand, i int) int64{
	"rising":     func(_ *rand.Rand, i int) int64 { return int64(i) },
	"falling":    func(_ *rand.Rand, i int) int64 { return int64(-i) },
	"random":     func(r *rand.Rand, _ int) int64 { return int64(r.Uint64()) },
	"one-time":   func(*rand.Rand, int) int64 { return 42 },
	"full-hours": func(r *rand.Rand, _ int) int64 { return r.Int64N(20) * 3_600_000 },
	"mixed": func(r *rand.Rand, i int) int64 {
		if i%2 == 0 {
			return int64(i / 20_000)
		}
		return r.Int64N(6)
	},
}

// Many timers, registered in any order, come out in the order of their times,
// each once, in an order that a second queue repeats; so do they a second time.
func TestTimerQueueLarge(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, shape := range timerShapes {
		t.Run(name, func(t *testing.T) {
			q := NewTimerQueue[int32, int8]()
			first := runLarge(t, q, shape, seed)
			if !slices.Equal(first, runLarge(t, NewTimerQueue[int32, int8](), shape, seed)) {
				t.Error("two queues with the same calls differ")
			}
			runLarge(t, q, shape, seed)
		})
	}
}

func runLarge(t *testing.T, q *TimerQueue[int32, int8], shape func(r *rand.Rand, i int) int64, seed uint64) []testTimer {
	t.Helper()
	const n = 50_000
	r := rand.New(rand.NewPCG(seed, 0))
	want := timerModel{}
	var registered []testTimer
	for i := range n {
		tm := makeTimer(shape(r, i), int32(i/2), 0)
		registered = append(registered, tm)
		q.Register(tm)
		want[tm] = true
		if gone := registered[i/2]; i%5 == 0 {
			q.Delete(gone)
			delete(want, gone)
		}
	}
	var popped []testTimer
	for tm, ok := q.Pop(math.MaxInt64); ok; tm, ok = q.Pop(math.MaxInt64) {
		if !want[tm] {
			t.Fatalf("popped %v, which is not there", tm)
		}
		delete(want, tm)
		popped = append(popped, tm)
	}
	if len(want) > 0 {
		t.Fatalf("%d timers did not come out", len(want))
	}
	if !slices.IsSortedFunc(popped, compareTimes) {
		t.Fatal("not in the order of times")
	}
	return popped
}
