package windowed

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/window"
)

// tally is an accumulator that is changed where it lies.
type tally struct {
	Sum    int64
	Values map[int32]int64
}

type tallies struct{}

func (tallies) New() *tally { return &tally{Values: map[int32]int64{}} }

func (tallies) Add(t *tally, e element) *tally {
	t.Sum += int64(e.Value)
	t.Values[e.Value]++
	return t
}

func (tallies) Merge(a, b *tally) *tally {
	a.Sum += b.Sum
	for v, n := range b.Values {
		a.Values[v] += n
	}
	return a
}

func (tallies) Result(t *tally) string { return fmt.Sprint(t.Sum, t.Values) }

// A snapshot holds what there was when it was taken, although accumulators are changed in
// place, fired and given up while it is written. The race detector says whether anyone
// looks at what is being changed.
func TestSnapshotsOfWhatIsChangedMeanwhile(t *testing.T) {
	for _, a := range []window.Assigner{
		window.Tumbling(100 * time.Millisecond),
		window.Sliding(100*time.Millisecond, 10*time.Millisecond),
		window.Session(30 * time.Millisecond),
	} {
		for _, general := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v general %t", a, general), func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				random := rand.New(rand.NewPCG(seed, 0))
				build := func() operator.Operator {
					o := Options{Assigner: a, AllowedLateness: 20}
					return AggregateProcess(Spec[string, element]{Options: o, State: general}, tallies{}, single(func(s string) any { return s }))
				}
				f := newFleet(t, build)
				var now int64
				work := func(rounds int) {
					for range rounds {
						now += 7
						var records []timed
						for range 100 {
							records = append(records, timed{element{fmt.Sprint(random.IntN(500)), int32(random.IntN(5))}, now - random.Int64N(90), 0})
						}
						must(t, f.subtasks[0].process(records...))
						f.watermark = now - 60
						must(t, f.subtasks[0].op.Watermark(f.watermark))
					}
				}
				end := func() []string {
					f.subtasks[0].take()
					must(t, f.subtasks[0].op.Watermark(1<<40))
					var panes []string
					for _, r := range f.subtasks[0].take().main {
						panes = append(panes, fmt.Sprint(r.Value))
					}
					slices.Sort(panes)
					return panes
				}
				work(20)
				before, at := f.snapshots(t), f.watermark
				must(t, before[0].Finish()) // while nothing happens
				during := f.snapshots(t)
				finished := make(chan error)
				go func() { finished <- during[0].Finish() }()
				work(20)
				must(t, <-finished)

				f.watermark = at
				must(t, f.restart(t, before, 1))
				want := end()
				f.watermark = at
				must(t, f.restart(t, during, 1))
				if diff := cmp.Diff(want, end()); diff != "" || len(want) == 0 {
					t.Errorf("seed %d: %d panes (-written at once +written meanwhile):\n%s", seed, len(want), diff)
				}
			})
		}
	}
}

// snapshotOf returns a finished snapshot of an operator after some records.
func snapshotOf(t *testing.T, op operator.Operator, records ...timed) []*snapshottest.Snapshot {
	t.Helper()
	f := newFleet(t, func() operator.Operator { return op })
	must(t, f.subtasks[0].process(records...))
	taken := f.snapshots(t)
	must(t, taken[0].Finish())
	return taken
}

// reopen opens an operator with what a snapshot has.
func reopen(t *testing.T, op operator.Operator, taken []*snapshottest.Snapshot) (*harness, error) {
	t.Helper()
	shares, err := snapshottest.Readers(taken, 1, maxParallelism)
	must(t, err)
	f := &fleet{build: func() operator.Operator { return op }, hash: hasher(t)}
	if err := f.open([]snapshot.Reader{shares[0]}); err != nil {
		return nil, err
	}
	t.Cleanup(func() { f.close(t) })
	return f.subtasks[0], nil
}

func listsOf(a window.Assigner) operator.Operator {
	return Process(specOf[element](Options{Assigner: a}), listFunction)
}

func TestStateOfOtherWindowsIsRefused(t *testing.T) {
	tumbling, sliding := window.Tumbling(time.Second), window.Sliding(2*time.Second, time.Second)
	count := window.Count[element]()
	text := single(func(n int64) any { return n })
	aggregate := func(a window.Assigner) operator.Operator {
		return AggregateProcess(specOf[element](Options{Assigner: a}), count, text)
	}
	withTrigger := Spec[string, element]{Options: Options{Assigner: tumbling}, Trigger: window.ForElements[element](window.CountTrigger(3))}
	names := window.Fold(func() string { return "" },
		func(acc string, e element) string { return acc + e.Key }, func(a, b string) string { return a + b })
	for _, test := range []struct {
		name     string
		from, to operator.Operator
		want     []string
	}{
		{"another size", listsOf(tumbling), listsOf(window.Tumbling(2 * time.Second)),
			[]string{"window.Tumbling(1s)", "window.Tumbling(2s)", "another uid"}},
		{"another assigner", listsOf(tumbling), listsOf(window.Session(time.Second)),
			[]string{"window.Tumbling(1s)", "window.Session(1s)"}},
		{"a trigger", listsOf(tumbling), Process(withTrigger, listFunction),
			[]string{"a table per window", "windows with timers", "a trigger"}},
		{"order", AggregateProcess(specOf[element](Options{Assigner: sliding}), window.InArrivalOrder(count), text), aggregate(sliding),
			[]string{"a table per window", "a table per slice of time"}},
		{"an aggregation of all elements", listsOf(tumbling), aggregate(tumbling),
			[]string{`part "windows"`, "accumulator", "element", "another uid"}},
		{"another accumulator", aggregate(tumbling),
			AggregateProcess(specOf[element](Options{Assigner: tumbling}), names, single(func(s string) any { return s })),
			[]string{`part "windows"`, "accumulator", "long", "string"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			taken := snapshotOf(t, test.from, at("a", 1, 2)...)
			_, err := reopen(t, test.to, taken)
			if err == nil {
				t.Fatal("restored")
			}
			for _, want := range append(test.want, "checkpoint 1 cannot be restored") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
		})
	}
}

// What cannot be stored is an error when the operator opens, but only with checkpoints.
func TestWhatCannotBeStored(t *testing.T) {
	hidden := window.Fold(func() struct{ n int } { return struct{ n int }{} },
		func(acc struct{ n int }, _ element) struct{ n int } { return acc }, func(a, b struct{ n int }) struct{ n int } { return a })
	channels := Process(Spec[string, chan int]{Options: Options{Assigner: window.Tumbling(time.Second)}},
		func(*Context[string], *operator.Emitter[int]) func(iter.Seq[chan int]) error {
			return func(iter.Seq[chan int]) error { return nil }
		})
	for _, test := range []struct {
		op   operator.Operator
		want string
	}{
		{Aggregate[string](specOf[element](Options{Assigner: window.Session(time.Second)}), hidden), "window accumulator"},
		{channels, "elements of windows"},
	} {
		h := openHarness(t, test.op)
		h.adjust = func(rt *operator.Runtime) { rt.Checkpointing = true }
		if err := test.op.Open(h.runtime(), h.out); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want an error about the %s", err, test.want)
		}
	}
}

// A restored operator closes its windows by silence, too, and those that silence had
// closed stay so.
func TestSilenceAfterARestart(t *testing.T) {
	for _, a := range []window.Assigner{window.Tumbling(ms(10)), window.Sliding(ms(10), ms(5)), window.Session(ms(4))} {
		f := newFleet(t, func() operator.Operator { return silentCount(a, 0) })
		must(t, f.subtasks[0].process(at("a", 1)...))
		must(t, f.subtasks[0].clock.set(1000))
		closed, _ := fired(f.subtasks[0])
		must(t, f.subtasks[0].process(at("a", 501)...))
		f.now = 1500
		must(t, f.restart(t, f.snapshots(t), 1))
		h := f.subtasks[0]
		must(t, h.process(at("a", 1)...))
		h.expect(t, 1)
		must(t, h.clock.set(2499))
		h.expect(t, 0)
		must(t, h.clock.set(2500))
		if again, late := fired(h); len(again) != len(closed) || len(closed) == 0 || late > 0 {
			t.Errorf("%v: silence closed %q before the restart and %q after it", a, closed, again)
		}
	}
}

// With another parallelism windows that silence has closed in some subtasks only are open
// again.
func TestSilenceAndAnotherParallelism(t *testing.T) {
	f := newFleet(t, func() operator.Operator { return silentCount(window.Tumbling(ms(10)), 0) })
	must(t, f.restart(t, f.snapshots(t), 2))
	key := map[int]string{}
	for n := 0; len(key) < 2; n++ {
		k := fmt.Sprint(n)
		key[f.owner(k)] = k
	}
	silent, busy := f.subtasks[0], f.subtasks[1]
	must(t, silent.process(at(key[0], 1)...))
	must(t, silent.clock.set(1000))
	silent.expect(t, 0, key[0]+" [0,10) 1 closed by silence")
	must(t, busy.process(at(key[1], 2)...))
	must(t, f.restart(t, f.snapshots(t), 1))
	h := f.subtasks[0]
	must(t, h.process(at(key[1], 3)...))
	must(t, h.op.Watermark(20))
	h.expect(t, 0, key[1]+" [0,10) 2 on-time")
}

// A subtask's staggered windows stay where they are.
func TestStaggerSurvivesARestart(t *testing.T) {
	for _, general := range []bool{false, true} {
		a := window.Tumbling(ms(1000)).Stagger(window.StaggerRandom)
		build := func() operator.Operator {
			return Process(Spec[string, element]{Options: Options{Assigner: a}, State: general}, listFunction)
		}
		f := newFleet(t, build)
		must(t, f.subtasks[0].process(at("a", 5000)...))
		must(t, f.restart(t, f.snapshots(t), 1))
		must(t, f.subtasks[0].process(at("a", 5000)...))
		must(t, f.subtasks[0].op.Watermark(10_000))
		if n := len(f.subtasks[0].take().main); n != 1 {
			t.Errorf("general %t: one instant before and after a restart is in %d windows", general, n)
		}
	}
}

// pastTimer is a trigger with a timer for a time that has passed, which is due with the
// next watermark.
type pastTimer struct{ window.Trigger }

func (t pastTimer) OnElement(c window.TriggerContext, timestamp int64, w window.TimeWindow) window.TriggerResult {
	c.RegisterEventTimeTimer(1)
	return window.Continue
}

func (t pastTimer) OnEventTime(_ window.TriggerContext, at int64, _ window.TimeWindow) window.TriggerResult {
	if at == 1 {
		return window.Fire
	}
	return window.Continue
}

// A restart tells a watermark again that was there before; it sets nothing off.
func TestTimersInThePastWaitForTheNextWatermark(t *testing.T) {
	f := newFleet(t, func() operator.Operator {
		trigger := window.ForElements[element](pastTimer{window.NeverTrigger()})
		return Process(Spec[string, element]{Options: Options{Assigner: window.Tumbling(ms(100))}, Trigger: trigger}, listFunction)
	})
	f.watermark = 50
	must(t, f.subtasks[0].op.Watermark(50))
	must(t, f.subtasks[0].process(at("a", 60)...))
	must(t, f.restart(t, f.snapshots(t), 1))
	must(t, f.subtasks[0].op.Watermark(51))
	if n := len(f.subtasks[0].take().main); n != 1 {
		t.Errorf("fired %d times at the next watermark, want once", n)
	}
}

// counted is the state of a function in another version of the job.
type counted struct{ Firings int64 }

// States of functions keep their values: also one that the job does not use for a while,
// and one that has got more fields.
func TestWindowStatesAreRestored(t *testing.T) {
	keep := func(use func(c *Context[string]) (string, error)) func() operator.Operator {
		return func() operator.Operator {
			return Process(Spec[string, element]{Options: Options{Assigner: window.Tumbling(ms(10))}, State: true},
				func(c *Context[string], out *operator.Emitter[string]) func(iter.Seq[element]) error {
					return func(iter.Seq[element]) error {
						text, err := use(c)
						out.Append(text, c.Timestamp, 0)
						return err
					}
				})
		}
	}
	first := window.NewState[struct{ Firings int32 }]("firings")
	count := keep(func(c *Context[string]) (string, error) {
		s, err := c.KeyState()
		if err == nil {
			v, _ := first.Get(s)
			v.Firings++
			first.Set(s, v)
		}
		return "", err
	})
	ignore := keep(func(c *Context[string]) (string, error) { return "ignored", nil })
	second, text := window.NewState[counted]("firings"), window.NewState[string]("firings")
	show := keep(func(c *Context[string]) (string, error) {
		s, err := c.KeyState()
		v, ok := second.Get(s)
		return fmt.Sprint(v.Firings, ok), err
	})
	misread := keep(func(c *Context[string]) (string, error) {
		s, err := c.KeyState()
		v, _ := text.Get(s)
		return v, err
	})

	f := newFleet(t, count)
	fire := func(at int64) ([]string, error) {
		must(t, f.subtasks[0].process(timed{element: element{Key: "a"}, Timestamp: at}))
		f.watermark = at + 20
		err := f.subtasks[0].op.Watermark(f.watermark)
		main, _ := fired(f.subtasks[0])
		return main, err
	}
	for _, at := range []int64{0, 100} {
		_, err := fire(at)
		must(t, err)
	}
	f.build = ignore
	must(t, f.restart(t, f.snapshots(t), 1))
	_, err := fire(200)
	must(t, err)
	taken := f.snapshots(t)
	must(t, taken[0].Finish())

	f.build = show
	must(t, f.restart(t, taken, 1))
	got, err := fire(300)
	must(t, err)
	if want := []string{"2 true"}; !slices.Equal(got, want) {
		t.Errorf("the function found %q, want %q", got, want)
	}

	f.build = misread
	must(t, f.restart(t, taken, 1))
	if _, err = fire(400); err == nil || !strings.Contains(err.Error(), `window state "firings" from checkpoint 1`) {
		t.Errorf("a state of another type: %v", err)
	}
}

// Streams windowed as a whole have a key without contents, whose hash is always 0.
func TestWindowsOfAllKeysAreRestored(t *testing.T) {
	type all struct{}
	build := func() operator.Operator {
		return Aggregate[all](Spec[all, int64]{Options: Options{Assigner: window.Tumbling(ms(10))}}, window.Count[int64]())
	}
	out := &discard{}
	process := func(op operator.Operator) {
		b := exchange.NewKeyedPool[all, int64]().Get()
		b.Append(1, 5, connector.MakeOrigin(1, 0))
		b.Keys, b.Hashes = append(b.Keys, all{}), append(b.Hashes, 0)
		must(t, op.Process(0, b))
	}
	op := build()
	h := openHarness(t, silentCount(window.Tumbling(ms(10)), 0)) // for its runtime
	h.adjust = func(rt *operator.Runtime) { rt.Checkpointing = true }
	must(t, op.Open(h.runtime(), out))
	process(op)
	taken, err := snapshottest.Take(1, op.(operator.Stateful).Snapshot)
	must(t, err)
	must(t, taken.Finish())
	shares, err := snapshottest.Readers([]*snapshottest.Snapshot{taken}, 1, maxParallelism)
	must(t, err)
	h.adjust = func(rt *operator.Runtime) { rt.Restored = shares[0] }
	op = build()
	must(t, op.Open(h.runtime(), out))
	process(op)
	must(t, op.Watermark(20))
	if out.records != 1 {
		t.Errorf("%d panes, want one with both records", out.records)
	}
}
