package window

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Assigner says which windows a record belongs to by its time alone. The
// assigners of this package are values: options return a changed copy, and one
// value may be used by any number of subtasks.
//
// An assigner works on event time unless its ProcessingTime option was used;
// then it goes by the wall clock at the record's arrival and ignores the
// record's timestamp.
type Assigner interface {
	// Assign appends the windows of a record to dst, in the order in which
	// they are to be processed. Both times are milliseconds since the epoch;
	// timestamp is math.MinInt64 for a record without one, now is the
	// subtask's clock. An error fails the job.
	Assign(dst []TimeWindow, timestamp, now int64) ([]TimeWindow, error)
	// Span returns a range of times around t, at least [t, t+1), in which
	// Assign answers the same windows. It lets an operator assign once for a
	// run of neighbouring records. Where End is before Start, the windows wrap
	// around at the end of time and only t itself can be relied on.
	Span(t int64) TimeWindow
	// IsEventTime reports whether windows end by watermark. It is false for
	// the global window (spec windows 1.8).
	IsEventTime() bool
	// Merging reports whether touching windows of one key become one.
	Merging() bool
	// Validate reports wrong parameters, as a build error of the job.
	Validate() error
	// String returns the Go expression that builds the assigner.
	String() string
}

// ElementAssigner says which windows a record belongs to by its value and time.
// Streams with one run on the general window operator, which is slower than the
// ones for Assigner. It is given to KeyedStream.WindowBy.
type ElementAssigner[T any] interface {
	// Assign is Assigner.Assign with the record's value.
	Assign(dst []TimeWindow, value T, timestamp, now int64) ([]TimeWindow, error)
	// IsEventTime is Assigner.IsEventTime.
	IsEventTime() bool
	// Merging is Assigner.Merging.
	Merging() bool
	// Validate is Assigner.Validate.
	Validate() error
	// String is Assigner.String.
	String() string
}

// AssignElements returns a as an assigner of elements.
func AssignElements[T any](a Assigner) ElementAssigner[T] { return assignElements[T]{a} }

type assignElements[T any] struct{ Assigner }

func (a assignElements[T]) Assign(dst []TimeWindow, _ T, timestamp, now int64) ([]TimeWindow, error) {
	return a.Assigner.Assign(dst, timestamp, now)
}

func (a assignElements[T]) defaultTrigger() Trigger { return DefaultTrigger(a.Assigner) }

// ErrNoTimestamp is the cause, for errors.Is, of a job's failure when a record without a
// timestamp reaches an event-time window of any assigner but sessions (spec windows 1.5).
// A restart does not help: give the stream a timestamp assigner.
var ErrNoTimestamp = errors.New("record has no timestamp: give the stream a watermark strategy with a timestamp assigner, or use processing-time windows")

const noTimestamp = math.MinInt64

// Start returns the start of the window of the given size that holds t, for
// windows that begin at multiples of size from offset (spec windows 1.2). All
// are milliseconds, and size is not 0. t and offset may be negative. Near the ends of the
// int64 range the arithmetic wraps.
func Start(t, offset, size int64) int64 {
	r := (t - offset) % size
	if r < 0 {
		r += size
	}
	return t - r
}

// clock is what the time-based assigners share: the domain their times are of.
type clock struct{ processing bool }

// at returns the time that a record is assigned by.
func (c clock) at(timestamp, now int64) (int64, error) {
	if c.processing {
		return now, nil
	}
	if timestamp == noTimestamp {
		return 0, ErrNoTimestamp
	}
	return timestamp, nil
}

func (c clock) suffix() string {
	if c.processing {
		return ".ProcessingTime()"
	}
	return ""
}

func offsetSuffix(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(".Offset(%v)", d)
}

// checkLength says what is wrong with a length of time that must be positive.
func checkLength(call, name string, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("%s: %s %v: must be at least 1ms", call, name, d)
	}
	return checkWhole(call, name, d)
}

func checkWhole(call, name string, d time.Duration) error {
	if d%time.Millisecond != 0 {
		return fmt.Errorf("%s: %s %v: must be a whole number of milliseconds", call, name, d)
	}
	return nil
}

// checkOffset says what is wrong with an offset that must stay below limit in
// both directions.
func checkOffset(call string, offset time.Duration, limitName string, limit time.Duration) error {
	if offset <= -limit || offset >= limit {
		return fmt.Errorf("%s: offset %v: must lie between -%v and %v, the %s, exclusive", call, offset, limit, limit, limitName)
	}
	return checkWhole(call, "offset", offset)
}
