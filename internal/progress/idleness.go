package progress

import "github.com/lowwater/lowwater/eventtime"

// PausableClock hides the time during which it was paused (spec watermarks
// 4.10). Pauses nest. Clocks chain: what one clock returns can be the now of
// another, which then stands still whenever either is paused.
type PausableClock struct {
	pauses int
	since  int64
	hidden int64
}

// Pause stops the clock at now, in milliseconds.
func (c *PausableClock) Pause(now int64) {
	if c.pauses == 0 {
		c.since = now
	}
	c.pauses++
}

// Resume ends one pause at now, in milliseconds. Without a pause it has no
// effect.
func (c *PausableClock) Resume(now int64) {
	if c.pauses == 0 {
		return
	}
	if c.pauses--; c.pauses == 0 {
		c.hidden += now - c.since
	}
}

// Time returns now without the hidden time. Only differences mean anything.
func (c *PausableClock) Time(now int64) int64 {
	if c.pauses > 0 {
		now = c.since
	}
	return now - c.hidden
}

// IdleTimer finds out that nothing happened for a while (spec watermarks 4.8).
// It only looks when probed: the first probe that sees no activity starts the
// countdown.
type IdleTimer struct {
	timeout int64
	active  bool
	running bool
	started int64
}

// NewIdleTimer returns a timer for a timeout in milliseconds.
func NewIdleTimer(timeoutMillis int64) IdleTimer { return IdleTimer{timeout: timeoutMillis} }

// Activity notes that something happened.
func (t *IdleTimer) Activity() { t.active = true }

// Probe reports whether nothing happened for more than the timeout. now is a
// clock's time in milliseconds.
func (t *IdleTimer) Probe(now int64) (idle bool) {
	switch {
	case t.active:
		t.active, t.running = false, false
		return false
	case !t.running:
		t.running, t.started = true, now
		return false
	default:
		return now-t.started > t.timeout
	}
}

// Generator is a watermark generator with the idleness detection that its
// strategy asks for.
type Generator[T any] struct {
	inner eventtime.WatermarkGenerator[T]
	// batches is inner if it takes whole batches.
	batches eventtime.BatchGenerator[T]
	// eventDriven says that inner repeats itself without new events.
	eventDriven bool
	// detects says whether timer counts.
	detects bool
	timer   IdleTimer
	// quiet says that the outside knows of no record to come; see SetQuiet.
	quiet bool
	idle  bool
}

// NewGenerator returns a new generator of a valid strategy.
func NewGenerator[T any](s eventtime.WatermarkStrategy[T]) Generator[T] {
	g := Generator[T]{
		inner:   s.NewGenerator(),
		detects: s.Idleness() > 0,
		timer:   NewIdleTimer(s.Idleness().Milliseconds()),
	}
	g.batches, _ = g.inner.(eventtime.BatchGenerator[T])
	_, g.eventDriven = g.inner.(eventtime.EventDriven)
	return g
}

// CanBatch reports whether OnBatch may be used.
func (g *Generator[T]) CanBatch() bool { return g.batches != nil }

// OnEvent takes a record that was emitted.
func (g *Generator[T]) OnEvent(value T, timestamp int64, out eventtime.WatermarkOutput) {
	g.inner.OnEvent(value, timestamp, out)
	g.Activity()
}

// Activity notes a record that the generator does not get to see.
func (g *Generator[T]) Activity() {
	g.timer.Activity()
	g.idle, g.quiet = false, false
}

// SetQuiet tells whether the outside knows that there was nothing to read for as long
// as it takes to be idle. It holds until the next record or the next SetQuiet.
func (g *Generator[T]) SetQuiet(quiet bool) { g.quiet = quiet }

// OnBatch takes records that were emitted.
func (g *Generator[T]) OnBatch(values []T, timestamps []int64) {
	if len(values) == 0 {
		return
	}
	g.batches.OnBatch(values, timestamps)
	g.Activity()
}

// OnPeriodic is the periodic call. now is the generator's own clock in
// milliseconds. While idle the generator is not asked, and out is told once.
//
// settled means that further calls would change nothing until there is a record or
// SetQuiet is called.
func (g *Generator[T]) OnPeriodic(now int64, out eventtime.WatermarkOutput) (settled bool) {
	timedOut := g.detects && g.timer.Probe(now)
	if !timedOut && !g.quiet {
		g.idle = false
		g.inner.OnPeriodicEmit(out)
		return g.eventDriven && !g.detects
	}
	if !g.idle {
		g.idle = true
		out.MarkIdle()
	}
	return true
}
