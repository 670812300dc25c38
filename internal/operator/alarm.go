package operator

import "math"

// Alarm is one timer of the clock, set to the earliest of many instants.
type Alarm struct {
	timers ProcessingTime
	fire   func(now int64) error
	at     int64
	cancel func()
}

// NewAlarm returns an alarm that calls fire when it goes off.
func NewAlarm(timers ProcessingTime, fire func(now int64) error) Alarm {
	return Alarm{timers: timers, fire: fire}
}

// SetAfter makes the alarm go off when the clock shows more than t, unless it will go
// off before anyway: a millisecond is over only then, and Flink's timers for t fire then
// (spec windows 4).
func (a *Alarm) SetAfter(t int64) {
	if t == math.MaxInt64 {
		return // no clock shows more
	}
	if a.cancel != nil {
		if a.at <= t+1 {
			return
		}
		a.cancel()
	}
	a.at = t + 1
	a.cancel = a.timers.At(a.at, func(now int64) error {
		a.cancel = nil
		return a.fire(now)
	})
}

// Stop turns the alarm off.
func (a *Alarm) Stop() {
	if a.cancel != nil {
		a.cancel()
		a.cancel = nil
	}
}
