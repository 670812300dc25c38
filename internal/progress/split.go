package progress

import (
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// lane is one way for records through a source subtask: a generator, its idle
// clock, and where its watermarks go on an event and on a periodic call.
type lane[T any] struct {
	source    *Source[T]
	generator Generator[T]
	clock     PausableClock
	immediate eventtime.WatermarkOutput
	periodic  eventtime.WatermarkOutput
	// wake undoes what SetQuiet did; the main output has none.
	wake func()
}

// Main is the output of records that belong to no split.
type Main[T any] struct{ lane[T] }

// Split is one split of a source subtask. It is valid until it is released.
type Split[T any] struct {
	lane[T]
	id      string
	output  *SplitOutput
	sampler Sampler
	paused  bool
	state   status.SplitState
}

// CanBatch reports whether OnBatch may be used: the generator emits nothing on
// events.
func (l *lane[T]) CanBatch() bool { return l.generator.CanBatch() }

// OnEvent is told about each record after it was emitted, with its event time.
func (l *lane[T]) OnEvent(value T, timestamp int64) error {
	l.awake()
	l.generator.OnEvent(value, timestamp, l.immediate)
	return l.source.settle()
}

// OnBatch is OnEvent for a run of records that were emitted. The slices are of
// equal length and stay the caller's.
func (l *lane[T]) OnBatch(values []T, timestamps []int64) {
	l.awake()
	l.generator.OnBatch(values, timestamps)
}

// Activity is told about a record that was emitted and is not to move the watermark.
func (l *lane[T]) Activity() {
	l.awake()
	l.generator.Activity()
}

func (l *lane[T]) awake() {
	if l.generator.quiet && l.wake != nil {
		l.wake()
	}
}

// EmitWatermark, MarkIdle and MarkActive are for readers that know better than
// the generator (spec watermarks 5.14).
func (l *lane[T]) EmitWatermark(t int64) error {
	if !l.source.cfg.Batch {
		l.immediate.EmitWatermark(t)
	}
	return l.source.settle()
}

// MarkIdle: see EmitWatermark.
func (l *lane[T]) MarkIdle() error {
	if !l.source.cfg.Batch {
		l.immediate.MarkIdle()
	}
	return l.source.settle()
}

// MarkActive: see EmitWatermark.
func (l *lane[T]) MarkActive() error {
	if !l.source.cfg.Batch {
		l.immediate.MarkActive()
	}
	return l.source.settle()
}

// Restore gives a split that was just added the watermark that it had in an earlier run,
// in milliseconds. The next combination counts it, and the split does not go below it.
func (sp *Split[T]) Restore(watermark int64) { sp.periodic.EmitWatermark(watermark) }

// SetQuiet tells whether the outside knows that the split was read to its end and that
// nothing was appended for as long as it takes to be idle. The next periodic call makes
// a quiet split idle; a split that is no longer quiet is active at once, and so is the
// subtask, for then it is known again that records may come.
func (sp *Split[T]) SetQuiet(quiet bool) {
	if !quiet {
		sp.awake()
	}
	sp.generator.SetQuiet(quiet)
}

func (sp *Split[T]) wakeUp() {
	if sp.output.Idle() {
		sp.generator.SetQuiet(false)
		sp.periodic.MarkActive()
		sp.source.splitBranch.MarkActive()
	}
}

// IdleBy says what declared the split idle.
func (sp *Split[T]) IdleBy() status.IdleReason {
	switch {
	case !sp.output.Idle():
		return status.NotIdle
	case sp.generator.quiet:
		return status.IdleByBroker
	default:
		return status.IdleByTimeout
	}
}

// ID returns the split's id.
func (sp *Split[T]) ID() string { return sp.id }

// Watermark returns the split's own watermark, MinTimestamp at first.
func (sp *Split[T]) Watermark() int64 { return sp.output.Watermark() }

// State says how the split takes part: idle, paused by alignment, or active.
// Idle wins, because then the split does not hold the watermark back.
func (sp *Split[T]) State() status.SplitState { return sp.state }

// Paused reports whether alignment has paused the split at the reader.
func (sp *Split[T]) Paused() bool { return sp.paused }

// changed is called when the split's watermark rose or its status changed.
func (sp *Split[T]) changed() {
	sp.sampler.SetLatest(sp.output.Watermark())
	sp.updateState()
	s := sp.source
	if s.limit < sp.sampler.Oldest() && !sp.paused && !sp.output.Idle() {
		s.toPause = append(s.toPause[:0], sp)
		s.pause(s.toPause)
	}
}

func (sp *Split[T]) updateState() {
	switch {
	case sp.output.Idle():
		sp.setState(status.SplitIdle)
	case sp.paused:
		sp.setState(status.SplitPaused)
	default:
		sp.setState(status.SplitActive)
	}
}

func (sp *Split[T]) setState(state status.SplitState) {
	if sp.state == state {
		return
	}
	sp.state = state
	if f := sp.source.cfg.SplitState; f != nil {
		f(sp.id, state)
	}
}
