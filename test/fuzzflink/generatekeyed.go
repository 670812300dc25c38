package main

import (
	"math"

	"github.com/lowwater/lowwater/internal/operator/replay"
)

// timers is a random process function that registers and deletes timers, also while they
// fire and in the past.
func timers(g generator, steps int) replay.Case {
	const latest = 60
	command := func(low int64) replay.Command {
		do := pick(g, "reg_event", "reg_event", "reg_processing", "del_event", "del_processing", "emit")
		if do == "emit" {
			return replay.Command{Do: do, Text: "seen"}
		}
		return replay.Command{Do: do, At: g.between(low, latest)}
	}
	c := replay.Case{OnTimer: []replay.TimerRule{}}
	for range g.IntN(8) {
		rule := replay.TimerRule{Domain: pick(g, "event", "processing"), At: g.between(0, latest)}
		if g.in(30) {
			rule.Key = new(pick(g, "a", "b"))
		}
		for range g.between(1, 3) {
			next := command(0)
			if next.At <= rule.At && (next.Do == "reg_event" || next.Do == "reg_processing") {
				next.At = rule.At + 1 // two rules that register each other's timers would never end
			}
			rule.Cmds = append(rule.Cmds, next)
		}
		c.OnTimer = append(c.OnTimer, rule)
	}
	w := walk{generator: g}
	var watermark, clock int64 = math.MinInt64, 0
	for range steps {
		switch n := g.IntN(100); {
		case n < 25:
			watermark = max(watermark, -1) + g.between(1, 10)
			c.Steps = append(c.Steps, replay.Step{Do: "watermark", Timestamp: replay.At(watermark)})
		case n < 45:
			clock += g.between(0, 10)
			c.Steps = append(c.Steps, replay.Step{Do: "processing_time", Time: new(clock)})
		default:
			w.at += g.between(0, 4)
			s := replay.Step{Do: "element", Key: pick(g, "a", "b", "c"), Timestamp: replay.At(w.at)}
			if g.in(10) {
				s.Timestamp = replay.None()
			}
			for range g.between(0, 4) {
				s.Cmds = append(s.Cmds, command(-5))
			}
			c.Steps = append(c.Steps, s)
		}
	}
	return c
}

// intervalJoin is a random interval join with elements and watermarks on both sides. An
// upper bound below the lower one is left out: our API refuses it before there is an
// operator.
func intervalJoin(g generator, steps int) replay.Case {
	lower := g.between(-12, 12)
	c := replay.Case{Join: &replay.Join{
		Lower: lower, Upper: lower + g.between(0, 15),
		LowerInclusive: g.in(70), UpperInclusive: g.in(70), LateSideOutput: g.in(50),
	}}
	at, disorder := int64(0), g.between(0, 25)
	watermarks := map[string]int64{"watermark_left": math.MinInt64, "watermark_right": math.MinInt64}
	for range steps {
		if g.in(25) {
			side := pick(g, "watermark_left", "watermark_right")
			if t := at - g.between(0, disorder); t > watermarks[side] {
				watermarks[side] = t
				c.Steps = append(c.Steps, replay.Step{Do: side, Timestamp: replay.At(t)})
			}
			continue
		}
		at += g.between(0, 4)
		s := replay.Step{
			Do: pick(g, "left", "right"), Key: pick(g, "a", "a", "b"), Value: new(int32(g.between(1, 99))),
			Timestamp: replay.At(at - g.between(0, disorder)),
		}
		if g.in(1) {
			s.Timestamp = replay.None()
		}
		c.Steps = append(c.Steps, s)
	}
	return c
}
