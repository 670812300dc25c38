package windowed

import (
	"math"

	"github.com/lowwater/lowwater/internal/operator"
)

// silence notices that a subtask's input has been silent for a while of wall-clock time.
// Time during which the subtask could not take input does not count: no timer runs then.
type silence struct {
	// after is how long, in milliseconds; 0 means never.
	after int64
	// close is called when the input has been silent for that long.
	close  func() error
	timers operator.ProcessingTime

	// waiting is set from a record until close is called. deadline is the time for
	// that, unless the clock is paused: then left is what was left of the wait.
	waiting  bool
	deadline int64
	paused   bool
	left     int64
	// cancel is set while a timer is. The timer may be earlier than the deadline, which
	// moves with every record.
	cancel func()
}

// heard notes that records have arrived.
func (s *silence) heard() {
	if s.after == 0 {
		return
	}
	s.waiting, s.left, s.deadline = true, s.after, s.timers.Now()+s.after
	if s.cancel == nil && !s.paused {
		s.arm()
	}
}

func (s *silence) arm() { s.cancel = s.timers.At(s.deadline, s.look) }

func (s *silence) look(now int64) error {
	if now < s.deadline {
		s.arm()
		return nil
	}
	s.cancel, s.waiting = nil, false // until the next record
	return s.close()
}

func (s *silence) stop() {
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
}

// backPressure stops the clock while the subtask does not take input.
func (s *silence) backPressure(paused bool) {
	if s.after == 0 || s.paused == paused {
		return
	}
	s.paused = paused
	if !s.waiting {
		return
	}
	now := s.timers.Now()
	if paused {
		s.left = s.deadline - now
		s.stop()
		return
	}
	s.deadline = now + s.left
	s.arm()
}

// BackPressure implements operator.BackPressured.
func (c *core[K, T, A]) BackPressure(soft, hard bool) { c.silence.backPressure(soft || hard) }

// closeUpTo makes the windows that end by t closed, by advance: they fire as by silence,
// and take further records only within the allowed lateness. The watermark that the
// operator forwards and shows does not change.
func (c *core[K, T, A]) closeUpTo(t int64, advance func() error) error {
	if t == math.MinInt64 || t <= c.watermark {
		return nil
	}
	c.closed = t
	c.bySilence = true
	c.setWatermark(c.context.Watermark)
	err := advance()
	c.bySilence = false
	if err != nil {
		return err
	}
	return c.flush()
}

// Silence closes the windows that have begun by the wall clock. One that begins later holds
// records from the future only, of which the clock cannot tell that they are complete;
// closing it would make everything late until then.

func (o *panes[K, T, A]) onSilence() error {
	n, now := len(o.live), o.rt.Timers.Now()
	for n > 0 && o.live[n-1].window.Start > now {
		n--
	}
	if n == 0 {
		return nil
	}
	from := o.watermark
	return o.closeUpTo(o.live[n-1].max, func() error { return o.fireDue(from, o.watermark) })
}

func (o *sessions[K, T, A]) onSilence() error {
	last, now := int64(math.MinInt64), o.rt.Timers.Now()
	for e := range o.keys.All() {
		for s := e.Value; s != nil && s.window.Start <= now; s = s.next {
			last = max(last, s.window.MaxTimestamp())
		}
	}
	if o.spilled != nil {
		onDisk, err := o.spilled.lastBegun(now)
		if err != nil {
			return err
		}
		last = max(last, onDisk)
	}
	return o.closeUpTo(last, func() error { return o.advance(o.watermark) })
}

func (o *sliced[K, T, A]) onSilence() error {
	n, now := len(o.slices.live), o.rt.Timers.Now()
	for n > 0 && o.layout.span(o.slices.live[n-1].number).Start > now {
		n--
	}
	if n == 0 {
		return nil
	}
	_, last := o.layout.windows(o.slices.live[n-1].number)
	return o.closeUpTo(o.layout.maxTimestamp(last), func() error { return o.fireDue(o.watermark) })
}
