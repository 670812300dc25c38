package progress

// SourceMetrics is the arithmetic of a source subtask's lag metrics (spec
// watermarks 9). All values and times are in milliseconds.
//
// While the reader has nothing to read, lags stand still at the moment it found
// that out.
type SourceMetrics struct {
	idleSince  int64
	idling     bool
	recordTime int64
	// watermark is 0 at first, which AlignmentDrift shows, like Flink.
	watermark int64
	// hasWatermark and hasLimit say whether the metrics that need them exist.
	hasWatermark bool
	limit        int64
	hasLimit     bool
}

// NewSourceMetrics returns the metrics of a subtask that has emitted nothing.
func NewSourceMetrics() *SourceMetrics {
	return &SourceMetrics{recordTime: minTime}
}

// RecordEmitted takes the event time of the last record emitted.
func (m *SourceMetrics) RecordEmitted(timestamp int64) {
	m.idling = false
	m.recordTime = timestamp
}

// IdlingStarted says that the reader found nothing.
func (m *SourceMetrics) IdlingStarted(now int64) {
	if !m.idling {
		m.idling, m.idleSince = true, now
	}
}

// WatermarkEmitted takes the subtask's watermark. MaxTimestamp is ignored: the
// end of input is no lag.
func (m *SourceMetrics) WatermarkEmitted(t int64) {
	if t != maxTime {
		m.watermark, m.hasWatermark = t, true
	}
}

// MaxDesiredWatermark takes the alignment coordinator's limit.
func (m *SourceMetrics) MaxDesiredWatermark(t int64) { m.limit, m.hasLimit = t, true }

// WatermarkLag returns the metric watermarkLag; ok is false before the first
// watermark.
func (m *SourceMetrics) WatermarkLag(now int64) (lag int64, ok bool) {
	return saturatingSub(m.at(now), m.watermark), m.hasWatermark
}

// EmitEventTimeLag returns the metric currentEmitEventTimeLag, -1 if the last
// record had no event time or there was none.
func (m *SourceMetrics) EmitEventTimeLag(now int64) int64 {
	if m.recordTime == minTime {
		return -1
	}
	return saturatingSub(m.at(now), m.recordTime)
}

// AlignmentDrift returns the metric watermarkAlignmentDrift, positive if the
// subtask is ahead of the limit; ok is false before the first limit.
func (m *SourceMetrics) AlignmentDrift() (drift int64, ok bool) {
	return saturatingSub(m.watermark, m.limit), m.hasLimit
}

// IdleTime returns the metric sourceIdleTime.
func (m *SourceMetrics) IdleTime(now int64) int64 {
	if !m.idling {
		return 0
	}
	return now - m.idleSince
}

// at is the time that lags refer to.
func (m *SourceMetrics) at(now int64) int64 {
	if m.idling {
		return m.idleSince
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

// InputWatermarks is what the watermark metrics of an operator's inputs show:
// the last watermark that entered each. Idleness plays no part.
type InputWatermarks []int64

// NewInputWatermarks returns the metrics of inputs without watermarks.
func NewInputWatermarks(inputs int) InputWatermarks {
	w := make(InputWatermarks, inputs)
	for i := range w {
		w[i] = minTime
	}
	return w
}

// Min returns the metric currentInputWatermark.
func (w InputWatermarks) Min() int64 {
	lowest := maxTime
	for _, t := range w {
		lowest = min(lowest, t)
	}
	return lowest
}
