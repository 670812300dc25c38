package keyedop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// fleet is all subtasks of one operator.
type fleet []*harness

// newFleet opens subtasks, restored from what taken has, if anything, at a time of the
// clock.
func newFleet(t testing.TB, parallelism int, newOperator func() operator.Operator, taken []*snapshottest.Snapshot, now int64) fleet {
	t.Helper()
	var readers []*snapshot.Share
	if taken != nil {
		var err error
		readers, err = snapshottest.Readers(taken, parallelism, 128)
		must(t, err)
	}
	f := make(fleet, parallelism)
	for i := range f {
		h := newHarness(t)
		h.subtask, h.parallelism, h.checkpointing = i, parallelism, true
		h.clock.now = now
		if readers != nil {
			h.restored = readers[i]
		}
		h.open(t, newOperator())
		if readers != nil {
			if left := readers[i].Unclaimed(); len(left) > 0 {
				t.Fatalf("parts %q were not claimed", left)
			}
		}
		f[i] = h
	}
	return f
}

// event is something that happens to an operator.
type event struct {
	do        string // "record", "broadcast", "watermark", "clock"
	input     int
	row       row
	timestamp int64
}

// randomEvents returns records of a few keys, somewhat out of order, and the watermarks
// and times of the clock between them.
func randomEvents(r *rand.Rand, n int) []event {
	watermark, now := int64(0), int64(0)
	events := make([]event, 0, n)
	for i := range n {
		switch p := r.IntN(20); {
		case p < 14:
			events = append(events, event{
				do: "record", input: r.IntN(2), timestamp: watermark + r.Int64N(60) - 5,
				row: row{fmt.Sprint("k", r.IntN(12)), i},
			})
		case p < 16:
			events = append(events, event{do: "broadcast", timestamp: watermark + 1, row: row{fmt.Sprint("r", r.IntN(40)), i}})
		case p < 18:
			watermark += r.Int64N(20)
			events = append(events, event{do: "watermark", timestamp: watermark})
		default:
			now += r.Int64N(30)
			events = append(events, event{do: "clock", timestamp: now})
		}
	}
	return events
}

// apply lets an event happen to the subtasks that it reaches.
func (f fleet) apply(t testing.TB, kind inputs, e event) {
	t.Helper()
	owner := f[keyed.SubtaskOf(keyed.KeyGroup(f[0].hash(e.row.Key), 128), len(f), 128)]
	switch {
	case e.do == "watermark":
		for _, h := range f {
			must(t, h.op.Watermark(e.timestamp))
		}
	case e.do == "clock":
		for _, h := range f {
			must(t, h.clock.set(e.timestamp))
		}
	case e.do == "broadcast" && kind.broadcast:
		for _, h := range f {
			must(t, h.op.Process(1, plainBatch(e)))
		}
	case e.do == "broadcast":
	case kind.plain:
		must(t, owner.op.Process(0, plainBatch(e)))
	default:
		input := e.input
		if !kind.two {
			input = 0
		}
		must(t, owner.op.Process(input, owner.batch(e.timestamp, e.row)))
	}
}

func plainBatch(e event) exchange.Payload {
	b := &connector.Batch[row]{}
	b.Append(e.row, e.timestamp, 0)
	return b
}

// take returns what all subtasks emitted, except for watermarks, in any order.
func (f fleet) take(t testing.TB) []string {
	t.Helper()
	var all []result
	for _, h := range f {
		for _, r := range h.out.take() {
			if _, ok := r["watermark"]; !ok {
				all = append(all, r)
			}
		}
	}
	return asJSON(t, all)
}

func (f fleet) close(t testing.TB) {
	t.Helper()
	for _, h := range f {
		h.close(t)
		h.op = nil
	}
}

// inputs says what an operator's inputs are.
type inputs struct {
	two, broadcast, plain bool
}

// operators are all operators of the package.
var operators = []struct {
	name   string
	inputs inputs
	make   func() operator.Operator
}{
	{"process", inputs{}, func() operator.Operator {
		return NewProcess(func(x *Context[string], out *operator.Emitter[result]) (Function[row], error) {
			f := newEverything(x, out)
			return Function[row]{Element: f.element, Timer: f.timer}, nil
		})
	}},
	{"co-process", inputs{two: true}, func() operator.Operator {
		return NewCoProcess(func(x *Context[string], out *operator.Emitter[result]) (CoFunction[row, row], error) {
			f := newEverything(x, out)
			second := func(v row) error { v.Value = -v.Value; return f.element(v) }
			return CoFunction[row, row]{First: f.element, Second: second, Timer: f.timer}, nil
		})
	}},
	{"keyed broadcast", inputs{broadcast: true}, func() operator.Operator {
		return NewKeyedBroadcast(func(x *Context[string], b *BroadcastStates, out *operator.Emitter[result]) (BroadcastFunction[row, row], error) {
			f, rules := newEverything(x, out), newRules(x, b, out)
			element := func(v row) error {
				rules.report(v)
				return f.element(v)
			}
			onRule := func(v row) error {
				rules.add(v)
				return x.EachKey(f.count, func(key string, count state.ValueState[int]) error {
					n, _ := count.Get()
					count.Set(n + 100)
					return nil
				})
			}
			return BroadcastFunction[row, row]{Element: element, Broadcast: onRule, Timer: f.timer}, nil
		})
	}},
	{"broadcast", inputs{broadcast: true, plain: true}, func() operator.Operator {
		return NewBroadcast(func(x *Context[struct{}], b *BroadcastStates, out *operator.Emitter[result]) (BroadcastFunction[row, row], error) {
			rules := newRules(x, b, out)
			return BroadcastFunction[row, row]{
				Element:   func(v row) error { rules.report(v); return nil },
				Broadcast: func(v row) error { rules.add(v); return nil },
			}, nil
		})
	}},
	{"interval join", inputs{two: true}, func() operator.Operator {
		return NewIntervalJoin[string](Interval{Lower: -20, Upper: 30}, func(p *Pair, out *operator.Emitter[result]) func(row, row) error {
			return func(left, right row) error {
				out.Append(result{"left": left, "right": right}, p.Timestamp, p.Origin)
				return nil
			}
		})
	}},
	{"sorter", inputs{}, func() operator.Operator { return NewSorter[string, row]("") }},
	{"rolling", inputs{}, func() operator.Operator {
		return NewProcess(func(x *Context[string], out *operator.Emitter[result]) (Function[row], error) {
			total := x.Reducing(state.Reducing("total", func(a, b int) int { return a + b }))
			return Function[row]{Element: func(v row) error {
				total.Add(v.Value)
				sum, _ := total.Get()
				out.Append(result{"key": x.Key(), "sum": sum}, x.Timestamp, x.Origin)
				return nil
			}}, nil
		})
	}},
}

// everything is a function that uses states of all kinds and both kinds of timers.
type everything struct {
	x           *Context[string]
	out         *operator.Emitter[result]
	count       state.ValueState[int]
	last        state.ListState[int]
	seen        state.MapState[int, string]
	sum         state.ReducingState[int]
	mean        state.AggregatingState[int, float64]
	recent      state.ValueState[int]
	recentPairs state.MapState[int, *row]
}

func newEverything(x *Context[string], out *operator.Emitter[result]) *everything {
	ttl := state.WithTTL(state.TTL{After: 50 * time.Millisecond, Update: state.OnReadAndWrite})
	return &everything{
		x: x, out: out,
		count:       x.Value(state.Value[int]("count")),
		last:        x.List(state.List[int]("last")),
		seen:        x.Map(state.Map[int, string]("seen")),
		sum:         x.Reducing(state.Reducing("sum", func(a, b int) int { return a + b })),
		mean:        x.Aggregating(state.Aggregating("mean", window.Average(func(n int) int { return n }))),
		recent:      x.Value(state.Value[int]("recent", ttl)),
		recentPairs: x.Map(state.Map[int, *row]("recent pairs", ttl)),
	}
}

func (f *everything) element(v row) error {
	n, _ := f.count.Get()
	f.count.Set(n + 1)
	f.last.Add(v.Value)
	f.seen.Put(v.Value%50, v.Key)
	f.sum.Add(v.Value)
	f.mean.Add(v.Value)
	recent, known := f.recent.Get()
	f.recent.Set(v.Value)
	pair, ok := f.recentPairs.Get(v.Value % 3)
	if !ok {
		pair = &row{}
		f.recentPairs.Put(v.Value%3, pair)
	}
	pair.Value++ // through the pointer
	sum, _ := f.sum.Get()
	mean, _ := f.mean.Get()
	f.out.Append(result{
		"key": v.Key, "count": n, "last": slices.Clone(f.last.Get()), "sum": sum, "mean": mean,
		"recent": recent, "known": known, "pair": pair.Value,
	}, f.x.Timestamp, f.x.Origin)
	// Not in the past: there a timer fires with the restore instead of the next watermark.
	v.Value = max(v.Value, -v.Value)
	f.x.RegisterEventTimer(max(f.x.Watermark, 0) + 1 + int64(v.Value%40))
	f.x.RegisterProcessingTimer(f.x.Runtime().Timers.Now() + int64(v.Value%25))
	if v.Value%7 == 0 {
		f.x.DeleteEventTimer(max(f.x.Watermark, 0) + int64(v.Value%40))
	}
	return nil
}

func (f *everything) timer(at int64, d Domain) error {
	seen := 0
	for range f.seen.All() {
		seen++
	}
	f.out.Append(result{"key": f.x.Key(), "timer": at, "domain": d.String(), "seen": seen}, f.x.Timestamp, f.x.Origin)
	switch {
	case at%5 == 0:
		f.last.Clear()
		f.sum.Clear()
	case at%5 == 1:
		f.last.Set(f.last.Get()[:min(1, len(f.last.Get()))])
		f.seen.Clear()
	}
	return nil
}

// rules is what the functions with broadcast state do with it.
type rules struct {
	byName state.MapState[string, []int]
	report func(row)
}

func newRules[K comparable](x *Context[K], b *BroadcastStates, out *operator.Emitter[result]) *rules {
	r := &rules{byName: b.Map(state.Map[string, []int]("rules"))}
	r.report = func(v row) {
		names := []string{}
		for name, values := range r.byName.All() {
			names = append(names, fmt.Sprint(name, values))
		}
		slices.Sort(names)
		out.Append(result{"value": v, "rules": names}, x.Timestamp, x.Origin)
	}
	return r
}

func (r *rules) add(v row) {
	if v.Value%11 == 0 {
		r.byName.Remove(v.Key)
		return
	}
	values, _ := r.byName.Get(v.Key)
	r.byName.Put(v.Key, append(values, v.Value))
}

// A restart does not show in what comes out: a snapshot at any moment, written while the
// operator goes on, restored with any parallelism.
func TestRestartDoesNotShow(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, op := range operators {
		t.Run(op.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 8 {
				events := randomEvents(r, 50+r.IntN(400))
				end := event{do: "watermark", timestamp: math.MaxInt64}

				whole := newFleet(t, 1, op.make, nil, 0)
				for _, e := range append(events, end) {
					whole.apply(t, op.inputs, e)
				}
				want := whole.take(t)
				whole.close(t)

				at := r.IntN(len(events))
				first := newFleet(t, 1+r.IntN(4), op.make, nil, 0)
				watermark, now := int64(math.MinInt64), int64(0)
				for _, e := range events[:at] {
					switch e.do {
					case "watermark":
						watermark = e.timestamp
					case "clock":
						now = e.timestamp
					}
					first.apply(t, op.inputs, e)
				}
				got := first.take(t)
				taken := first.snapshotWhile(t, r, func() {
					first.apply(t, op.inputs, events[at+r.IntN(len(events)-at)])
				})
				first.close(t)

				second := newFleet(t, 1+r.IntN(4), op.make, taken, now)
				if watermark != math.MinInt64 {
					second.apply(t, op.inputs, event{do: "watermark", timestamp: watermark})
				}
				for _, e := range append(events[at:], end) {
					second.apply(t, op.inputs, e)
				}
				got = append(got, second.take(t)...)
				second.close(t)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("snapshot of %d subtasks after %d of %d events, %d subtasks afterwards (-want +got):\n%s",
						len(first), at, len(events), len(second), diff)
				}
			}
		})
	}
}

// snapshotWhile takes a snapshot of all subtasks, and calls during between the blocks that
// are written.
func (f fleet) snapshotWhile(t testing.TB, r *rand.Rand, during func()) []*snapshottest.Snapshot {
	t.Helper()
	taken := make([]*snapshottest.Snapshot, len(f))
	for i, h := range f {
		var err error
		taken[i], err = snapshottest.Take(1, h.op.(operator.Stateful).Snapshot)
		must(t, err)
	}
	for _, s := range taken {
		for more := true; more; {
			for range r.IntN(4) {
				during()
			}
			var err error
			more, err = s.Step()
			must(t, err)
		}
	}
	return taken
}

// Lists of the subtask: dealt out anew, or all to all.
func TestOperatorLists(t *testing.T) {
	type position struct {
		Split string
		At    *int // which is changed in place
	}
	var contents []string
	newOperator := func() operator.Operator {
		return NewPlain(func(x *Context[struct{}], out *operator.Emitter[result]) (Function[row], error) {
			own := x.Operator.List(state.OperatorList[position]("own"))
			all := x.Operator.List(state.OperatorUnionList[int]("all"))
			if x.Operator.List(state.OperatorList[position]("own")) != own {
				t.Error("the same declaration is another list")
			}
			var b strings.Builder
			for _, p := range own.Get() {
				fmt.Fprint(&b, p.Split, *p.At, " ")
			}
			contents = append(contents, fmt.Sprint(b.String(), all.Get()))
			return Function[row]{Element: func(v row) error {
				for _, p := range own.Get() {
					*p.At++
				}
				at := v.Value
				switch v.Key {
				case "clear":
					own.Clear()
				case "set":
					own.Set(own.Get()[1:])
				}
				own.Add(position{v.Key, &at})
				all.Add(v.Value)
				return nil
			}}, nil
		})
	}
	for _, tt := range []struct {
		parallelism int
		want        []string
	}{
		{2, []string{"a2 b2 [1 2 3]", "c3 [1 2 3]"}},
		{1, []string{"a2 b2 c3 [1 2 3]"}},
		{3, []string{"a2 [1 2 3]", "b2 [1 2 3]", "c3 [1 2 3]"}},
	} {
		f := newFleet(t, 2, newOperator, nil, 0)
		send := func(subtask int, key string, value int) {
			must(t, f[subtask].op.Process(0, plainBatch(event{row: row{key, value}})))
		}
		send(0, "a", 1)
		send(0, "b", 2)
		send(1, "c", 3)
		r := rand.New(rand.NewPCG(1, 1))
		calls := 0
		taken := f.snapshotWhile(t, r, func() {
			calls++
			send(calls%2, []string{"x", "clear", "set"}[calls%3], calls)
		})
		contents = nil
		g := newFleet(t, tt.parallelism, newOperator, taken, 0)
		if diff := cmp.Diff(tt.want, contents); diff != "" {
			t.Errorf("%d subtasks (-want +got):\n%s", tt.parallelism, diff)
		}
		f.close(t)
		g.close(t)
	}
}

// Processing-time timers fire after a restore although no record comes.
func TestRestoredTimersAreArmed(t *testing.T) {
	newOperator := operators[0].make
	before := newFleet(t, 1, newOperator, nil, 0)
	before.apply(t, inputs{}, event{do: "record", row: row{"k", 20}})
	taken := before.snapshotWhile(t, rand.New(rand.NewPCG(1, 1)), func() {})
	before.close(t)
	after := newFleet(t, 2, newOperator, taken, 5)
	after.apply(t, inputs{}, event{do: "clock", timestamp: 21})
	if got := after.take(t); len(got) != 1 || !strings.Contains(got[0], "processing time") {
		t.Errorf("%v came out, want the timer of 20", got)
	}
}
