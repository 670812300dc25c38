package main

import (
	"fmt"
	"strings"

	"github.com/lowwater/lowwater/internal/progress/replay"
)

// strategy returns the fields of a setup that describe a watermark strategy.
func (g generator) strategy() string {
	kind := pick(g, "boundedOutOfOrderness", "boundedOutOfOrderness", "monotonous", "none", "onEvent", "onEventOdd",
		"punctuated", "onPeriodicLast", "onPeriodicLastMinusOne", "maxOnEventAndPeriodic", "maxOnEventAndPeriodic")
	bound := ""
	if kind == "boundedOutOfOrderness" {
		bound = fmt.Sprintf(`, "boundMs": %d`, pick(g, 0, 3, 10))
	}
	text := fmt.Sprintf(`"generator": {"kind": %q%s}`, kind, bound)
	if g.in(70) {
		text += fmt.Sprintf(`, "idleTimeoutMs": %d`, pick(g, 1, 5, 10, 50))
	}
	return text
}

func watermarkGenerator(g generator, steps int) replay.Case {
	setup := fmt.Sprintf(`{%s}`, g.strategy())
	switch {
	case g.in(15):
		setup = fmt.Sprintf(`{"idleTimeoutMs": %d}`, g.between(1, 20)) // the bare timer
	case g.in(3):
		setup = fmt.Sprintf(`{"generator": {"kind": "boundedOutOfOrderness", "boundMs": %d}, "idleTimeoutMs": %d}`, g.between(-2, 1), g.between(-2, 1))
	}
	b := &builder{setup: setup}
	w := &walk{generator: g}
	pauses := 0
	for range steps {
		switch n := g.IntN(20); {
		case n < 6:
			b.step(`{"op": "event", "timestamp": %d, "marker": %t}`, w.next(), g.in(30))
		case n < 12:
			b.step(`{"op": "periodic"}`)
		case n < 16:
			b.step(`{"op": "advance", "ms": %d}`, g.IntN(8))
		case n < 17:
			b.step(`{"op": "pause"}`)
			pauses++
		case n < 19:
			if pauses > 0 {
				b.step(`{"op": "resume"}`)
				pauses--
			}
		default:
			b.step(`{"op": "readClock"}`)
		}
	}
	return b.build()
}

func timestampsOperator(g generator, steps int) replay.Case {
	extract := pick(g, `"value"`, `"value"`, `null`)
	// The clock does not start at 0: Flink takes an idle countdown that began at a
	// reading of 0 for none.
	b := &builder{setup: fmt.Sprintf(`{%s, "intervalMs": %d, "extract": %s, "progressive": %t, "startMs": %d}`,
		g.strategy(), pick(g, 0, 1, 5, 5, 20), extract, !g.in(5), pick(g, 1, 1000))}
	w := &walk{generator: g}
	now := int64(1000)
	for range steps {
		switch n := g.IntN(40); {
		case n < 14:
			b.step(`{"record": %d, "timestamp": %d, "marker": %t}`, w.next(), w.next(), g.in(30))
		case n < 16:
			b.step(`{"record": %d, "marker": %t}`, w.next(), g.in(30))
		case n < 32:
			now += g.between(0, 12)
			b.step(`{"processingTime": %d}`, now)
		case n < 34:
			b.step(`{"watermark": %d}`, w.next())
		case n < 36:
			b.step(`{"status": %q}`, g.status())
		case n < 38:
			b.step(`{"backpressure": %t}`, g.in(40))
		default:
			b.step(`{"softBackpressure": %t}`, g.in(40))
		}
	}
	if g.in(30) {
		b.step(`{"finish": true}`)
	}
	return b.build()
}

func sqlAssigner(g generator, steps int) replay.Case {
	b := &builder{setup: fmt.Sprintf(`{"intervalMs": %d, "idleTimeoutMs": %d, "startMs": %d}`,
		pick(g, 0, 1, 5, 10, 50), pick(g, -1, 0, 1, 5, 7, 25, 50, 60), pick(g, 0, 1000))}
	w := &walk{generator: g}
	now := int64(1000)
	for range steps {
		switch n := g.IntN(40); {
		case n < 16:
			b.step(`{"record": %d, "rowWatermark": %d}`, w.at, w.next())
		case n < 18:
			b.step(`{"record": %d, "rowWatermark": null}`, w.at)
		case n < 34:
			now += g.between(0, 12)
			b.step(`{"processingTime": %d}`, now)
		case n < 36:
			b.step(`{"watermark": %d}`, w.next())
		default:
			b.step(`{"status": %q}`, g.status())
		}
	}
	if g.in(30) {
		b.step(`{"finish": true}`)
	}
	return b.build()
}

// sourceCase is a source case under construction.
type sourceCase struct {
	builder
	walk
	splits []string
	// assigned are the splits that surely exist. One that a record is to create
	// does not if the reader is blocked.
	assigned []string
	created  int
	aligned  bool
}

func source(g generator, steps int) replay.Case {
	c := &sourceCase{walk: walk{generator: g}, aligned: g.in(60)}
	c.at = 100
	batch := g.in(4)
	c.setup = fmt.Sprintf(`{%s, "gate": %t, "progressive": %t`, g.strategy(), g.in(50), !batch)
	if c.aligned {
		c.setup += fmt.Sprintf(`, "alignment": {"bufferSize": %d}, "pauseUnsupported": %t, "allowUnaligned": %t`,
			g.IntN(4), g.in(5), g.in(80))
	}
	c.setup += `}`
	for range steps {
		c.event()
		if g.in(10) && !batch {
			c.ask()
		}
	}
	switch n := g.IntN(10); {
	case n < 2:
		c.step(`{"op": "endOfInput"}`)
	case n < 4:
		c.step(`{"op": "stop", "drain": %t}`, g.in(50))
	}
	return c.build()
}

func (c *sourceCase) event() {
	switch n := c.IntN(100); {
	case n < 40:
		c.step(`{"op": "record", %s"timestamp": %d, "marker": %t}`, c.output(), c.next(), c.in(40))
	case n < 60:
		c.step(`{"op": "periodic"}`)
	case n < 73:
		c.step(`{"op": "advance", "ms": %d}`, c.IntN(8))
	case n < 78:
		id := c.newSplit()
		c.assigned = append(c.assigned, id)
		c.step(`{"op": "addSplit", "split": %q}`, id)
	case n < 80:
		if len(c.splits) > 0 {
			id := pick(c.generator, c.splits...)
			c.step(`{"op": "releaseSplit", "split": %q}`, id)
			c.splits, c.assigned = without(c.splits, id), without(c.assigned, id)
		}
	case n < 82:
		c.step(`{"op": "idle"%s}`, strings.TrimSuffix(", "+c.output(), ", "))
	case n < 84:
		c.step(`{"op": "active"%s}`, strings.TrimSuffix(", "+c.output(), ", "))
	case n < 86:
		c.step(`{"op": "emitWatermark", %s"watermark": %d}`, c.output(), c.next())
	case n < 88:
		c.step(`{"op": "backpressure", "on": %t}`, c.in(40))
	case n < 90:
		c.step(`{"op": "softBackpressure", "on": %t}`, c.in(40))
	case !c.aligned:
		c.step(`{"op": "periodic"}`)
	case n < 95:
		c.step(`{"op": "maxAllowed", "watermark": %d}`, c.at+c.between(-15, 10))
	default:
		c.step(`{"op": "sample"}`)
	}
}

// newSplit returns an id that was not used before. Flink remembers ids that were
// paused beyond their release; a source never assigns one twice in a run.
func (c *sourceCase) newSplit() string {
	c.created++
	id := fmt.Sprint(c.created)
	c.splits = append(c.splits, id)
	return id
}

// output names a split, now and then a new one, or the main output.
func (c *sourceCase) output() string {
	switch n := c.IntN(100); {
	case n < 15 || len(c.splits) == 0 && n < 98:
		return ""
	case n < 98:
		return fmt.Sprintf(`"split": %q, `, pick(c.generator, c.splits...))
	default:
		return fmt.Sprintf(`"split": %q, `, c.newSplit())
	}
}

// ask asks for everything that can be asked.
func (c *sourceCase) ask() {
	if len(c.steps) == 0 {
		return
	}
	text := `"waiting": true, "paused": []`
	if states := c.perSplit(`"active"`); states != "" {
		text += fmt.Sprintf(`, "splits": {%s}, "currentWatermark": {%s}`, states, c.perSplit("0"))
	}
	c.check(`{%s}`, text)
}

func (c *sourceCase) perSplit(value string) string {
	var fields []string
	for _, id := range c.assigned {
		fields = append(fields, fmt.Sprintf(`%q: %s`, id, value))
	}
	return strings.Join(fields, ", ")
}
