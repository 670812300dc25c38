package replay

import (
	"encoding/json"
	"slices"

	"github.com/lowwater/lowwater/internal/progress"
)

// signal is a watermark or a status.
type signal struct {
	Watermark *int64 `json:"watermark"`
	Status    string `json:"status"`
}

// send passes the signal on.
func (s signal) send(out progress.Output) error {
	if s.Watermark != nil {
		return out.Watermark(*s.Watermark)
	}
	idle, err := parseStatus(s.Status)
	if err != nil {
		return err
	}
	return out.Status(idle)
}

// channelEvent is a signal on a channel.
type channelEvent struct {
	Channel *int `json:"channel"`
	signal
}

// channelOutput leads a signal into a channel of a valve.
type channelOutput struct {
	valve   *progress.Valve
	channel int
}

func (o channelOutput) Watermark(t int64) error { return o.valve.Watermark(o.channel, t) }
func (o channelOutput) Status(idle bool) error  { return o.valve.Status(o.channel, idle) }

func feedValve(v *progress.Valve, channel *int, s signal) error {
	c, err := need(channel, "channel")
	if err != nil {
		return err
	}
	if c < 0 || c >= v.Channels() {
		return malformed("no such channel")
	}
	return s.send(channelOutput{v, c})
}

// valveUnit is the subject valve.
type valveUnit struct{ valve *progress.Valve }

func newValve(setup json.RawMessage, rules progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		Channels int `json:"channels"`
	}](setup)
	if err != nil {
		return nil, err
	}
	return valveUnit{progress.NewValve(s.Channels, rules, out)}, nil
}

func (u valveUnit) step(in json.RawMessage) error {
	e, err := decode[channelEvent](in)
	if err != nil {
		return err
	}
	return feedValve(u.valve, e.Channel, e.signal)
}

type channelCheck struct {
	Channel   int    `json:"channel"`
	Aligned   *bool  `json:"aligned,omitempty"`
	Watermark *int64 `json:"watermark,omitempty"`
}

func (u valveUnit) check(asked json.RawMessage) (json.RawMessage, error) {
	checks, err := decode[[]channelCheck](asked)
	if err != nil {
		return nil, err
	}
	for i, c := range checks {
		state := u.valve.Channel(c.Channel)
		if c.Aligned != nil {
			checks[i].Aligned = &state.Aligned
		}
		if c.Watermark != nil {
			checks[i].Watermark = &state.Watermark
		}
	}
	return encode(checks)
}

// gateUnit is the subject output_gate.
type gateUnit struct {
	gate *progress.Gate
	out  *log
}

func newGate(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	_, err := decode[struct{}](setup)
	return gateUnit{progress.NewGate(out), out}, err
}

func (u gateUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Record *int64 `json:"record"`
		signal
	}](in)
	if err != nil {
		return err
	}
	if e.Record != nil {
		u.out.record(*e.Record)
		return nil
	}
	return e.send(u.gate)
}

func (u gateUnit) check(asked json.RawMessage) (json.RawMessage, error) {
	type gauge struct {
		Gauge int64 `json:"gauge"`
	}
	if _, err := decode[gauge](asked); err != nil {
		return nil, err
	}
	return encode(gauge{u.gate.LastWatermark()})
}

// timerOperator stands for an operator with event-time timers of one key: they
// fire in order before the watermark that lets them is forwarded.
type timerOperator struct {
	timers []int64
	out    *log
	next   progress.Output
}

func (o *timerOperator) register(t int64) {
	if i, found := slices.BinarySearch(o.timers, t); !found {
		o.timers = slices.Insert(o.timers, i, t)
	}
}

func (o *timerOperator) Watermark(t int64) error {
	for len(o.timers) > 0 && o.timers[0] <= t {
		fired := o.timers[0]
		o.timers = o.timers[1:]
		o.out.add(Event{Timer: &fired})
	}
	return o.next.Watermark(t)
}

func (o *timerOperator) Status(idle bool) error { return o.next.Status(idle) }

// operatorUnit is the subject operator: inputs behind their valves.
type operatorUnit struct {
	noState
	operator *timerOperator
	inputs   []progress.Output
}

func newOperator(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		Inputs int  `json:"inputs"`
		Gate   bool `json:"gate"`
	}](setup)
	if err != nil {
		return nil, err
	}
	var behind progress.Output = out
	if s.Gate {
		behind = progress.NewGate(out)
	}
	return newOperatorUnit(s.Inputs, out, behind), nil
}

func newOperatorUnit(inputs int, out *log, behind progress.Output) *operatorUnit {
	u := &operatorUnit{operator: &timerOperator{out: out, next: behind}}
	if inputs == 1 {
		u.inputs = []progress.Output{u.operator}
		return u
	}
	combination := progress.NewCombination(inputs, u.operator)
	for i := range inputs {
		u.inputs = append(u.inputs, combination.Input(i))
	}
	return u
}

type inputEvent struct {
	Input *int   `json:"input"`
	Timer *int64 `json:"timer"`
	signal
}

func (u *operatorUnit) input(index *int) (progress.Output, error) {
	i, err := need(index, "input")
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= len(u.inputs) {
		return nil, malformed("no such input")
	}
	return u.inputs[i], nil
}

func (u *operatorUnit) step(in json.RawMessage) error {
	e, err := decode[inputEvent](in)
	if err != nil {
		return err
	}
	input, err := u.input(e.Input)
	if err != nil {
		return err
	}
	if e.Timer != nil {
		u.operator.register(*e.Timer)
		return nil
	}
	return e.send(input)
}

// taskUnit is the subject task: a valve for each input, the operator, its gate.
type taskUnit struct {
	*operatorUnit
	valves []*progress.Valve
}

func newTask(setup json.RawMessage, rules progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		Inputs []int `json:"inputs"`
	}](setup)
	if err != nil {
		return nil, err
	}
	u := taskUnit{operatorUnit: newOperatorUnit(len(s.Inputs), out, progress.NewGate(out))}
	for i, channels := range s.Inputs {
		u.valves = append(u.valves, progress.NewValve(channels, rules, u.inputs[i]))
	}
	return u, nil
}

func (u taskUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Channel *int `json:"channel"`
		inputEvent
	}](in)
	if err != nil {
		return err
	}
	if _, err := u.input(e.Input); err != nil {
		return err
	}
	if e.Timer != nil {
		u.operator.register(*e.Timer)
		return nil
	}
	return feedValve(u.valves[*e.Input], e.Channel, e.signal)
}
