package task

import (
	"github.com/lowwater/lowwater/internal/exchange"
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

	open    int
	drained bool
}

// newInput builds the input of a task whose head gets what comes out as signals.
// logical names the logical input of each channel of the inbox.
func newInput(inbox *exchange.Inbox, logical []int, head progress.Output) *input {
	in := &input{inbox: inbox, logical: logical, position: make([]int, len(logical)), open: len(logical), drained: true}
	var channels []int
	for c, l := range logical {
		for len(channels) <= l {
			channels = append(channels, 0)
		}
		in.position[c] = channels[l]
		channels[l]++
	}
	if len(channels) == 1 {
		in.valves = []*progress.Valve{progress.NewValve(channels[0], progress.Current, head)}
		return in
	}
	combination := progress.NewCombination(len(channels), head)
	for l, n := range channels {
		in.valves = append(in.valves, progress.NewValve(n, progress.Current, combination.Input(l)))
	}
	return in
}

// signal feeds a watermark or a status into the valve of its channel.
func (in *input) signal(m exchange.Message) error {
	valve, position := in.valves[in.logical[m.Channel]], in.position[m.Channel]
	if m.Kind == exchange.Watermark {
		return valve.Watermark(position, m.Time)
	}
	return valve.Status(position, m.Idle)
}

// ended notes the end of one channel.
func (in *input) ended(m exchange.Message) {
	in.open--
	in.drained = in.drained && m.Drained
}
