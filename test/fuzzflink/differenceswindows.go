package main

import (
	"math"
	"slices"
	"strconv"

	"github.com/lowwater/lowwater/internal/operator/replay"
	"github.com/lowwater/lowwater/window"
)

// exclusions are the operators that are not compared, because Flink does not define what
// they do, refuses them, or does harm with them.
var exclusions = []struct {
	why     string
	applies func(op replay.Operator) bool
}{
	{
		"a trigger that cannot merge on merging windows: we refuse to build it, Flink's API as well; the oracle fails at the first merge",
		func(op replay.Operator) bool {
			return op.Assigner.Merges() && op.Trigger != nil && !mergeable(*op.Trigger)
		},
	},
	{
		"no state of single windows where they merge: refused by both, but at different moments",
		func(op replay.Operator) bool { return op.Function == "context" && op.Assigner.Merges() },
	},
	{
		"triggers made for time windows fail on the global window in Flink",
		func(op replay.Operator) bool {
			return isGlobal(op.Assigner) && uses(op.Trigger, "event_time", "processing_time", "accum_gc")
		},
	},
	{
		"in Flink a continuous processing-time trigger hangs on a window that ends behind the clock",
		func(op replay.Operator) bool {
			fixed := op.Assigner.Type == "by_value" || !isGlobal(op.Assigner) && op.Assigner.Time != "processing"
			return fixed && uses(op.Trigger, "continuous_processing")
		},
	},
	{
		"the order of elements after a merge is undefined, and these evictors go by it",
		func(op replay.Operator) bool {
			return op.Assigner.Merges() && op.Evictor != nil && op.Evictor.Type != "time"
		},
	},
	{
		"the oracle has no such function of single elements",
		func(op replay.Operator) bool { return op.Evictor != nil && op.Function == "min_max_count" },
	},
	{
		"the oracle's by_value has an event-time trigger by default, whatever its time; an assigner of ours has the one of its time",
		func(op replay.Operator) bool {
			return op.Assigner.Type == "by_value" && op.Assigner.Time == "processing" && op.Trigger == nil
		},
	},
}

// excluded returns why an operator is not compared, or nothing.
func excluded(op replay.Operator) string {
	for _, e := range exclusions {
		if e.applies(op) {
			return e.why
		}
	}
	return ""
}

// endless: in Flink a continuous event-time trigger fires for every interval up to the
// watermark, for the last one practically without end.
func endless(op replay.Operator) bool {
	return isGlobal(op.Assigner) && uses(op.Trigger, "continuous_event")
}

func isGlobal(a replay.Assigner) bool { return a.Type == "global" || a.Type == "global_end_of_stream" }

// uses reports whether a trigger, or the one in it, is of one of the types.
func uses(t *replay.Trigger, types ...string) bool {
	return t != nil && (slices.Contains(types, t.Type) || uses(t.Inner, types...))
}

// mergeable reports whether a trigger may be used with merging windows.
func mergeable(t replay.Trigger) bool {
	switch t.Type {
	case "purging":
		return mergeable(*t.Inner)
	case "event_time", "processing_time", "continuous_event", "continuous_processing", "count", "scripted":
		return true
	default:
		return false
	}
}

// aloneIsDefined reports whether a trigger is compared without an operator. A continuous
// processing-time trigger hangs in Flink on windows behind the clock.
func aloneIsDefined(t replay.Trigger) bool {
	return !uses(&t, "scripted", "always_fire", "accum_gc", "continuous_processing")
}

// mayLackTimestamp reports whether records without a timestamp are compared. A time evictor
// fails in Flink on a window in which some elements have one and others have not, where
// ours evicts the others; a continuous event-time trigger fires in Flink for every interval
// from the smallest timestamp on, practically without end; and the oracle's point sessions,
// unlike Flink's sessions, do not refuse them.
func mayLackTimestamp(op replay.Operator) bool {
	return op.Assigner.Type != "point_session" && (op.Evictor == nil || op.Evictor.Type != "time") &&
		!uses(op.Trigger, "continuous_event")
}

// comparable returns the beginnings of both answers up to the first step in which Flink is
// known to do harm.
func comparable(flink, ours replay.Case) (replay.Case, replay.Case) {
	n := losesContents(flink)
	if a := flink.Op.Assigner; a.Merges() && a.Time == "processing" {
		// Flink fails the job when a session is extended in its last millisecond, where
		// nothing is wrong with it.
		if i := slices.IndexFunc(flink.Steps, func(s replay.Step) bool { return s.Error != "" }); i >= 0 {
			n = min(n, i)
		}
	}
	if n < len(flink.Steps) {
		flink.Steps, ours.Steps = flink.Steps[:n], ours.Steps[:min(n, len(ours.Steps))]
		flink.End = nil
	}
	return flink, ours
}

// losesContents returns the first step in which Flink loses the contents of a session: an
// element's own window is the same as a window in flight that was merged from others. The
// number of steps means that there is none.
func losesContents(c replay.Case) int {
	s := &sessionsInFlight{op: *c.Op, byKey: map[string][]inFlight{}, watermark: math.MinInt64}
	if !c.Op.Assigner.Merges() {
		return len(c.Steps)
	}
	for i, step := range c.Steps {
		switch step.Do {
		case "element":
			if s.element(step) {
				return i
			}
		case "watermark":
			s.watermark = step.Timestamp.Millis()
		case "processing_time":
			s.clock = *step.Time
			s.expire(true)
		case "checkpoint_restore":
			s.watermark, s.clock = math.MinInt64, 0
			if step.ProcessingTime != nil {
				s.clock = *step.ProcessingTime
			}
		}
		s.expire(false)
	}
	return len(c.Steps)
}

// sessionsInFlight follows what windows there are.
type sessionsInFlight struct {
	op               replay.Operator
	byKey            map[string][]inFlight
	watermark, clock int64
}

type inFlight struct {
	window window.TimeWindow
	merged bool
}

func (s *sessionsInFlight) element(step replay.Step) (loses bool) {
	for _, w := range s.windowsOf(step) {
		result := inFlight{window: w}
		var apart []inFlight
		for _, f := range s.byKey[step.Key] {
			switch {
			case f.window == w && f.merged:
				return true
			case f.window == w:
			case f.window.Touches(w):
				result = inFlight{result.window.Cover(f.window), true}
				if result.window == f.window {
					result.merged = f.merged // it only took the element in
				}
			default:
				apart = append(apart, f)
			}
		}
		s.byKey[step.Key] = append(apart, result)
		s.expire(false)
	}
	return false
}

func (s *sessionsInFlight) windowsOf(step replay.Step) (windows []window.TimeWindow) {
	a, t := s.op.Assigner, step.Timestamp.Millis()
	if a.Time == "processing" {
		t = s.clock
	}
	e := replay.Element{Key: step.Key, Value: *step.Value}
	switch {
	case a.Type == "by_value":
		for _, w := range a.Windows[strconv.Itoa(int(e.Value))] {
			windows = append(windows, window.TimeWindow(w))
		}
		return windows
	case a.Type == "dynamic_session":
		return []window.TimeWindow{{Start: t, End: t + a.GapOf(e).Milliseconds()}}
	case a.Type == "point_session" && e.Value == 33:
		return []window.TimeWindow{{Start: t, End: t}}
	default:
		return []window.TimeWindow{{Start: t, End: t + a.Gap}}
	}
}

// expire forgets windows at their cleanup: by the watermark at any time, by the clock when
// it moves.
func (s *sessionsInFlight) expire(moved bool) {
	for key, windows := range s.byKey {
		s.byKey[key] = slices.DeleteFunc(windows, func(f inFlight) bool {
			if s.op.Assigner.Time == "processing" {
				return moved && f.window.MaxTimestamp() <= s.clock
			}
			return f.window.MaxTimestamp()+s.op.AllowedLateness <= s.watermark
		})
	}
}

// elementsAtTheEdge reports whether an element comes in the last millisecond before a
// processing-time window begins or ends. Flink's harness has fired the window that ends by
// then, its real clock fires a millisecond later, which our fast operators rely on.
func elementsAtTheEdge(c replay.Case) bool {
	a := c.Op.Assigner
	if a.Time != "processing" || a.Type != "tumbling" && a.Type != "sliding" {
		return false
	}
	every := a.Slide
	if a.Type == "tumbling" {
		every = a.Size
	}
	now := int64(0)
	for _, step := range c.Steps {
		if step.Do == "processing_time" {
			now = *step.Time
		}
		if start := now + 1 - a.Offset; step.Do == "element" && (start%every == 0 || (start-a.Size)%every == 0) {
			return true
		}
	}
	return false
}
