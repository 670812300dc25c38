package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lowwater/lowwater/window"
)

// TriggerHost runs one trigger for one key, without an operator.
type TriggerHost struct {
	trigger        window.ElementTrigger[Element]
	watermark, now int64
	scopes         map[window.TimeWindow]*window.Scope
	timers         []hostTimer
}

type hostTimer struct {
	processing bool
	at         int64
	window     window.TimeWindow
}

// NewTriggerHost returns a host with the watermark at its beginning and the clock at 0.
func NewTriggerHost(trigger window.ElementTrigger[Element]) *TriggerHost {
	return &TriggerHost{trigger: trigger, watermark: math.MinInt64, scopes: map[window.TimeWindow]*window.Scope{}}
}

// OnElement shows an element to the trigger.
func (h *TriggerHost) OnElement(e Element, timestamp int64, w window.TimeWindow) window.TriggerResult {
	return h.trigger.OnElement(h.context(w), e, timestamp, w)
}

// Watermark calls the event-time timers up to t and returns what the trigger answered.
func (h *TriggerHost) Watermark(t int64) []TriggerCall {
	h.watermark = t
	return h.fire(false, t)
}

// Clock is Watermark for processing time.
func (h *TriggerHost) Clock(t int64) []TriggerCall {
	h.now = t
	return h.fire(true, t)
}

func (h *TriggerHost) fire(processing bool, t int64) (calls []TriggerCall) {
	for {
		slices.SortStableFunc(h.timers, func(a, b hostTimer) int { return cmp.Compare(a.at, b.at) })
		i := slices.IndexFunc(h.timers, func(x hostTimer) bool { return x.processing == processing && x.at <= t })
		if i < 0 {
			return calls
		}
		timer := h.timers[i]
		h.timers = slices.Delete(h.timers, i, i+1)
		var r window.TriggerResult
		if processing {
			r = h.trigger.OnProcessingTime(h.context(timer.window), timer.at, timer.window)
		} else {
			r = h.trigger.OnEventTime(h.context(timer.window), timer.at, timer.window)
		}
		calls = append(calls, TriggerCall{Window(timer.window), r.String()})
	}
}

// clear and merge do what an operator does when windows go.
func (h *TriggerHost) clear(w window.TimeWindow) { h.trigger.Clear(h.context(w), w) }

func (h *TriggerHost) merge(into window.TimeWindow, from []window.TimeWindow) {
	c := h.context(into)
	for _, w := range from {
		c.merged = append(c.merged, h.scope(w))
	}
	h.trigger.OnMerge(c, into)
	for _, w := range from {
		h.clear(w)
	}
}

func (h *TriggerHost) scope(w window.TimeWindow) *window.Scope {
	if h.scopes[w] == nil {
		h.scopes[w] = &window.Scope{}
	}
	return h.scopes[w]
}

func (h *TriggerHost) count(processing bool) *int {
	n := 0
	for _, t := range h.timers {
		if t.processing == processing {
			n++
		}
	}
	return &n
}

func (h *TriggerHost) context(w window.TimeWindow) *hostContext { return &hostContext{h, w, nil} }

// hostContext is the window.TriggerContext of one call.
type hostContext struct {
	*TriggerHost
	window window.TimeWindow
	merged []*window.Scope
}

func (c *hostContext) CurrentWatermark() int64      { return c.watermark }
func (c *hostContext) CurrentProcessingTime() int64 { return c.now }
func (c *hostContext) Scope() *window.Scope         { return c.scope(c.window) }
func (c *hostContext) Merged() []*window.Scope      { return c.merged }

func (c *hostContext) register(t hostTimer) {
	if !slices.Contains(c.timers, t) {
		c.timers = append(c.timers, t)
	}
}

func (c *hostContext) remove(t hostTimer) {
	c.timers = slices.DeleteFunc(c.timers, func(x hostTimer) bool { return x == t })
}

func (c *hostContext) RegisterEventTimeTimer(t int64)      { c.register(hostTimer{false, t, c.window}) }
func (c *hostContext) RegisterProcessingTimeTimer(t int64) { c.register(hostTimer{true, t, c.window}) }
func (c *hostContext) DeleteEventTimeTimer(t int64)        { c.remove(hostTimer{false, t, c.window}) }
func (c *hostContext) DeleteProcessingTimeTimer(t int64)   { c.remove(hostTimer{true, t, c.window}) }

// AnswerTrigger runs a case of kind trigger and returns it with what came out in place of
// what was expected. An error says that the case is not of that form.
func AnswerTrigger(c Case) (Case, error) {
	description, err := need(c.Trigger, "trigger")
	if err != nil {
		return Case{}, err
	}
	var log triggerLog
	trigger, err := description.build(&log)
	if err != nil {
		return Case{}, err
	}
	answer := c
	answer.ConstructError, answer.Steps = "", nil
	if err := trigger.Validate(); err != nil {
		answer.ConstructError = err.Error()
		return answer, nil
	}
	merges := trigger.CanMerge()
	answer.CanMerge = &merges
	h := NewTriggerHost(trigger)
	for i, step := range c.Steps {
		answered := step.question()
		if err := h.step(&answered); err != nil {
			return Case{}, fmt.Errorf("case %s: step %d (%s): %w", c.ID, i, step.Do, err)
		}
		answered.EventTimers, answered.ProcessingTimers = h.count(false), h.count(true)
		answer.Steps = append(answer.Steps, answered)
	}
	return answer, nil
}

// step does one thing and notes what came out.
func (h *TriggerHost) step(s *Step) (err error) {
	var w, into Window
	var t int64
	switch s.Do {
	case "element", "clear":
		w, err = need(s.Window, "window")
	case "watermark", "processing_time":
		t, err = need(s.Time, "t")
	case "merge":
		into, err = need(s.Into, "into")
	}
	if err != nil {
		return err
	}
	switch s.Do {
	case "element":
		value, timestamp := int32(1), w.Start
		if s.Value != nil {
			value = *s.Value
		}
		if !s.Timestamp.IsZero() {
			timestamp = s.Timestamp.Millis()
		}
		s.Result = h.OnElement(Element{"k", value}, timestamp, window.TimeWindow(w)).String()
	case "watermark":
		s.Results = h.Watermark(t)
	case "processing_time":
		s.Results = h.Clock(t)
	case "clear":
		h.clear(window.TimeWindow(w))
	case "merge":
		var from []window.TimeWindow
		for _, w := range s.From {
			from = append(from, window.TimeWindow(w))
		}
		h.merge(window.TimeWindow(into), from)
	default:
		return malformed("no such step", s.Do)
	}
	return nil
}
