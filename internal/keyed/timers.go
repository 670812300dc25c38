package keyed

import "math"

// TimerService is the timers of one keyed operator in one subtask, and the
// rules by which they fire (spec windows 4). A snapshot has the timers of both queues;
// restoring registers them again.
type TimerService[K, N comparable] struct {
	// Event and Processing are two separate sets. A timer in the past is
	// legal: it fires at the next advance, not at its registration.
	Event      *TimerQueue[K, N]
	Processing *TimerQueue[K, N]
	watermark  int64
}

// NewTimerService returns a service without timers whose watermark is
// eventtime.MinTimestamp. After a restore, Resume says what it was: the task stores it.
func NewTimerService[K, N comparable]() *TimerService[K, N] {
	return &TimerService[K, N]{
		Event:      NewTimerQueue[K, N](),
		Processing: NewTimerQueue[K, N](),
		watermark:  math.MinInt64,
	}
}

// Watermark returns the current watermark in milliseconds: within callbacks,
// the one that made them fire.
func (s *TimerService[K, N]) Watermark() int64 { return s.watermark }

// AdvanceWatermark sets the watermark and fires event timers up to it, by rising
// time over all keys. It takes any watermark, also one below the last.
//
// Each timer is removed, then fired. What fire registers at or before the
// watermark fires in the same call, what it deletes does not; a timer that
// registers itself again for its own time therefore never ends. The first error
// of fire ends the advance.
func (s *TimerService[K, N]) AdvanceWatermark(watermark int64, fire func(Timer[K, N]) error) error {
	s.watermark = watermark
	return s.Event.fire(watermark, fire)
}

// Resume sets the watermark to what it was before a restart. Nothing fires.
func (s *TimerService[K, N]) Resume(watermark int64) { s.watermark = watermark }

// AdvanceProcessingTime fires processing timers up to now, by the same rules.
//
// A real clock must show more than a timer's time when it fires, because its
// millisecond is not over before: call this no earlier than Processing.Next
// plus one. At the end of input it is not called any more; what is pending does
// not fire.
func (s *TimerService[K, N]) AdvanceProcessingTime(now int64, fire func(Timer[K, N]) error) error {
	return s.Processing.fire(now, fire)
}

func (q *TimerQueue[K, N]) fire(until int64, fire func(Timer[K, N]) error) error {
	for {
		t, ok := q.Pop(until)
		if !ok {
			return nil
		}
		if err := fire(t); err != nil {
			return err
		}
	}
}
