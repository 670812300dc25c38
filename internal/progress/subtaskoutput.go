package progress

// SubtaskOutput is the last stage of a source subtask and of an operator that
// assigns watermarks (spec watermarks 5.12): watermarks that do not rise end
// here, statuses are sent when they change, and the first watermark after
// idleness announces that the subtask is active.
//
// It is also where errors of the output behind it are kept: after the first one
// nothing is emitted any more.
type SubtaskOutput struct {
	out       Output
	watermark int64
	idle      bool
	err       error
}

// NewSubtaskOutput returns an output that is active and has sent no watermark.
func NewSubtaskOutput(out Output) *SubtaskOutput {
	return &SubtaskOutput{out: out, watermark: minTime}
}

// EmitWatermark sends t if it is larger than all before; MinTimestamp never is.
func (o *SubtaskOutput) EmitWatermark(t int64) {
	if t <= o.watermark {
		return
	}
	o.watermark = t
	o.MarkActive()
	if o.err == nil {
		o.err = o.out.Watermark(t)
	}
}

// MarkIdle announces that the subtask is idle.
func (o *SubtaskOutput) MarkIdle() { o.setIdle(true) }

// MarkActive announces that the subtask is active.
func (o *SubtaskOutput) MarkActive() { o.setIdle(false) }

func (o *SubtaskOutput) setIdle(idle bool) {
	if o.idle == idle {
		return
	}
	o.idle = idle
	if o.err == nil {
		o.err = o.out.Status(idle)
	}
}

// Current returns the last watermark, MinTimestamp at first, and the announced
// status.
func (o *SubtaskOutput) Current() (watermark int64, idle bool) { return o.watermark, o.idle }

// Err returns the first error of the output behind it.
func (o *SubtaskOutput) Err() error { return o.err }

// fail keeps err if it is the first.
func (o *SubtaskOutput) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// branch is one of the two ways into a source subtask's output, the main
// output's and the splits' (spec watermarks 5.11). The subtask is idle only if
// both are; a branch starts idle.
type branch struct {
	out   *SubtaskOutput
	other *branch
	idle  bool
}

func (b *branch) EmitWatermark(t int64) {
	b.idle = false
	b.out.EmitWatermark(t)
}

func (b *branch) MarkIdle() {
	b.idle = true
	if b.other.idle {
		b.out.MarkIdle()
	}
}

func (b *branch) MarkActive() {
	b.idle = false
	b.out.MarkActive()
}
