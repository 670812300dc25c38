package progress

// SQLWatermarkAssigner is the event time of the SQL operator behind WATERMARK
// FOR where the source cannot derive watermarks itself (spec watermarks 10.5).
// The value of the clause's expression for a row is the watermark.
//
// It starts at 0, so watermarks of 0 and less are never sent. Times are
// milliseconds and must not fall.
type SQLWatermarkAssigner struct {
	out      Output
	interval int64
	timeout  int64

	// largest row watermark, and the last one sent.
	largest int64
	sent    int64
	idle    bool

	clock      PausableClock
	hard, soft bool
	// next is when Timer is due, lastPeriodic when it last emitted, and
	// activeAt when it last saw new rows, on the clock's time.
	next         int64
	lastPeriodic int64
	activeAt     int64
	rows         bool
}

// NewSQLWatermarkAssigner returns an assigner with an auto-watermark interval
// and an idle timeout in milliseconds. 0 or less switches either off.
func NewSQLWatermarkAssigner(interval, idleTimeout, now int64, out Output) *SQLWatermarkAssigner {
	a := &SQLWatermarkAssigner{
		out:          out,
		interval:     interval,
		timeout:      idleTimeout,
		lastPeriodic: now,
		activeAt:     now,
		// The first look at the rows restarts the timeout in any case.
		rows: true,
	}
	a.next = now + a.timerInterval()
	return a
}

// timerInterval is the shorter of interval and timeout, or a fifth of it where
// the two are too close for either to be kept well. 0 means no timer.
func (a *SQLWatermarkAssigner) timerInterval() int64 {
	switch {
	case a.interval <= 0:
		return max(a.timeout, 0)
	case a.timeout <= 0:
		return a.interval
	}
	shorter, longer := min(a.interval, a.timeout), max(a.interval, a.timeout)
	if shorter*5 < longer {
		return shorter
	}
	return max(shorter/5, 1)
}

// BeforeRow is told about each row before it is emitted: a row ends idleness.
func (a *SQLWatermarkAssigner) BeforeRow() error {
	a.rows = true
	return a.reactivate()
}

// AfterRow is told about each row after it was emitted, with the value of the
// watermark expression and whether it has one. A watermark far ahead does not
// wait for the timer.
func (a *SQLWatermarkAssigner) AfterRow(watermark int64, ok bool) error {
	if ok {
		a.largest = max(a.largest, watermark)
	}
	if a.largest-a.sent > a.interval {
		return a.Advance()
	}
	return nil
}

// NextTimer returns when Timer is due, and whether it ever is.
func (a *SQLWatermarkAssigner) NextTimer() (at int64, ok bool) {
	return a.next, a.timerInterval() > 0
}

// Timer emits what is due and looks for idleness.
func (a *SQLWatermarkAssigner) Timer(now int64) error {
	a.next = now + a.timerInterval()
	if a.interval > 0 && a.lastPeriodic+a.interval <= now {
		a.lastPeriodic = now
		if err := a.Advance(); err != nil {
			return err
		}
	}
	elapsed := a.clock.Time(now)
	if a.rows {
		a.rows, a.activeAt = false, elapsed
	}
	if a.timeout > 0 && !a.idle && a.activeAt+a.timeout <= elapsed {
		return a.status(true)
	}
	return nil
}

// BackPressure tells whether the task is blocked in emitting (hard) and whether
// it takes no input because an output is full (soft). Meanwhile the idle timer
// does not run.
func (a *SQLWatermarkAssigner) BackPressure(now int64, hard, soft bool) {
	setPaused(&a.clock, now, &a.hard, hard)
	setPaused(&a.clock, now, &a.soft, soft)
}

// Watermark takes a watermark from upstream. Only the first MaxTimestamp is
// passed on.
func (a *SQLWatermarkAssigner) Watermark(t int64) error {
	if t != maxTime || a.largest == maxTime {
		return nil
	}
	if err := a.reactivate(); err != nil {
		return err
	}
	// Not marked as sent: like Flink's, the next timer sends it once more.
	a.largest = t
	return a.out.Watermark(t)
}

// Status passes on a status from upstream, also if it is no change.
func (a *SQLWatermarkAssigner) Status(idle bool) error { return a.status(idle) }

// Finish sends MaxTimestamp if it has not passed yet.
func (a *SQLWatermarkAssigner) Finish() error { return a.Watermark(maxTime) }

// Advance emits the watermark of the rows so far, also before Timer is due.
func (a *SQLWatermarkAssigner) Advance() error {
	if a.largest <= a.sent {
		return nil
	}
	a.sent = a.largest
	return a.out.Watermark(a.sent)
}

// reactivate ends idleness if it may be of this operator's making.
func (a *SQLWatermarkAssigner) reactivate() error {
	if a.timeout > 0 && a.idle {
		return a.status(false)
	}
	return nil
}

func (a *SQLWatermarkAssigner) status(idle bool) error {
	a.idle = idle
	return a.out.Status(idle)
}
