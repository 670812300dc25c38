package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	operators "github.com/lowwater/lowwater/internal/operator/replay"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/internal/progress/replay"
)

// trial is one random case. The two families of vectors have a format each.
type trial interface {
	steps() int
	// without returns the trial without the steps from one to another.
	without(from, to int) trial
	// question returns the case to ask.
	question() json.Marshaler
	// difference says where our answer differs from Flink's, other than is known. An error
	// that is errNotUnderstood says that the case makes no sense to Flink's side.
	difference(flink json.RawMessage) (string, error)
}

var errNotUnderstood = errors.New("the oracle does not understand the case")

// head is what a document says about itself.
type head struct {
	Subject    string `json:"subject"`
	Kind       string `json:"kind,omitempty"`
	ProducedBy string `json:"producedBy,omitempty"`
	Format     int    `json:"format,omitempty"`
	Flink      string `json:"flink,omitempty"`
}

// question is a case as JSON, made when it is asked.
type question[C any] struct{ c C }

func (q question[C]) MarshalJSON() ([]byte, error) { return json.Marshal(q.c) }

// answer decodes Flink's answer strictly.
func answer[C any](flink json.RawMessage) (c C, err error) {
	d := json.NewDecoder(bytes.NewReader(flink))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("the oracle's answer: %w", err)
	}
	return c, nil
}

// watermarkTrial is a case for the replay of package progress.
type watermarkTrial struct {
	subject string
	c       replay.Case
}

// watermarks is a subject of watermarks.
func watermarks(name string, generate func(g generator, steps int) replay.Case) subject {
	return subject{name, head{Subject: name, Format: 1, Flink: "2.3.0"}, func(g generator, id string, steps int) trial {
		c := generate(g, steps)
		c.Name = id
		return watermarkTrial{name, c}
	}}
}

func (t watermarkTrial) steps() int               { return len(t.c.Steps) }
func (t watermarkTrial) question() json.Marshaler { return question[replay.Case]{t.c} }

func (t watermarkTrial) without(from, to int) trial {
	t.c.Steps = slices.Delete(slices.Clone(t.c.Steps), from, to)
	return t
}

func (t watermarkTrial) difference(text json.RawMessage) (string, error) {
	flink, err := answer[replay.Case](text)
	if err != nil {
		return "", err
	}
	if flink.ReplayError != "" {
		return "", fmt.Errorf("%w: %s", errNotUnderstood, flink.ReplayError)
	}
	ours, err := replay.Answer(t.subject, t.c, progress.Flink23)
	if err != nil {
		return "", err
	}
	return replay.Difference(expected(t.subject, flink, ours), ours), nil
}

// windowTrial is a case for the replay of operators.
type windowTrial struct {
	kind string
	c    operators.Case
}

// windows is a kind of the vectors of windows. Its cases are short: an operator shows what
// it does with few elements, and long cases have seen the end of every window.
func windows(kind string, generate func(g generator, steps int) operators.Case) subject {
	const longest = 40
	return subject{kind, head{Subject: "random cases", Kind: kind, ProducedBy: "fuzzflink"}, func(g generator, id string, steps int) trial {
		c := generate(g, min(steps, 1+g.IntN(longest)))
		c.ID = id
		return windowTrial{kind, c}
	}}
}

func (t windowTrial) steps() int               { return len(t.c.Steps) }
func (t windowTrial) question() json.Marshaler { return question[operators.Case]{t.c} }

func (t windowTrial) without(from, to int) trial {
	t.c.Steps = slices.Delete(slices.Clone(t.c.Steps), from, to)
	return t
}

func (t windowTrial) difference(text json.RawMessage) (string, error) {
	flink, err := answer[operators.Case](text)
	if err != nil {
		return "", err
	}
	if flink.ReplayError != "" {
		return "", fmt.Errorf("%w: %s", errNotUnderstood, flink.ReplayError)
	}
	if t.kind == "window_operator" {
		return t.windowOperator(flink)
	}
	ours, err := answers[t.kind](t.c, nil)
	if err != nil {
		return "", err
	}
	if diff := operators.Difference(flink, ours); diff != "" || t.kind == "trigger" {
		return diff, nil
	}
	if ours, err = answers[t.kind](t.c, t.random()); err != nil {
		return fmt.Sprintf("with checkpoints: %v", err), nil
	}
	if diff := operators.Difference(flink, ours); diff != "" {
		return "with checkpoints: " + diff, nil
	}
	return "", nil
}

// answers are those of an operator as it is, or, with random, restored from checkpoints at
// random moments. Triggers are part of the window operator's.
var answers = map[string]func(operators.Case, *rand.Rand) (operators.Case, error){
	"trigger":       func(c operators.Case, _ *rand.Rand) (operators.Case, error) { return operators.AnswerTrigger(c) },
	"timers":        operators.AnswerTimers,
	"interval_join": operators.AnswerIntervalJoin,
}

// windowOperator compares Flink with all operators that can do what the case asks for, as
// they are and restored from checkpoints at random moments, with another parallelism each
// time. Flink's side knows nothing of these: nobody can tell from what comes out.
func (t windowTrial) windowOperator(flink operators.Case) (string, error) {
	paths := []operators.Path{operators.General}
	if t.c.HasFastPath() && !elementsAtTheEdge(t.c) {
		paths = append(paths, operators.Fast)
	}
	for _, path := range paths {
		ours, err := operators.AnswerWindowOperator(t.c, path)
		if err != nil {
			return "", err
		}
		if diff := operators.Difference(comparable(flink, ours)); diff != "" {
			return fmt.Sprintf("%s operator: %s", path, diff), nil
		}
		ours, err = operators.AnswerWithCheckpoints(t.c, path, t.random())
		if err != nil {
			return fmt.Sprintf("%s operator with checkpoints: %v", path, err), nil
		}
		if diff := operators.Difference(comparable(flink, ours)); diff != "" {
			return fmt.Sprintf("%s operator with checkpoints: %s", path, diff), nil
		}
	}
	return "", nil
}

// random is the same for the same case.
func (t windowTrial) random() *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.c.ID))
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}
