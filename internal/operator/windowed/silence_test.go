package windowed

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

func silentCount(a window.Assigner, lateness int64) operator.Operator {
	o := Options{Assigner: a, AllowedLateness: lateness, LateOutput: "late", CloseAfterSilence: 1000}
	return AggregateProcess(specOf[element](o), window.Count[element](), func(c *Context[string], out *operator.Emitter[string]) func(iter.Seq[int64]) error {
		return func(counts iter.Seq[int64]) error {
			for n := range counts {
				out.Append(fmt.Sprintf("%s [%d,%d) %d %v", c.Key, c.Window.Start, c.Window.End, n, c.Timing), c.Timestamp, 0)
			}
			return nil
		}
	})
}

func fired(h *harness) (main []string, late int) {
	out := h.take()
	for _, r := range out.main {
		main = append(main, r.Value.(string))
	}
	return main, len(out.sides["late"])
}

func (h *harness) expect(t *testing.T, late int, want ...string) {
	t.Helper()
	got, gotLate := fired(h)
	if !slices.Equal(got, want) || gotLate != late {
		t.Errorf("got %q and %d late records, want %q and %d", got, gotLate, want, late)
	}
}

func at(key string, timestamps ...int64) (records []timed) {
	for _, ts := range timestamps {
		records = append(records, timed{element: element{Key: key}, Timestamp: ts})
	}
	return records
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestSilenceClosesOpenWindows(t *testing.T) {
	tests := []struct {
		name     string
		assigner window.Assigner
		closed   []string
		late     int64
		next     []string
	}{
		{"tumbling", window.Tumbling(ms(10)),
			[]string{"a [0,10) 2 closed by silence", "a [10,20) 1 closed by silence"},
			12, []string{"a [20,30) 1 on-time"}},
		{"session", window.Session(ms(4)),
			[]string{"a [1,6) 2 closed by silence", "a [11,15) 1 closed by silence"},
			8, []string{"a [21,25) 1 on-time"}},
		{"sliding", window.Sliding(ms(10), ms(5)),
			[]string{"a [-5,5) 2 closed by silence", "a [0,10) 2 closed by silence", "a [5,15) 1 closed by silence", "a [10,20) 1 closed by silence"},
			12, []string{"a [15,25) 1 on-time", "a [20,30) 1 on-time"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := openHarness(t, silentCount(tt.assigner, 0))
			must(t, h.process(at("a", 1, 2)...))
			must(t, h.clock.set(900))
			must(t, h.process(at("a", 11)...))
			must(t, h.clock.set(1800))
			h.expect(t, 0) // 0.9 s after the last record
			must(t, h.clock.set(1900))
			h.expect(t, 0, tt.closed...)

			must(t, h.process(at("a", tt.late)...)) // its windows are closed
			h.expect(t, 1)
			must(t, h.process(at("a", 21)...))
			must(t, h.op.Watermark(15)) // behind what silence has closed
			h.expect(t, 0)
			must(t, h.op.Watermark(100))
			h.expect(t, 0, tt.next...)
			if n := h.metrics.NumLateRecords.Value(); n != 1 {
				t.Errorf("%d late records were counted, want 1", n)
			}
			must(t, h.clock.set(10_000))
			h.expect(t, 0)
		})
	}
}

func TestWindowsClosedBySilenceKeepTheirLateness(t *testing.T) {
	h := openHarness(t, silentCount(window.Tumbling(ms(10)), 5))
	must(t, h.process(at("a", 1)...))
	must(t, h.clock.set(1000))
	h.expect(t, 0, "a [0,10) 1 closed by silence")
	must(t, h.process(at("a", 2)...))
	h.expect(t, 0, "a [0,10) 2 late")
}

func TestSilenceDoesNotCountUnderBackPressure(t *testing.T) {
	op := silentCount(window.Tumbling(ms(10)), 0)
	h := openHarness(t, op)
	must(t, h.process(at("a", 1)...))
	must(t, h.clock.set(500))
	op.(operator.BackPressured).BackPressure(true, false)
	must(t, h.clock.set(5000))
	op.(operator.BackPressured).BackPressure(false, true)
	must(t, h.clock.set(9000))
	op.(operator.BackPressured).BackPressure(false, false)
	must(t, h.clock.set(9499))
	h.expect(t, 0)
	must(t, h.clock.set(9500))
	h.expect(t, 0, "a [0,10) 1 closed by silence")
}

func TestSilenceIsForEventTime(t *testing.T) {
	for _, a := range []window.Assigner{window.Tumbling(ms(10)).ProcessingTime(), window.Global()} {
		if err := (Options{Assigner: a, CloseAfterSilence: 1}).Validate(); err == nil {
			t.Errorf("%v with CloseAfterSilence was accepted", a)
		}
	}
}

// A record from the future must not close the time until then.
func TestSilenceLeavesWindowsOfTheFutureOpen(t *testing.T) {
	for _, a := range []window.Assigner{window.Tumbling(ms(10)), window.Sliding(ms(10), ms(5)), window.Session(ms(4))} {
		h := openHarness(t, silentCount(a, 0))
		must(t, h.process(at("a", 1, 1_000_000)...))
		must(t, h.clock.set(1000))
		if got, late := fired(h); len(got) == 0 || late > 0 {
			t.Fatalf("%v: silence closed %q with %d late records", a, got, late)
		}
		must(t, h.process(at("a", 501, 502)...))
		if got, late := fired(h); len(got) > 0 || late > 0 {
			t.Errorf("%v: after silence records were late (%d) or fired %q because of one from the future", a, late, got)
		}
		must(t, h.op.Watermark(2_000_000))
		if got, late := fired(h); len(got) < 2 || late > 0 {
			t.Errorf("%v: at the end fired %q with %d late records", a, got, late)
		}
	}
}

func TestSilenceAndTriggerDoNotCombine(t *testing.T) {
	s := Spec[string, element]{
		Options: Options{Assigner: window.Tumbling(ms(10)), CloseAfterSilence: 1},
		Trigger: window.ForElements[element](window.CountTrigger(3)),
	}
	if err := s.Validate(); err == nil {
		t.Error("a trigger that silence would pass over was accepted")
	}
}
