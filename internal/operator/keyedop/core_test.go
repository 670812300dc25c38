package keyedop

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/state"
)

// withTimers is a function whose timers emit their key and time.
func withTimers(element func(*Context[string], row) error) operator.Operator {
	return NewProcess(func(x *Context[string], out *operator.Emitter[row]) (Function[row], error) {
		return Function[row]{
			Element: func(r row) error { return element(x, r) },
			Timer: func(at int64, _ Domain) error {
				out.Append(row{x.Key(), int(at)}, x.Timestamp, 0)
				return nil
			},
		}, nil
	})
}

func TestProcessingTimersFireWhenTheirMillisecondIsOver(t *testing.T) {
	h := newHarness(t)
	h.open(t, withTimers(func(x *Context[string], r row) error {
		x.RegisterProcessingTimer(int64(r.Value))
		x.RegisterProcessingTimer(math.MaxInt64) // never
		return nil
	}))
	must(t, h.send(0, "a", 10, 0))
	must(t, h.clock.set(10))
	if got := h.out.take(); len(got) != 0 {
		t.Errorf("fired within its millisecond: %v", got)
	}
	must(t, h.clock.set(11))
	if got := asJSON(t, h.out.take()); len(got) != 1 || got[0] != `{"row":["a",10],"ts":null}` {
		t.Errorf("fired %v", got)
	}
	if len(h.clock.timers) != 0 {
		t.Error("the clock is to call for a timer at the end of time")
	}
	must(t, h.op.Watermark(math.MaxInt64))
	must(t, h.op.Finish())
	if log := h.log.String(); !strings.Contains(log, "timers=1") || !strings.Contains(log, "level=WARN") {
		t.Errorf("the timer that is left is not told: %s", log)
	}
}

func TestRestoredProcessingTimersFireAtOnce(t *testing.T) {
	register := func(x *Context[string], r row) error { x.RegisterProcessingTimer(int64(r.Value)); return nil }
	h := newHarness(t)
	h.open(t, withTimers(register))
	must(t, h.send(0, "a", 10, 0))
	h.restore(t, withTimers(register), 500)
	must(t, h.clock.set(500))
	if got := h.out.take(); len(got) != 1 {
		t.Errorf("fired %v", got)
	}
}

// Values that nobody reads any more go, a few at each call of the operator.
func TestExpiredStateIsCleanedUp(t *testing.T) {
	h := newHarness(t)
	var x *Context[string]
	var seen state.ValueState[int]
	h.open(t, NewProcess(func(c *Context[string], _ *operator.Emitter[row]) (Function[row], error) {
		x = c
		seen = c.Value(state.Value[int]("seen", state.WithTTL(state.TTL{After: time.Second})))
		return Function[row]{Element: func(r row) error { seen.Set(r.Value); return nil }}, nil
	}))
	const keys = 100
	for i := range keys {
		must(t, h.send(0, strings.Repeat("k", i+1), i, 0))
	}
	left := func() (n int) {
		must(t, x.backend.EachKey(seen, func(string, state.ValueState[int]) error { n++; return nil }))
		return n
	}
	must(t, h.clock.set(999))
	must(t, h.op.Watermark(1))
	if n := left(); n != keys {
		t.Errorf("%d values left before their time, want %d", n, keys)
	}
	must(t, h.clock.set(1000))
	for i := range int64(20) {
		must(t, h.op.Watermark(2+i))
	}
	if n := left(); n != 0 {
		t.Errorf("%d values left", n)
	}
}

func TestMisuseEndsTheJob(t *testing.T) {
	timerWithoutKey := func(x *Context[string], _ *operator.Emitter[row]) (Function[row], error) {
		x.RegisterEventTimer(1)
		return Function[row]{}, nil
	}
	wantError(t, newHarness(t).tryOpen(NewProcess(timerWithoutKey)), "timer", "without a current key")

	failed := errors.New("no luck")
	closed := 0
	h := newHarness(t)
	err := h.tryOpen(NewProcess(func(*Context[string], *operator.Emitter[row]) (Function[row], error) {
		return Function[row]{Close: func() error { closed++; return nil }}, failed
	}))
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	h.close(t)
	if h.op = nil; closed != 1 {
		t.Errorf("closed %d times after a failed Open", closed)
	}

	h = newHarness(t)
	h.open(t, withTimers(func(x *Context[string], r row) error {
		x.Value(state.Value[int]("late")).Set(1) // opening a state late is fine
		x.List(state.List[int]("late"))
		return nil
	}))
	wantError(t, h.send(0, "a", 1, 0), `"late" is declared twice`)
}
