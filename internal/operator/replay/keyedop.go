package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
	"github.com/lowwater/lowwater/internal/progress"
)

// Command is ["reg_event", 10] or ["emit", "text"].
type Command struct {
	Do   string
	At   int64
	Text string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Command) UnmarshalJSON(data []byte) error {
	var parts [2]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if err := json.Unmarshal(parts[0], &c.Do); err != nil {
		return err
	}
	if c.Do == "emit" {
		return json.Unmarshal(parts[1], &c.Text)
	}
	return json.Unmarshal(parts[1], &c.At)
}

// MarshalJSON implements json.Marshaler.
func (c Command) MarshalJSON() ([]byte, error) {
	if c.Do == "emit" {
		return json.Marshal([]string{c.Do, c.Text})
	}
	return fmt.Appendf(nil, "[%q,%d]", c.Do, c.At), nil
}

// TimerRule is what a process function does when a timer fires; no key means any.
type TimerRule struct {
	Domain string    `json:"domain"`
	At     int64     `json:"at"`
	Key    *string   `json:"key,omitempty"`
	Cmds   []Command `json:"cmds"`
}

// Join describes an interval join. Times are in milliseconds.
type Join struct {
	Lower          int64 `json:"lower"`
	Upper          int64 `json:"upper"`
	LowerInclusive bool  `json:"lowerInclusive"`
	UpperInclusive bool  `json:"upperInclusive"`
	LateSideOutput bool  `json:"lateSideOutput"`
}

// AnswerTimers runs a case of kind timers, without checkpoint_restore, and returns it with
// what came out in place of what was expected. An error says that the case is not of that
// form. With random, the operator is restored from a checkpoint now and then; nobody can
// tell from what comes out.
func AnswerTimers(c Case, random *rand.Rand) (Case, error) {
	h, err := newHarness(func() operator.Operator { return keyedop.NewProcess(c.function) }, random)
	if err != nil {
		return Case{}, err
	}
	return h.run(c, func(i int, s Step) (failure, err error) {
		switch s.Do {
		case "element":
			return h.element(0, Element{s.Key, int32(i)}, s.Timestamp.Millis()), nil
		case "watermark":
			return h.tell(s.Timestamp.Millis()), nil
		case "processing_time":
			t, err := need(s.Time, "t")
			if err != nil {
				return nil, err
			}
			return h.clock.set(t), nil
		default:
			return nil, malformed("no such step", s.Do)
		}
	})
}

// run takes the steps. do returns how the operator failed, and whether there is no such
// step.
func (h *harness) run(c Case, do func(i int, s Step) (failure, err error)) (Case, error) {
	answer := c
	answer.Steps = nil
	for i, step := range c.Steps {
		if err := h.failOver(); err != nil {
			return Case{}, fmt.Errorf("case %s: checkpoint before step %d: %w", c.ID, i, err)
		}
		failure, err := do(i, step)
		if err != nil {
			return Case{}, fmt.Errorf("case %s: step %d (%s): %w", c.ID, i, step.Do, err)
		}
		answered := step.question()
		answered.Emit = h.take().emitted
		answer.Steps = append(answer.Steps, answered)
		if failure != nil {
			answer.Steps[i].Error = failure.Error()
			break
		}
	}
	return answer, h.op.Close()
}

// function is the process function that runs the commands of the case. The value of an
// element is the number of its step.
func (c Case) function(x *keyedop.Context[string], out *operator.Emitter[Emitted]) (keyedop.Function[Element], error) {
	f := commands{x, out}
	return keyedop.Function[Element]{
		Element: func(e Element) error { return f.run(c.Steps[e.Value].Cmds) },
		Timer: func(at int64, d keyedop.Domain) error {
			domain := "event"
			if d == keyedop.ProcessingTime {
				domain = "processing"
			}
			f.emit(Emitted{Timer: domain, At: &at})
			for _, rule := range c.OnTimer {
				if rule.Domain == domain && rule.At == at && (rule.Key == nil || *rule.Key == x.Key()) {
					if err := f.run(rule.Cmds); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}, nil
}

type commands struct {
	x   *keyedop.Context[string]
	out *operator.Emitter[Emitted]
}

func (f commands) run(cmds []Command) error {
	for _, c := range cmds {
		switch c.Do {
		case "reg_event":
			f.x.RegisterEventTimer(c.At)
		case "reg_processing":
			f.x.RegisterProcessingTimer(c.At)
		case "del_event":
			f.x.DeleteEventTimer(c.At)
		case "del_processing":
			f.x.DeleteProcessingTimer(c.At)
		case "emit":
			f.emit(Emitted{Emit: c.Text})
		default:
			return malformed("no such command", c.Do)
		}
	}
	return nil
}

// emit adds what the function sees of time.
func (f commands) emit(e Emitted) {
	watermark, now := f.x.Watermark, f.x.Runtime().Timers.Now()
	e.Key, e.Watermark, e.ProcessingTime = f.x.Key(), &watermark, &now
	if at := f.x.At; at != None().Millis() {
		e.CtxTimestamp = &at
	}
	f.out.Append(e, f.x.Timestamp, f.x.Origin)
}

// AnswerIntervalJoin is AnswerTimers for cases of kind interval_join. What the join keeps is
// not in the answer.
func AnswerIntervalJoin(c Case, random *rand.Rand) (Case, error) {
	join, err := need(c.Join, "join")
	if err != nil {
		return Case{}, err
	}
	h, err := newHarness(func() operator.Operator { return keyedop.NewIntervalJoin[string](join.interval(), pairs) }, random)
	if err != nil {
		return Case{}, err
	}
	inputs := progress.NewCombination(2, told{h})
	return h.run(c, func(_ int, s Step) (failure, err error) {
		switch s.Do {
		case "watermark_left":
			failure = inputs.Input(0).Watermark(s.Timestamp.Millis())
		case "watermark_right":
			failure = inputs.Input(1).Watermark(s.Timestamp.Millis())
		case "left", "right":
			value, err := need(s.Value, "value")
			if err != nil {
				return nil, err
			}
			input := 0
			if s.Do == "right" {
				input = 1
			}
			failure = h.element(input, Element{s.Key, value}, s.Timestamp.Millis())
		default:
			return nil, malformed("no such step", s.Do)
		}
		for _, t := range h.watermarks {
			h.emitted = append(h.emitted, Emitted{Watermark: &t})
		}
		return failure, nil
	})
}

// told is the harness's operator as what a combination of inputs tells.
type told struct{ *harness }

func (t told) Watermark(w int64) error { return t.tell(w) }
func (t told) Status(idle bool) error  { return t.op.Status(idle) }

func (j Join) interval() keyedop.Interval {
	i := keyedop.Interval{Lower: j.Lower, Upper: j.Upper}
	if !j.LowerInclusive {
		i.Lower++
	}
	if !j.UpperInclusive {
		i.Upper--
	}
	if j.LateSideOutput {
		i.LateLeft, i.LateRight = leftOutput, rightOutput
	}
	return i
}

// pairs emits what a pair consists of.
func pairs(p *keyedop.Pair, out *operator.Emitter[Emitted]) func(l, r Element) error {
	return func(l, r Element) error {
		leftAt, rightAt := p.LeftTimestamp, p.RightTimestamp
		out.Append(Emitted{
			Key: l.Key, Left: &l.Value, Right: &r.Value, LeftTimestamp: &leftAt, RightTimestamp: &rightAt,
		}, p.Timestamp, p.Origin)
		return nil
	}
}
