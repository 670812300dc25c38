package keyedop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/state"
)

// After a call that went wrong without an error of its own the function is not called again,
// neither for the other records of a batch nor for timers nor for other keys.
func TestFunctionIsNotCalledAfterAFailure(t *testing.T) {
	broken := errors.New("broken")
	calls, failAt := 0, 0
	call := func(x *Context[string]) error {
		if calls++; calls == failAt {
			x.backend.Fail(broken)
		}
		return nil
	}
	build := func() operator.Operator {
		return NewProcess(func(x *Context[string], _ *operator.Emitter[row]) (Function[row], error) {
			seen := x.Value(state.Value[int]("seen"))
			return Function[row]{
				Element: func(r row) error {
					seen.Set(r.Value)
					x.RegisterEventTimer(10)
					x.RegisterProcessingTimer(10)
					if r.Value < 0 {
						return x.EachKey(seen, func(string, state.ValueState[int]) error { return call(x) })
					}
					return call(x)
				},
				Timer: func(int64, Domain) error { return call(x) },
			}, nil
		})
	}
	rows := []row{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}
	for name, do := range map[string]func(*harness) error{
		"records":                func(h *harness) error { return h.op.Process(0, h.batch(0, rows...)) },
		"event-time timers":      func(h *harness) error { return h.op.Watermark(10) },
		"processing-time timers": func(h *harness) error { return h.clock.set(11) },
		"keys":                   func(h *harness) error { return h.send(0, "a", -1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.open(t, build())
			must(t, h.op.Process(0, h.batch(0, rows...)))
			calls, failAt = 0, 2
			if err := do(h); !errors.Is(err, broken) {
				t.Errorf("ended with %v", err)
			}
			if calls != failAt {
				t.Errorf("the function was called %d times, want %d", calls, failAt)
			}
			calls, failAt = 0, 0
		})
	}
}

// Nor is it called after state could not be spilled, before which it may have been.
func TestFunctionIsNotCalledAfterTheDiskFailed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	h := newHarness(t)
	calls := 0
	h.op = NewProcess(func(x *Context[string], _ *operator.Emitter[row]) (Function[row], error) {
		seen := x.Value(state.Value[int]("seen"))
		return Function[row]{Element: func(r row) error { calls++; seen.Set(r.Value); return nil }}, nil
	})
	rt := h.runtime()
	rt.StateMemory, rt.StateDir = 1, file
	must(t, h.op.Open(rt, &h.out))
	var rows []row
	for i := range 1000 {
		rows = append(rows, row{fmt.Sprint(i), i})
	}
	wantError(t, h.op.Process(0, h.batch(0, rows...)), file, "WithStateMemory", `"seen"`)
	if calls == 0 || calls > 256 {
		t.Errorf("the function was called %d times, want at most 256", calls)
	}
}
