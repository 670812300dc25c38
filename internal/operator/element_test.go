package operator

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

func double(v int) int { return 2 * v }

func isOdd(v int) bool { return v%2 == 1 }

func TestElementWiseOperators(t *testing.T) {
	tests := []struct {
		name string
		op   Operator
		want []string
	}{
		{"map", NewMap(func(v int) string { return fmt.Sprint("n", v) }), []string{"[n1@10#1 n2@20#2 n3@30#3]"}},
		{"filter", NewFilter(isOdd), []string{"[1@10#1 3@30#3]"}},
		{"filter of all", NewFilter(func(int) bool { return false }), nil},
		{"flat map", NewFlatMap(func(v int, emit func(string)) {
			for i := range v - 1 {
				emit(fmt.Sprint(v, ".", i))
			}
		}), []string{"[2.0@20#2 3.0@30#3 3.1@30#3]"}},
		{"flat map of many", NewFlatMap(func(v int, emit func(int)) {
			for range 500 {
				emit(v)
			}
		}), []string{"1024 records", "476 records"}},
		{"process", NewProcess(func(e *Element, out *Emitter[int]) func(int) error {
			return func(v int) error {
				out.Append(v, e.Timestamp+e.Watermark, e.Origin)
				if isOdd(v) {
					Side[string](e, "odd").Append(fmt.Sprint("odd ", v), e.Timestamp, e.Origin)
				}
				Side[int](e, "all").Append(v, e.Timestamp, e.Origin)
				return nil
			}
		}), []string{"[1@15#1 2@25#2 3@35#3]", "odd: [odd 1@10#1 odd 3@30#3]", "all: [1@10#1 2@20#2 3@30#3]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _, _ := open(t, tt.op)
			must(t, tt.op.Watermark(5))
			out.expect(t, "watermark 5")
			must(t, tt.op.Process(0, batchOf(1, 2, 3)))
			out.expect(t, tt.want...)
			must(t, tt.op.Status(true))
			must(t, tt.op.Status(false))
			must(t, tt.op.Watermark(40))
			must(t, tt.op.Finish())
			must(t, tt.op.Close())
			out.expect(t, "idle true", "idle false", "watermark 40")
		})
	}
}

func TestCoProcessTellsInputsApart(t *testing.T) {
	op := NewCoProcess(func(e *Element, out *Emitter[string]) (func(int) error, func(string) error) {
		return func(v int) error { out.Append(fmt.Sprint("first ", v), e.Timestamp, e.Origin); return nil },
			func(v string) error { out.Append("second "+v, e.Timestamp, e.Origin); return nil }
	})
	out, _, _ := open(t, op)
	must(t, op.Process(0, batchOf(1)))
	words := &connector.Batch[string]{}
	words.Append("x", 7, connector.MakeOrigin(2, 3))
	must(t, op.Process(1, words))
	out.expect(t, "[first 1@10#1]", "[second x@7#3]")
}

// TestErrorsOfTheOutputComeBack: an operator that emits must not lose the error, nor emit
// more behind it.
func TestErrorsOfTheOutputComeBack(t *testing.T) {
	many := func(v int, emit func(int)) {
		for range 5000 {
			emit(v)
		}
	}
	ops := map[string]Operator{
		"map":      NewMap(double),
		"filter":   NewFilter(isOdd),
		"flat map": NewFlatMap(many),
		"process": NewProcess(func(e *Element, out *Emitter[int]) func(int) error {
			return func(v int) error { many(v, func(v int) { out.Append(v, 0, 0) }); return nil }
		}),
		"side output": NewProcess(func(e *Element, out *Emitter[int]) func(int) error {
			return func(v int) error { many(v, func(v int) { Side[int](e, "x").Append(v, 0, 0) }); return nil }
		}),
		"timestamps": NewTimestamps(eventtime.ForMonotonousTimestamps[int]()),
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			out, _, _ := open(t, op)
			out.failAfter = 1
			first := op.Process(0, batchOf(1))
			second := op.Process(0, batchOf(3))
			if err := errors.Join(first, second); !errors.Is(err, errOutput) {
				t.Errorf("got %v and %v, want %v", first, second, errOutput)
			}
			if out.batches > 3 {
				t.Errorf("the output was called %d times after it had failed", out.batches-2)
			}
		})
	}
}

func TestProcessStopsAtItsError(t *testing.T) {
	broken := errors.New("broken")
	var seen []int
	op := NewProcess(func(*Element, *Emitter[int]) func(int) error {
		return func(v int) error {
			seen = append(seen, v)
			if v == 2 {
				return broken
			}
			return nil
		}
	})
	open(t, op)
	if err := op.Process(0, batchOf(1, 2, 3)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if len(seen) != 2 {
		t.Errorf("the function saw %v, want 1 and 2", seen)
	}
}

func TestSplitRegistry(t *testing.T) {
	var r SplitRegistry
	orders0, orders1, returns0 := r.Number(0, "orders", "0"), r.Number(0, "orders", "1"), r.Number(0, "returns", "0")
	if orders0 != 1 || orders1 != 2 || returns0 != 3 || r.Number(0, "orders", "1") != 2 {
		t.Errorf("numbers %d, %d, %d; then %d", orders0, orders1, returns0, r.Number(0, "orders", "1"))
	}
	if name, ok := r.Name(3); !ok || name != (SplitName{0, "returns", "0"}) {
		t.Errorf("number 3 is %v, %v", name, ok)
	}
	for _, unknown := range []uint32{0, 4} {
		if name, ok := r.Name(unknown); ok {
			t.Errorf("number %d is %v", unknown, name)
		}
	}
}
