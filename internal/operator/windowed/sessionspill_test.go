package windowed

import (
	"fmt"
	"math"
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

// drawSessions draws a scenario for the operator of sessions, with more keys than the others
// have.
func drawSessions(t *rapid.T) scenario {
	s := drawScenario(t)
	gap := millis(rapid.Int64Range(1, 20).Draw(t, "gap"))
	s.assigner = window.Session(gap)
	if rapid.IntRange(0, 3).Draw(t, "sessions by processing time if 0") == 0 {
		s.assigner = window.Session(gap).ProcessingTime()
	}
	for _, step := range s.steps {
		for i := range step.records {
			if n := rapid.IntRange(0, 6).Draw(t, "another key"); n > 0 {
				step.records[i].Key = fmt.Sprint("key ", n)
			}
		}
	}
	return s
}

// sessionsOf are the ways to build the operator that a test runs on.
func sessionsOf(r *rapid.T, o Options) func() operator.Operator {
	if rapid.Bool().Draw(r, "aggregates") {
		return func() operator.Operator { return aggregateLists(o, concat{}) }
	}
	return func() operator.Operator { return Process(specOf[element](o), listFunction) }
}

// Sessions with budgets of which some hold nothing give what they give without, with
// checkpoints and restarts with another budget and parallelism at any moment.
func TestSpillingSessionsChangesNothing(t *testing.T) {
	var written, read int64
	rapid.Check(t, func(r *rapid.T) {
		s := drawSessions(r)
		build := sessionsOf(r, s.options())
		whole := openHarness(t, build())
		f := newFleetWith(t, build, func() int64 {
			return rapid.SampledFrom([]int64{1, 1, 300, 1000, 0}).Draw(r, "budget")
		})
		restartsDoNotMatter(t, r, s, whole, f, true)
		for _, h := range f.subtasks {
			written += h.metrics.State.SpillWrites.Value()
			read += h.metrics.State.SpillReads.Value()
		}
		f.close(t) // many stores at once are many open files
		f.subtasks = nil
	})
	if written == 0 || read == 0 {
		t.Errorf("%d keys written and %d read, want some", written, read)
	}
}

// Without restarts not even the order of what comes out changes.
func TestSpillingSessionsKeepsTheirOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawSessions(r)
		spillInTheSameOrder(t, r, s, sessionsOf(r, s.options()))
	})
}

// spillInTheSameOrder runs a scenario on an operator without a budget and on one that keeps
// next to nothing in memory.
func spillInTheSameOrder(t *testing.T, r *rapid.T, s scenario, build func() operator.Operator) {
	whole := openHarness(t, build())
	h := openSpilling(t, build(), nil)
	for i, step := range s.steps {
		want, wantLate := whole.apply(r, step, false, 1024)
		got, gotLate := h.apply(r, step, false, 1024)
		if diff := cmp.Diff([][]string{want, wantLate}, [][]string{got, gotLate}); diff != "" {
			r.Fatalf("step %d of %v, lateness %d (-in memory +spilled):\n%s", i, s.assigner, s.lateness, diff)
		}
	}
	must(t, h.clock.set(1<<40))
	if o, ok := h.op.(interface{ nothingLeft() string }); ok && o.nothingLeft() != "" {
		r.Fatal(o.nothingLeft())
	}
	must(t, h.closeNow())
}

// nothingLeft says what an operator still has, though it should have nothing.
func (o *sessions[K, T, A]) nothingLeft() string {
	onDisk, times := 0, 0
	if s := o.spilled; s != nil {
		times = len(s.ends)
		if err := s.keys.EachOnDisk(func([]byte) error { onDisk++; return nil }); err != nil {
			return err.Error()
		}
	}
	if o.live == 0 && onDisk == 0 && o.keys.Len() == 0 && times == 0 {
		return ""
	}
	return fmt.Sprintf("left of sessions that are gone: %d sessions, %d keys in memory and %d on disk, %d times", o.live, o.keys.Len(), onDisk, times)
}

// Sessions are whole on disk, in memory and in snapshots, while these are written and keys
// move.
func TestSpillingSessionsWhileSnapshotsAreWritten(t *testing.T) {
	spillWhileSnapshotsAreWritten(t, window.Session(ms(30)), map[string]func(Options) operator.Operator{
		"aggregates": func(o Options) operator.Operator {
			return AggregateProcess(specOf[element](o), tallies{}, single(func(s string) any { return s }))
		},
		"records": func(o Options) operator.Operator { return Process(specOf[element](o), listFunction) },
	})
}

// watcher is an Output that counts records, and looks at something whenever it gets some.
type watcher struct {
	discard
	look func()
}

func (w *watcher) Emit(p exchange.Payload) error {
	w.look()
	return w.discard.Emit(p)
}

// Sessions keep to their budget, also while a watermark ends all of them.
func TestSpilledSessionsKeepTheBudget(t *testing.T) {
	const budget, keys = 512 << 10, 20_000
	h := openSpilling(t, listsOf(window.Session(time.Second)), func(rt *operator.Runtime) { rt.StateMemory = budget })
	must(t, h.op.Close())
	o := listsOf(window.Session(time.Second)).(*sessions[string, element, []element])
	h.op = o
	most, numbers := 0, &h.metrics.State
	out := &watcher{look: func() { most = max(most, o.keys.Len()) }}
	must(t, o.Open(h.runtime(), out))
	for i := range keys / 100 {
		var records []timed
		for n := range 100 {
			records = append(records, timed{element{fmt.Sprint("key ", 100*i+n), int32(n)}, int64(i), 0})
		}
		must(t, h.process(records...))
		if n := numbers.MemoryBytes.Value(); n > budget {
			t.Fatalf("%d bytes in memory after %d keys, with a budget of %d", n, 100*(i+1), budget)
		}
	}
	inMemory, before := o.keys.Len(), numbers.SpillReads.Value()
	if n := numbers.SpilledEntries.Value(); n < keys*8/10 || n+int64(inMemory) != keys {
		t.Errorf("%d of %d keys are on disk, and %d in memory", n, keys, inMemory)
	}
	must(t, o.Watermark(1<<40))
	if out.records != keys {
		t.Errorf("%d sessions fired, want %d", out.records, keys)
	}
	if most > inMemory*9/8+settleSlack { // an eighth is brought in together
		t.Errorf("%d keys were in memory at a time while sessions fired, %d before", most, inMemory)
	}
	if read := numbers.SpillReads.Value() - before; read < keys*8/10 || read > keys*11/10 {
		t.Errorf("%d keys were read for %d sessions", read, keys)
	}
	if left := o.nothingLeft(); left != "" {
		t.Error(left)
	}
}

// settleSlack is how many keys may come into memory between two looks at the budget.
const settleSlack = 256

// A record that is late by itself is taken by a session in flight that is on disk.
func TestLateRecordFindsSessionOnDisk(t *testing.T) {
	h := openSpilling(t, listsOf(window.Session(ms(10))), nil)
	must(t, h.process(timed{element{"a", 1}, 100, 0}, timed{element{"b", 2}, 20, 0}))
	if n := h.metrics.State.SpilledEntries.Value(); n != 2 {
		t.Fatalf("%d keys on disk, want 2", n)
	}
	must(t, h.op.Watermark(102))
	must(t, h.process(timed{element{"a", 3}, 91, 0}, timed{element{"a", 4}, 80, 0}, timed{element{"c", 5}, 80, 0}))
	if n, m := h.metrics.State.SpilledEntries.Value(), h.metrics.NumLateRecordsDropped.Value(); n != 1 || m != 2 {
		t.Errorf("%d keys on disk and %d records dropped, want 1 and 2", n, m)
	}
	must(t, h.op.Watermark(200))
	if diff := cmp.Diff([]string{"b [20, 30) [2] on-time", "a [91, 110) [1 3] on-time"}, h.panes()); diff != "" {
		t.Error(diff)
	}
}

// Silence closes sessions that are on disk, but not those that begin later.
func TestSilenceClosesSessionsOnDisk(t *testing.T) {
	o := Options{Assigner: window.Session(ms(10)), CloseAfterSilence: 1000}
	h := openSpilling(t, Process(specOf[element](o), listFunction), nil)
	h.clock.now = 100
	must(t, h.process(timed{element{"a", 1}, 100, 0}, timed{element{"b", 2}, 20, 0}, timed{element{"c", 3}, 9000, 0}))
	must(t, h.clock.set(1100))
	if diff := cmp.Diff([]string{"b [20, 30) [2] closed by silence", "a [100, 110) [1] closed by silence"}, h.panes()); diff != "" {
		t.Error(diff)
	}
	if n := h.metrics.State.SpilledEntries.Value(); n != 1 {
		t.Errorf("%d keys on disk, want 1", n)
	}
}

// A snapshot is the same with a budget and without.
func TestSnapshotsOfSpilledSessions(t *testing.T) {
	take := func(memory int64) []string {
		op := listsOf(window.Session(ms(10)))
		h := openSpilling(t, op, func(rt *operator.Runtime) { rt.StateMemory, rt.Checkpointing = memory, true })
		for i := range int32(12) {
			must(t, h.process(timed{element{fmt.Sprint(i % 3), i}, int64(i/6) * 100, 0}))
		}
		taken, err := snapshottest.Take(1, op.(operator.Stateful).Snapshot)
		must(t, err)
		must(t, taken.Finish())
		entries, _ := taken.Entries(windowsPart)
		var all []string
		for _, e := range entries {
			all = append(all, fmt.Sprintf("%d %q", e.Group, e.Data))
		}
		slices.Sort(all)
		return all
	}
	plain, tiny := take(0), take(1)
	if diff := cmp.Diff(plain, tiny); diff != "" || len(plain) != 6 {
		t.Errorf("%d sessions (-without a budget +on disk):\n%s", len(plain), diff)
	}
}

// Keys that are the same but have other bits have the same sessions, on disk too.
func TestSpilledSessionsOfFloatKeys(t *testing.T) {
	op := Aggregate(Spec[float64, element]{Options: Options{Assigner: window.Session(ms(10))}}, window.Count[element]())
	h := openSpilling(t, op, nil)
	hash, err := keyed.HasherFor[float64]()
	must(t, err)
	pool := exchange.NewKeyedPool[float64, element]()
	for i, key := range []float64{0, math.NaN(), math.Copysign(0, -1), math.Float64frombits(0xfff8000000000009), 0} {
		b := pool.Get()
		b.Append(element{Value: int32(i)}, int64(i), 0)
		b.Keys, b.Hashes = append(b.Keys, key), append(b.Hashes, hash(key))
		must(t, op.Process(0, b))
	}
	if n := h.metrics.State.SpilledEntries.Value(); n != 2 {
		t.Errorf("%d keys on disk, want 2", n)
	}
}

// A disk that fails ends the run with an error that names the key, the directory and what to
// do.
func TestErrorsOfTheDiskOfSessions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	h := openSpilling(t, listsOf(window.Session(time.Second)), func(rt *operator.Runtime) { rt.StateDir = file })
	err := h.process(at("a", 1)...)
	for _, part := range []string{"sessions", file, "WithStateMemory"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}
