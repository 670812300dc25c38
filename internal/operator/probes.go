package operator

// probes makes the periodic calls of watermark generators, at the auto-watermark
// interval (spec watermarks 4.7). It leaves out calls that would change nothing: a
// subtask without records then sleeps until it gets one, which costs nothing and, in
// tests, lets virtual time jump.
type probes struct {
	timers ProcessingTime
	// interval is in milliseconds; 0 means no calls.
	interval int64
	// call makes the call. settled means that another one would change nothing before
	// wake is called.
	call func(now int64) (settled bool, err error)
	// last is when the last call was, or the start. Calls that are left out do not
	// change the rhythm.
	last    int64
	pending bool
}

func newProbes(rt *Runtime, call func(now int64) (settled bool, err error)) *probes {
	p := &probes{timers: rt.Timers, interval: rt.WatermarkInterval.Milliseconds(), call: call, last: rt.Timers.Now()}
	p.wake()
	return p
}

// wake goes on with the calls. It must be called before anything that they may react to.
func (p *probes) wake() {
	if p.pending || p.interval == 0 {
		return
	}
	p.pending = true
	past := (p.timers.Now() - p.last) / p.interval
	p.timers.At(p.last+(past+1)*p.interval, p.fire)
}

func (p *probes) fire(now int64) error {
	p.pending, p.last = false, now
	settled, err := p.call(now)
	if !settled {
		p.wake()
	}
	return err
}
