package windowed

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

var keyFirings = window.NewState[int32]("firings of the key")

// firingsFunction emits, with the values, how often key and window have fired, which it keeps
// in its states.
func firingsFunction(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
	return func(elements iter.Seq[element]) error {
		values := []int32{}
		for e := range elements {
			values = append(values, e.Value)
		}
		ofKey, err := c.KeyState()
		if err != nil {
			return err
		}
		n, _ := keyFirings.Get(ofKey)
		keyFirings.Set(ofKey, n+1)
		values = append(values, -n)
		if ofWindow, err := c.WindowState(); err == nil {
			n, _ := windowFirings.Get(ofWindow)
			windowFirings.Set(ofWindow, n+1)
			values = append(values, int32(-n))
		}
		out.Append(firing{c.Key, values, c.Window, c.Timing}, c.Timestamp, 0)
		return nil
	}
}

// generalKinds are ways to use the general operator.
var generalKinds = map[string]func(Options) operator.Operator{
	"records": func(o Options) operator.Operator {
		return Process(Spec[string, element]{Options: o, State: true}, listFunction)
	},
	"states of the function": func(o Options) operator.Operator {
		return Process(Spec[string, element]{Options: o, State: true}, firingsFunction)
	},
	"states of the trigger": func(o Options) operator.Operator {
		return Process(Spec[string, element]{Options: o, Trigger: window.ForElements[element](window.CountTrigger(2))}, listFunction)
	},
	"evicted": func(o Options) operator.Operator {
		return Process(Spec[string, element]{Options: o, Evictor: window.CountEvictor[element](3)}, listFunction)
	},
	"by value": func(o Options) operator.Operator {
		gaps := window.DynamicSession(func(e element) time.Duration { return millis(int64(e.Value%7) + 1) })
		o.Assigner = nil
		return Process(Spec[string, element]{Options: o, ElementAssigner: gaps}, listFunction)
	},
}

// The general operator with budgets of which some hold nothing gives what it gives without,
// with checkpoints and restarts with another budget and parallelism at any moment.
func TestSpillingGeneralChangesNothing(t *testing.T) {
	for name, build := range generalKinds {
		t.Run(name, func(t *testing.T) {
			var written, read int64
			rapid.Check(t, func(r *rapid.T) {
				s := drawScenario(r)
				whole := openHarness(t, build(s.options()))
				f := newFleetWith(t, func() operator.Operator { return build(s.options()) }, func() int64 {
					return rapid.SampledFrom([]int64{1, 1, 300, 1000, 0}).Draw(r, "budget")
				})
				restartsDoNotMatter(t, r, s, whole, f, s.assigner.Merging())
				for _, h := range f.subtasks {
					written += h.metrics.State.SpillWrites.Value()
					read += h.metrics.State.SpillReads.Value()
				}
				f.close(t) // many stores at once are many open files
				f.subtasks = nil
			})
			if written == 0 || read == 0 {
				t.Errorf("%d keys written and %d read, want some", written, read)
			}
		})
	}
}

// Without restarts not even the order of what comes out changes.
func TestSpillingGeneralKeepsTheOrder(t *testing.T) {
	for name, build := range generalKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				s := drawScenario(r)
				spillInTheSameOrder(t, r, s, func() operator.Operator { return build(s.options()) })
			})
		})
	}
}

// Windows with states are whole on disk, in memory and in snapshots, while these are written
// and keys move.
func TestSpillingGeneralWhileSnapshotsAreWritten(t *testing.T) {
	spillWhileSnapshotsAreWritten(t, window.Tumbling(ms(100)), map[string]func(Options) operator.Operator{
		"aggregates": func(o Options) operator.Operator {
			return AggregateProcess(Spec[string, element]{Options: o, State: true}, tallies{}, single(func(s string) any { return s }))
		},
		"records": generalKinds["records"],
		"evicted": generalKinds["evicted"],
	})
}

// The general operator keeps to its budget, also while a watermark ends all windows, and
// leaves nothing on disk of them.
func TestSpilledGeneralKeepsTheBudget(t *testing.T) {
	const budget, keys = 512 << 10, 20_000
	build := generalKinds["records"]
	h := openSpilling(t, build(Options{Assigner: window.Tumbling(time.Second)}), func(rt *operator.Runtime) { rt.StateMemory = budget })
	must(t, h.op.Close())
	o := build(Options{Assigner: window.Tumbling(time.Second)}).(*general[string, element, []element])
	h.op = o
	most, numbers := 0, &h.metrics.State
	out := &watcher{look: func() { most = max(most, o.keys.Len()) }}
	must(t, o.Open(h.runtime(), out))
	for i := range keys / 100 {
		var records []timed
		for n := range 100 {
			records = append(records, timed{element{fmt.Sprint("key ", 100*i+n), int32(n)}, int64(i), 0})
		}
		must(t, h.process(records...))
		if n := numbers.MemoryBytes.Value(); n > budget {
			t.Fatalf("%d bytes in memory after %d keys, with a budget of %d", n, 100*(i+1), budget)
		}
	}
	inMemory := o.keys.Len()
	if n := numbers.SpilledEntries.Value(); n < keys*8/10 || n+int64(inMemory) != keys {
		t.Errorf("%d of %d keys are on disk, and %d in memory", n, keys, inMemory)
	}
	must(t, o.Watermark(1<<40))
	if out.records != keys {
		t.Errorf("%d windows fired, want %d", out.records, keys)
	}
	if most > inMemory+settleSlack {
		t.Errorf("%d keys were in memory at a time while windows fired, %d before", most, inMemory)
	}
	event, clock := o.TimersLeft()
	if n := o.spilled.keys.Len(); n != 0 || event != 0 || clock != 0 {
		t.Errorf("%d keys, %d event and %d processing timers left", n, event, clock)
	}
}

// Silence closes windows that are on disk, but not those that begin later; and the end of the
// input counts them.
func TestSilenceClosesWindowsOnDisk(t *testing.T) {
	o := Options{Assigner: window.Tumbling(ms(10)), CloseAfterSilence: 1000}
	h := openSpilling(t, generalKinds["records"](o), nil)
	h.clock.now = 100
	must(t, h.process(timed{element{"a", 1}, 100, 0}, timed{element{"b", 2}, 20, 0}, timed{element{"c", 3}, 9000, 0}))
	must(t, h.clock.set(1100))
	if diff := cmp.Diff([]string{"b [20, 30) [2] closed by silence", "a [100, 110) [1] closed by silence"}, h.panes()); diff != "" {
		t.Error(diff)
	}
	if n := h.metrics.State.SpilledEntries.Value(); n != 1 {
		t.Errorf("%d keys on disk, want 1", n)
	}
}
