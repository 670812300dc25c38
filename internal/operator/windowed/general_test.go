package windowed

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

func (o *general[K, T, A]) adopt(old operator.Operator) {
	from := old.(*general[K, T, A])
	o.keys, o.eventTimers, o.clockTimers = from.keys, from.eventTimers, from.clockTimers
}

func (o *general[K, T, A]) timersLeft() (event, clock int) {
	return o.eventTimers.Len(), o.clockTimers.Len()
}

type vectorTrigger struct {
	Type           string         `json:"type"`
	N              int64          `json:"n"`
	Interval       int64          `json:"interval"`
	Lateness       int64          `json:"lateness"`
	Threshold      float64        `json:"threshold"`
	Inner          *vectorTrigger `json:"inner"`
	ResetOnElement bool           `json:"resetOnElement"`
	ClearOnTimeout bool           `json:"clearOnTimeout"`
	// OnElement is by value, OnTimer by time.
	OnElement map[string]scriptedElement `json:"onElement"`
	OnTimer   map[string]string          `json:"onTimer"`
}

type scriptedElement struct {
	Register []scriptedTimer `json:"register"`
	Delete   []scriptedTimer `json:"delete"`
	Result   string          `json:"result"`
}

// scriptedTimer is [domain, time].
type scriptedTimer [2]any

func (s scriptedTimer) at() int64 { return int64(s[1].(float64)) }

type vectorEvictor struct {
	Type      string  `json:"type"`
	N         int64   `json:"n"`
	Size      int64   `json:"size"`
	Threshold float64 `json:"threshold"`
	After     bool    `json:"after"`
}

func (v vectorTrigger) build(t *testing.T, calls *triggerLog) window.ElementTrigger[element] {
	t.Helper()
	plain := window.ForElements[element]
	switch v.Type {
	case "event_time":
		return plain(window.EventTimeTrigger())
	case "processing_time":
		return plain(window.ProcessingTimeTrigger())
	case "continuous_event":
		return plain(window.ContinuousEventTimeTrigger(millis(v.Interval)))
	case "continuous_processing":
		return plain(window.ContinuousProcessingTimeTrigger(millis(v.Interval)))
	case "count":
		return plain(window.CountTrigger(v.N))
	case "delta":
		return window.DeltaTrigger(v.Threshold, elementDelta)
	case "purging":
		return window.PurgingElementTrigger(v.Inner.build(t, calls))
	case "timeout":
		return window.TimeoutElementTrigger(v.Inner.build(t, calls), millis(v.Interval),
			window.TimeoutOptions{ResetOnElement: v.ResetOnElement, KeepOnTimeout: !v.ClearOnTimeout})
	case "always_fire":
		return plain(alwaysFire{})
	case "accum_gc":
		return plain(accumGC{window.EventTimeTrigger(), v.Lateness})
	case "scripted":
		return scripted{v, calls}
	default:
		t.Fatalf("unknown trigger %q", v.Type)
		return nil
	}
}

func elementDelta(a, b element) float64 { return float64(b.Value - a.Value) }

func (v vectorEvictor) build(t *testing.T) window.Evictor[element] {
	t.Helper()
	var e window.BuiltInEvictor[element]
	switch v.Type {
	case "count":
		e = window.CountEvictor[element](v.N)
	case "time":
		e = window.TimeEvictor[element](millis(v.Size))
	case "delta":
		e = window.DeltaEvictor(v.Threshold, elementDelta)
	default:
		t.Fatalf("unknown evictor %q", v.Type)
	}
	if v.After {
		e = e.After()
	}
	return e
}

// quiet is a trigger that does nothing.
type quiet struct{}

func (quiet) OnEventTime(window.TriggerContext, int64, window.TimeWindow) window.TriggerResult {
	return window.Continue
}
func (quiet) OnProcessingTime(window.TriggerContext, int64, window.TimeWindow) window.TriggerResult {
	return window.Continue
}
func (quiet) CanMerge() bool                                   { return true }
func (quiet) OnMerge(window.TriggerContext, window.TimeWindow) {}
func (quiet) Clear(window.TriggerContext, window.TimeWindow)   {}
func (quiet) Validate() error                                  { return nil }
func (quiet) String() string                                   { return "quiet" }

// alwaysFire answers FIRE to every call.
type alwaysFire struct{ quiet }

func (alwaysFire) OnElement(window.TriggerContext, int64, window.TimeWindow) window.TriggerResult {
	return window.Fire
}
func (alwaysFire) OnEventTime(window.TriggerContext, int64, window.TimeWindow) window.TriggerResult {
	return window.Fire
}
func (alwaysFire) OnProcessingTime(window.TriggerContext, int64, window.TimeWindow) window.TriggerResult {
	return window.Fire
}

// accumGC is the event-time trigger with FIRE_AND_PURGE at the window's end and once
// more lateness after it.
type accumGC struct {
	window.Trigger
	lateness int64
}

func (t accumGC) OnEventTime(_ window.TriggerContext, at int64, w window.TimeWindow) window.TriggerResult {
	if at == w.MaxTimestamp() || at == w.MaxTimestamp()+t.lateness {
		return window.FireAndPurge
	}
	return window.Continue
}

// triggerLog is the calls that a scripted trigger has seen.
type triggerLog []emitted

func (l *triggerLog) add(kind string, at *int64, w window.TimeWindow) {
	vw := vectorWindow(w)
	*l = append(*l, emitted{Trigger: kind, At: at, Window: &vw})
}

func (l *triggerLog) take() []emitted {
	if l == nil {
		return nil
	}
	calls := *l
	*l = nil
	return calls
}

// scripted does what its case says.
type scripted struct {
	script vectorTrigger
	calls  *triggerLog
}

var resultNames = map[string]window.TriggerResult{
	"": window.Continue, "CONTINUE": window.Continue, "FIRE": window.Fire,
	"PURGE": window.Purge, "FIRE_AND_PURGE": window.FireAndPurge,
}

func (s scripted) OnElement(c window.TriggerContext, e element, _ int64, _ window.TimeWindow) window.TriggerResult {
	do := s.script.OnElement[strconv.Itoa(int(e.Value))]
	for _, t := range do.Register {
		if t[0] == "event" {
			c.RegisterEventTimeTimer(t.at())
		} else {
			c.RegisterProcessingTimeTimer(t.at())
		}
	}
	for _, t := range do.Delete {
		if t[0] == "event" {
			c.DeleteEventTimeTimer(t.at())
		} else {
			c.DeleteProcessingTimeTimer(t.at())
		}
	}
	return resultNames[do.Result]
}

func (s scripted) OnEventTime(_ window.TriggerContext, t int64, w window.TimeWindow) window.TriggerResult {
	s.calls.add("event", &t, w)
	return resultNames[s.script.OnTimer[strconv.FormatInt(t, 10)]]
}

func (s scripted) OnProcessingTime(_ window.TriggerContext, t int64, w window.TimeWindow) window.TriggerResult {
	s.calls.add("processing", &t, w)
	return resultNames[s.script.OnTimer[strconv.FormatInt(t, 10)]]
}

func (s scripted) CanMerge() bool { return true }
func (s scripted) OnMerge(_ window.TriggerContext, w window.TimeWindow) {
	s.calls.add("merge", nil, w)
}
func (s scripted) Clear(_ window.TriggerContext, w window.TimeWindow) { s.calls.add("clear", nil, w) }
func (s scripted) Validate() error                                    { return nil }
func (s scripted) String() string                                     { return "scripted" }

// byValue assigns windows by function, for assigners that only tests have.
type byValue struct {
	name      string
	eventTime bool
	merging   bool
	windows   func(e element, timestamp int64) []window.TimeWindow
}

func (a byValue) Assign(dst []window.TimeWindow, e element, timestamp, _ int64) ([]window.TimeWindow, error) {
	return append(dst, a.windows(e, timestamp)...), nil
}
func (a byValue) IsEventTime() bool { return a.eventTime }
func (a byValue) Merging() bool     { return a.merging }
func (a byValue) Validate() error   { return nil }
func (a byValue) String() string    { return a.name }

// buildForElements returns an assigner that looks at values, nil if the type has none.
func (v vectorAssigner) buildForElements() window.ElementAssigner[element] {
	switch v.Type {
	case "dynamic_session":
		a := window.DynamicSession(func(e element) time.Duration {
			for _, g := range v.Gaps {
				if (g.Key == nil || *g.Key == e.Key) && (g.Value == nil || *g.Value == e.Value) {
					return millis(g.Gap)
				}
			}
			return 0
		})
		if v.Time == "processing" {
			a = a.ProcessingTime()
		}
		return a
	case "point_session":
		return byValue{v.Type, true, true, func(e element, timestamp int64) []window.TimeWindow {
			if e.Value == 33 {
				return []window.TimeWindow{{Start: timestamp, End: timestamp}}
			}
			return []window.TimeWindow{{Start: timestamp, End: timestamp + v.Gap}}
		}}
	case "by_value":
		return byValue{v.Type, v.Time != "processing", v.Merging, func(e element, _ int64) []window.TimeWindow {
			var windows []window.TimeWindow
			for _, w := range v.Windows[strconv.Itoa(int(e.Value))] {
				windows = append(windows, window.TimeWindow(w))
			}
			return windows
		}}
	default:
		return nil
	}
}

func (c operatorCase) general(t *testing.T, calls *triggerLog) General[string, element] {
	t.Helper()
	g := General[string, element]{State: true, ElementAssigner: c.Op.Assigner.buildForElements()}
	if g.ElementAssigner == nil {
		g.Options = c.options(c.Op.Assigner.build(t))
	} else {
		g.Options = c.options(nil)
	}
	if c.Op.Trigger != nil {
		g.Trigger = c.Op.Trigger.build(t, calls)
	}
	if c.Op.Evictor != nil {
		g.Evictor = c.Op.Evictor.build(t)
	}
	if c.Op.Function == "context" {
		g.Clear = contextClear
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return g
}

func (c operatorCase) generalOperator(t *testing.T, calls *triggerLog) operator.Operator {
	t.Helper()
	g := c.general(t, calls)
	switch c.Op.Function {
	case "sum":
		return GeneralAggregateProcess(g, sumElements, single(func(e element) any { return e.Value }))
	case "min_max_count":
		return GeneralAggregateProcess(g, minMaxCount{}, single(func(v []int64) any { return v }))
	case "list":
		return GeneralProcess(g, listFunction)
	case "empty":
		return GeneralProcess(g, emptyFunction)
	case "context":
		return GeneralAggregateProcess(g, sumElements, contextFunction)
	default:
		t.Fatalf("unknown function %q", c.Op.Function)
		return nil
	}
}

// functionOutput is the side output of the context function.
const functionOutput = "function"

var windowFirings, keyFirings = window.NewState[int]("firings"), window.NewState[int]("firings")

func contextFunction(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
	return func(elements iter.Seq[element]) error {
		ofWindow, err := c.WindowState()
		if err != nil {
			return err
		}
		ofKey, err := c.KeyState()
		if err != nil {
			return err
		}
		inWindow, _ := windowFirings.Get(ofWindow)
		inKey, _ := keyFirings.Get(ofKey)
		windowFirings.Set(ofWindow, inWindow+1)
		keyFirings.Set(ofKey, inKey+1)
		for e := range elements {
			out.Append(firing{c.Key, map[string]any{
				"sum": e.Value, "windowFirings": inWindow + 1, "keyFirings": inKey + 1,
				"watermark": c.Watermark, "processingTime": c.Runtime().Timers.Now(),
			}, c.Window, c.Timing}, c.Timestamp, 0)
			operator.Side[string](c.Element, functionOutput).Append(fmt.Sprintf("fired %s %d", c.Key, e.Value), c.Timestamp, 0)
		}
		return nil
	}
}

func contextClear(c *Context[string]) error {
	state, err := c.WindowState()
	if err != nil {
		return err
	}
	firings := "null" // the window has not fired
	if n, ok := windowFirings.Get(state); ok {
		firings = strconv.Itoa(n)
	}
	operator.Side[string](c.Element, functionOutput).Append(
		fmt.Sprintf("cleared %d,%d firings=%s", c.Window.Start, c.Window.End, firings), c.Timestamp, 0)
	return nil
}

// What an evictor leaves of a window decides whether it fires again.
func TestWindowThatWasEvictedWholeDoesNotFireAgain(t *testing.T) {
	op := GeneralProcess(General[string, element]{
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
		g := General[string, element]{Options: s.options(), State: true}
		checkAgainstModel(r, s, openHarness(t, GeneralProcess(g, listFunction)), !s.assigner.Merging())
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
		op := GeneralProcess(General[string, element]{Options: s.options(), State: true}, remember)
		h := openHarness(t, op)
		for _, step := range s.steps {
			h.apply(r, step, true, 1024)
		}
		if err := h.clock.set(1 << 40); err != nil {
			r.Fatal(err)
		}
		o := op.(*general[string, element, []element])
		event, clock := o.timersLeft()
		if n := o.keys.Len(); n != 0 || event != 0 || clock != 0 {
			r.Fatalf("%v: %d keys, %d event and %d processing timers left", s.assigner, n, event, clock)
		}
	})
}

func TestGeneralTimings(t *testing.T) {
	op := GeneralProcess(General[string, element]{
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

func TestGeneralValidate(t *testing.T) {
	tumbling := Options{Assigner: window.Tumbling(time.Second)}
	trigger := window.ForElements[element]
	for _, test := range []struct {
		general General[string, element]
		want    string
	}{
		{General[string, element]{Options: tumbling}, ""},
		{General[string, element]{}, "no assigner"},
		{General[string, element]{Options: tumbling, ElementAssigner: byValue{name: "x"}}, "two assigners"},
		{General[string, element]{ElementAssigner: window.DynamicSession[element](nil)}, "gap function is nil"},
		{General[string, element]{Options: tumbling, Trigger: trigger(window.CountTrigger(0))}, "at least 1"},
		{General[string, element]{Options: tumbling, Evictor: window.CountEvictor[element](-1)}, "negative"},
		{General[string, element]{
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
		general   General[string, element]
		ofKey     bool
		windowErr error
	}{
		{General[string, element]{Options: Options{Assigner: window.Tumbling(time.Second)}}, false, errNoState},
		{General[string, element]{Options: Options{Assigner: window.Session(time.Second)}, State: true}, true, errMergingState},
		{General[string, element]{Options: Options{Assigner: window.Tumbling(time.Second)}, State: true}, true, nil},
	} {
		op := GeneralProcess(test.general, func(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
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
	h := openHarness(t, GeneralProcess(General[string, element]{ElementAssigner: gaps}, listFunction))
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
		Process(Options{Assigner: a}, listFunction),
		GeneralProcess(General[string, element]{Options: Options{Assigner: a}, State: true}, listFunction),
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
