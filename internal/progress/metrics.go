package progress

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
