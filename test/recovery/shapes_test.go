package recovery

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// A shaped trial is a job of all shapes: two sources of which one ends early, their union
// with itself, sliding windows, sessions, an interval join, a connected function and one with
// a broadcast input, at parallelisms that change from run to run.
type shaped struct {
	*trial
	// other has the second source's events.
	other *trial
}

const (
	slide = 5 * time.Second
	gap   = 700 * time.Millisecond
	// near is how far apart the two sides of the interval join are at most.
	near = 300 * time.Millisecond
)

func newShaped(seed uint64) *shaped {
	t := newTrial(seed + 1<<20) // of another store
	t.events = 100 + t.random.Int64N(150)
	return &shaped{t, newOther(t)}
}

func newOther(t *trial) *trial {
	return &trial{
		seed: t.seed + 1<<32, random: t.random, splits: 1 + t.random.IntN(3), events: 20 + t.random.Int64N(t.events), keys: t.keys,
		batch: 1 + t.random.Int64N(10), pace: time.Duration(20+t.random.IntN(300)) * time.Millisecond, step: t.step,
	}
}

func (t *trial) all() (events []event) {
	for split := range t.splits {
		for n := range t.events {
			events = append(events, t.event(split, n))
		}
	}
	return events
}

// build is the job. Most operators have a parallelism of their own.
func (s *shaped) build(env *lowwater.Environment, l *ledger) {
	parallelism := func() int { return 1 + s.random.IntN(3) }
	a := lowwater.FromSource(env, &tickerSource{s.trial}, strategy(), "a").UID("a").Parallelism(parallelism())
	b := lowwater.FromSource(env, &tickerSource{s.other}, strategy(), "b").UID("b").Parallelism(parallelism())
	same := a.Map(func(e event) event { return e }).UID("same").Parallelism(parallelism())
	key := func(e event) int { return e.Key }
	both := same.Union(same, b).KeyBy(key)
	sliding := both.Window(window.Sliding(size, slide)).Aggregate(lowwater.Count[event]()).UID("sliding").Parallelism(parallelism()).
		Map(func(p window.Pane[int, int64]) string { return line("sliding", p.Key, p.Window.Start, int(p.Value)) }).UID("slid")
	sessions := both.Window(window.Session(gap)).Aggregate(lowwater.Count[event]()).UID("sessions").Parallelism(parallelism()).
		Map(func(p window.Pane[int, int64]) string {
			return session(p.Key, p.Window.Start, p.Window.End, int(p.Value))
		}).UID("text").Parallelism(parallelism())
	connected := same.KeyBy(key).Connect(b.KeyBy(key)).Process(func() *sides { return &sides{counter{trial: s.trial}} }).UID("sides").Parallelism(parallelism())
	ruled := same.KeyBy(key).ConnectBroadcast(b).Process(func() *ruled { return &ruled{} }).UID("ruled").Parallelism(parallelism())
	joined := same.KeyBy(key).IntervalJoin(b.KeyBy(key)).Between(-near, near).Process(join).UID("joined").Parallelism(parallelism())
	sliding.Union(sessions, connected, ruled, joined).Filter(func(string) bool { return true }).UID("filter").Parallelism(parallelism()).
		SinkTo(l).UID("ledger").Parallelism(parallelism())
}

func session(key int, start, end int64, n int) string {
	return fmt.Sprintf("session: key %d from %d to %d: %d", key, start, end, n)
}

// join tells of a pair. No event is late, so each pair is told of, whatever is restored.
func join(_ *lowwater.IntervalJoinContext, a, b event, out *lowwater.Collector[string]) error {
	out.Emit(line("joined", a.Key, a.At, int(b.At)))
	return nil
}

// sides counts the second stream's events tenfold.
type sides struct{ counter }

func (s *sides) ProcessFirst(ctx *lowwater.KeyedContext[int], e event, out *lowwater.Collector[string]) error {
	return s.ProcessElement(ctx, e, out)
}

func (s *sides) ProcessSecond(ctx *lowwater.KeyedContext[int], e event, _ *lowwater.Collector[string]) error {
	start := e.At - e.At%size.Milliseconds()
	n, _ := s.counts.Get(start)
	s.counts.Put(start, n+10)
	ctx.RegisterEventTimeTimer(start + size.Milliseconds() - 1)
	return nil
}

// ruled tells, at the end of each bucket in which a key has events, how many were
// broadcast in it.
type ruled struct {
	lowwater.KeyedBase[int, string]
	broadcast state.MapState[int64, int]
}

func (r *ruled) Open(ctx *lowwater.KeyedBroadcastOpenContext[int]) error {
	r.broadcast = ctx.Broadcast(state.Map[int64, int]("broadcast"))
	return nil
}

func (r *ruled) ProcessElement(ctx *lowwater.KeyedContext[int], e event, _ *lowwater.Collector[string]) error {
	ctx.RegisterEventTimeTimer(e.At - e.At%size.Milliseconds() + size.Milliseconds() - 1)
	return nil
}

func (r *ruled) ProcessBroadcast(_ *lowwater.KeyedBroadcastContext[int], e event, _ *lowwater.Collector[string]) error {
	start := e.At - e.At%size.Milliseconds()
	n, _ := r.broadcast.Get(start)
	r.broadcast.Put(start, n+1)
	return nil
}

func (r *ruled) OnTimer(ctx *lowwater.TimerContext[int], at int64, out *lowwater.Collector[string]) error {
	start := at + 1 - size.Milliseconds()
	n, _ := r.broadcast.Get(start)
	out.Emit(line("ruled", ctx.Key(), start, n))
	return nil
}

// reference is what the job must make visible.
func (s *shaped) reference() (all []string) {
	a, b := s.all(), s.other.all()
	sliding, connected, ruled, rules := map[[2]int64]int{}, map[[2]int64]int{}, map[[2]int64]bool{}, map[int64]int{}
	times := map[int][]int64{}
	for i, e := range slices.Concat(a, a, b) {
		for start := e.At - e.At%slide.Milliseconds(); start > e.At-size.Milliseconds(); start -= slide.Milliseconds() {
			sliding[[2]int64{int64(e.Key), start}]++
		}
		times[e.Key] = append(times[e.Key], e.At)
		bucket := [2]int64{int64(e.Key), e.At - e.At%size.Milliseconds()}
		switch {
		case i < len(a):
			ruled[bucket] = true
			connected[bucket]++
		case i >= 2*len(a):
			rules[bucket[1]]++
			connected[bucket] += 10
		}
	}
	for at, n := range sliding {
		all = append(all, line("sliding", int(at[0]), at[1], n))
	}
	for at, n := range connected {
		all = append(all, line("process", int(at[0]), at[1], n))
	}
	for at := range ruled {
		all = append(all, line("ruled", int(at[0]), at[1], rules[at[1]]))
	}
	for key, at := range times {
		slices.Sort(at)
		first := 0
		for i := range at {
			if i+1 == len(at) || at[i+1]-at[i] > gap.Milliseconds() {
				all = append(all, session(key, at[first], at[i]+gap.Milliseconds(), i+1-first))
				first = i + 1
			}
		}
	}
	for _, x := range a {
		for _, y := range b {
			if d := time.Duration(y.At-x.At) * time.Millisecond; x.Key == y.Key && -near <= d && d <= near {
				all = append(all, line("joined", x.Key, x.At, int(y.At)))
			}
		}
	}
	slices.Sort(all)
	return all
}

// What interrupts a job does not show whatever its shape.
func TestShapes(t *testing.T) {
	var all seen
	trials := *seeds / 3
	t.Cleanup(func() { all.check(t, trials) })
	for i := range uint64(trials) {
		seed := *first + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				trial := newShaped(seed)
				l := newLedger(trial.trial)
				if err := trial.run(t, func(env *lowwater.Environment) { trial.build(env, l) }); err != nil {
					t.Fatal(err)
				}
				all.add(&trial.seen)
				slices.Sort(l.visible)
				if diff := cmp.Diff(trial.reference(), l.visible); diff != "" {
					t.Errorf("seed %d (run with -seeds 3 -seed %d), -want +got:\n%s", seed, seed, diff)
				}
			})
		})
	}
}
