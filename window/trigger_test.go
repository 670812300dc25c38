package window

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

type vectorTrigger struct {
	Type           string         `json:"type"`
	N              int64          `json:"n"`
	Interval       int64          `json:"interval"`
	Threshold      float64        `json:"threshold"`
	Inner          *vectorTrigger `json:"inner"`
	ResetOnElement bool           `json:"resetOnElement"`
	ClearOnTimeout bool           `json:"clearOnTimeout"`
}

func (v vectorTrigger) build(t *testing.T) ElementTrigger[int32] {
	t.Helper()
	plain := func(p Trigger) ElementTrigger[int32] { return ForElements[int32](p) }
	switch v.Type {
	case "event_time":
		return plain(EventTimeTrigger())
	case "processing_time":
		return plain(ProcessingTimeTrigger())
	case "continuous_event":
		return plain(ContinuousEventTimeTrigger(millis(v.Interval)))
	case "continuous_processing":
		return plain(ContinuousProcessingTimeTrigger(millis(v.Interval)))
	case "count":
		return plain(CountTrigger(v.N))
	case "delta":
		return DeltaTrigger(v.Threshold, func(a, b int32) float64 { return float64(b - a) })
	case "end_of_stream":
		return plain(EndOfStreamTrigger())
	case "purging":
		return PurgingElementTrigger(v.Inner.build(t))
	case "timeout":
		return TimeoutElementTrigger(v.Inner.build(t), millis(v.Interval),
			TimeoutOptions{ResetOnElement: v.ResetOnElement, KeepOnTimeout: !v.ClearOnTimeout})
	default:
		t.Fatalf("unknown trigger %q", v.Type)
		return nil
	}
}

// triggerHost runs one trigger for one key, without an operator.
type triggerHost struct {
	trigger        ElementTrigger[int32]
	watermark, now int64
	scopes         map[TimeWindow]*Scope
	timers         []hostTimer
}

type hostTimer struct {
	processing bool
	at         int64
	window     TimeWindow
}

func newTriggerHost(trigger ElementTrigger[int32]) *triggerHost {
	return &triggerHost{trigger: trigger, watermark: math.MinInt64, scopes: map[TimeWindow]*Scope{}}
}

func (h *triggerHost) scope(w TimeWindow) *Scope {
	if h.scopes[w] == nil {
		h.scopes[w] = &Scope{}
	}
	return h.scopes[w]
}

func (h *triggerHost) count(processing bool) int {
	n := 0
	for _, t := range h.timers {
		if t.processing == processing {
			n++
		}
	}
	return n
}

// fire calls the timers of one domain up to time t, in order.
func (h *triggerHost) fire(processing bool, t int64) []triggerCall {
	var calls []triggerCall
	for {
		slices.SortStableFunc(h.timers, func(a, b hostTimer) int { return cmp.Compare(a.at, b.at) })
		i := slices.IndexFunc(h.timers, func(x hostTimer) bool { return x.processing == processing && x.at <= t })
		if i < 0 {
			return calls
		}
		timer := h.timers[i]
		h.timers = slices.Delete(h.timers, i, i+1)
		c := hostContext{h, timer.window, nil}
		var r TriggerResult
		if processing {
			r = h.trigger.OnProcessingTime(c, timer.at, timer.window)
		} else {
			r = h.trigger.OnEventTime(c, timer.at, timer.window)
		}
		if r != Continue {
			calls = append(calls, triggerCall{vectorWindow(timer.window), r.String()})
		}
	}
}

type hostContext struct {
	*triggerHost
	window TimeWindow
	merged []*Scope
}

func (c hostContext) CurrentWatermark() int64      { return c.watermark }
func (c hostContext) CurrentProcessingTime() int64 { return c.now }
func (c hostContext) Scope() *Scope                { return c.scope(c.window) }
func (c hostContext) Merged() []*Scope             { return c.merged }

func (c hostContext) register(t hostTimer) {
	if !slices.Contains(c.timers, t) {
		c.timers = append(c.timers, t)
	}
}

func (c hostContext) remove(t hostTimer) {
	c.timers = slices.DeleteFunc(c.timers, func(x hostTimer) bool { return x == t })
}

func (c hostContext) RegisterEventTimeTimer(t int64)      { c.register(hostTimer{false, t, c.window}) }
func (c hostContext) RegisterProcessingTimeTimer(t int64) { c.register(hostTimer{true, t, c.window}) }
func (c hostContext) DeleteEventTimeTimer(t int64)        { c.remove(hostTimer{false, t, c.window}) }
func (c hostContext) DeleteProcessingTimeTimer(t int64)   { c.remove(hostTimer{true, t, c.window}) }

type triggerCase struct {
	caseHead
	Trigger  vectorTrigger `json:"trigger"`
	Steps    []triggerStep `json:"steps"`
	CanMerge bool          `json:"canMerge"`
}

type triggerStep struct {
	Do               string         `json:"do"`
	Window           vectorWindow   `json:"window"`
	Value            *int32         `json:"value"`
	Timestamp        *int64         `json:"ts"`
	Time             int64          `json:"t"`
	Into             vectorWindow   `json:"into"`
	From             []vectorWindow `json:"from"`
	Result           string         `json:"result"`
	Results          []triggerCall  `json:"results"`
	EventTimers      int            `json:"eventTimers"`
	ProcessingTimers int            `json:"processingTimers"`
}

type triggerCall struct {
	Window vectorWindow `json:"window"`
	Result string       `json:"result"`
}

func TestConformanceTriggers(t *testing.T) {
	replay(t, "trigger", func(t *testing.T, c triggerCase) {
		h := newTriggerHost(c.Trigger.build(t))
		if err := h.trigger.Validate(); err != nil {
			t.Fatal(err)
		}
		if h.trigger.CanMerge() != c.CanMerge {
			t.Errorf("CanMerge: %v, want %v", h.trigger.CanMerge(), c.CanMerge)
		}
		for i, step := range c.Steps {
			result, results := h.step(t, step)
			if result != step.Result {
				t.Errorf("step %d (%s): %q, want %q", i, step.Do, result, step.Result)
			}
			if diff := gocmp.Diff(sortedCalls(t, step.Results), sortedCalls(t, results)); diff != "" {
				t.Errorf("step %d (%s) (-want +got):\n%s", i, step.Do, diff)
			}
			if event, processing := h.count(false), h.count(true); event != step.EventTimers || processing != step.ProcessingTimers {
				t.Errorf("step %d (%s): %d event and %d processing timers left, want %d and %d",
					i, step.Do, event, processing, step.EventTimers, step.ProcessingTimers)
			}
		}
	})
}

func (h *triggerHost) step(t *testing.T, step triggerStep) (result string, results []triggerCall) {
	t.Helper()
	w := TimeWindow(step.Window)
	c := hostContext{triggerHost: h, window: w}
	switch step.Do {
	case "element":
		value, timestamp := int32(1), w.Start
		if step.Value != nil {
			value = *step.Value
		}
		if step.Timestamp != nil {
			timestamp = *step.Timestamp
		}
		return h.trigger.OnElement(c, value, timestamp, w).String(), nil
	case "watermark":
		h.watermark = step.Time
		return "", h.fire(false, step.Time)
	case "processing_time":
		h.now = step.Time
		return "", h.fire(true, step.Time)
	case "clear":
		h.trigger.Clear(c, w)
	case "merge":
		into := TimeWindow(step.Into)
		merged := hostContext{triggerHost: h, window: into}
		for _, from := range step.From {
			merged.merged = append(merged.merged, h.scope(TimeWindow(from)))
		}
		h.trigger.OnMerge(merged, into)
		for _, from := range step.From {
			h.trigger.Clear(hostContext{triggerHost: h, window: TimeWindow(from)}, TimeWindow(from))
		}
	default:
		t.Fatalf("unknown step %q", step.Do)
	}
	return "", nil
}

func sortedCalls(t *testing.T, calls []triggerCall) []string {
	t.Helper()
	var lines []string
	for _, c := range calls {
		lines = append(lines, fmt.Sprint(TimeWindow(c.Window), c.Result))
	}
	slices.Sort(lines)
	return lines
}

func (w vectorWindow) MarshalJSON() ([]byte, error) { return json.Marshal([2]int64{w.Start, w.End}) }

func TestTriggersValidate(t *testing.T) {
	for _, test := range []struct {
		trigger timerCallbacks
		want    string
	}{
		{CountTrigger(0), "window.CountTrigger: 0: must be at least 1"},
		{ContinuousEventTimeTrigger(0), "window.ContinuousEventTimeTrigger: interval 0s: must be at least 1ms"},
		{ContinuousProcessingTimeTrigger(1500 * time.Microsecond), "window.ContinuousProcessingTimeTrigger: interval 1.5ms: must be a whole number of milliseconds"},
		{PurgingTrigger(CountTrigger(-1)), "window.CountTrigger: -1: must be at least 1"},
		{TimeoutTrigger(CountTrigger(1), -time.Second, TimeoutOptions{}), "window.TimeoutTrigger: timeout -1s: must be at least 1ms"},
		{TimeoutTrigger(CountTrigger(0), time.Second, TimeoutOptions{}), "window.CountTrigger: 0: must be at least 1"},
		{DeltaTrigger[int](1, nil), "window.DeltaTrigger: the delta function is nil"},
		{PurgingTrigger(EventTimeTrigger()), ""},
	} {
		got := ""
		if err := test.trigger.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v:\n got %q\nwant %q", test.trigger, got, test.want)
		}
	}
}

func TestTriggerStrings(t *testing.T) {
	got := PurgingTrigger(TimeoutTrigger(CountTrigger(3), time.Second, TimeoutOptions{ResetOnElement: true})).String()
	want := "window.PurgingTrigger(window.TimeoutTrigger(window.CountTrigger(3), 1s, window.TimeoutOptions{ResetOnElement:true, KeepOnTimeout:false}))"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A watermark that jumps over many intervals of the global window, such as the one
// at the end of a stream, must not fire for each.
func TestContinuousTriggerInGlobalWindowEnds(t *testing.T) {
	h := newTriggerHost(ForElements[int32](ContinuousEventTimeTrigger(time.Second)))
	c := hostContext{triggerHost: h, window: GlobalWindow}
	h.trigger.OnElement(c, 1, 500, GlobalWindow)
	for _, test := range []struct {
		watermark int64
		firings   int
	}{
		{999, 0},
		{1000, 1},
		{3500, 2},
		{1_700_000_000_500, 1},
		{1_700_000_001_000, 1},
		{math.MaxInt64, 2},
	} {
		h.watermark = test.watermark
		if got := len(h.fire(false, test.watermark)); got != test.firings {
			t.Fatalf("watermark %d: %d firings, want %d", test.watermark, got, test.firings)
		}
	}
}

// An event-time window that lies behind the clock fires once per element, not without
// end.
func TestContinuousProcessingTriggerBehindTheClockEnds(t *testing.T) {
	h := newTriggerHost(ForElements[int32](ContinuousProcessingTimeTrigger(time.Second)))
	w := TimeWindow{0, 10_000}
	c := hostContext{triggerHost: h, window: w}
	h.now = 1_700_000_000_000
	for range 2 {
		h.trigger.OnElement(c, 1, 5, w)
		if got := len(h.fire(true, h.now)); got != 1 {
			t.Fatalf("%d firings, want 1", got)
		}
	}
}

func TestStateIsPerScope(t *testing.T) {
	count := NewMergingState("count", func(a, b int64) int64 { return a + b })
	name := NewState[string]("count") // of another type, so another state
	var a, b Scope
	count.Set(&a, 3)
	count.Set(&a, 4)
	count.Set(&b, 5)
	name.Set(&a, "x")
	if v, ok := name.Get(&b); ok {
		t.Errorf("name of b is %q, want none", v)
	}
	count.Merge(&a, []*Scope{&b, {}})
	if v, _ := count.Get(&a); v != 9 {
		t.Errorf("merged count %d, want 9", v)
	}
	count.Clear(&a)
	if v, ok := name.Get(&a); !ok || v != "x" {
		t.Errorf("name %q, %v after clearing the count", v, ok)
	}
	name.Clear(&a)
	if !a.Empty() || !b.Empty() {
		t.Error("Empty is wrong after clearing")
	}
}

func TestEvictors(t *testing.T) {
	const none = noTimestamp
	elements := func(pairs ...int64) []Timestamped[int64] {
		var list []Timestamped[int64]
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, Timestamped[int64]{pairs[i], pairs[i+1]})
		}
		return list
	}
	distance := func(element, last int64) float64 { return float64(last - element) }
	for _, test := range []struct {
		evictor  BuiltInEvictor[int64]
		in, want []Timestamped[int64]
	}{
		{CountEvictor[int64](2), elements(1, 10, 2, 20, 3, 30), elements(2, 20, 3, 30)},
		{CountEvictor[int64](5), elements(1, 10, 2, 20), elements(1, 10, 2, 20)},
		{CountEvictor[int64](0), elements(1, 10), nil},
		{TimeEvictor[int64](10 * time.Millisecond), elements(1, 25, 2, 20, 3, 30, 4, 21), elements(1, 25, 3, 30, 4, 21)},
		{TimeEvictor[int64](10 * time.Millisecond), elements(1, none, 2, 20, 3, 30), elements(1, none, 2, 20, 3, 30)},
		{DeltaEvictor(2, distance), elements(1, 0, 9, 0, 2, 0, 3, 0), elements(9, 0, 2, 0, 3, 0)},
		{DeltaEvictor(2, distance), nil, nil},
	} {
		if err := test.evictor.Validate(); err != nil {
			t.Fatal(err)
		}
		keep := func(e BuiltInEvictor[int64]) (before, after []Timestamped[int64]) {
			return slices.Concat(e.EvictBefore(slices.Clone(test.in), GlobalWindow)),
				slices.Concat(e.EvictAfter(slices.Clone(test.in), GlobalWindow))
		}
		before, after := keep(test.evictor)
		if diff := gocmp.Diff(test.want, before) + gocmp.Diff(test.in, after); diff != "" {
			t.Errorf("%v:\n%s", test.evictor, diff)
		}
		before, after = keep(test.evictor.After())
		if diff := gocmp.Diff(test.in, before) + gocmp.Diff(test.want, after); diff != "" {
			t.Errorf("%v:\n%s", test.evictor.After(), diff)
		}
	}
	for _, e := range []BuiltInEvictor[int]{CountEvictor[int](-1), TimeEvictor[int](0), DeltaEvictor[int](1, nil)} {
		if e.Validate() == nil {
			t.Errorf("%v is valid", e)
		}
	}
}
