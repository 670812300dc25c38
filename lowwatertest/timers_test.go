package lowwatertest_test

import (
	"slices"
	"testing"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/lowwatertest"
)

// pastTimers sets a timer for a time that has passed, for every record.
type pastTimers struct {
	lowwater.KeyedBase[string, int64]
}

func (pastTimers) ProcessElement(ctx *lowwater.KeyedContext[string], at int64, _ *lowwater.Collector[int64]) error {
	ctx.RegisterEventTimeTimer(at)
	return nil
}

func (pastTimers) OnTimer(_ *lowwater.TimerContext[string], at int64, out *lowwater.Collector[int64]) error {
	out.Emit(at)
	return nil
}

// A timer for a time that has passed fires with the next watermark, also if a restart
// comes first: the watermark that is told again is not the next.
func TestPastTimersWaitAcrossARestart(t *testing.T) {
	build := func(h *lowwatertest.Harness) (*lowwatertest.Input[int64], *lowwatertest.Output[int64]) {
		in := h.Input[int64]("times")
		return in, h.Output(in.Stream().KeyBy(func(int64) string { return "key" }).
			Process(func() pastTimers { return pastTimers{} }))
	}
	var snapshot *lowwatertest.Snapshot
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in, out := build(h)
		in.Watermark(100)
		in.Push(50, 150)
		if got := out.TakeValues(); len(got) > 0 {
			t.Errorf("timers %v fired before the next watermark", got)
		}
		snapshot = h.Snapshot()
	}, lowwatertest.WithSnapshots())

	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		in, out := build(h)
		in.Push(60, 150)
		if got := out.TakeValues(); len(got) > 0 {
			t.Errorf("timers %v fired at the restart", got)
		}
		if got := out.Watermark(); got != 100 {
			t.Errorf("the watermark behind the restart is %d, want 100", got)
		}
		in.Watermark(101)
		if got := out.TakeValues(); !slices.Equal(got, []int64{50, 60}) {
			t.Errorf("timers %v fired, want those of 50 and 60", got)
		}
	}, lowwatertest.Restore(snapshot))
}
