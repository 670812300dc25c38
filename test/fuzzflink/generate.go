package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/lowwater/lowwater/internal/progress/replay"
)

// subject is a thing that both sides know, and how its cases are made.
type subject struct {
	name string
	// document is what a document of the subject says about itself.
	document head
	generate func(g generator, id string, steps int) trial
}

var subjects = []subject{
	watermarks("valve", valve),
	watermarks("operator", operator),
	watermarks("task", task),
	watermarks("multiplexer", multiplexer),
	watermarks("source", source),
	watermarks("alignment_coordinator", coordinator),
	watermarks("alignment_sampler", sampler),
	watermarks("timestamps_operator", timestampsOperator),
	watermarks("generator", watermarkGenerator),
	watermarks("sql_watermark_assigner", sqlAssigner),
	watermarks("output_gate", outputGate),
	watermarks("watermark_to_output", watermarkToOutput),
	watermarks("metrics", metrics),
	windows("window_operator", windowOperator),
	windows("trigger", triggerAlone),
	windows("timers", timers),
	windows("interval_join", intervalJoin),
}

func subjectNames() (names []string) {
	for _, s := range subjects {
		names = append(names, s.name)
	}
	return names
}

func subjectsByName(names string) (chosen []subject, err error) {
	for name := range strings.SplitSeq(names, ",") {
		known := false
		for _, s := range subjects {
			if s.name == name {
				chosen, known = append(chosen, s), true
			}
		}
		if !known {
			return nil, fmt.Errorf("unknown subject %q: choose from %s", name, strings.Join(subjectNames(), ", "))
		}
	}
	return chosen, nil
}

// generator makes random choices.
type generator struct{ *rand.Rand }

// in is true in percent of cases.
func (g generator) in(percent int) bool { return g.IntN(100) < percent }

// between returns a number from low to high.
func (g generator) between(low, high int64) int64 { return low + g.Int64N(high-low+1) }

func pick[T any](g generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// walk is an event time that mostly moves on, is often repeated or behind, and
// sometimes at an end of time.
type walk struct {
	generator
	at int64
}

func (w *walk) next() int64 {
	switch n := w.IntN(1000); {
	case n < 2:
		return math.MaxInt64
	case n < 5:
		return math.MinInt64
	case n < 400:
		w.at += w.between(0, 5)
	case n < 420:
		w.at += w.between(0, 100)
	}
	return w.at - w.between(0, 12)
}

// status returns one of the two statuses.
func (g generator) status() string { return pick(g, "idle", "active") }

// builder collects the steps of a case.
type builder struct {
	setup string
	steps []replay.Step
}

func (b *builder) step(format string, args ...any) {
	b.steps = append(b.steps, replay.Step{In: json.RawMessage(fmt.Sprintf(format, args...)), Out: []replay.Event{}})
}

// check asks for state after the last step.
func (b *builder) check(format string, args ...any) {
	b.steps[len(b.steps)-1].Check = json.RawMessage(fmt.Sprintf(format, args...))
}

func (b *builder) build() replay.Case {
	return replay.Case{Setup: json.RawMessage(b.setup), Steps: append([]replay.Step{}, b.steps...)}
}

func valve(g generator, steps int) replay.Case {
	channels := pick(g, 1, 2, 2, 3, 3, 4, 5, 17)
	b := &builder{setup: fmt.Sprintf(`{"channels": %d}`, channels)}
	w := &walk{generator: g}
	idlePercent := pick(g, 5, 20, 50)
	for range steps {
		channel := g.IntN(channels)
		if g.in(idlePercent) {
			b.step(`{"channel": %d, "status": %q}`, channel, g.status())
		} else {
			b.step(`{"channel": %d, "watermark": %d}`, channel, w.next())
		}
		if g.in(20) {
			b.check(`[{"channel": %d, "aligned": true, "watermark": 0}]`, g.IntN(channels))
		}
	}
	return b.build()
}

func operator(g generator, steps int) replay.Case {
	inputs := pick(g, 1, 2, 2, 3, 4)
	b := &builder{setup: fmt.Sprintf(`{"inputs": %d, "gate": %t}`, inputs, g.in(50))}
	w := &walk{generator: g}
	for range steps {
		input := g.IntN(inputs)
		switch n := g.IntN(10); {
		case n < 2:
			b.step(`{"input": %d, "timer": %d}`, input, timer(w))
		case n < 4:
			b.step(`{"input": %d, "status": %q}`, input, g.status())
		default:
			b.step(`{"input": %d, "watermark": %d}`, input, w.next())
		}
	}
	return b.build()
}

// timer is around the current time, so that some are late.
func timer(w *walk) int64 {
	if w.in(2) {
		return math.MaxInt64
	}
	return w.at + w.between(-10, 20)
}

func task(g generator, steps int) replay.Case {
	channels := make([]int, pick(g, 1, 2, 2, 3))
	for i := range channels {
		channels[i] = pick(g, 1, 1, 2, 3)
	}
	text, _ := json.Marshal(channels) // integers always encode
	b := &builder{setup: fmt.Sprintf(`{"inputs": %s}`, text)}
	w := &walk{generator: g}
	for range steps {
		input := g.IntN(len(channels))
		channel := g.IntN(channels[input])
		switch n := g.IntN(20); {
		case n < 2:
			b.step(`{"input": %d, "timer": %d}`, input, timer(w))
		case n < 7:
			b.step(`{"input": %d, "channel": %d, "status": %q}`, input, channel, g.status())
		default:
			b.step(`{"input": %d, "channel": %d, "watermark": %d}`, input, channel, w.next())
		}
	}
	return b.build()
}

func outputGate(g generator, steps int) replay.Case {
	b := &builder{setup: `{}`}
	w := &walk{generator: g}
	for range steps {
		switch n := g.IntN(10); {
		case n < 2:
			b.step(`{"record": %d}`, w.next())
		case n < 5:
			b.step(`{"status": %q}`, g.status())
		default:
			b.step(`{"watermark": %d}`, w.next())
		}
		if g.in(30) {
			b.check(`{"gauge": 0}`)
		}
	}
	return b.build()
}

func multiplexer(g generator, steps int) replay.Case {
	b := &builder{setup: `{}`}
	w := &walk{generator: g}
	var ids []string
	registered := 0
	for range steps {
		n := g.IntN(100)
		switch {
		case n < 6 || len(ids) == 0 && n < 90:
			registered++
			ids = append(ids, fmt.Sprint(registered))
			b.step(`{"op": "register", "id": "%d"}`, registered)
			continue
		case n < 10:
			b.step(`{"op": "periodic"}`)
			continue
		}
		id, mode := "unknown", pick(g, "immediate", "deferred")
		if len(ids) > 0 && !g.in(1) {
			id = pick(g, ids...)
		}
		switch {
		case n < 13:
			b.step(`{"op": "unregister", "id": %q}`, id)
			ids = without(ids, id)
		case n < 14:
			b.step(`{"op": "register", "id": %q}`, id) // refused if known
			ids = append(without(ids, id), id)
		case n < 25:
			b.step(`{"op": "idle", "mode": %q, "id": %q}`, mode, id)
		case n < 32:
			b.step(`{"op": "active", "mode": %q, "id": %q}`, mode, id)
		default:
			b.step(`{"op": "emit", "mode": %q, "id": %q, "watermark": %d}`, mode, id, w.next())
		}
	}
	return b.build()
}

func without(ids []string, id string) (rest []string) {
	for _, other := range ids {
		if other != id {
			rest = append(rest, other)
		}
	}
	return rest
}

func watermarkToOutput(g generator, steps int) replay.Case {
	b := &builder{setup: `{}`}
	w := &walk{generator: g}
	for range steps {
		switch n := g.IntN(10); {
		case n < 2:
			b.step(`{"op": "idle"}`)
		case n < 4:
			b.step(`{"op": "active"}`)
		default:
			b.step(`{"op": "emit", "watermark": %d}`, w.next())
		}
	}
	return b.build()
}

func sampler(g generator, steps int) replay.Case {
	b := &builder{setup: fmt.Sprintf(`{"capacity": %d}`, g.IntN(5))}
	w := &walk{generator: g}
	for range steps {
		switch g.IntN(3) {
		case 0:
			b.step(`{"latest": %d}`, w.next())
		case 1:
			b.step(`{"sample": true}`)
		default:
			b.step(`{"read": true}`)
		}
	}
	return b.build()
}

func coordinator(g generator, steps int) replay.Case {
	var sources []string
	n := pick(g, 1, 2, 3)
	for i := range n {
		drift := pick(g, 0, 10, 1000, math.MaxInt64/2)
		sources = append(sources, fmt.Sprintf(`{"name": "s%d", "group": "g%d", "maxDriftMs": %d}`, i, g.IntN(2), drift))
	}
	b := &builder{setup: fmt.Sprintf(`{"sources": [%s]}`, strings.Join(sources, ", "))}
	w := &walk{generator: g}
	for range steps {
		source := g.IntN(n)
		if g.in(30) {
			b.step(`{"source": "s%d", "announce": true}`, source)
			continue
		}
		// MIN is never reported (spec watermarks 6.1). Flink takes a first report of
		// it for no change.
		report := max(w.next(), math.MinInt64+1)
		if g.in(10) {
			report = math.MaxInt64 // idle
		}
		b.step(`{"source": "s%d", "subtask": %d, "report": %d}`, source, g.IntN(4), report)
	}
	return b.build()
}

func metrics(g generator, steps int) replay.Case {
	inputs := g.IntN(3) + 1
	b := &builder{setup: fmt.Sprintf(`{"startMs": 10000, "inputs": %d}`, inputs)}
	names := []string{"watermarkLag", "currentEmitEventTimeLag", "watermarkAlignmentDrift", "sourceIdleTime", "currentInputWatermark", "currentInput1Watermark"}
	// The ends of time are left out: there Flink's gauges wrap around.
	at := func() int64 { return g.between(-1000, 20_000) }
	for range steps {
		switch g.IntN(10) {
		case 0:
			b.step(`{"op": "advance", "ms": %d}`, g.IntN(1000))
		case 1:
			b.step(`{"op": "recordEmitted", "timestamp": %d}`, pick(g, at(), at(), math.MinInt64))
		case 2:
			b.step(`{"op": "idlingStarted"}`)
		case 3:
			b.step(`{"op": "watermarkEmitted", "watermark": %d}`, pick(g, at(), at(), at(), math.MaxInt64))
		case 4:
			b.step(`{"op": "maxDesiredWatermark", "watermark": %d}`, at())
		case 5:
			b.step(`{"op": "inputWatermark", "input": %d, "watermark": %d}`, g.IntN(inputs), at())
		default:
			b.step(`{"op": "read", "metric": %q}`, pick(g, names...))
		}
	}
	return b.build()
}
