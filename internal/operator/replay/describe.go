package replay

import (
	"strconv"
	"time"

	"github.com/lowwater/lowwater/window"
)

// Operator describes a window operator.
type Operator struct {
	Assigner        Assigner `json:"assigner"`
	Trigger         *Trigger `json:"trigger"`
	Evictor         *Evictor `json:"evictor"`
	Function        string   `json:"function"`
	AllowedLateness int64    `json:"allowedLateness"`
	LateSideOutput  bool     `json:"lateSideOutput"`
}

// Assigner describes a window assigner. Times are in milliseconds.
type Assigner struct {
	Type    string              `json:"type"`
	Time    string              `json:"time,omitempty"`
	Size    int64               `json:"size,omitempty"`
	Slide   int64               `json:"slide,omitempty"`
	Offset  int64               `json:"offset,omitempty"`
	Gap     int64               `json:"gap,omitempty"`
	Gaps    []Gap               `json:"gaps,omitempty"`
	Merging bool                `json:"merging,omitempty"`
	Windows map[string][]Window `json:"windows,omitempty"`
}

// Gap is a session's gap for elements of a key and a value; nil matches any.
type Gap struct {
	Key   *string `json:"key,omitempty"`
	Value *int32  `json:"value,omitempty"`
	Gap   int64   `json:"gap"`
}

// Merges reports whether the windows merge.
func (a Assigner) Merges() bool {
	switch a.Type {
	case "session", "dynamic_session", "point_session":
		return true
	default:
		return a.Merging
	}
}

// ByTime reports whether an element's windows depend on its time alone.
func (a Assigner) ByTime() bool {
	switch a.Type {
	case "tumbling", "sliding", "session", "global", "global_end_of_stream":
		return true
	default:
		return false
	}
}

// build returns an assigner that goes by time alone.
func (a Assigner) build() (window.Assigner, error) {
	processing := a.Time == "processing"
	switch a.Type {
	case "tumbling":
		t := window.Tumbling(millis(a.Size)).Offset(millis(a.Offset))
		if processing {
			t = t.ProcessingTime()
		}
		return t, nil
	case "sliding":
		s := window.Sliding(millis(a.Size), millis(a.Slide)).Offset(millis(a.Offset))
		if processing {
			s = s.ProcessingTime()
		}
		return s, nil
	case "session":
		s := window.Session(millis(a.Gap))
		if processing {
			s = s.ProcessingTime()
		}
		return s, nil
	case "global":
		return window.Global(), nil
	case "global_end_of_stream":
		return window.GlobalEndOfStream(), nil
	default:
		return nil, malformed("no such assigner", a.Type)
	}
}

// buildByElement returns an assigner that looks at values, nil if it is none.
func (a Assigner) buildByElement() window.ElementAssigner[Element] {
	switch a.Type {
	case "dynamic_session":
		s := window.DynamicSession(a.GapOf)
		if a.Time == "processing" {
			s = s.ProcessingTime()
		}
		return s
	case "point_session":
		return custom{a, func(e Element, t int64) []window.TimeWindow {
			if e.Value == 33 {
				return []window.TimeWindow{{Start: t, End: t}}
			}
			return []window.TimeWindow{{Start: t, End: t + a.Gap}}
		}}
	case "by_value":
		return custom{a, func(e Element, _ int64) (windows []window.TimeWindow) {
			for _, w := range a.Windows[strconv.Itoa(int(e.Value))] {
				windows = append(windows, window.TimeWindow(w))
			}
			return windows
		}}
	default:
		return nil
	}
}

// GapOf returns the gap of the first rule that matches.
func (a Assigner) GapOf(e Element) time.Duration {
	for _, g := range a.Gaps {
		if (g.Key == nil || *g.Key == e.Key) && (g.Value == nil || *g.Value == e.Value) {
			return millis(g.Gap)
		}
	}
	return 0
}

// custom is an assigner that only tests have.
type custom struct {
	description Assigner
	windows     func(e Element, timestamp int64) []window.TimeWindow
}

func (c custom) Assign(dst []window.TimeWindow, e Element, timestamp, _ int64) ([]window.TimeWindow, error) {
	return append(dst, c.windows(e, timestamp)...), nil
}
func (c custom) IsEventTime() bool { return c.description.Time != "processing" }
func (c custom) Merging() bool     { return c.description.Merges() }
func (c custom) Validate() error   { return nil }
func (c custom) String() string    { return c.description.Type }

// Evictor describes an evictor.
type Evictor struct {
	Type      string  `json:"type"`
	N         int64   `json:"n"`
	Size      int64   `json:"size,omitempty"`
	Threshold float64 `json:"threshold"`
	After     bool    `json:"after,omitempty"`
}

func (v Evictor) build() (window.Evictor[Element], error) {
	var e window.BuiltInEvictor[Element]
	switch v.Type {
	case "count":
		e = window.CountEvictor[Element](v.N)
	case "time":
		e = window.TimeEvictor[Element](millis(v.Size))
	case "delta":
		e = window.DeltaEvictor(v.Threshold, delta)
	default:
		return nil, malformed("no such evictor", v.Type)
	}
	if v.After {
		e = e.After()
	}
	return e, nil
}
