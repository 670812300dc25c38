package replay

import (
	"encoding/json"
	"strconv"

	"github.com/lowwater/lowwater/window"
)

// Trigger describes a trigger. Times are in milliseconds.
type Trigger struct {
	Type           string   `json:"type"`
	N              int64    `json:"n,omitempty"`
	Interval       int64    `json:"interval,omitempty"`
	Lateness       int64    `json:"lateness"`
	Threshold      float64  `json:"threshold"`
	Inner          *Trigger `json:"inner,omitempty"`
	ResetOnElement bool     `json:"resetOnElement,omitempty"`
	ClearOnTimeout bool     `json:"clearOnTimeout,omitempty"`
	// OnElement is by value and OnTimer by time, of a scripted trigger.
	OnElement map[string]Script `json:"onElement,omitempty"`
	OnTimer   map[string]string `json:"onTimer,omitempty"`
}

// Script is what a scripted trigger does on an element.
type Script struct {
	Register []ScriptedTimer `json:"register,omitempty"`
	Delete   []ScriptedTimer `json:"delete,omitempty"`
	Result   string          `json:"result,omitempty"`
}

// ScriptedTimer is ["event", time] or ["processing", time].
type ScriptedTimer struct {
	Processing bool
	At         int64
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *ScriptedTimer) UnmarshalJSON(data []byte) error {
	var parts [2]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	s.Processing = string(parts[0]) == `"processing"`
	return json.Unmarshal(parts[1], &s.At)
}

// MarshalJSON implements json.Marshaler.
func (s ScriptedTimer) MarshalJSON() ([]byte, error) {
	domain := `["event",`
	if s.Processing {
		domain = `["processing",`
	}
	return append(strconv.AppendInt([]byte(domain), s.At, 10), ']'), nil
}

// build returns the trigger; a scripted one notes its calls in log.
func (v Trigger) build(log *triggerLog) (window.ElementTrigger[Element], error) {
	plain := func(t window.Trigger) (window.ElementTrigger[Element], error) {
		return window.ForElements[Element](t), nil
	}
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
		return window.DeltaTrigger(v.Threshold, delta), nil
	case "end_of_stream":
		return plain(window.EndOfStreamTrigger())
	case "never":
		return plain(window.NeverTrigger())
	case "purging", "timeout":
		return v.wrap(log)
	case "always_fire":
		return plain(alwaysFire{})
	case "accum_gc":
		return plain(accumGC{window.EventTimeTrigger(), v.Lateness})
	case "scripted":
		return scripted{v, log}, nil
	default:
		return nil, malformed("no such trigger", v.Type)
	}
}

// wrap returns a trigger around another one.
func (v Trigger) wrap(log *triggerLog) (window.ElementTrigger[Element], error) {
	description, err := need(v.Inner, "inner")
	if err != nil {
		return nil, err
	}
	inner, err := description.build(log)
	if err != nil {
		return nil, err
	}
	if v.Type == "purging" {
		return window.PurgingElementTrigger(inner), nil
	}
	return window.TimeoutElementTrigger(inner, millis(v.Interval),
		window.TimeoutOptions{ResetOnElement: v.ResetOnElement, KeepOnTimeout: !v.ClearOnTimeout}), nil
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
type triggerLog []Emitted

func (l *triggerLog) add(call string, at *int64, w window.TimeWindow) {
	seen := Window(w)
	*l = append(*l, Emitted{Trigger: call, At: at, Window: &seen})
}

func (l *triggerLog) take() []Emitted {
	calls := *l
	*l = nil
	return calls
}

// scripted does what its case says.
type scripted struct {
	script Trigger
	calls  *triggerLog
}

var resultNames = map[string]window.TriggerResult{
	"": window.Continue, "CONTINUE": window.Continue, "FIRE": window.Fire,
	"PURGE": window.Purge, "FIRE_AND_PURGE": window.FireAndPurge,
}

func (s scripted) OnElement(c window.TriggerContext, e Element, _ int64, _ window.TimeWindow) window.TriggerResult {
	do := s.script.OnElement[strconv.Itoa(int(e.Value))]
	for _, t := range do.Register {
		if t.Processing {
			c.RegisterProcessingTimeTimer(t.At)
		} else {
			c.RegisterEventTimeTimer(t.At)
		}
	}
	for _, t := range do.Delete {
		if t.Processing {
			c.DeleteProcessingTimeTimer(t.At)
		} else {
			c.DeleteEventTimeTimer(t.At)
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
