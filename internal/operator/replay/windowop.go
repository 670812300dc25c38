package replay

import (
	"fmt"
	"math/rand/v2"
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
	// Spilled is the fast operator with next to no memory, for windows that spill.
	Spilled Path = "spilled"
	// General is the general operator, which can do everything, and SpilledGeneral the same
	// with next to no memory.
	General        Path = "general"
	SpilledGeneral Path = "spilled general"
)

func (p Path) isGeneral() bool { return p == General || p == SpilledGeneral }
func (p Path) spills() bool    { return p == Spilled || p == SpilledGeneral }

// memory is the budget in bytes of those that spill, which a few keys exceed.
const memory = 100

// HasFastPath reports whether a fast operator can answer: a default trigger, no
// evictor, windows by time alone, a function without state, and no snapshots.
func (c Case) HasFastPath() bool {
	restores := slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Do == "checkpoint_restore" })
	return c.Op.Assigner.ByTime() && c.Op.Trigger == nil && c.Op.Evictor == nil && c.Op.Function != "context" && !restores
}

// Spills reports whether Spilled can answer: the fast operator spills, and results of a
// window are compared without order.
func (c Case) Spills() bool {
	if !c.HasFastPath() {
		return false
	}
	op, err := c.Op.build(Fast, new(triggerLog))
	return err == nil && windowed.Spills(op)
}

// AnswerWindowOperator runs a case of kind window_operator and returns it with what came
// out in place of what was expected. An error says that the case is not of that form.
func AnswerWindowOperator(c Case, path Path) (Case, error) {
	return answerWindowOperator(c, path, nil)
}

// AnswerWithCheckpoints is AnswerWindowOperator for an operator that is restored from a
// checkpoint now and then, with another parallelism, where random says so. Nobody can
// tell from what comes out.
func AnswerWithCheckpoints(c Case, path Path, random *rand.Rand) (Case, error) {
	return answerWindowOperator(c, path, random)
}

func answerWindowOperator(c Case, path Path, random *rand.Rand) (Case, error) {
	answer := c
	answer.ConstructError, answer.Steps, answer.End = "", nil, nil
	description, err := need(c.Op, "op")
	if err != nil {
		return Case{}, err
	}
	if _, err := description.build(path, new(triggerLog)); err != nil {
		if _, bad := err.(malformedError); bad {
			return Case{}, err
		}
		answer.ConstructError = err.Error()
		for _, s := range c.Steps {
			answer.Steps = append(answer.Steps, s.question())
		}
		return answer, nil
	}
	job, err := newWindowJob(&description, path)
	if err != nil {
		return Case{}, err
	}
	for i, step := range c.Steps {
		var ahead []Step
		if random != nil && random.IntN(6) == 0 {
			if ahead, err = job.failOver(c.Steps[i:], random); err != nil {
				return Case{}, fmt.Errorf("case %s: checkpoint before step %d: %w", c.ID, i, err)
			}
		}
		answered, err := job.step(step)
		if err != nil {
			return Case{}, fmt.Errorf("case %s: step %d (%s): %w", c.ID, i, step.Do, err)
		}
		answer.Steps = append(answer.Steps, answered)
		if len(ahead) > 0 && answered.Broken == "" {
			if d := stepDifference(ahead[0], answered, description.Assigner.Merges()); d != "" {
				answer.Steps[i].Broken = "other than before the restart: " + d
			}
		}
		if answered.Error != "" {
			break
		}
	}
	answer.End = job.end()
	return answer, job.close()
}

// question returns a step without its answer.
func (s Step) question() Step {
	s.Emit, s.Result, s.Results, s.EventTimers, s.ProcessingTimers, s.Error = nil, "", nil, nil, nil, ""
	return s
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
	g.State = path.isGeneral() || o.Function == "context" // having state takes the general operator
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
