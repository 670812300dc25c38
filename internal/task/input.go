package task

import (
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/progress"
)

// input is the reading side of a task: the inbox, one valve per logical input
// and, if there are several inputs, their combination.
type input struct {
	inbox *exchange.Inbox
	// logical and position place each channel: its logical input and its number
	// within that input's valve.
	logical  []int
	position []int
	valves   []*progress.Valve
	// combination is nil if there is one logical input; watermarks shows how far each of
	// several is.
	combination *progress.Combination
	watermarks  []metric.Gauge

	// timeEnded marks the channels whose event time has ended, running counts the
	// others, and last is the latest to end at each valve.
	timeEnded []bool
	running   int
	last      []int

	open    int
	drained bool

	alignment alignment
}

// newInput builds the input of a task whose head gets what comes out as signals.
// logical names the logical input of each channel of the inbox. If there are several,
// watermarks shows how far each is.
func newInput(inbox *exchange.Inbox, logical []int, head progress.Output, watermarks []metric.Gauge) *input {
	n := len(logical)
	in := &input{
		inbox: inbox, logical: logical, position: make([]int, n),
		timeEnded: make([]bool, n), running: n, open: n, drained: true,
	}
	var channels []int
	for c, l := range logical {
		for len(channels) <= l {
			channels = append(channels, 0)
		}
		in.position[c] = channels[l]
		channels[l]++
	}
	in.last = make([]int, len(channels))
	if len(channels) == 1 {
		in.valves = []*progress.Valve{progress.NewValve(channels[0], progress.Current, head)}
		return in
	}
	in.combination, in.watermarks = progress.NewCombination(len(channels), head), watermarks
	for l, n := range channels {
		out := in.combination.Input(l)
		if l < len(watermarks) {
			out = &measured{out, &watermarks[l]}
		}
		in.valves = append(in.valves, progress.NewValve(n, progress.Current, out))
	}
	return in
}

// measured shows the watermarks that one logical input lets through.
type measured struct {
	progress.Output
	watermark *metric.Gauge
}

func (m *measured) Watermark(t int64) error {
	m.watermark.Set(t)
	return m.Output.Watermark(t)
}

// signal feeds a watermark or a status into the valve of its channel.
func (in *input) signal(m exchange.Message) error {
	l, position := in.logical[m.Channel], in.position[m.Channel]
	switch {
	case in.timeEnded[m.Channel]:
		return nil
	case m.Kind == exchange.Status:
		return in.valves[l].Status(position, m.Idle)
	case m.Time == eventtime.MaxTimestamp:
		in.timeEnded[m.Channel], in.last[l] = true, position
		in.running--
		return in.endOfTime(l)
	default:
		return in.valves[l].Watermark(position, m.Time)
	}
}

// endOfTime is called when event time has ended on a channel of logical input l. It ends
// for the task when it has on all channels; until then the channel counts as idle.
//
// To the valve MaxTimestamp is a watermark like any other, so with it from one
// channel and all others idle it would end event time, and make everything late
// that an idle channel has yet to deliver (spec watermarks 1.9).
func (in *input) endOfTime(l int) error {
	if in.running > 0 {
		return in.valves[l].Status(in.last[l], true)
	}
	for l, valve := range in.valves {
		if err := valve.Status(in.last[l], false); err != nil {
			return err
		}
		if err := valve.Watermark(in.last[l], eventtime.MaxTimestamp); err != nil {
			return err
		}
	}
	return nil
}

// ended notes the end of one channel.
func (in *input) ended(m exchange.Message) {
	in.open--
	in.drained = in.drained && m.Drained
}

// eventTime returns the watermark that the head operator has seen, and those of the
// logical inputs.
func (in *input) eventTime() (combined int64, inputs []int64) {
	for _, v := range in.valves {
		w, _ := v.Current()
		inputs = append(inputs, w)
	}
	if in.combination == nil {
		return inputs[0], inputs
	}
	combined, _ = in.combination.Current()
	return combined, inputs
}

// restore brings the watermarks of an earlier run back, without telling anyone.
func (in *input) restore(combined int64, inputs []int64) {
	for l, w := range inputs {
		in.valves[l].Restore(w)
		if l < len(in.watermarks) {
			in.watermarks[l].Set(w)
		}
	}
	if in.combination != nil {
		in.combination.Restore(combined, inputs)
	}
}
