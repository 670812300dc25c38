package windowed

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/window"
)

// maxParallelism is the number of key groups in tests.
const maxParallelism = 128

// fleet is the subtasks of an operator with checkpoints.
type fleet struct {
	build     func() operator.Operator
	subtasks  []*harness
	hash      func(string) uint64
	watermark int64
	now       int64
	// memory, if it is set, returns the budget of the next subtask that is opened, and dir is
	// for what is more.
	memory func() int64
	dir    string
	// files are shared by the incremental ones of its snapshots; those of taken with an odd
	// number are.
	files snapshottest.Files
	taken int
}

func newFleet(t testing.TB, build func() operator.Operator) *fleet {
	return newFleetWith(t, build, nil)
}

// newFleetWith returns a fleet with budgets for memory.
func newFleetWith(t testing.TB, build func() operator.Operator, memory func() int64) *fleet {
	f := &fleet{build: build, hash: hasher(t), watermark: math.MinInt64, memory: memory}
	if memory != nil {
		f.dir = t.TempDir()
	}
	must(t, f.open([]snapshot.Reader{nil}))
	t.Cleanup(func() { f.close(t) })
	return f
}

// open opens a subtask for each reader, which is nil for one without state.
func (f *fleet) open(from []snapshot.Reader) error {
	f.subtasks = nil
	for i, r := range from {
		h := &harness{
			op: f.build(), out: &recorder{}, clock: &testClock{now: f.now}, metrics: metric.NewOperator("windows", ""),
			hash: f.hash, pool: exchange.NewKeyedPool[string, element](),
		}
		h.adjust = func(rt *operator.Runtime) {
			rt.Subtask, rt.Parallelism, rt.MaxParallelism, rt.Checkpointing = i, len(from), maxParallelism, true
			if r != nil {
				rt.Restored = r
			}
			if f.memory != nil {
				rt.StateMemory, rt.StateDir = f.memory(), f.dir
			}
		}
		if err := h.op.Open(h.runtime(), h.out); err != nil {
			return err
		}
		f.subtasks = append(f.subtasks, h)
	}
	return nil
}

func (f *fleet) close(t testing.TB) {
	for _, h := range f.subtasks {
		h.close(t)
	}
}

// owner returns the subtask of a key.
func (f *fleet) owner(key string) int {
	return keyed.SubtaskOf(keyed.KeyGroup(f.hash(key), maxParallelism), len(f.subtasks), maxParallelism)
}

// apply is harness.apply. What comes out of several subtasks has no order.
func (f *fleet) apply(t *rapid.T, step scenarioStep, sorted bool) (emitted, late []string) {
	switch {
	case step.watermark != nil:
		f.watermark = *step.watermark
	case step.clock != nil:
		f.now = *step.clock
	}
	for i, h := range f.subtasks {
		part := step
		part.records = slices.DeleteFunc(slices.Clone(step.records), func(r timed) bool {
			return f.owner(r.Key) != i
		})
		e, l := h.apply(t, part, sorted, 1024)
		emitted, late = append(emitted, e...), append(late, l...)
	}
	slices.Sort(emitted)
	slices.Sort(late)
	return emitted, late
}

// snapshots has all subtasks begin a snapshot.
func (f *fleet) snapshots(t testing.TB) (taken []*snapshottest.Snapshot) {
	t.Helper()
	f.taken++
	for _, h := range f.subtasks {
		snapshot := h.op.(operator.Stateful).Snapshot
		take := func() (*snapshottest.Snapshot, error) { return snapshottest.Take(1, snapshot) }
		if f.taken%2 == 1 {
			take = func() (*snapshottest.Snapshot, error) { return snapshottest.TakeIncremental(1, &f.files, snapshot) }
		}
		s, err := take()
		must(t, err)
		taken = append(taken, s)
	}
	return taken
}

// restart replaces the subtasks by new ones with what snapshots have, as a task does it.
func (f *fleet) restart(t testing.TB, taken []*snapshottest.Snapshot, parallelism int) error {
	t.Helper()
	f.close(t)
	f.subtasks = nil
	for _, s := range taken {
		must(t, s.Finish())
	}
	shares, err := snapshottest.Readers(taken, parallelism, maxParallelism)
	must(t, err)
	var from []snapshot.Reader
	for _, s := range shares {
		from = append(from, s)
	}
	if err := f.open(from); err != nil {
		return err
	}
	for _, s := range shares {
		if names := s.Unclaimed(); len(names) > 0 {
			return fmt.Errorf("parts %q were not restored", names)
		}
	}
	for _, h := range f.subtasks {
		if f.watermark != math.MinInt64 {
			must(t, h.op.Watermark(f.watermark))
		}
		if out := h.take(); len(out.main) > 0 {
			return fmt.Errorf("restoring has emitted %v", out.main)
		}
	}
	return nil
}

// failOver takes a checkpoint, goes on while it is written, and goes back to it with new
// subtasks. It returns what came of the steps that will be taken again.
func (f *fleet) failOver(t testing.TB, r *rapid.T, next []scenarioStep, sorted bool) (ahead [][]string) {
	watermark, now := f.watermark, f.now
	taken := f.snapshots(t)
	steps := rapid.IntRange(0, min(3, len(next))).Draw(r, "steps until the failure")
	for len(ahead) < steps {
		for range rapid.IntRange(0, 3).Draw(r, "blocks written") {
			_, err := taken[rapid.IntRange(0, len(taken)-1).Draw(r, "by subtask")].Step()
			must(t, err)
		}
		emitted, late := f.apply(r, next[len(ahead)], sorted)
		ahead = append(ahead, append(emitted, late...))
	}
	parallelism := rapid.IntRange(1, 4).Draw(r, "parallelism")
	for _, s := range taken {
		must(t, s.Finish())
	}
	f.watermark, f.now = watermark, now
	must(t, f.restart(t, taken, parallelism))
	return ahead
}

// Checkpoints and restarts with another parallelism at any moment change nothing that
// comes out, whatever the operator.
func TestRestartsDoNotMatter(t *testing.T) {
	for name, build := range map[string]func(Options) operator.Operator{
		"records":    func(o Options) operator.Operator { return Process(specOf[element](o), listFunction) },
		"aggregates": func(o Options) operator.Operator { return aggregateLists(o, concat{}) },
		"in the order of arrival": func(o Options) operator.Operator {
			return aggregateLists(o, window.InArrivalOrder[element, []int32, []int32](concat{}))
		},
		"general": func(o Options) operator.Operator {
			return Process(Spec[string, element]{Options: o, State: true}, listFunction)
		},
		"evicted": func(o Options) operator.Operator {
			return Process(Spec[string, element]{Options: o, Evictor: window.CountEvictor[element](1 << 30)}, listFunction)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				s := drawScenario(r)
				sorted := name == "aggregates" || s.assigner.Merging()
				whole := openHarness(t, build(s.options()))
				f := newFleet(t, func() operator.Operator { return build(s.options()) })
				restartsDoNotMatter(t, r, s, whole, f, sorted)
			})
		})
	}
}

// restartsDoNotMatter runs a scenario on an operator that is never interrupted and on a
// fleet that is now and then.
func restartsDoNotMatter(t testing.TB, r *rapid.T, s scenario, whole *harness, f *fleet, sorted bool) {
	var ahead [][]string
	for i, step := range s.steps {
		if rapid.IntRange(0, 4).Draw(r, "failure if 0") == 0 {
			ahead = f.failOver(t, r, s.steps[i:], sorted)
		}
		want, wantLate := whole.apply(r, step, sorted, 1024)
		slices.Sort(want)
		slices.Sort(wantLate)
		want = append(want, wantLate...)
		got, gotLate := f.apply(r, step, sorted)
		got = append(got, gotLate...)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("step %d of %v, lateness %d (-uninterrupted +restarted):\n%s", i, s.assigner, s.lateness, diff)
		}
		if len(ahead) > 0 {
			if diff := cmp.Diff(ahead[0], got); diff != "" {
				r.Fatalf("step %d of %v, lateness %d (-before the failure +after):\n%s", i, s.assigner, s.lateness, diff)
			}
			ahead = ahead[1:]
		}
	}
}
