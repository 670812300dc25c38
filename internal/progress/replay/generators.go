package replay

import (
	"encoding/json"
	"math"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/progress"
)

// event is the value of a record.
type event struct {
	// value is what an assigner extracts.
	value  int64
	marker bool
}

// generatorSetup describes a strategy in several subjects.
type generatorSetup struct {
	Generator     *generatorKind `json:"generator"`
	IdleTimeoutMs *int64         `json:"idleTimeoutMs"`
}

type generatorKind struct {
	Kind    string `json:"kind"`
	BoundMs *int64 `json:"boundMs"`
}

// strategy returns the strategy, which may be invalid.
func (s generatorSetup) strategy() (eventtime.WatermarkStrategy[event], error) {
	kind, err := need(s.Generator, "generator")
	if err != nil {
		return eventtime.WatermarkStrategy[event]{}, err
	}
	strategy, err := kind.strategy()
	if err == nil && s.IdleTimeoutMs != nil {
		strategy = strategy.WithIdleness(millis(*s.IdleTimeoutMs))
	}
	return strategy, err
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (k generatorKind) strategy() (eventtime.WatermarkStrategy[event], error) {
	custom := func(g func() eventtime.WatermarkGenerator[event]) (eventtime.WatermarkStrategy[event], error) {
		return eventtime.ForGenerator(g), nil
	}
	switch k.Kind {
	case "boundedOutOfOrderness":
		bound, err := need(k.BoundMs, "boundMs")
		return eventtime.ForBoundedOutOfOrderness[event](millis(bound)), err
	case "monotonous":
		return eventtime.ForMonotonousTimestamps[event](), nil
	case "none":
		return eventtime.NoWatermarks[event](), nil
	case "onEvent":
		return custom(func() eventtime.WatermarkGenerator[event] {
			return perEvent(func(event, int64) bool { return true })
		})
	case "onEventOdd":
		return custom(func() eventtime.WatermarkGenerator[event] {
			return perEvent(func(_ event, t int64) bool { return t%2 == 1 })
		})
	case "punctuated":
		return custom(func() eventtime.WatermarkGenerator[event] {
			return perEvent(func(e event, _ int64) bool { return e.marker })
		})
	case "onPeriodicLast":
		return custom(func() eventtime.WatermarkGenerator[event] { return &periodicLast{} })
	case "onPeriodicLastMinusOne":
		return custom(func() eventtime.WatermarkGenerator[event] { return &periodicLastMinusOne{math.MinInt64} })
	case "maxOnEventAndPeriodic":
		return custom(func() eventtime.WatermarkGenerator[event] { return &maximum{math.MinInt64} })
	}
	return eventtime.WatermarkStrategy[event]{}, malformed("no such generator", k.Kind)
}

// perEvent emits the timestamp of each event for which it is true.
type perEvent func(e event, timestamp int64) bool

func (f perEvent) OnEvent(e event, t int64, out eventtime.WatermarkOutput) {
	if f(e, t) {
		out.EmitWatermark(t)
	}
}
func (f perEvent) OnPeriodicEmit(eventtime.WatermarkOutput) {}

// periodicLast emits the last timestamp, if any.
type periodicLast struct {
	seen bool
	last int64
}

func (g *periodicLast) OnEvent(_ event, t int64, _ eventtime.WatermarkOutput) {
	g.seen, g.last = true, t
}
func (g *periodicLast) OnPeriodicEmit(out eventtime.WatermarkOutput) {
	if g.seen {
		out.EmitWatermark(g.last)
	}
}

// periodicLastMinusOne emits the last timestamp - 1, or the smallest.
type periodicLastMinusOne struct{ last int64 }

func (g *periodicLastMinusOne) OnEvent(_ event, t int64, _ eventtime.WatermarkOutput) { g.last = t }
func (g *periodicLastMinusOne) OnPeriodicEmit(out eventtime.WatermarkOutput) {
	out.EmitWatermark(max(g.last, math.MinInt64+1) - 1)
}

// maximum emits the largest timestamp when it rises, and periodically.
type maximum struct{ max int64 }

func (g *maximum) OnEvent(_ event, t int64, out eventtime.WatermarkOutput) {
	if t > g.max {
		g.max = t
		out.EmitWatermark(t)
	}
}
func (g *maximum) OnPeriodicEmit(out eventtime.WatermarkOutput) { out.EmitWatermark(g.max) }

// generatorUnit is the subject generator: a generator with or without idleness
// detection, or, without generator, the bare idle timer.
type generatorUnit struct {
	noState
	out       *log
	generator *progress.Generator[event]
	timer     progress.IdleTimer
	now       int64
	clock     progress.PausableClock
}

// generatorStart is the base clock's first reading.
const generatorStart = 1000

func newGenerator(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[generatorSetup](setup)
	if err != nil {
		return nil, err
	}
	u := &generatorUnit{out: out, now: generatorStart}
	if s.Generator == nil {
		timeout, err := need(s.IdleTimeoutMs, "idleTimeoutMs")
		u.timer = progress.NewIdleTimer(timeout)
		return u, err
	}
	strategy, err := s.strategy()
	if err != nil {
		return nil, err
	}
	if err := strategy.Validate(); err != nil {
		return nil, err
	}
	g := progress.NewGenerator(strategy)
	u.generator = &g
	return u, nil
}

func (u *generatorUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Op        string `json:"op"`
		Timestamp int64  `json:"timestamp"`
		Marker    bool   `json:"marker"`
		Ms        int64  `json:"ms"`
	}](in)
	if err != nil {
		return err
	}
	switch e.Op {
	case "event":
		u.event(e.Timestamp, e.Marker)
	case "periodic":
		u.periodic()
	case "advance":
		u.now += e.Ms
	case "pause":
		u.clock.Pause(u.now)
	case "resume":
		u.clock.Resume(u.now)
	case "readClock":
		elapsed := u.clock.Time(u.now) - generatorStart
		u.out.add(Event{ElapsedMs: &elapsed})
	default:
		return malformed("no such op", e.Op)
	}
	return nil
}

func (u *generatorUnit) event(timestamp int64, marker bool) {
	if u.generator == nil {
		u.timer.Activity()
		return
	}
	u.generator.OnEvent(event{timestamp, marker}, timestamp, u.out)
}

func (u *generatorUnit) periodic() {
	now := u.clock.Time(u.now)
	if u.generator == nil {
		idle := u.timer.Probe(now)
		u.out.add(Event{Idle: &idle})
		return
	}
	u.generator.OnPeriodic(now, u.out)
}
