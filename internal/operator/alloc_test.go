//go:build !race

package operator

import (
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
)

// TestSteadyStateAllocatesNothing: behind the first batches, which fill the pools, no
// operator allocates. The race detector empties pools at random, so it is left out.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	monotonous := eventtime.ForMonotonousTimestamps[int]()
	ops := map[string]Operator{
		"map":      NewMap(double),
		"filter":   NewFilter(isOdd),
		"flat map": NewFlatMap(func(v int, emit func(int)) { emit(v); emit(v) }),
		"process": NewProcess(func(e *Element, out *Emitter[int]) func(int) error {
			return func(v int) error {
				out.Append(v, e.Timestamp, e.Origin)
				Side[int](e, "side").Append(v, e.Timestamp, e.Origin)
				return nil
			}
		}),
		"timestamps":                  NewTimestamps(monotonous),
		"timestamps record by record": NewTimestamps(eventtime.ForGenerator(func() eventtime.WatermarkGenerator[int] { return onEvent{} })),
	}
	pool := connector.NewPool[int]()
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			rt, _ := testRuntime(t)
			must(t, op.Open(rt, release{}))
			allocs := testing.AllocsPerRun(100, func() {
				b := pool.Get()
				for i := range 1000 {
					b.Append(i, int64(i), 0)
				}
				must(t, op.Process(0, b))
			})
			if allocs > 0 {
				t.Errorf("%v allocations per batch of 1000 records, want none", allocs)
			}
		})
	}
}

// release is an output that gives everything back.
type release struct{ nowhere }

func (release) Emit(p exchange.Payload) error               { p.Release(); return nil }
func (release) EmitSide(_ string, p exchange.Payload) error { p.Release(); return nil }
