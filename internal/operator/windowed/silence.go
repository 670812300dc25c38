package windowed

import (
	"math"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
)

// silence notices that a subtask's input has been silent for a while of wall-clock time.
// Time during which the subtask could not take input does not count.
type silence struct {
	// after is how long, in milliseconds; 0 means never.
	after int64
	// close is called when the input has been silent for that long.
	close  func() error
	timers operator.ProcessingTime

	clock      progress.PausableClock
	soft, hard bool
	// last is the clock's time at the last record.
	last int64
	// cancel is set while a timer is.
	cancel func()
}

// heard notes that records have arrived.
func (s *silence) heard() {
	if s.after == 0 {
		return
	}
	now := s.timers.Now()
	s.last = s.clock.Time(now)
	if s.cancel == nil {
		s.cancel = s.timers.At(now+s.after, s.look)
	}
}

func (s *silence) look(now int64) error {
	if left := s.after - (s.clock.Time(now) - s.last); left > 0 {
		s.cancel = s.timers.At(now+left, s.look)
		return nil
	}
	s.cancel = nil // until the next record
	return s.close()
}

func (s *silence) stop() {
	if s.cancel != nil {
		s.cancel()
	}
}

// backPressure stops the clock while the subtask does not take input.
func (s *silence) backPressure(soft, hard bool) {
	if s.after == 0 {
		return
	}
	now := s.timers.Now()
	was, is := s.soft || s.hard, soft || hard
	s.soft, s.hard = soft, hard
	switch {
	case is && !was:
		s.clock.Pause(now)
	case was && !is:
		s.clock.Resume(now)
	}
}

// BackPressure implements operator.BackPressured.
func (c *core[K, T, A]) BackPressure(soft, hard bool) { c.silence.backPressure(soft, hard) }

// closeUpTo makes the windows that end by t closed, by advance: they fire as by silence,
// and records that still come for them are late. The watermark that the operator
// forwards and shows does not change.
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

func (o *panes[K, T, A]) onSilence() error {
	if len(o.live) == 0 {
		return nil
	}
	from := o.watermark
	return o.closeUpTo(o.live[len(o.live)-1].max, func() error { return o.fireDue(from, o.watermark) })
}

func (o *sessions[K, T, A]) onSilence() error {
	last := int64(math.MinInt64)
	for e := range o.keys.All() {
		for s := e.Value; s != nil; s = s.next {
			last = max(last, s.window.MaxTimestamp())
		}
	}
	return o.closeUpTo(last, func() error { return o.advance(o.watermark) })
}

func (o *sliced[K, T, A]) onSilence() error {
	n := len(o.slices.live)
	if n == 0 {
		return nil
	}
	_, last := o.layout.windows(o.slices.live[n-1].number)
	return o.closeUpTo(o.layout.maxTimestamp(last), func() error { return o.fireDue(o.watermark) })
}
