package windowed

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// scenario is a random assigner with random input: records, some of them far out
// of order, between moves of the watermark and the clock.
type scenario struct {
	assigner window.Assigner
	lateness int64
	steps    []scenarioStep
}

type scenarioStep struct {
	records   []timed
	watermark *int64
	clock     *int64
}

func drawAssigner(t *rapid.T) window.Assigner {
	size := rapid.Int64Range(1, 20).Draw(t, "size")
	slide := rapid.Int64Range(1, 12).Draw(t, "slide")
	offset := func(limit int64) int64 { return rapid.Int64Range(-limit+1, limit-1).Draw(t, "offset") }
	processing := rapid.IntRange(0, 3).Draw(t, "processing time if 0") == 0
	switch rapid.IntRange(0, 3).Draw(t, "assigner") {
	case 0:
		a := window.Tumbling(millis(size)).Offset(millis(offset(size)))
		if processing {
			return a.ProcessingTime()
		}
		return a
	case 1:
		a := window.Sliding(millis(size), millis(slide)).Offset(millis(offset(slide)))
		if processing {
			return a.ProcessingTime()
		}
		return a
	case 2:
		a := window.Cumulating(millis(size*slide), millis(slide)).Offset(millis(offset(size * slide)))
		if processing {
			return a.ProcessingTime()
		}
		return a
	default:
		a := window.Session(millis(size))
		if processing {
			return a.ProcessingTime()
		}
		return a
	}
}

func drawScenario(t *rapid.T) scenario {
	s := scenario{
		assigner: drawAssigner(t),
		lateness: rapid.SampledFrom([]int64{0, 0, 1, 5, 30}).Draw(t, "lateness"),
	}
	disorder := rapid.Int64Range(1, 60).Draw(t, "disorder")
	time := rapid.Int64Range(-50, 50).Draw(t, "start")
	watermark := int64(math.MinInt64)
	clock := int64(0)
	value := int32(0)
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.IntRange(0, 4).Draw(t, "step") {
		case 0:
			t := time - rapid.Int64Range(0, disorder).Draw(t, "watermark behind")
			if t > watermark {
				watermark = t
				s.steps = append(s.steps, scenarioStep{watermark: &t})
			}
		case 1:
			clock += rapid.Int64Range(0, 30).Draw(t, "clock by")
			now := clock
			s.steps = append(s.steps, scenarioStep{clock: &now})
		default:
			var step scenarioStep
			for range rapid.IntRange(1, 12).Draw(t, "records") {
				time += rapid.Int64Range(0, 4).Draw(t, "time by")
				value++
				step.records = append(step.records, timed{
					element{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), value},
					time - rapid.Int64Range(0, disorder).Draw(t, "behind"),
					connector.MakeOrigin(1, int64(value)),
				})
			}
			s.steps = append(s.steps, step)
		}
	}
	end := int64(math.MaxInt64)
	s.steps = append(s.steps, scenarioStep{watermark: &end})
	return s
}

func (s scenario) options() Options {
	return Options{Assigner: s.assigner, AllowedLateness: s.lateness, LateOutput: lateOutput}
}

// apply does one step to an operator and returns the panes and the late records
// it emitted.
func (h *harness) apply(t *rapid.T, step scenarioStep, sorted bool, batch int) (emitted, late []string) {
	var err error
	switch {
	case step.watermark != nil:
		err = h.op.Watermark(*step.watermark)
	case step.clock != nil:
		err = h.clock.set(*step.clock)
	default:
		for records := range slices.Chunk(step.records, batch) {
			if err = h.process(records...); err != nil {
				break
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	out := h.take()
	for _, r := range out.main {
		f := r.Value.(firing)
		if r.Timestamp != f.Window.MaxTimestamp() {
			t.Fatalf("timestamp %d of a result of %v", r.Timestamp, f.Window)
		}
		emitted = append(emitted, paneLine(f.Key, f.Window, f.Timing, f.Value.([]int32), sorted))
	}
	for _, r := range out.sides[lateOutput] {
		e := r.Value.(element)
		if r.Origin != connector.MakeOrigin(1, int64(e.Value)) {
			t.Fatalf("late record %v with origin %v", e, r.Origin)
		}
		late = append(late, fmt.Sprintf("%s %d @%d", e.Key, e.Value, r.Timestamp))
	}
	if step.records == nil && !sort.SliceIsSorted(out.main, func(a, b int) bool {
		return out.main[a].Timestamp < out.main[b].Timestamp
	}) {
		t.Fatalf("windows fired out of order: %v", emitted)
	}
	return emitted, late
}

// checkAgainstModel runs a scenario on an operator and on the model, which must
// agree, about the order of values in a pane only if inOrder.
func checkAgainstModel(t *rapid.T, s scenario, h *harness, inOrder bool) {
	m := newModel(s.assigner, s.lateness, !inOrder)
	for i, step := range s.steps {
		got, gotLate := h.apply(t, step, !inOrder, 1024)
		switch {
		case step.watermark != nil:
			m.advanceWatermark(*step.watermark)
		case step.clock != nil:
			m.setClock(*step.clock)
		default:
			for _, r := range step.records {
				if err := m.process(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		want, wantLate := m.take()
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d of %v, lateness %d (-want +got):\n%s", i, s.assigner, s.lateness, diff)
		}
		if diff := cmp.Diff(wantLate, gotLate); diff != "" {
			t.Fatalf("step %d of %v, lateness %d: late records (-want +got):\n%s", i, s.assigner, s.lateness, diff)
		}
	}
	if got := h.metrics.NumLateRecordsDropped.Value(); got != 0 {
		t.Fatalf("%d records dropped although there is a late output", got)
	}
}

func TestOperatorsMatchModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		checkAgainstModel(r, s, openHarness(t, Process(specOf[element](s.options()), listFunction)), !s.assigner.Merging())
	})
}

// concat aggregates values into the list of them, so that an aggregation shows
// what went into it.
type concat struct{}

func (concat) New() []int32                       { return []int32{} }
func (concat) Add(acc []int32, e element) []int32 { return append(acc, e.Value) }
func (concat) Merge(a, b []int32) []int32         { return append(a, b...) }
func (concat) Result(acc []int32) []int32         { return slices.Clone(acc) }

func TestAggregatesMatchModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		h := openHarness(t, aggregateLists(s.options(), concat{}))
		checkAgainstModel(r, s, h, false)
	})
}

// An aggregation that asks for it sees records in the order of their arrival,
// also in overlapping windows.
func TestAggregatesInArrivalOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		h := openHarness(t, aggregateLists(s.options(), window.InArrivalOrder[element, []int32, []int32](concat{})))
		checkAgainstModel(r, s, h, !s.assigner.Merging())
	})
}

func aggregateLists(o Options, agg window.Aggregator[element, []int32, []int32]) operator.Operator {
	return AggregateProcess(specOf[element](o), agg, single[[]int32](func(v []int32) any { return v }))
}

// The same records in other batches give the same results in the same order.
func TestBatchesDoNotMatter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		size := rapid.IntRange(1, 5).Draw(r, "batch size")
		whole := openHarness(t, Process(specOf[element](s.options()), listFunction))
		cut := openHarness(t, Process(specOf[element](s.options()), listFunction))
		for i, step := range s.steps {
			want, wantLate := whole.apply(r, step, false, 1024)
			got, gotLate := cut.apply(r, step, false, size)
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("step %d of %v: in batches of %d (-whole +cut):\n%s", i, s.assigner, size, diff)
			}
			if diff := cmp.Diff(wantLate, gotLate); diff != "" {
				r.Fatalf("step %d of %v: late records in batches of %d (-whole +cut):\n%s", i, s.assigner, size, diff)
			}
		}
	})
}

// Every record of an event-time window without gaps ends in a pane or in the
// late output, and never in both.
func TestRecordsAreInPanesOrLate(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		if !s.assigner.IsEventTime() || strings.HasPrefix(s.assigner.String(), "window.Sliding") {
			return
		}
		h := openHarness(t, Process(specOf[element](s.options()), listFunction))
		inPane, late, sent := map[int32]bool{}, map[int32]bool{}, 0
		for _, step := range s.steps {
			sent += len(step.records)
			var err error
			if step.watermark != nil {
				err = h.op.Watermark(*step.watermark)
			} else {
				err = h.process(step.records...)
			}
			if err != nil {
				r.Fatal(err)
			}
		}
		out := h.take()
		for _, rec := range out.main {
			for _, v := range rec.Value.(firing).Value.([]int32) {
				inPane[v] = true
			}
		}
		for _, rec := range out.sides[lateOutput] {
			v := rec.Value.(element).Value
			if late[v] || inPane[v] {
				r.Fatalf("record %d is late, and in a pane or late before", v)
			}
			late[v] = true
		}
		if len(inPane)+len(late) != sent {
			r.Fatalf("%d records in panes and %d late, of %d", len(inPane), len(late), sent)
		}
	})
}

// Windows put together from slices hold what windows with contents of their own
// do. The windows are longer than in the other tests, for sums of many slices.
func TestSlicesMatchPlainPanes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		slide := rapid.Int64Range(1, 7).Draw(r, "slide of long windows")
		count := rapid.Int64Range(2, 100).Draw(r, "slides in a window")
		if rapid.Bool().Draw(r, "cumulating") {
			s.assigner = window.Cumulating(millis(count*slide), millis(slide))
		} else {
			s.assigner = window.Sliding(millis(count*slide+rapid.Int64Range(0, slide-1).Draw(r, "rest")), millis(slide))
		}
		sliced := aggregateLists(s.options(), concat{})
		plain := aggregateLists(s.options(), window.InArrivalOrder[element, []int32, []int32](concat{}))
		a, b := openHarness(t, plain), openHarness(t, sliced)
		for i, step := range s.steps {
			want, wantLate := a.apply(r, step, true, 1024)
			got, gotLate := b.apply(r, step, true, 1024)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("step %d of %v, lateness %d (-plain +sliced):\n%s", i, s.assigner, s.lateness, diff)
			}
			if diff := cmp.Diff(wantLate, gotLate); diff != "" {
				r.Fatalf("step %d of %v, lateness %d: late records (-plain +sliced):\n%s", i, s.assigner, s.lateness, diff)
			}
		}
	})
}
