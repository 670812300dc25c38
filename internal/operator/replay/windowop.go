package replay

import (
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/windowed"
)

// Path says which operator answers a case.
type Path string

const (
	// Fast is the operator that the engine chooses: one of the fast ones where the case
	// allows it.
	Fast Path = "fast"
	// General is the general operator, which can do everything.
	General Path = "general"
)

// HasFastPath reports whether a fast operator can answer: a default trigger, no
// evictor, windows by time alone, a function without state, and no snapshots.
func (c Case) HasFastPath() bool {
	restores := slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Do == "checkpoint_restore" })
	return c.Op.Assigner.ByTime() && c.Op.Trigger == nil && c.Op.Evictor == nil && c.Op.Function != "context" && !restores
}

// AnswerWindowOperator runs a case of kind window_operator and returns it with what came
// out in place of what was expected. An error says that the case is not of that form.
func AnswerWindowOperator(c Case, path Path) (Case, error) {
	answer := c
	answer.ConstructError, answer.Steps, answer.End = "", nil, nil
	description, err := need(c.Op, "op")
	if err != nil {
		return Case{}, err
	}
	var log triggerLog
	newOperator := func() (operator.Operator, error) { return description.build(path, &log) }
	h, err := newHarness()
	if err != nil {
		return Case{}, err
	}
	op, err := newOperator()
	if _, bad := err.(malformedError); bad {
		return Case{}, err
	}
	if err != nil {
		answer.ConstructError = err.Error()
		for _, s := range c.Steps {
			answer.Steps = append(answer.Steps, s.question())
		}
		return answer, nil
	}
	if err := h.open(op); err != nil {
		return Case{}, err
	}
	for i, step := range c.Steps {
		answered, err := h.step(step, newOperator)
		if err != nil {
			return Case{}, fmt.Errorf("case %s: step %d (%s): %w", c.ID, i, step.Do, err)
		}
		answered.Emit = append(answered.Emit, log.take()...)
		if step.Do != "element" && description.Trigger == nil && !firedInOrder(answered.Emit) {
			answered.Broken = "windows fired out of order"
		}
		answer.Steps = append(answer.Steps, answered)
		if answered.Error != "" {
			break
		}
	}
	answer.End = &End{LateDropped: h.metrics.NumLateRecordsDropped.Value()}
	if t, ok := h.op.(windowed.WithTimers); ok {
		event, clock := t.TimersLeft()
		answer.End.EventTimers, answer.End.ProcessingTimers = &event, &clock
	}
	return answer, h.op.Close()
}

// question returns a step without its answer.
func (s Step) question() Step {
	s.Emit, s.Result, s.Results, s.EventTimers, s.ProcessingTimers, s.Error = nil, "", nil, nil, nil, ""
	return s
}

// step does one thing. An error says that there is no such thing; a failure of the
// operator is an answer.
func (h *harness) step(s Step, newOperator func() (operator.Operator, error)) (Step, error) {
	answer := s.question()
	var failure error
	switch s.Do {
	case "element":
		value, err := need(s.Value, "value")
		if err != nil {
			return answer, err
		}
		failure = h.element(0, Element{s.Key, value}, s.Timestamp.Millis())
	case "watermark":
		failure = h.op.Watermark(s.Timestamp.Millis())
	case "processing_time":
		t, err := need(s.Time, "t")
		if err != nil {
			return answer, err
		}
		failure = h.clock.set(t)
	case "checkpoint_restore":
		if err := h.restore(s, newOperator); err != nil {
			return answer, err
		}
	default:
		return answer, malformed("no such step", s.Do)
	}
	out := h.take()
	answer.Emit = out.emitted
	if failure != nil {
		answer.Error = failure.Error()
	} else if s.Do == "watermark" && !slices.Equal(out.watermarks, []int64{s.Timestamp.Millis()}) {
		answer.Broken = fmt.Sprintf("forwarded the watermarks %v", out.watermarks)
	}
	return answer, nil
}

// restore goes on with a new operator, which takes over the state: keys, windows and
// timers, but neither watermark nor clock.
func (h *harness) restore(s Step, newOperator func() (operator.Operator, error)) error {
	old := h.op
	if err := old.Close(); err != nil {
		return err
	}
	h.clock = clock{}
	if s.ProcessingTime != nil {
		h.clock.now = *s.ProcessingTime
	}
	op, err := newOperator()
	if err != nil {
		return err
	}
	t, ok := op.(windowed.WithTimers)
	if !ok {
		return malformed("checkpoint_restore needs the general operator")
	}
	t.Adopt(old)
	return h.open(op)
}

// firedInOrder reports whether results are in the order of their timestamps.
func firedInOrder(emit []Emitted) bool {
	fired := slices.DeleteFunc(slices.Clone(emit), func(e Emitted) bool { return e.Window == nil || e.Trigger != "" })
	return slices.IsSortedFunc(fired, func(a, b Emitted) int {
		switch {
		case *a.Timestamp < *b.Timestamp:
			return -1
		case *a.Timestamp > *b.Timestamp:
			return 1
		default:
			return 0
		}
	})
}

// build returns the operator. An error that is not a malformedError says that the
// operator cannot be.
func (o Operator) build(path Path, log *triggerLog) (operator.Operator, error) {
	g, err := o.general(log)
	if err != nil {
		return nil, err
	}
	if err := g.Validate(); err != nil {
		return nil, err
	}
	g.State = path == General || o.Function == "context" // having state takes the general operator
	switch o.Function {
	case "sum":
		return windowed.AggregateProcess(g, sumElements, single(sumOf)), nil
	case "min_max_count":
		return windowed.AggregateProcess(g, minMaxCount{}, single(minMaxCountOf)), nil
	case "list":
		return windowed.Process(g, listFunction), nil
	case "empty":
		return windowed.Process(g, emptyFunction), nil
	case "context":
		g.Clear = contextClear
		return windowed.AggregateProcess(g, sumElements, contextFunction), nil
	default:
		return nil, malformed("no such function", o.Function)
	}
}

func (o Operator) general(log *triggerLog) (windowed.Spec[string, Element], error) {
	g := windowed.Spec[string, Element]{
		Options:         windowed.Options{AllowedLateness: o.AllowedLateness},
		ElementAssigner: o.Assigner.buildByElement(),
	}
	if o.LateSideOutput {
		g.LateOutput = lateOutput
	}
	var err error
	if g.ElementAssigner == nil {
		if g.Assigner, err = o.Assigner.build(); err != nil {
			return g, err
		}
	}
	if o.Trigger != nil {
		if g.Trigger, err = o.Trigger.build(log); err != nil {
			return g, err
		}
	}
	if o.Evictor != nil {
		if g.Evictor, err = o.Evictor.build(); err != nil {
			return g, err
		}
	}
	return g, nil
}
