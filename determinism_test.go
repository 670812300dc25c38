package lowwater_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// disorder is how far records of a split are out of order, in milliseconds.
const disorder = 700

// drawSplits draws the records of some splits. N numbers them all.
func drawSplits(t *rapid.T) [][]event {
	splits := make([][]event, rapid.IntRange(1, 4).Draw(t, "splits"))
	n := 0
	for i := range splits {
		latest := int64(10_000)
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			latest += rapid.Int64Range(0, 900).Draw(t, "step")
			back := rapid.Int64Range(0, disorder).Draw(t, "back")
			key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
			splits[i] = append(splits[i], event{key, latest - back, n})
			n++
		}
	}
	return splits
}

// setting is one way to run the same job.
type setting struct {
	parallelism, sourceParallelism int
	// sources is how many sources the splits are spread over, in a union.
	sources  int
	chaining bool
	interval time.Duration
	// batches and pauses come round again and again: how many records a split delivers at
	// once, and how long it waits behind them.
	batches []int
	pauses  []time.Duration
}

func drawSetting(t *rapid.T) setting {
	return setting{
		parallelism:       rapid.IntRange(1, 4).Draw(t, "parallelism"),
		sourceParallelism: rapid.IntRange(0, 4).Draw(t, "source parallelism"),
		sources:           rapid.IntRange(1, 3).Draw(t, "sources"),
		chaining:          rapid.Bool().Draw(t, "chaining"),
		interval:          rapid.SampledFrom([]time.Duration{0, time.Millisecond, 200 * time.Millisecond, time.Second}).Draw(t, "interval"),
		batches:           rapid.SliceOfN(rapid.IntRange(1, 40), 1, 5).Draw(t, "batches"),
		pauses:            rapid.SliceOfN(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 150 * time.Millisecond, 2 * time.Second}), 1, 5).Draw(t, "pauses"),
	}
}

// script cuts the records of splits into what a source delivers.
func (s setting) script(splits [][]event) *script[event] {
	out := &script[event]{}
	for i, rest := range splits {
		var steps []step[event]
		var after time.Duration
		for n := i; len(rest) > 0; n++ {
			size := min(s.batches[n%len(s.batches)], len(rest))
			steps = append(steps, step[event]{after, rest[:size]})
			rest = rest[size:]
			after += s.pauses[n%len(s.pauses)]
		}
		out.splits = append(out.splits, steps)
	}
	return out
}

// source adds the sources and their union.
func (s setting) source(env *lowwater.Environment, splits [][]event, strategy eventtime.WatermarkStrategy[event]) *lowwater.DataStream[event] {
	var streams []*lowwater.DataStream[event]
	for i := range s.sources {
		var own [][]event
		for j := i; j < len(splits); j += s.sources {
			own = append(own, splits[j])
		}
		stream := from(env, s.script(own), strategy)
		if s.sourceParallelism > 0 {
			stream.Parallelism(s.sourceParallelism)
		}
		streams = append(streams, s.chain(stream))
	}
	if len(streams) == 1 {
		return streams[0]
	}
	return streams[0].Union(streams[1:]...)
}

func (s setting) chain(stream *lowwater.DataStream[event]) *lowwater.DataStream[event] {
	if s.chaining {
		return stream
	}
	return stream.DisableChaining()
}

// watch collects what is wrong with the watermarks that the operators of a job see.
type watch struct {
	mu    sync.Mutex
	wrong []string
}

func (w *watch) report(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// at adds an operator that looks at the watermark before every record: it must not fall,
// and records are not behind it unless lateAllowed.
func (w *watch) at(place string, s *lowwater.DataStream[event], lateAllowed bool) *lowwater.DataStream[event] {
	var last [8]int64 // by subtask
	for i := range last {
		last[i] = math.MinInt64
	}
	return s.Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[event]) error {
		now := ctx.CurrentWatermark()
		if before := &last[ctx.Subtask()]; now < *before {
			w.report("%s: the watermark fell from %d to %d", place, *before, now)
		} else {
			*before = now
		}
		if e.At <= now && !lateAllowed {
			w.report("%s: %v is late at watermark %d", place, e, now)
		}
		out.Emit(e)
		return nil
	})
}

// watermarks is a sink that looks at every watermark, which must rise and end with the end
// of time.
type watermarks[T any] struct {
	place string
	w     *watch
}

func (watermarks[T]) Validate() error { return nil }

func (s watermarks[T]) NewWriter(_ context.Context, rt connector.WriterRuntime) (connector.Writer[T], error) {
	return &watermarkWriter[T]{place: fmt.Sprint(s.place, " ", rt.Subtask), w: s.w, last: math.MinInt64}, nil
}

type watermarkWriter[T any] struct {
	place string
	w     *watch
	last  int64
}

func (w *watermarkWriter[T]) Write(context.Context, *connector.Batch[T]) error { return nil }

func (w *watermarkWriter[T]) WriteWatermark(_ context.Context, t int64) error {
	if t <= w.last {
		w.w.report("%s: watermark %d after %d", w.place, t, w.last)
	}
	w.last = t
	return nil
}

func (w *watermarkWriter[T]) Flush(context.Context) error {
	if w.last != eventtime.MaxTimestamp {
		w.w.report("%s: the last watermark is %d", w.place, w.last)
	}
	return nil
}

func (w *watermarkWriter[T]) Close() error { return nil }

// contents writes a window and the numbers of its records.
func contents(key string, w window.TimeWindow, numbers []int) string {
	slices.Sort(numbers)
	return fmt.Sprint(key, " ", rangeOf(w), " ", numbers)
}

// collectWindows runs windows over the splits and returns the contents of all panes.
func (s setting) collectWindows(t *testing.T, splits [][]event, assigner window.Assigner) ([]string, error) {
	var panes []string
	var failed error
	synctest.Test(t, func(t *testing.T) {
		var w watch
		env := newEnv(lowwater.WithParallelism(s.parallelism), lowwater.WithAutoWatermarkInterval(s.interval))
		stream := w.at("behind the source", s.source(env, splits, bounded(disorder*time.Millisecond)), false)
		stream = s.chain(w.at("behind a rebalance", s.chain(stream).Rebalance(), false))
		results := stream.KeyBy(keyOf).Window(assigner).
			Process(func(ctx *lowwater.WindowContext[string], elements iter.Seq[event], out *lowwater.Collector[string]) error {
				var numbers []int
				for e := range elements {
					numbers = append(numbers, e.N)
				}
				if ctx.Timing() != window.OnTime || ctx.CurrentWatermark() < ctx.Window().MaxTimestamp() {
					w.report("%v fired %v at %d", ctx.Window(), ctx.Timing(), ctx.CurrentWatermark())
				}
				out.Emit(contents(ctx.Key(), ctx.Window(), numbers))
				return nil
			})
		results.SinkTo(watermarks[string]{"behind the windows", &w})
		collected := results.Collect()
		if failed = env.Execute(t.Context(), "test"); failed == nil && len(w.wrong) > 0 {
			failed = fmt.Errorf("%s", strings.Join(w.wrong, "\n"))
		}
		panes = collected.Values()
	})
	slices.Sort(panes)
	return panes, failed
}

// expectedWindows works out the windows from all records at once.
func expectedWindows(splits [][]event, assigner window.Assigner) []string {
	type pane struct {
		key string
		w   window.TimeWindow
	}
	members := map[pane][]int{}
	byKey := map[string][]window.TimeWindow{}
	var windows []window.TimeWindow
	for _, e := range slices.Concat(splits...) {
		windows, _ = assigner.Assign(windows[:0], e.At, 0)
		for _, w := range windows {
			members[pane{e.Key, w}] = append(members[pane{e.Key, w}], e.N)
			byKey[e.Key] = append(byKey[e.Key], w)
		}
	}
	if assigner.Merging() {
		for key, windows := range byKey {
			for _, m := range window.Merge(windows) {
				var all []int
				for _, w := range m.From {
					all = append(all, members[pane{key, w}]...)
					delete(members, pane{key, w})
				}
				members[pane{key, m.Into}] = all
			}
		}
	}
	var panes []string
	for p, numbers := range members {
		panes = append(panes, contents(p.key, p.w, numbers))
	}
	slices.Sort(panes)
	return panes
}

// TestSameWindowsHoweverTheJobRuns: no record is later than the strategy's bound, so the
// windows follow from the records alone; parallelism, batches, pauses, chaining, unions
// and the watermark interval do not show. Watermarks rise everywhere, and no record
// is behind one.
func TestSameWindowsHoweverTheJobRuns(t *testing.T) {
	assigners := []window.Assigner{
		window.Tumbling(3 * time.Second),
		window.Tumbling(time.Second).Offset(300 * time.Millisecond),
		window.Sliding(3*time.Second, time.Second),
		window.Sliding(2500*time.Millisecond, time.Second),
		window.Session(400 * time.Millisecond),
		window.GlobalEndOfStream(),
	}
	rapid.Check(t, func(r *rapid.T) {
		splits := drawSplits(r)
		assigner := rapid.SampledFrom(assigners).Draw(r, "assigner")
		want := expectedWindows(splits, assigner)
		for range 3 {
			s := drawSetting(r)
			got, err := s.collectWindows(t, splits, assigner)
			if err != nil {
				r.Fatalf("%+v: %v", s, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("%+v (-want +got):\n%s", s, diff)
			}
		}
	})
}

// TestNothingGetsLostWithIdleness: with pauses longer than the idle timeout records may
// be late, but each is in one window or in the late output, and watermarks rise.
func TestNothingGetsLostWithIdleness(t *testing.T) {
	late := lowwater.NewOutputTag[event]("late")
	rapid.Check(t, func(r *rapid.T) {
		splits, s := drawSplits(r), drawSetting(r)
		s.pauses = append(s.pauses, rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, time.Minute}).Draw(r, "long pause"))
		var got []int
		var failed error
		var w watch
		synctest.Test(t, func(t *testing.T) {
			env := newEnv(lowwater.WithParallelism(s.parallelism), lowwater.WithAutoWatermarkInterval(s.interval))
			stream := w.at("behind the source", s.source(env, splits, bounded(disorder*time.Millisecond).WithIdleness(3*time.Second)), true)
			stream = w.at("behind a rebalance", stream.Rebalance(), true)
			windows := stream.KeyBy(keyOf).Window(window.Tumbling(time.Second)).SideOutputLate(late).
				Process(func(_ *lowwater.WindowContext[string], elements iter.Seq[event], out *lowwater.Collector[event]) error {
					for e := range elements {
						out.Emit(e)
					}
					return nil
				})
			windows.SinkTo(watermarks[event]{"behind the windows", &w})
			inWindows, tooLate := windows.Collect(), windows.SideOutput(late).Collect()
			failed = env.Execute(t.Context(), "test")
			for _, e := range slices.Concat(inWindows.Values(), tooLate.Values()) {
				got = append(got, e.N)
			}
		})
		if failed != nil || len(w.wrong) > 0 {
			r.Fatalf("%+v: %v %q", s, failed, w.wrong)
		}
		slices.Sort(got)
		if diff := cmp.Diff(upTo(len(slices.Concat(splits...))), append([]int{}, got...)); diff != "" {
			r.Fatalf("%+v: records (-want +got):\n%s", s, diff)
		}
	})
}
