package keyedop

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/state"
)

type connectedCase struct {
	caseHead
	Steps []connectedStep `json:"steps"`
}

type connectedStep struct {
	Do        string            `json:"do"`
	Key       string            `json:"key"`
	Value     int               `json:"value"`
	Timestamp int64             `json:"ts"`
	Timer     *int64            `json:"timer"`
	Emit      []json.RawMessage `json:"emit"`
}

// summing adds the values of both inputs into one state per key. A record whose step has a
// timer registers it.
func (c connectedCase) summing(step *connectedStep) Open[string, result, CoFunction[row, row]] {
	return func(x *Context[string], out *operator.Emitter[result]) (CoFunction[row, row], error) {
		sum := x.Reducing(state.Reducing("sum", func(a, b int) int { return a + b }))
		add := func(input string) func(row) error {
			return func(r row) error {
				sum.Add(r.Value)
				if step.Timer != nil {
					x.RegisterEventTimer(*step.Timer)
				}
				total, _ := sum.Get()
				out.Append(result{"input": input, "key": x.Key(), "sum": total, "watermark": x.Watermark, "ctxTimestamp": optional(x.At)}, x.Timestamp, x.Origin)
				return nil
			}
		}
		return CoFunction[row, row]{
			First:  add("left"),
			Second: add("right"),
			Timer: func(at int64, d Domain) error {
				total, _ := sum.Get()
				out.Append(result{"timer": at, "key": x.Key(), "sum": total}, x.Timestamp, x.Origin)
				return nil
			},
		}, nil
	}
}

// inputSignal feeds watermark_left, idle_right and the like into an input; ok is false
// for other steps.
func inputSignal(combination *progress.Combination, do string, timestamp int64) (ok bool, err error) {
	switch do {
	case "watermark_left":
		return true, combination.Input(0).Watermark(timestamp)
	case "watermark_right":
		return true, combination.Input(1).Watermark(timestamp)
	case "idle_left", "active_left":
		return true, combination.Input(0).Status(do == "idle_left")
	case "idle_right", "active_right":
		return true, combination.Input(1).Status(do == "idle_right")
	}
	return false, nil
}

func TestConformanceConnected(t *testing.T) {
	replay(t, "connected", func(t *testing.T, c connectedCase) {
		h := newHarness(t)
		var step connectedStep
		newOperator := func() operator.Operator { return NewCoProcess(c.summing(&step)) }
		h.open(t, newOperator())
		inputs := progress.NewCombination(2, h.op)
		for i := range c.Steps {
			step = c.Steps[i]
			if ok, err := inputSignal(inputs, step.Do, step.Timestamp); ok {
				must(t, err)
			} else {
				switch step.Do {
				case "left":
					must(t, h.send(0, step.Key, step.Value, step.Timestamp))
				case "right":
					must(t, h.send(1, step.Key, step.Value, step.Timestamp))
				case "checkpoint_restore":
					h.restore(t, newOperator(), 0)
					inputs = progress.NewCombination(2, h.op)
				default:
					t.Fatalf("step %d: unknown step %q", i, step.Do)
				}
			}
			compareInOrder(t, i, step.Do, step.Emit, h.out.take())
		}
	})
}

// compareInOrder compares what a step emitted, signals included, line by line.
func compareInOrder(t *testing.T, i int, do string, emit []json.RawMessage, got []result) {
	t.Helper()
	want := parseResults(t, emit)
	lines := func(results []result) []string {
		lines := []string{}
		for _, r := range results {
			lines = append(lines, asJSON(t, []result{r})...)
		}
		return lines
	}
	if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
		t.Errorf("step %d (%s) emitted (-want +got):\n%s", i, do, diff)
	}
}
