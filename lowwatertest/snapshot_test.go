package lowwatertest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/lowwatertest"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// reminder emits how often a key came, and again a second of processing time later.
type reminder struct {
	lowwater.KeyedBase[string, int]
	count state.ValueState[int]
}

func (f *reminder) Open(ctx *lowwater.OpenContext[string]) error {
	f.count = ctx.Value(state.Value[int]("count"))
	return nil
}

func (f *reminder) ProcessElement(ctx *lowwater.KeyedContext[string], _ string, out *lowwater.Collector[int]) error {
	n, _ := f.count.Get()
	f.count.Set(n + 1)
	out.Emit(n + 1)
	ctx.RegisterProcessingTimeTimer(ctx.CurrentProcessingTime() + 1000)
	return nil
}

func (f *reminder) OnTimer(_ *lowwater.TimerContext[string], _ int64, out *lowwater.Collector[int]) error {
	n, _ := f.count.Get()
	out.Emit(100 * n)
	return nil
}

func remind(h *lowwatertest.Harness) (*lowwatertest.Input[string], *lowwatertest.Output[int]) {
	in := h.Input[string]("words")
	words := in.Stream().KeyBy(func(s string) string { return s })
	return in, h.Output(words.Process(func() *reminder { return &reminder{} }))
}

// State and timers go on, the clock from the moment of the snapshot, any number of times
// and with any parallelism; the part that the snapshot was taken of goes on, too.
func TestRestore(t *testing.T) {
	var snapshot *lowwatertest.Snapshot
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in, out := remind(h)
		in.Push("a", 1)
		in.Push("b", 1)
		in.Watermark(7)
		h.Advance(600 * time.Millisecond)
		snapshot = h.Snapshot()
		in.Push("a", 2)
		h.Advance(2 * time.Second)
		if diff := cmp.Diff([]int{1, 1, 2, 200, 100, 200}, out.TakeValues(), sorted); diff != "" {
			t.Errorf("the first part (-want +got):\n%s", diff)
		}
	}, lowwatertest.WithSnapshots())

	for _, parallelism := range []int{1, 3} {
		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			in, out := remind(h)
			in.Push("b", 3)
			if out.Watermark() != 7 {
				t.Errorf("watermark %d after the restore, want 7", out.Watermark())
			}
			h.Advance(399 * time.Millisecond)
			if diff := cmp.Diff([]int{2}, out.TakeValues()); diff != "" {
				t.Errorf("before the timers (-want +got):\n%s", diff)
			}
			h.Advance(2 * time.Millisecond)
			if diff := cmp.Diff([]int{100, 200}, out.TakeValues(), sorted); diff != "" {
				t.Errorf("timers (-want +got):\n%s", diff)
			}
			h.Advance(time.Second)
			if diff := cmp.Diff([]int{200}, out.TakeValues()); diff != "" {
				t.Errorf("the new timer (-want +got):\n%s", diff)
			}
			if again := h.Snapshot(); again == nil {
				t.Error("no snapshot of a restored part")
			}
		}, lowwatertest.Restore(snapshot), lowwater.WithParallelism(parallelism))
	}
}

var sorted = cmp.Transformer("sorted", func(s []int) []int { return slices.Sorted(slices.Values(s)) })

// numbered emits the number of the record in its subtask, which is an operator state.
type numbered struct{ count state.ListState[int] }

func (f *numbered) Open(ctx *lowwater.OperatorOpenContext) error {
	f.count = ctx.OperatorList(state.OperatorList[int]("count"))
	return nil
}

func (f *numbered) ProcessElement(_ *lowwater.ProcessContext, _ string, out *lowwater.Collector[int]) error {
	n := 1
	for _, before := range f.count.Get() {
		n += before
	}
	f.count.Set([]int{n})
	out.Emit(n)
	return nil
}

func TestRestoreOperatorState(t *testing.T) {
	var snapshot *lowwatertest.Snapshot
	for _, want := range [][]int{{1, 2}, {3, 4}, {5, 6}} {
		options := []lowwater.Option{lowwatertest.WithSnapshots()}
		if snapshot != nil {
			options = []lowwater.Option{lowwatertest.Restore(snapshot)}
		}
		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			in := h.Input[string]("words")
			out := h.Output(in.Stream().ProcessStateful(func() *numbered { return &numbered{} }))
			in.Push("a", 1)
			in.Push("b", 2)
			if diff := cmp.Diff(want, out.TakeValues()); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			snapshot = h.Snapshot()
		}, options...)
	}
}

// What cannot be stored is an error of a part with snapshots, and of no other.
func TestSnapshotOfWhatCannotBeStored(t *testing.T) {
	type secret struct{ n int }
	for _, options := range [][]lowwater.Option{nil, {lowwatertest.WithSnapshots()}} {
		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			in := h.Input[secret]("secrets")
			keyed := in.Stream().KeyBy(func(s secret) int { return s.n })
			h.Output(keyed.Reduce(func(a, _ secret) secret { return a }))
			// The part may have ended before the push.
			h.Advance(0)
			err := h.Err()
			switch {
			case options == nil && err != nil:
				t.Errorf("error %v without snapshots", err)
			case options != nil && (err == nil || !strings.Contains(err.Error(), `state "total"`) || !strings.Contains(err.Error(), "secret")):
				t.Errorf("error %v with snapshots, want one that names the state and the type", err)
			}
		}, options...)
	}
}

// side is a record of one of the streams that are joined.
type side struct{ Key, Number int }

// A restored interval join has the watermark that it had, the lower one of its streams: what
// was in time is in time.
func TestRestoreIntervalJoin(t *testing.T) {
	build := func(h *lowwatertest.Harness) (a, b *lowwatertest.Input[side], out *lowwatertest.Output[[2]int]) {
		a, b = h.Input[side]("a"), h.Input[side]("b")
		key := func(s side) int { return s.Key }
		joined := a.Stream().KeyBy(key).IntervalJoin(b.Stream().KeyBy(key)).Between(0, 100*time.Millisecond).
			Process(func(_ *lowwater.IntervalJoinContext, x, y side, out *lowwater.Collector[[2]int]) error {
				out.Emit([2]int{x.Number, y.Number})
				return nil
			})
		return a, b, h.Output(joined)
	}
	finish := func(t *testing.T, b *lowwatertest.Input[side], out *lowwatertest.Output[[2]int]) {
		b.Push(side{1, 2}, 60) // not late: the watermark of b is 50
		b.Watermark(200)
		if diff := cmp.Diff([][2]int{{1, 2}}, out.TakeValues()); diff != "" {
			t.Errorf("pairs, -want +got:\n%s", diff)
		}
	}
	var snapshot *lowwatertest.Snapshot
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		a, b, out := build(h)
		a.Push(side{1, 1}, 10)
		a.Watermark(100)
		b.Watermark(50)
		snapshot = h.Snapshot()
		finish(t, b, out)
	}, lowwatertest.WithSnapshots())
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		_, b, out := build(h)
		finish(t, b, out)
	}, lowwatertest.Restore(snapshot))
}

// The sides of a coGroup have the records of a sender in their order, whatever the
// parallelism.
func TestCoGroupKeepsTheOrder(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		a, b, c := h.Input[side]("a"), h.Input[side]("b"), h.Input[side]("c")
		key := func(s side) int { return s.Key }
		out := h.Output(a.Stream().Union(c.Stream()).KeyBy(key).CoGroup(b.Stream().KeyBy(key)).Window(window.Tumbling(time.Second)).
			Apply(func(_ *lowwater.WindowContext[int], left, _ []side, out *lowwater.Collector[[]int]) error {
				var numbers []int
				for _, s := range left {
					numbers = append(numbers, s.Number)
				}
				out.Emit(numbers)
				return nil
			}))
		var want []int
		var all []lowwatertest.Element[side]
		for i := range 12 {
			want = append(want, i)
			all = append(all, lowwatertest.Element[side]{Value: side{1, i}, Timestamp: int64(i)})
		}
		a.PushAll(all...)
		for _, in := range []*lowwatertest.Input[side]{a, b, c} {
			in.Watermark(5000)
		}
		if diff := cmp.Diff([][]int{want}, out.TakeValues()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}, lowwater.WithParallelism(4))
}
