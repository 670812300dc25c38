// Package progress holds the state machines of event time: how watermarks and
// idleness travel from the splits of a source through channels and operators.
// Rule by rule it is section 1 to 10 of the watermark specification.
//
// Everything here is pure: no goroutines, no I/O, no clock. The caller passes
// the time in, as milliseconds that do not fall, and one goroutine at a time
// calls. Records pass elsewhere; when batches are flushed, which timers run and
// who sends is the engine's (package task).
//
// Errors have one way. What leaves a state machine through an [Output] can fail,
// and the error is returned to whoever caused the emission. Generators and
// readers speak [eventtime.WatermarkOutput], which has no errors: there the
// first error is kept by the [SubtaskOutput], nothing is emitted after it, and
// the engine's call returns it.
package progress

import "github.com/lowwater/lowwater/eventtime"

const (
	minTime = eventtime.MinTimestamp
	maxTime = eventtime.MaxTimestamp
)

// Output receives what a state machine emits. An error is passed on to the
// caller at once.
type Output interface {
	// Watermark gets milliseconds since the epoch.
	Watermark(t int64) error
	// Status tells that the stream went idle or active.
	Status(idle bool) error
}

// Rules chooses a release of Flink where releases differ.
type Rules uint8

const (
	// Current is what the engine runs with: Flink 2.3 plus the fixes after it
	// that keep event time from standing still or losing its end. Each is
	// named where it applies and listed in docs/flink-differences.md.
	Current Rules = iota
	// Flink23 is Flink 2.3.0 without them. It exists so that this very code can be
	// compared with the classes of that release, event by event.
	Flink23
)
