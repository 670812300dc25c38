package window

import (
	"fmt"
	"time"
)

// SessionAssigner gives each record a window of its own, from the record's time
// to one gap later. Touching windows of one key merge, so a session ends when
// no record came for gap (spec windows 1.6). Build it with Session.
type SessionAssigner struct {
	gap time.Duration
	clock
}

// Session returns event-time sessions. Two records of a key exactly gap apart
// are in the same session (spec windows 1.7). gap is at least 1 ms and whole milliseconds.
//
// Unlike the other event-time assigners it accepts records without a timestamp
// and takes them to be from the beginning of time (spec windows 1.5).
func Session(gap time.Duration) SessionAssigner { return SessionAssigner{gap: gap} }

// ProcessingTime returns the assigner of the same windows in processing time: records are
// assigned by the wall clock at their arrival, and nothing is ever late (spec windows 1.3, 2.2).
func (a SessionAssigner) ProcessingTime() SessionAssigner { a.processing = true; return a }

// Assign implements Assigner.
func (a SessionAssigner) Assign(dst []TimeWindow, timestamp, now int64) ([]TimeWindow, error) {
	t := timestamp
	if a.processing {
		t = now
	}
	return append(dst, TimeWindow{t, t + a.gap.Milliseconds()}), nil
}

// Span implements Assigner.
func (a SessionAssigner) Span(t int64) TimeWindow { return TimeWindow{t, t + 1} }

// IsEventTime implements Assigner.
func (a SessionAssigner) IsEventTime() bool { return !a.processing }

// Merging implements Assigner.
func (a SessionAssigner) Merging() bool { return true }

// Validate implements Assigner.
func (a SessionAssigner) Validate() error { return checkLength("window.Session", "gap", a.gap) }

// String implements Assigner.
func (a SessionAssigner) String() string {
	return fmt.Sprintf("window.Session(%v)%s", a.gap, a.suffix())
}

// DynamicSessionAssigner is SessionAssigner with a gap computed from each
// record. It is given to KeyedStream.WindowBy. Build it with DynamicSession.
type DynamicSessionAssigner[T any] struct {
	gap func(T) time.Duration
	clock
}

// DynamicSession returns an assigner for KeyedStream.WindowBy (Window takes only those
// that go by time alone): event-time sessions in which each record says how long a gap
// may follow it. A gap below one millisecond, or with a fraction of one, fails the job at
// that record (spec windows 1.6). gap must not be nil.
func DynamicSession[T any](gap func(T) time.Duration) DynamicSessionAssigner[T] {
	return DynamicSessionAssigner[T]{gap: gap}
}

// ProcessingTime returns the assigner of the same windows in processing time: records are
// assigned by the wall clock at their arrival, and nothing is ever late (spec windows 1.3, 2.2).
func (a DynamicSessionAssigner[T]) ProcessingTime() DynamicSessionAssigner[T] {
	a.processing = true
	return a
}

// Assign implements ElementAssigner.
func (a DynamicSessionAssigner[T]) Assign(dst []TimeWindow, value T, timestamp, now int64) ([]TimeWindow, error) {
	gap := a.gap(value)
	if err := checkLength("window.DynamicSession", "gap of a record", gap); err != nil {
		return dst, err
	}
	return SessionAssigner{gap, a.clock}.Assign(dst, timestamp, now)
}

// IsEventTime implements ElementAssigner.
func (a DynamicSessionAssigner[T]) IsEventTime() bool { return !a.processing }

// Merging implements ElementAssigner.
func (a DynamicSessionAssigner[T]) Merging() bool { return true }

// Validate implements ElementAssigner.
func (a DynamicSessionAssigner[T]) Validate() error {
	if a.gap == nil {
		return fmt.Errorf("window.DynamicSession: gap function is nil")
	}
	return nil
}

// String implements ElementAssigner.
func (a DynamicSessionAssigner[T]) String() string {
	return "window.DynamicSession(func)" + a.suffix()
}
