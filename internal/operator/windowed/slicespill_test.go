package windowed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/window"
)

// drawSlices draws a scenario for overlapping windows of up to 40 slides.
func drawSlices(t *rapid.T) scenario {
	s := drawScenario(t)
	slide := rapid.Int64Range(1, 12).Draw(t, "slide of long windows")
	count := rapid.Int64Range(2, 40).Draw(t, "slides in a window")
	processing := rapid.IntRange(0, 3).Draw(t, "processing time if 0 again") == 0
	if rapid.Bool().Draw(t, "cumulating") {
		a := window.Cumulating(millis(count*slide), millis(slide))
		if s.assigner = a; processing {
			s.assigner = a.ProcessingTime()
		}
		return s
	}
	a := window.Sliding(millis(count*slide+rapid.Int64Range(0, slide-1).Draw(t, "rest")), millis(slide))
	if s.assigner = a; processing {
		s.assigner = a.ProcessingTime()
	}
	return s
}

// Overlapping windows with budgets of which some hold nothing give what they do without one,
// records in the order of their arrival, with checkpoints and restarts with another budget and
// parallelism at any moment.
func TestSpillingSlicesChangesNothing(t *testing.T) {
	var written, read int64
	rapid.Check(t, func(r *rapid.T) {
		s := drawSlices(r)
		aggregates := rapid.Bool().Draw(r, "aggregates")
		build := func() operator.Operator { return Process(specOf[element](s.options()), listFunction) }
		if aggregates {
			build = func() operator.Operator { return aggregateLists(s.options(), concat{}) }
		}
		whole := openHarness(t, build())
		f := newFleetWith(t, build, func() int64 {
			return rapid.SampledFrom([]int64{1, 1, 100, 400, 1000, 4000, 20_000, 0}).Draw(r, "budget")
		})
		restartsDoNotMatter(t, r, s, whole, f, aggregates)
		for _, h := range f.subtasks {
			written += h.metrics.State.SpillWrites.Value()
			read += h.metrics.State.SpillReads.Value()
			if n := h.metrics.State.SpilledEntries.Value(); s.assigner.IsEventTime() && n != 0 {
				r.Errorf("%d runs are left of windows that are gone", n)
			}
		}
		f.close(t) // many stores at once are many open files
		f.subtasks = nil
	})
	if written == 0 || read == 0 {
		t.Errorf("%d runs written and %d read, want some", written, read)
	}
}

// The same with many keys, so that parts of a window are on disk, in memory, and both.
func TestSlicesOnDiskInPart(t *testing.T) {
	for _, memory := range []int64{1, 30_000, 100_000, 300_000} {
		for _, a := range []window.Assigner{
			window.Sliding(ms(200), ms(10)), window.Sliding(ms(105), ms(10)), window.Cumulating(ms(200), ms(20)),
		} {
			t.Run(fmt.Sprint(a, memory), func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				random := rand.New(rand.NewPCG(seed, 0))
				o := Options{Assigner: a, AllowedLateness: 50}
				build := func() operator.Operator {
					return AggregateProcess(specOf[element](o), tallies{}, single(func(s string) any { return s }))
				}
				spilled := openSpilling(t, build(), func(rt *operator.Runtime) { rt.StateMemory = memory })
				whole := openHarness(t, build())
				var now int64
				take := func(h *harness) (panes []string) {
					for _, r := range h.take().main {
						panes = append(panes, fmt.Sprint(r.Timestamp, r.Value))
					}
					slices.Sort(panes)
					return panes
				}
				for range 40 {
					now += 7
					var records []timed
					for range 100 {
						behind := random.Int64N(30)
						if random.IntN(30) == 0 {
							behind = random.Int64N(120) // late at times
						}
						records = append(records, timed{element{fmt.Sprint(random.IntN(500)), int32(random.IntN(5))}, now - behind, 0})
					}
					for _, h := range []*harness{whole, spilled} {
						must(t, h.process(records...))
						must(t, h.op.Watermark(now-30))
					}
					if diff := cmp.Diff(take(whole), take(spilled)); diff != "" {
						t.Fatalf("seed %d, at %d (-in memory +spilled):\n%s", seed, now, diff)
					}
					if n := inTables(spilled.op.(*sliced[string, element, *tally])); n > memory+memory/10 {
						t.Fatalf("seed %d, at %d: %d bytes in memory, the budget is %d", seed, now, n, memory)
					}
				}
			})
		}
	}
}

// inTables returns what slices and sums are estimated to take in memory.
func inTables[K comparable, T, A any](o *sliced[K, T, A]) (bytes int64) {
	s := &o.slices
	for _, slice := range s.live {
		bytes += s.spilled.bytes(slice.pane)
	}
	for _, sum := range s.sums {
		bytes += s.spilled.bytes(sum)
	}
	return bytes
}

// Late records that fire windows again find what is on disk of their keys, in slices and sums.
func TestLateRecordsFindSlicesOnDisk(t *testing.T) {
	for _, test := range []struct {
		name string
		op   func(Options) operator.Operator
	}{
		{"records", func(o Options) operator.Operator { return Process(specOf[element](o), listFunction) }},
		{"aggregates", func(o Options) operator.Operator { return aggregateLists(o, concat{}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := openSpilling(t, test.op(Options{Assigner: window.Sliding(ms(40), ms(10)), AllowedLateness: 100}), nil)
			for i := range int32(4) {
				must(t, h.process(timed{element{"a", i}, int64(10 * i), 0}, timed{element{"b", 10 + i}, int64(10 * i), 0}))
			}
			must(t, h.op.Watermark(39))
			h.panes()
			must(t, h.process(timed{element{"a", 4}, 12, 0}, timed{element{"b", 14}, 15, 0}, timed{element{"c", 24}, 39, 0}))
			got := h.panes()
			for i, line := range got { // an aggregation sees slice by slice
				if test.name == "aggregates" {
					got[i] = strings.Replace(line, "[0 1 4 2 3]", "[0 1 2 3 4]", 1)
					got[i] = strings.Replace(got[i], "[10 11 14 12 13]", "[10 11 12 13 14]", 1)
				}
			}
			want := []string{
				"a [0, 40) [0 1 2 3 4] late", "a [-10, 30) [0 1 2 4] late", "a [-20, 20) [0 1 4] late",
				"b [0, 40) [10 11 12 13 14] late", "b [-10, 30) [10 11 12 14] late", "b [-20, 20) [10 11 14] late",
				"c [0, 40) [24] late",
			}
			if test.name == "aggregates" {
				for i := range want {
					want[i] = strings.Replace(want[i], "[0 1 2 4]", "[0 1 4 2]", 1)
					want[i] = strings.Replace(want[i], "[10 11 12 14]", "[10 11 14 12]", 1)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			must(t, h.op.Watermark(1000))
			if n := h.metrics.State.SpilledEntries.Value(); n != 0 {
				t.Errorf("%d runs are left of windows that are gone", n)
			}
			view := storeOf(h.op).View()
			for e, err := range view.From(nil, nil) {
				t.Errorf("%q is left on disk: %v", e.Key, err)
			}
			must(t, view.Close())
		})
	}
}

// storeOf returns the store of an operator on slices.
func storeOf(op operator.Operator) *spill.Store {
	if o, ok := op.(*sliced[string, element, []int32]); ok {
		return o.slices.spilled.store
	}
	return op.(*sliced[string, element, []numbered[element]]).slices.spilled.store
}

// What a disk that fails says names the window or its slices, and the directory.
func TestErrorsOfTheDiskUnderSlices(t *testing.T) {
	dir := ""
	h := openSpilling(t, listsOf(window.Sliding(2*time.Second, time.Second)), func(rt *operator.Runtime) { dir = rt.StateDir })
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
	for _, part := range []string{stores[0], "WithStateMemory", "windows in [1970-01-01T00:00:00Z, 1970-01-01T00:00:01Z)"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
	_ = h.closeNow() // what the broken store says of its end is not the matter here
}
