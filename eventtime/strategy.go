package eventtime

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// DefaultAlignmentInterval is Flink's interval between two alignment checks, for
// WithWatermarkAlignment.
const DefaultAlignmentInterval = time.Second

// WatermarkStrategy says how event time is derived from the records of a source
// (spec watermarks 4). It is an immutable value: the With methods return a
// changed copy, and where one is called twice the last call counts.
//
// Wrong arguments are remembered and reported by Validate, which the engine
// calls while the job is built. The zero WatermarkStrategy is refused: a source
// that is to have no watermarks says so with NoWatermarks.
type WatermarkStrategy[T any] struct {
	name         string
	newGenerator func() WatermarkGenerator[T]
	rowWatermark func(T) (int64, bool)
	assigner     func(T, RecordTime) int64
	idleness     time.Duration
	broker       time.Duration
	futureSkew   time.Duration
	limitsFuture bool
	alignment    Alignment
	errs         error
}

// Alignment makes sources wait for each other (spec watermarks 6). The zero
// value means off.
type Alignment struct {
	// Group is the name, unique in the job, that aligned sources share.
	Group string
	// MaxDrift is how far, in event time, a source may run ahead of the group's slowest.
	MaxDrift time.Duration
	// UpdateInterval is the wall-clock time between two reports and announcements.
	UpdateInterval time.Duration
}

// ForBoundedOutOfOrderness is for records that arrive at most bound later than
// a record with a larger timestamp. The watermark, emitted periodically, is the
// largest timestamp minus bound minus 1 ms (spec watermarks 4.1). bound must not be
// negative.
func ForBoundedOutOfOrderness[T any](bound time.Duration) WatermarkStrategy[T] {
	s := WatermarkStrategy[T]{
		name:         "bounded-out-of-orderness " + formatDuration(bound),
		newGenerator: func() WatermarkGenerator[T] { return newBoundedOutOfOrderness[T](bound) },
	}
	if bound < 0 {
		s.fail("ForBoundedOutOfOrderness(%v): the bound must be 0 or more", bound)
	}
	return s
}

// ForMonotonousTimestamps is for splits whose timestamps never fall. It is the
// same as a bound of 0: equal timestamps may still follow (spec watermarks 4.2).
func ForMonotonousTimestamps[T any]() WatermarkStrategy[T] {
	s := ForBoundedOutOfOrderness[T](0)
	s.name = "monotonous-timestamps"
	return s
}

// ForRowWatermarks takes the watermark from the records themselves, as SQL's WATERMARK FOR
// does: watermark returns the one that a record stands for, in milliseconds and exactly (no
// millisecond is subtracted), or false if it has none. In a source the largest so far is
// emitted periodically (spec watermarks 10.2). Behind a source it is Flink's SQL
// operator: it starts at 0, emits at once when the watermark has grown by more than the
// auto-watermark interval, and passes statuses from upstream on (10.5).
func ForRowWatermarks[T any](watermark func(value T) (millis int64, ok bool)) WatermarkStrategy[T] {
	s := WatermarkStrategy[T]{
		name:         "row watermarks",
		rowWatermark: watermark,
		newGenerator: func() WatermarkGenerator[T] { return &rowWatermarks[T]{watermark: watermark, largest: MinTimestamp} },
	}
	if watermark == nil {
		s.fail("ForRowWatermarks(nil): a function is needed")
	}
	return s
}

const noWatermarksName = "no-watermarks"

// NoWatermarks never emits a watermark: event-time windows and timers behind it
// fire at the end of a bounded input only (spec watermarks 4.3). What it is connected or
// joined with waits for it, too (2.5).
func NoWatermarks[T any]() WatermarkStrategy[T] {
	return WatermarkStrategy[T]{
		name:         noWatermarksName,
		newGenerator: func() WatermarkGenerator[T] { return noWatermarks[T]{} },
	}
}

// ForGenerator uses generators of one's own, for example to emit a watermark for records
// that mark one (Flink's punctuated watermarks). newGenerator is called for every split,
// must not be nil and must return a new generator each time.
func ForGenerator[T any](newGenerator func() WatermarkGenerator[T]) WatermarkStrategy[T] {
	s := WatermarkStrategy[T]{name: "custom generator", newGenerator: newGenerator}
	if newGenerator == nil {
		s.fail("ForGenerator(nil): a function that returns a generator is needed")
	}
	return s
}

// WithTimestampAssigner makes assign determine the event time of a record. It
// gets the record and the timestamp that the record came with, both in
// milliseconds since the epoch; MinTimestamp means none. Without an assigner
// records keep the timestamp they came with (spec watermarks 4.4). assign is called by all
// subtasks at once and must not be nil.
func (s WatermarkStrategy[T]) WithTimestampAssigner(assign func(value T, recordMillis int64) int64) WatermarkStrategy[T] {
	if assign == nil {
		s.fail("WithTimestampAssigner(nil): a function is needed; without the call records keep their own timestamp")
		return s
	}
	s.assigner = func(value T, t RecordTime) int64 { return assign(value, t.Millis) }
	return s
}

// WithRecordTimestampAssigner is WithTimestampAssigner for assigners that want
// to know who set the record's own timestamp.
func (s WatermarkStrategy[T]) WithRecordTimestampAssigner(assign func(value T, t RecordTime) int64) WatermarkStrategy[T] {
	if assign == nil {
		s.fail("WithRecordTimestampAssigner(nil): a function is needed; without the call records keep their own timestamp")
		return s
	}
	s.assigner = assign
	return s
}

// WithIdleness lets a split go idle when it had no record for more than
// timeout, so that it no longer holds the watermark back (spec watermarks
// 4.8-4.10). The time counts while the split could have been read: not under
// back pressure and not while alignment holds it. It is checked at the
// auto-watermark interval only. timeout must be positive.
func (s WatermarkStrategy[T]) WithIdleness(timeout time.Duration) WatermarkStrategy[T] {
	if timeout <= 0 {
		s.fail("WithIdleness(%v): the timeout must be more than 0", timeout)
		return s
	}
	s.idleness = timeout
	return s
}

// WithBrokerIdleness lets a split go idle when it has been read to its end and the
// outside system, such as a Kafka broker, knows that nothing was appended for d. No
// timeout has to be guessed: a split that lags, that cannot be read for back pressure or
// alignment, or whose broker does not answer is never idle, however long it is
// silent. A subtask without splits is idle. It needs a source whose reader implements
// connector.EndReporter, and may be combined with WithIdleness: then either suffices.
// It is checked at the auto-watermark interval only. d must be positive. Flink has
// nothing like it.
func (s WatermarkStrategy[T]) WithBrokerIdleness(d time.Duration) WatermarkStrategy[T] {
	if d <= 0 {
		s.fail("WithBrokerIdleness(%v): the time must be more than 0", d)
		return s
	}
	s.broker = d
	return s
}

// WithMaxFutureSkew keeps records whose timestamp is more than d ahead of the wall clock
// from moving the watermark, so that one wrong clock cannot make all other records
// late. The records themselves pass, are counted and sampled by split, and count as
// activity. d must not be negative; 0 lets no timestamp ahead of the clock move it. Flink
// has nothing like it.
func (s WatermarkStrategy[T]) WithMaxFutureSkew(d time.Duration) WatermarkStrategy[T] {
	if d < 0 {
		s.fail("WithMaxFutureSkew(%v): the skew must be 0 or more", d)
		return s
	}
	s.futureSkew, s.limitsFuture = d, true
	return s
}

// WithWatermarkAlignment stops reading splits and subtasks that are more than
// maxDrift ahead of the slowest source of the group (spec watermarks 6). The
// group's name is shared by all sources of the job that are to stay together, and must
// not be empty; maxDrift must not be negative and updateInterval must be at least a
// millisecond (DefaultAlignmentInterval is Flink's default). The source's
// reader must be able to stop single splits (connector.SplitPauser); the job fails
// otherwise.
func (s WatermarkStrategy[T]) WithWatermarkAlignment(group string, maxDrift, updateInterval time.Duration) WatermarkStrategy[T] {
	call := fmt.Sprintf("WithWatermarkAlignment(%q, %v, %v)", group, maxDrift, updateInterval)
	if group == "" {
		s.fail("%s: the group must have a name", call)
	}
	if maxDrift < 0 {
		s.fail("%s: the maximum drift must be 0 or more", call)
	}
	if updateInterval < time.Millisecond {
		s.fail("%s: the update interval must be 1ms or more", call)
	}
	s.alignment = Alignment{Group: group, MaxDrift: maxDrift, UpdateInterval: updateInterval}
	return s
}

func (s *WatermarkStrategy[T]) fail(format string, args ...any) {
	s.errs = errors.Join(s.errs, fmt.Errorf("eventtime."+format, args...))
}

// Validate reports all wrong arguments, each with the call it was passed to, or
// that there is no strategy at all.
func (s WatermarkStrategy[T]) Validate() error {
	if s.name == "" {
		return errors.Join(s.errs, errors.New("eventtime.WatermarkStrategy: the zero value is not a strategy; "+
			"use ForBoundedOutOfOrderness, ForMonotonousTimestamps, ForGenerator or NoWatermarks"))
	}
	return s.errs
}

// EmitsNothing reports whether the strategy is NoWatermarks.
func (s WatermarkStrategy[T]) EmitsNothing() bool { return s.name == noWatermarksName }

// RowWatermark returns the function given to ForRowWatermarks, nil for other strategies.
// It is for the engine, as are the methods below.
func (s WatermarkStrategy[T]) RowWatermark() func(T) (int64, bool) { return s.rowWatermark }

// NewGenerator returns a new generator. The strategy must be valid.
func (s WatermarkStrategy[T]) NewGenerator() WatermarkGenerator[T] { return s.newGenerator() }

// TimestampAssigner returns the function that determines event time, nil if
// records keep the timestamp they came with.
func (s WatermarkStrategy[T]) TimestampAssigner() func(T, RecordTime) int64 { return s.assigner }

// Idleness returns the idle timeout, 0 if splits do not go idle.
func (s WatermarkStrategy[T]) Idleness() time.Duration { return s.idleness }

// BrokerIdleness returns how long nothing must have been appended for a split to be
// idle, 0 if that does not count.
func (s WatermarkStrategy[T]) BrokerIdleness() time.Duration { return s.broker }

// MaxFutureSkew returns how far ahead of the wall clock a timestamp may be to move the
// watermark, and whether there is a limit.
func (s WatermarkStrategy[T]) MaxFutureSkew() (d time.Duration, limited bool) {
	return s.futureSkew, s.limitsFuture
}

// Alignment returns the alignment parameters and whether alignment is on.
func (s WatermarkStrategy[T]) Alignment() (Alignment, bool) {
	return s.alignment, s.alignment.Group != ""
}

// String describes the strategy for plans, such as
// "bounded-out-of-orderness 20s, idleness 1m".
func (s WatermarkStrategy[T]) String() string {
	if s.name == "" {
		return "no strategy"
	}
	parts := []string{s.name}
	if s.assigner != nil {
		parts = append(parts, "timestamp assigner")
	}
	if s.idleness > 0 {
		parts = append(parts, "idleness "+formatDuration(s.idleness))
	}
	if s.broker > 0 {
		parts = append(parts, "broker idleness "+formatDuration(s.broker))
	}
	if s.limitsFuture {
		parts = append(parts, "max future skew "+formatDuration(s.futureSkew))
	}
	if a, on := s.Alignment(); on {
		parts = append(parts, fmt.Sprintf("alignment in group %s with drift %s every %s",
			a.Group, formatDuration(a.MaxDrift), formatDuration(a.UpdateInterval)))
	}
	return strings.Join(parts, ", ")
}

// formatDuration is Duration.String without zero units at the end.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
