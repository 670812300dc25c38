package progress

// Gate is the edge behind an operator, chained or over channels (spec
// watermarks 3): it sends a status only when it changes, and no watermark while
// the announced status is idle. Records do not pass through it. It does not
// check that watermarks rise.
type Gate struct {
	out       Output
	idle      bool
	watermark int64
}

// NewGate returns a gate that has announced nothing, which means active.
func NewGate(out Output) *Gate { return &Gate{out: out, watermark: minTime} }

// Watermark sends t unless the gate is idle.
func (g *Gate) Watermark(t int64) error {
	if g.idle {
		return nil
	}
	g.watermark = t
	return g.out.Watermark(t)
}

// Status sends the status if it is not the announced one.
func (g *Gate) Status(idle bool) error {
	if g.idle == idle {
		return nil
	}
	g.idle = idle
	return g.out.Status(idle)
}

// Idle reports the announced status.
func (g *Gate) Idle() bool { return g.idle }

// LastWatermark returns the last watermark that passed, MinTimestamp at first.
func (g *Gate) LastWatermark() int64 { return g.watermark }
