package progress

import "github.com/lowwater/lowwater/eventtime"

// Multiplexer combines the outputs of the splits of one source subtask (spec
// watermarks 5.6-5.10). A change of one split among n costs O(log n) at worst;
// splits come and go at any time.
type Multiplexer struct {
	out   eventtime.WatermarkOutput
	state combined
}

// NewMultiplexer returns a multiplexer without splits.
func NewMultiplexer(out eventtime.WatermarkOutput) *Multiplexer {
	return &Multiplexer{out: out, state: newCombined()}
}

// Add registers a split, which counts from now on: active and without a
// watermark. changed, which may be nil, is called when the split's watermark
// rose or its status changed, before any combination.
func (m *Multiplexer) Add(changed func()) *SplitOutput {
	return &SplitOutput{m: m, index: m.state.add(), changed: changed}
}

// Remove unregisters a split and reports whether it was registered. It emits
// nothing: the next combination does.
func (m *Multiplexer) Remove(o *SplitOutput) bool {
	if o.index == removed {
		return false
	}
	m.state.remove(o.index)
	o.index = removed
	return true
}

// Combine emits the combined watermark if it rose, and says so each time while
// all splits are idle. Nothing announces that they are active again.
func (m *Multiplexer) Combine() {
	if m.state.update() {
		m.out.EmitWatermark(m.state.watermark)
	}
	if m.state.idle {
		m.out.MarkIdle()
	}
}

// Current returns the combined watermark, MinTimestamp at first, and whether
// the last combination found all splits idle.
func (m *Multiplexer) Current() (watermark int64, idle bool) {
	return m.state.watermark, m.state.idle
}

const removed = -1

// SplitOutput is where the watermarks of one split go. Its own methods take
// effect at once; those of Deferred wait for the next combination. Calls for a
// removed split have no effect.
type SplitOutput struct {
	m       *Multiplexer
	index   int
	changed func()
}

// EmitWatermark raises the split's watermark, makes it active and combines if
// that can advance the combined watermark.
func (o *SplitOutput) EmitWatermark(t int64) {
	if o.raise(t) && t > o.m.state.watermark {
		o.m.Combine()
	}
}

// MarkIdle makes the split idle and combines.
func (o *SplitOutput) MarkIdle() { o.mark(true) }

// MarkActive makes the split active and combines.
func (o *SplitOutput) MarkActive() { o.mark(false) }

func (o *SplitOutput) mark(idle bool) {
	if o.index != removed {
		o.setIdle(idle)
		o.m.Combine()
	}
}

// Watermark returns the split's own watermark, MinTimestamp at first.
func (o *SplitOutput) Watermark() int64 {
	if o.index == removed {
		return minTime
	}
	return o.m.state.inputs[o.index].watermark
}

// Idle reports whether the split is idle.
func (o *SplitOutput) Idle() bool { return o.index != removed && o.m.state.inputs[o.index].idle }

// Deferred returns an output for the same split that does not combine.
func (o *SplitOutput) Deferred() eventtime.WatermarkOutput { return (*deferredOutput)(o) }

func (o *SplitOutput) raise(t int64) (rose bool) {
	if o.index == removed {
		return false
	}
	wasIdle := o.Idle()
	rose = o.m.state.raise(o.index, t)
	if (rose || wasIdle) && o.changed != nil {
		o.changed()
	}
	return rose
}

func (o *SplitOutput) setIdle(idle bool) {
	if o.index == removed || o.Idle() == idle {
		return
	}
	o.m.state.setIdle(o.index, idle)
	if o.changed != nil {
		o.changed()
	}
}

// deferredOutput is a SplitOutput that does not combine.
type deferredOutput SplitOutput

func (o *deferredOutput) EmitWatermark(t int64) { (*SplitOutput)(o).raise(t) }
func (o *deferredOutput) MarkIdle()             { (*SplitOutput)(o).setIdle(true) }
func (o *deferredOutput) MarkActive()           { (*SplitOutput)(o).setIdle(false) }
