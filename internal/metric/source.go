package metric

import (
	"math"
	"sync/atomic"
)

const (
	minTime = math.MinInt64
	maxTime = math.MaxInt64
)

// Source is the numbers of a source subtask that its lag metrics are computed from
// (spec watermarks 9). All values and times are in milliseconds.
//
// While the reader has nothing to read, lags stand still at the moment it found
// that out.
type Source struct {
	// idleSince is minTime while the reader is not idling.
	idleSince  Gauge
	recordTime Gauge
	// watermark is 0 at first, which AlignmentDrift shows, like Flink.
	watermark Gauge
	limit     Gauge
	// hasWatermark and hasLimit say whether the metrics that need them exist.
	hasWatermark atomic.Bool
	hasLimit     atomic.Bool
}

// NewSource returns the numbers of a subtask that has emitted nothing.
func NewSource() *Source {
	s := &Source{}
	s.init()
	return s
}

func (s *Source) init() {
	s.idleSince.Set(minTime)
	s.recordTime.Set(minTime)
}

// RecordEmitted takes the event time of the last record emitted.
func (s *Source) RecordEmitted(timestamp int64) {
	s.recordTime.Set(timestamp)
	s.idleSince.Set(minTime)
}

// IdlingStarted says that the reader found nothing.
func (s *Source) IdlingStarted(now int64) {
	if s.idleSince.Value() == minTime {
		s.idleSince.Set(now)
	}
}

// WatermarkEmitted takes the subtask's watermark. MaxTimestamp is ignored: the
// end of input is no lag.
func (s *Source) WatermarkEmitted(t int64) {
	if t != maxTime {
		s.watermark.Set(t)
		s.hasWatermark.Store(true)
	}
}

// MaxDesiredWatermark takes the alignment coordinator's limit.
func (s *Source) MaxDesiredWatermark(t int64) {
	s.limit.Set(t)
	s.hasLimit.Store(true)
}

// WatermarkLag returns the metric watermarkLag; ok is false before the first
// watermark.
func (s *Source) WatermarkLag(now int64) (lag int64, ok bool) {
	return saturatingSub(s.at(now), s.watermark.Value()), s.hasWatermark.Load()
}

// EmitEventTimeLag returns the metric currentEmitEventTimeLag, -1 if the last
// record had no event time or there was none.
func (s *Source) EmitEventTimeLag(now int64) int64 {
	recordTime := s.recordTime.Value()
	if recordTime == minTime {
		return -1
	}
	return saturatingSub(s.at(now), recordTime)
}

// AlignmentDrift returns the metric watermarkAlignmentDrift, positive if the
// subtask is ahead of the limit; ok is false before the first limit.
func (s *Source) AlignmentDrift() (drift int64, ok bool) {
	return saturatingSub(s.watermark.Value(), s.limit.Value()), s.hasLimit.Load()
}

// IdleTime returns the metric sourceIdleTime.
func (s *Source) IdleTime(now int64) int64 {
	if since := s.idleSince.Value(); since != minTime {
		return now - since
	}
	return 0
}

// at is the time that lags refer to.
func (s *Source) at(now int64) int64 {
	if since := s.idleSince.Value(); since != minTime {
		return since
	}
	return now
}

func saturatingSub(a, b int64) int64 {
	d := a - b
	switch {
	case a >= b && d < 0:
		return maxTime
	case a < b && d > 0:
		return minTime
	}
	return d
}
