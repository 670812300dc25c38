// Package eventtime is the vocabulary of event time: timestamps, watermark
// strategies and the generators behind them.
//
// A watermark t says that no record with a timestamp of t or less is expected
// any more. A [WatermarkStrategy] says how a source finds the timestamp of a
// record, how watermarks follow from timestamps, when a silent split stops
// counting, and whether sources wait for each other.
//
// The package holds types and pure functions. What carries watermarks from a
// split through the job is internal/progress; when a generator is called is
// decided there and by the engine.
//
// All times are milliseconds since the epoch. Durations count in whole
// milliseconds; a fraction is cut off, which changes nothing for timestamps
// that are whole milliseconds themselves.
package eventtime

import "math"

const (
	// MinTimestamp means no timestamp, and as a watermark: nothing known yet.
	MinTimestamp int64 = math.MinInt64
	// MaxTimestamp is the end of event time. As a watermark it says that no
	// record will follow.
	MaxTimestamp int64 = math.MaxInt64
)

// TimestampType says what a record timestamp means.
type TimestampType uint8

const (
	// NoTimestamp: the record has no timestamp.
	NoTimestamp TimestampType = iota
	// CreateTime: set by the producer.
	CreateTime
	// LogAppendTime: set by the broker on arrival.
	LogAppendTime
)

// String returns Kafka's name for the type, such as "CreateTime".
func (t TimestampType) String() string {
	switch t {
	case CreateTime:
		return "CreateTime"
	case LogAppendTime:
		return "LogAppendTime"
	default:
		return "NoTimestamp"
	}
}

// RecordTime is the timestamp that a record had in the system it was read from.
type RecordTime struct {
	// Millis is in milliseconds since the epoch, MinTimestamp if the record has no
	// timestamp.
	Millis int64
	// Type says who set it.
	Type TimestampType
}
