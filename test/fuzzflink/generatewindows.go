package main

import (
	"math"
	"strconv"

	"github.com/lowwater/lowwater/internal/operator/replay"
)

// windowOperator is a random operator with elements, watermarks, processing time and, now
// and then, a restore.
func windowOperator(g generator, steps int) replay.Case {
	op := g.operator()
	for excluded(op) != "" {
		op = g.operator()
	}
	w := &windowSteps{walk: walk{generator: g}, op: op, watermark: math.MinInt64, disorder: g.between(0, 40)}
	if g.in(20) {
		w.at = -100
	}
	restores := !g.in(60)
	for range steps {
		w.step(restores)
	}
	if g.in(50) && !endless(op) {
		w.add(replay.Step{Do: "watermark", Timestamp: replay.At(math.MaxInt64)})
	}
	return replay.Case{Op: &w.op, Steps: w.steps}
}

func (g generator) operator() replay.Operator {
	op := replay.Operator{
		Assigner:        g.assigner(),
		Function:        pick(g, "sum", "list", "list", "min_max_count", "empty", "context"),
		AllowedLateness: pick(g, 0, 0, g.between(1, 20)),
		LateSideOutput:  g.in(50),
	}
	if g.in(60) {
		op.Trigger = new(g.trigger(true))
	}
	if g.in(20) {
		op.Evictor = new(g.evictor())
	}
	return op
}

func (g generator) assigner() replay.Assigner {
	a := replay.Assigner{Type: pick(g, "tumbling", "sliding", "session", "dynamic_session", "point_session",
		"global", "global_end_of_stream", "by_value", "by_value")}
	if g.in(30) {
		a.Time = "processing"
	}
	switch a.Type {
	case "tumbling":
		a.Size = g.between(1, 20)
		a.Offset = g.between(1-a.Size, a.Size-1)
	case "sliding":
		a.Slide = g.between(1, 10)
		a.Size = g.between(1, 40)
		a.Offset = g.between(1-a.Slide, a.Slide-1)
	case "session", "point_session":
		a.Gap = g.between(1, 15)
	case "dynamic_session":
		a.Gaps = g.gaps()
	case "by_value":
		a.Merging = g.in(50)
		a.Windows = map[string][]replay.Window{}
		for value := 1; value <= largestValue; value++ {
			list := []replay.Window{}
			for range g.IntN(3) {
				start := g.between(-10, 60)
				list = append(list, replay.Window{Start: start, End: start + g.between(1, 20)})
			}
			a.Windows[strconv.Itoa(value)] = list
		}
	}
	if a.Type == "point_session" || a.Type == "global" || a.Type == "global_end_of_stream" {
		a.Time = ""
	}
	return a
}

// gaps are rules of which the last one usually matches everything; without it there are
// gaps of 0, which are refused.
func (g generator) gaps() []replay.Gap {
	var gaps []replay.Gap
	if g.in(50) {
		gaps = append(gaps, replay.Gap{Key: new(pick(g, "a", "b")), Gap: g.between(1, 15)})
	}
	if g.in(50) {
		gaps = append(gaps, replay.Gap{Value: new(int32(g.between(1, largestValue))), Gap: g.between(1, 15)})
	}
	if len(gaps) == 0 || !g.in(3) {
		gaps = append(gaps, replay.Gap{Gap: g.between(1, 15)})
	}
	return gaps
}

func (g generator) trigger(outermost bool) replay.Trigger {
	t := replay.Trigger{Type: pick(g, "event_time", "processing_time", "continuous_event", "continuous_processing",
		"count", "delta", "purging", "timeout", "always_fire", "accum_gc", "scripted", "scripted")}
	switch t.Type {
	case "continuous_event", "continuous_processing":
		t.Interval = g.between(1, 15)
	case "count":
		t.N = g.between(1, 4)
	case "delta":
		t.Threshold = float64(g.between(0, 3))
	case "accum_gc":
		t.Lateness = g.between(0, 10)
	case "purging", "timeout":
		if !outermost {
			return g.trigger(false)
		}
		t.Inner = new(g.trigger(false))
		if t.Type == "timeout" {
			t.Interval, t.ResetOnElement, t.ClearOnTimeout = g.between(1, 15), g.in(50), g.in(50)
		}
	case "scripted":
		g.script(&t)
	}
	return t
}

func (g generator) script(t *replay.Trigger) {
	result := func() string { return pick(g, "CONTINUE", "CONTINUE", "FIRE", "FIRE", "PURGE", "FIRE_AND_PURGE") }
	t.OnElement, t.OnTimer = map[string]replay.Script{}, map[string]string{}
	timer := func() replay.ScriptedTimer {
		at := g.between(0, 80)
		t.OnTimer[strconv.FormatInt(at, 10)] = result()
		return replay.ScriptedTimer{Processing: g.in(30), At: at}
	}
	for value := 1; value <= largestValue; value++ {
		s := replay.Script{Result: result()}
		for range g.IntN(3) {
			s.Register = append(s.Register, timer())
		}
		if g.in(20) {
			s.Delete = append(s.Delete, timer())
		}
		t.OnElement[strconv.Itoa(value)] = s
	}
}

func (g generator) evictor() replay.Evictor {
	return replay.Evictor{
		Type: pick(g, "count", "time", "delta"),
		N:    g.between(0, 4), Size: g.between(1, 15), Threshold: float64(g.between(0, 3)), After: g.in(50),
	}
}

// largestValue is the largest value of an element, but for the one that point sessions
// treat differently.
const largestValue = 6

// windowSteps collects the steps of an operator.
type windowSteps struct {
	walk
	op               replay.Operator
	steps            []replay.Step
	watermark, clock int64
	disorder         int64
}

func (w *windowSteps) add(s replay.Step) { w.steps = append(w.steps, s) }

func (w *windowSteps) step(restores bool) {
	switch n := w.IntN(100); {
	case n < 20:
		if t := w.at - w.between(0, w.disorder); t > w.watermark {
			w.watermark = t
			w.add(replay.Step{Do: "watermark", Timestamp: replay.At(t)})
		}
	case n < 35:
		w.clock += w.between(0, 12)
		w.add(replay.Step{Do: "processing_time", Time: new(w.clock)})
	case n < 38 && restores:
		w.watermark, w.clock = math.MinInt64, 0
		s := replay.Step{Do: "checkpoint_restore"}
		if w.in(50) {
			w.clock = w.between(0, 60)
			s.ProcessingTime = new(w.clock)
		}
		w.add(s)
	default:
		w.at += w.between(0, 5)
		ts := replay.At(w.at - w.between(0, w.disorder))
		if w.in(1) && mayLackTimestamp(w.op) {
			ts = replay.None()
		}
		value := int32(w.between(1, largestValue))
		if w.op.Assigner.Type == "point_session" && w.in(20) {
			value = 33
		}
		w.add(replay.Step{Do: "element", Key: pick(w.generator, "a", "a", "b"), Value: &value, Timestamp: ts})
	}
}

// triggerAlone is a random trigger without an operator.
func triggerAlone(g generator, steps int) replay.Case {
	t := g.trigger(true)
	for !aloneIsDefined(t) {
		t = g.trigger(true)
	}
	var windows []replay.Window
	for range g.between(1, 4) {
		start := g.between(0, 40)
		windows = append(windows, replay.Window{Start: start, End: start + g.between(1, 30)})
	}
	var watermark, clock int64 = math.MinInt64, 0
	var out []replay.Step
	for range steps {
		i := g.IntN(len(windows))
		w := windows[i]
		switch n := g.IntN(100); {
		case n < 20:
			watermark = max(watermark, -5) + g.between(1, 8)
			out = append(out, replay.Step{Do: "watermark", Time: new(watermark)})
		case n < 40:
			clock += g.between(0, 8)
			out = append(out, replay.Step{Do: "processing_time", Time: new(clock)})
		case n < 45:
			out = append(out, replay.Step{Do: "clear", Window: &w})
		case n < 50 && mergeable(t) && len(windows) > 1:
			out = append(out, mergeOf(windows))
			windows = windows[len(windows)-1:]
			windows[0] = *out[len(out)-1].Into
		default:
			out = append(out, replay.Step{
				Do: "element", Window: &w, Value: new(int32(g.between(1, largestValue))),
				Timestamp: replay.At(g.between(w.Start, w.End-1)),
			})
		}
	}
	return replay.Case{Trigger: &t, Steps: out}
}

// mergeOf merges all windows into one around them.
func mergeOf(windows []replay.Window) replay.Step {
	into := windows[0]
	for _, w := range windows {
		into = replay.Window{Start: min(into.Start, w.Start), End: max(into.End, w.End)}
	}
	into.End++ // so that it is none of them
	from := append([]replay.Window{}, windows...)
	return replay.Step{Do: "merge", Into: &into, From: from}
}
