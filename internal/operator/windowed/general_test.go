package windowed

import (
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

var windowFirings = window.NewState[int]("firings")

// What an evictor leaves of a window decides whether it fires again.
func TestWindowThatWasEvictedWholeDoesNotFireAgain(t *testing.T) {
	op := Process(Spec[string, element]{
		Options: Options{Assigner: window.Tumbling(10 * time.Millisecond)},
		Trigger: window.ForElements[element](window.ContinuousEventTimeTrigger(3 * time.Millisecond)),
		Evictor: window.CountEvictor[element](0).After(),
	}, listFunction)
	h := openHarness(t, op)
	h.mustProcess(t, timed{element{"k", 1}, 0, 0})
	h.mustAdvance(t, 20)
	if diff := cmp.Diff([]string{"k [0, 10) [1] early"}, h.panes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The general operator with default triggers does what the model does.
func TestGeneralMatchesModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		g := Spec[string, element]{Options: s.options(), State: true}
		checkAgainstModel(r, s, openHarness(t, Process(g, listFunction)), !s.assigner.Merging())
	})
}

// Nothing is left of keys whose windows are gone, not even state that the function
// has not cleared.
func TestGeneralForgets(t *testing.T) {
	remember := func(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
		list := listFunction(c, out)
		return func(elements iter.Seq[element]) error {
			if state, err := c.WindowState(); err == nil {
				windowFirings.Set(state, 1)
			}
			return list(elements)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		s := drawScenario(r)
		op := Process(Spec[string, element]{Options: s.options(), State: true}, remember)
		h := openHarness(t, op)
		for _, step := range s.steps {
			h.apply(r, step, true, 1024)
		}
		if err := h.clock.set(1 << 40); err != nil {
			r.Fatal(err)
		}
		o := op.(*general[string, element, []element])
		event, clock := o.TimersLeft()
		if n := o.keys.Len(); n != 0 || event != 0 || clock != 0 {
			r.Fatalf("%v: %d keys, %d event and %d processing timers left", s.assigner, n, event, clock)
		}
	})
}

func TestGeneralTimings(t *testing.T) {
	op := Process(Spec[string, element]{
		Options: Options{Assigner: window.Tumbling(10 * time.Millisecond), AllowedLateness: 5},
		Trigger: window.ForElements[element](window.ContinuousEventTimeTrigger(4 * time.Millisecond)),
	}, listFunction)
	h := openHarness(t, op)
	h.mustProcess(t, timed{element{"k", 1}, 5, 0})
	h.mustAdvance(t, 9)
	h.mustProcess(t, timed{element{"k", 2}, 6, 0})
	want := []string{"k [0, 10) [1] early", "k [0, 10) [1] on-time", "k [0, 10) [1 2] late"}
	if diff := cmp.Diff(want, h.panes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGeneralTellsTimers: a trigger that waits for event time in a window that does not.
func TestGeneralTellsTimers(t *testing.T) {
	op := Process(Spec[string, element]{
		Options: Options{Assigner: window.Global()}, Trigger: window.ForElements[element](window.ContinuousEventTimeTrigger(10 * time.Millisecond)),
	}, listFunction)
	h := openHarness(t, op)
	told := &h.metrics.EventTimers
	if told.Registered.Value() != 0 || told.Next.Value() != math.MaxInt64 {
		t.Errorf("before the first record: registered %d, next %d", told.Registered.Value(), told.Next.Value())
	}
	h.mustProcess(t, timed{element{"k", 1}, 5, 0})
	if told.Registered.Value() != 1 || told.Next.Value() != 10 {
		t.Errorf("registered %d, next %d, want 1 and 10", told.Registered.Value(), told.Next.Value())
	}
	h.mustAdvance(t, 15)
	if told.Next.Value() != 20 {
		t.Errorf("next %d after the watermark, want 20", told.Next.Value())
	}
}

func TestGeneralValidate(t *testing.T) {
	tumbling := Options{Assigner: window.Tumbling(time.Second)}
	trigger := window.ForElements[element]
	for _, test := range []struct {
		general Spec[string, element]
		want    string
	}{
		{Spec[string, element]{Options: tumbling}, ""},
		{Spec[string, element]{}, "no assigner"},
		{Spec[string, element]{Options: tumbling, ElementAssigner: window.DynamicSession(func(element) time.Duration { return time.Second })}, "two assigners"},
		{Spec[string, element]{ElementAssigner: window.DynamicSession[element](nil)}, "gap function is nil"},
		{Spec[string, element]{Options: tumbling, Trigger: trigger(window.CountTrigger(0))}, "at least 1"},
		{Spec[string, element]{Options: tumbling, Evictor: window.CountEvictor[element](-1)}, "negative"},
		{Spec[string, element]{
			Options: Options{Assigner: window.Session(time.Second)}, Trigger: trigger(window.NeverTrigger()),
		}, "cannot be used with window.Session(1s), whose windows merge"},
	} {
		err := test.general.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.general, err, test.want)
		}
	}
}

// State has to be asked for, and merging windows have none of their own.
func TestStateErrors(t *testing.T) {
	for _, test := range []struct {
		general   Spec[string, element]
		ofKey     bool
		windowErr error
	}{
		{Spec[string, element]{Options: Options{Assigner: window.Tumbling(time.Second)}}, false, errNoState},
		{Spec[string, element]{Options: Options{Assigner: window.Session(time.Second)}, State: true}, true, errMergingState},
		{Spec[string, element]{Options: Options{Assigner: window.Tumbling(time.Second)}, State: true}, true, nil},
	} {
		op := Process(test.general, func(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
			return func(iter.Seq[element]) error {
				if _, err := c.WindowState(); err != test.windowErr {
					t.Errorf("%v: window state: %v, want %v", test.general.Assigner, err, test.windowErr)
				}
				if _, err := c.KeyState(); (err == nil) != test.ofKey {
					t.Errorf("%v: key state: %v", test.general.Assigner, err)
				}
				out.Append(firing{}, 0, 0)
				return nil
			}
		})
		h := openHarness(t, op)
		h.mustProcess(t, timed{element{"k", 1}, 0, 0})
		h.mustAdvance(t, 10_000)
		if got := len(h.take().main); got != 1 {
			t.Errorf("%v: %d firings, want 1", test.general.Assigner, got)
		}
	}
}

// An element whose own window is the same as one that has been merged away leaves
// the contents of the session alone. In Flink they are lost.
func TestDynamicSessionKeepsItsContents(t *testing.T) {
	gaps := window.DynamicSession(func(e element) time.Duration { return millis(int64(e.Value)) })
	h := openHarness(t, Process(Spec[string, element]{ElementAssigner: gaps}, listFunction))
	h.mustProcess(t,
		timed{element{"k", 10}, 0, 0},
		timed{element{"k", 15}, 5, 0}, // the session is now [0, 20)
		timed{element{"k", 20}, 0, 0}) // and this one's own window, too
	h.mustAdvance(t, 19)
	if diff := cmp.Diff([]string{"k [0, 20) [10 15 20] on-time"}, h.panes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A processing-time session that touches the present is extended. In Flink the job
// fails if its last millisecond is the present one.
func TestSessionThatEndsNowIsExtended(t *testing.T) {
	a := window.Session(time.Millisecond).ProcessingTime()
	for _, op := range []operator.Operator{
		Process(specOf[element](Options{Assigner: a}), listFunction),
		Process(Spec[string, element]{Options: Options{Assigner: a}, State: true}, listFunction),
	} {
		h := openHarness(t, op)
		h.mustProcess(t, timed{element{"k", 1}, 0, 0})
		h.clock.now = 1 // the timer has not been called yet
		h.mustProcess(t, timed{element{"k", 2}, 0, 0})
		if err := h.clock.set(2); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"k [0, 2) [1 2] on-time"}, h.panes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A time evictor on elements with and without timestamps takes those without for the oldest.
// In Flink the job fails if the first has one.
func TestTimeEvictorOfElementsWithoutTimestamp(t *testing.T) {
	h := openHarness(t, Process(Spec[string, element]{
		Options: Options{Assigner: window.Global()},
		Trigger: window.ForElements[element](window.CountTrigger(2)),
		Evictor: window.TimeEvictor[element](10 * time.Millisecond),
	}, listFunction))
	h.mustProcess(t, timed{element{"k", 1}, 5, 0}, timed{element{"k", 2}, noTimestamp, 0})
	if diff := cmp.Diff([]int32{1}, h.take().main[0].Value.(firing).Value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
