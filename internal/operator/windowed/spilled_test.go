package windowed

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/window"
)

// drawSpillable draws a scenario for the operators that spill.
func drawSpillable(t *rapid.T) scenario {
	s := drawScenario(t)
	size := rapid.Int64Range(1, 60).Draw(t, "size of panes")
	switch rapid.IntRange(0, 4).Draw(t, "panes") {
	case 0:
		s.assigner = window.Tumbling(millis(size)).ProcessingTime()
	case 1:
		s.assigner = window.GlobalEndOfStream()
	default:
		s.assigner = window.Tumbling(millis(size))
	}
	return s
}

// Operators with budgets of which some hold nothing give what one without a budget does,
// in panes whose contents are in the order of arrival, with checkpoints and restarts with
// another budget and parallelism at any moment.
func TestSpillingChangesNothing(t *testing.T) {
	var written, read int64
	rapid.Check(t, func(r *rapid.T) {
		s := drawSpillable(r)
		build := func() operator.Operator { return Process(specOf[element](s.options()), listFunction) }
		if rapid.Bool().Draw(r, "aggregates") {
			build = func() operator.Operator { return aggregateLists(s.options(), concat{}) }
		}
		whole := openHarness(t, build())
		f := newFleetWith(t, build, func() int64 {
			return rapid.SampledFrom([]int64{1, 1, 100, 400, 2000, 0}).Draw(r, "budget")
		})
		restartsDoNotMatter(t, r, s, whole, f, false)
		for _, h := range f.subtasks {
			written += h.metrics.State.SpillWrites.Value()
			read += h.metrics.State.SpillReads.Value()
		}
		f.close(t) // many stores at once are many open files
		f.subtasks = nil
	})
	if written == 0 || read == 0 {
		t.Errorf("%d runs written and %d read, want some", written, read)
	}
}

// Accumulators that are changed where they lie are whole on disk, in memory and in
// snapshots, while these are written and contents move. The race detector says whether
// anyone looks at what is being changed.
func TestSpillingWhileSnapshotsAreWritten(t *testing.T) {
	for name, assigner := range map[string]window.Assigner{
		"tumbling": window.Tumbling(ms(100)), "sliding": window.Sliding(ms(100), ms(25)),
	} {
		t.Run(name, func(t *testing.T) {
			spillWhileSnapshotsAreWritten(t, assigner, map[string]func(Options) operator.Operator{
				"aggregates": func(o Options) operator.Operator {
					return AggregateProcess(specOf[element](o), tallies{}, single(func(s string) any { return s }))
				},
				"records": func(o Options) operator.Operator { return Process(specOf[element](o), listFunction) },
			})
		})
	}
}

// spillWhileSnapshotsAreWritten tests operators with windows of an assigner.
func spillWhileSnapshotsAreWritten(t *testing.T, assigner window.Assigner, builds map[string]func(Options) operator.Operator) {
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			build := func() operator.Operator {
				return build(Options{Assigner: assigner, AllowedLateness: 20})
			}
			memory := int64(6000)
			f := newFleetWith(t, build, func() int64 { return memory })
			whole := openHarness(t, build())
			var now int64
			var got, want []string
			collect := func(to *[]string, h *harness) {
				for _, r := range h.take().main {
					*to = append(*to, fmt.Sprint(r.Value))
				}
			}
			work := func(rounds int, with ...*harness) {
				for range rounds {
					now += 7
					var records []timed
					for range 100 {
						records = append(records, timed{element{fmt.Sprint(random.IntN(500)), int32(random.IntN(5))}, now - random.Int64N(90), 0})
					}
					f.watermark = now - 60
					for _, h := range with {
						must(t, h.process(records...))
						must(t, h.op.Watermark(f.watermark))
					}
				}
			}
			for range 4 {
				work(20, whole, f.subtasks[0])
				collect(&got, f.subtasks[0])
				if n := f.subtasks[0].metrics.State.SpilledEntries.Value(); n == 0 {
					t.Error("nothing is on disk")
				}
				during, at := f.snapshots(t), now
				watermark := f.watermark
				finished := make(chan error)
				go func() { finished <- during[0].Finish() }()
				work(20, f.subtasks[0])
				must(t, <-finished)
				now, f.watermark = at, watermark
				memory += 3000
				must(t, f.restart(t, during, 1))
			}
			for _, h := range []*harness{whole, f.subtasks[0]} {
				must(t, h.op.Watermark(1<<40))
			}
			collect(&want, whole)
			collect(&got, f.subtasks[0])
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || len(want) < 1000 {
				t.Errorf("seed %d: %d panes (-in memory +spilled):\n%s", seed, len(want), diff)
			}
			if n := f.subtasks[0].metrics.State.SpilledEntries.Value(); n != 0 {
				t.Errorf("%d runs are left of windows that are gone", n)
			}
		})
	}
}

// openSpilling opens an operator that keeps next to nothing in memory.
func openSpilling(t *testing.T, op operator.Operator, adjust func(*operator.Runtime)) *harness {
	h := openHarness(t, Process(specOf[element](Options{Assigner: window.Tumbling(time.Second)}), listFunction)) // for its runtime
	h.op = op
	h.adjust = func(rt *operator.Runtime) {
		rt.StateMemory, rt.StateDir = 1, t.TempDir()
		if adjust != nil {
			adjust(rt)
		}
	}
	must(t, op.Open(h.runtime(), h.out))
	return h
}

// closeNow closes the operator of a harness before the test ends.
func (h *harness) closeNow() error {
	err := h.op.Close()
	h.adjust = nil
	h.op = listsOf(window.Global()) // is closed in its place
	return errors.Join(err, h.op.Open(h.runtime(), h.out))
}

// A late record that fires its window again finds what is on disk of its key, which is then
// in one place only.
func TestLateRecordsFindWhatIsOnDisk(t *testing.T) {
	h := openSpilling(t, Process(specOf[element](Options{Assigner: window.Tumbling(ms(10)), AllowedLateness: 100}), listFunction), nil)
	for i := range int32(3) {
		must(t, h.process(timed{element{"a", i}, 1, 0}, timed{element{"b", i}, 1, 0}))
	}
	numbers := &h.metrics.State
	if n := numbers.SpilledEntries.Value(); n != 6 {
		t.Errorf("%d runs on disk, want 3 for each of 2 keys", n)
	}
	must(t, h.op.Watermark(20))
	must(t, h.process(timed{element{"a", 3}, 2, 0}, timed{element{"a", 4}, 2, 0}, timed{element{"c", 5}, 2, 0}))
	want := []string{
		"b [0, 10) [0 1 2] on-time", "a [0, 10) [0 1 2] on-time", // in the order of their key groups
		"a [0, 10) [0 1 2 3] late", "a [0, 10) [0 1 2 3 4] late", "c [0, 10) [5] late",
	}
	if diff := cmp.Diff(want, h.panes()); diff != "" {
		t.Error(diff)
	}
	if n := numbers.SpilledEntries.Value(); n != 5 {
		t.Errorf("%d runs on disk, want 1 of a, 3 of b, 1 of c", n)
	}
	if n, m := numbers.SpillWrites.Value(), numbers.MemoryBytes.Value(); n != 8 || m != 0 {
		t.Errorf("%d runs were written and %d bytes are in memory, want 8 and 0", n, m)
	}
	must(t, h.op.Watermark(200))
	if n := numbers.SpilledEntries.Value(); n != 0 {
		t.Errorf("%d runs are left of a window that is gone", n)
	}
	view := h.op.(*panes[string, element, []element]).spilled.store.View()
	for e, err := range view.From(nil, nil) {
		t.Errorf("%q is left on disk: %v", e.Key, err)
	}
	must(t, view.Close())
}

// A budget that is not needed leaves no trace in a snapshot, and one that is adds a part.
func TestSnapshotsOfWhatIsSpilled(t *testing.T) {
	take := func(memory int64) *snapshottest.Snapshot {
		op := listsOf(window.Tumbling(time.Second))
		h := openSpilling(t, op, func(rt *operator.Runtime) { rt.StateMemory, rt.Checkpointing = memory, true })
		for i := range int32(10) {
			must(t, h.process(at(fmt.Sprint(i%3), 1)...))
		}
		taken, err := snapshottest.Take(1, op.(operator.Stateful).Snapshot)
		must(t, err)
		must(t, taken.Finish())
		return taken
	}
	plain, ample, tiny := take(0), take(1<<20), take(1)
	for _, part := range []string{layoutPart, windowsPart} {
		want, _ := plain.Entries(part)
		got, _ := ample.Entries(part)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("part %q (-without a budget +with one that is not needed):\n%s", part, diff)
		}
	}
	if _, ok := ample.Entries(runsPart); ok {
		t.Error("there is a part for runs, of which there are none")
	}
	runs, _ := tiny.Entries(runsPart)
	if left, _ := tiny.Entries(windowsPart); len(runs) != 10 || len(left) != 0 {
		t.Errorf("%d runs and %d entries, want 10 and 0", len(runs), len(left))
	}
}

// Keys that are the same but have other bits fire once, with what is on disk of each.
func TestSpilledFloatKeys(t *testing.T) {
	op := Process(Spec[float64, element]{Options: Options{Assigner: window.Tumbling(ms(10))}},
		func(c *Context[float64], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
			return func(elements iter.Seq[element]) error {
				values := []int32{}
				for e := range elements {
					values = append(values, e.Value)
				}
				out.Append(firing{fmt.Sprint(math.Abs(c.Key)), values, c.Window, c.Timing}, c.Timestamp, 0)
				return nil
			}
		})
	h := openSpilling(t, op, nil)
	hash, err := keyed.HasherFor[float64]()
	must(t, err)
	pool := exchange.NewKeyedPool[float64, element]()
	for i, key := range []float64{0, math.NaN(), math.Copysign(0, -1), math.Float64frombits(0xfff8000000000009), 0} {
		b := pool.Get()
		b.Append(element{Value: int32(i)}, 1, 0)
		b.Keys, b.Hashes = append(b.Keys, key), append(b.Hashes, hash(key))
		must(t, op.Process(0, b))
	}
	if n := h.metrics.State.SpilledEntries.Value(); n != 5 {
		t.Errorf("%d runs on disk, want 5", n)
	}
	must(t, op.Watermark(20))
	got := h.panes()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"0 [0, 10) [0 2 4] on-time", "NaN [0, 10) [1 3] on-time"}, got); diff != "" {
		t.Error(diff)
	}
}

// What must not be merged stays in memory.
func TestWhatIsNotSpilled(t *testing.T) {
	o := Options{Assigner: window.Tumbling(time.Second)}
	count := window.Count[element]()
	for _, test := range []struct {
		name string
		op   operator.Operator
		want bool
	}{
		{"aggregates", Aggregate(specOf[element](o), count), true},
		{"records", listsOf(o.Assigner), true},
		{"global", listsOf(window.Global()), true},
		{"in the order of arrival", Aggregate(specOf[element](o), window.InArrivalOrder(count)), false},
		{"float keys", Aggregate(Spec[struct{ At [2]float64 }, element]{Options: o}, count), true},
		{"sliding", listsOf(window.Sliding(time.Second, time.Millisecond)), true},
		{"cumulating", Aggregate(specOf[element](Options{Assigner: window.Cumulating(time.Second, time.Millisecond)}), count), true},
		{"sliding in the order of arrival", Aggregate(specOf[element](Options{Assigner: window.Sliding(time.Second, time.Millisecond)}), window.InArrivalOrder(count)), false},
		{"sessions", listsOf(window.Session(time.Second)), true},
		{"general", Process(Spec[string, element]{Options: o, State: true}, listFunction), true},
	} {
		if got := Spills(test.op); got != test.want {
			t.Errorf("%s: spills %t", test.name, got)
		}
	}
	h := openSpilling(t, aggregateLists(o, window.InArrivalOrder[element, []int32, []int32](concat{})), nil)
	must(t, h.process(at("a", 1)...))
	if n := h.metrics.State.SpillWrites.Value(); n != 0 {
		t.Errorf("%d runs of an aggregation in the order of arrival", n)
	}
}

// That windows do not fit is told once, with where they go.
func TestSpillingIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	dir := ""
	h := openSpilling(t, listsOf(window.Tumbling(time.Second)), func(rt *operator.Runtime) {
		rt.Logger, dir = slog.New(slog.NewTextHandler(&log, nil)), rt.StateDir
	})
	for i := range int64(5) {
		must(t, h.process(at("a", 1000*i)...))
	}
	must(t, h.closeNow())
	text := log.String()
	if n := strings.Count(text, "larger than its memory budget"); n != 1 {
		t.Errorf("told %d times: %s", n, text)
	}
	for _, part := range []string{dir, "budgetBytes=1", "bytesInMemory=", "WithStateMemory", "level=WARN"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left on disk: %v", left, err)
	}
}

// A disk that cannot be used ends the run with an error that names the directory: at once,
// or when it fails later.
func TestErrorsOfTheDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	check := func(err error, dir string) {
		t.Helper()
		for _, part := range []string{dir, "WithStateMemory"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v lacks %q", err, part)
			}
		}
	}
	h := openSpilling(t, listsOf(window.Tumbling(time.Second)), func(rt *operator.Runtime) { rt.StateDir = file })
	check(h.process(at("a", 1)...), file)

	dir := ""
	h = openSpilling(t, listsOf(window.Tumbling(time.Second)), func(rt *operator.Runtime) { dir = rt.StateDir })
	must(t, h.process(at("a", 1)...))
	stores, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	must(t, os.RemoveAll(stores[0]))
	long := strings.Repeat("x", 1<<16)
	for i := range 2000 {
		if err = h.process(timed{element{fmt.Sprint(i, long), 1}, 1, 0}); err != nil {
			break
		}
	}
	check(err, stores[0])
	_ = h.closeNow() // what the broken store says of its end is not the matter here
}

// Estimates follow what is there: pane by pane for accumulators that grow, exactly for lists
// of flat records.
func TestEstimatesOfSize(t *testing.T) {
	o := Options{Assigner: window.Tumbling(time.Second)}
	h := openSpilling(t, aggregateLists(o, concat{}), func(rt *operator.Runtime) { rt.StateMemory = math.MaxInt64 })
	for i := range int32(4000) {
		must(t, h.process(timed{element{"old", i}, 1, 0}, timed{element{fmt.Sprint(i), i}, 5000, 0}))
	}
	op := h.op.(*panes[string, element, []int32])
	s := op.spilled
	old, recent := float64(op.live[0].spilled.outside), float64(op.live[1].spilled.outside)
	if old < 6000 || recent > 20 { // 4000 numbers of up to 2 bytes; 1 number
		t.Errorf("%.0f and %.0f bytes for an accumulator", old, recent)
	}
	if n := s.bytes(op.live[1]); n < 4000*int64(s.sizes.fixed) || n > 4000*int64(s.sizes.fixed+30) {
		t.Errorf("%d bytes for 4000 keys in a table", n)
	}
}
