// Package replay runs recorded watermark cases on the state machines of package
// progress: it answers what came out for what went in. Conformance tests compare
// the answers with recorded ones, fuzzers with those of another engine.
//
// The format is that of testdata/watermarks beside package progress; its README
// describes every subject and event. Nothing of a running job uses this package.
package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/lowwater/lowwater/internal/progress"
)

// Document is one file of cases of one subject.
type Document struct {
	Subject string `json:"subject"`
	Format  int    `json:"format"`
	Flink   string `json:"flink"`
	Cases   []Case `json:"cases"`
}

// Case is a thing to set up and the events to feed it.
type Case struct {
	Name string `json:"name"`
	// From says where the case comes from.
	From     string   `json:"from,omitempty"`
	Note     string   `json:"note,omitempty"`
	Profiles []string `json:"profiles,omitempty"`
	// Setup has fields by subject.
	Setup json.RawMessage `json:"setup"`
	// SetupError says that the setup must be refused.
	SetupError bool   `json:"setupError,omitempty"`
	Steps      []Step `json:"steps"`
	// ReplayError is set by an engine that did not understand the case.
	ReplayError string `json:"replayError,omitempty"`
}

// Step is one event in and what comes out during it.
type Step struct {
	In  json.RawMessage `json:"in"`
	Out []Event         `json:"out"`
	// Check asks for inner state after the step and holds the answer.
	Check json.RawMessage `json:"check,omitempty"`
	// Error says that the call failed; it is the last one then.
	Error bool `json:"error,omitempty"`
}

// Event is one thing that came out. Which fields are set depends on its kind.
type Event struct {
	Record    *int64 `json:"record,omitempty"`
	Watermark *int64 `json:"watermark,omitempty"`
	Status    string `json:"status,omitempty"`
	Timer     *int64 `json:"timer,omitempty"`
	// Call is a call on a generator's output.
	Call string `json:"call,omitempty"`

	Pause   []string `json:"pause,omitempty"`
	Resume  []string `json:"resume,omitempty"`
	Report  *int64   `json:"report,omitempty"`
	Blocked bool     `json:"blocked,omitempty"`

	Subtask    *int   `json:"subtask,omitempty"`
	MaxAllowed *int64 `json:"maxAllowed,omitempty"`
	Oldest     *int64 `json:"oldest,omitempty"`
	Latest     *int64 `json:"latest,omitempty"`

	Returned   *bool  `json:"returned,omitempty"`
	Idle       *bool  `json:"idle,omitempty"`
	ElapsedMs  *int64 `json:"elapsedMs,omitempty"`
	Value      *int64 `json:"value,omitempty"`
	Registered *bool  `json:"registered,omitempty"`
}

// isControl reports whether the event goes to the reader or the coordinator. Its
// order among the data is not defined.
func (e Event) isControl() bool { return e.Pause != nil || e.Resume != nil || e.Report != nil }

// Read reads documents, one after the other. Unknown fields are errors.
func Read(r io.Reader) ([]Document, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var documents []Document
	for {
		var doc Document
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", len(documents)+1, err)
		}
		documents = append(documents, doc)
	}
}

// unit is the thing that a case sets up.
type unit interface {
	// step feeds one event. A malformedError says that there is no such
	// event, any other error that the call failed.
	step(in json.RawMessage) error
	// check answers a question about inner state.
	check(asked json.RawMessage) (json.RawMessage, error)
}

// noState is embedded by units that have nothing to check.
type noState struct{}

func (noState) check(json.RawMessage) (json.RawMessage, error) {
	return nil, malformedError{errors.New("the subject has no state to check")}
}

// malformedError says that a case is not of its subject's form.
type malformedError struct{ err error }

func (e malformedError) Error() string { return e.err.Error() }
func (e malformedError) Unwrap() error { return e.err }

func malformed(words ...string) error {
	return malformedError{errors.New(strings.Join(words, " "))}
}

// factories make the unit of a subject.
var factories = map[string]func(setup json.RawMessage, rules progress.Rules, out *log) (unit, error){
	"valve":                  newValve,
	"operator":               newOperator,
	"task":                   newTask,
	"output_gate":            newGate,
	"multiplexer":            newMultiplexer,
	"watermark_to_output":    newSubtaskOutput,
	"generator":              newGenerator,
	"source":                 newSource,
	"alignment_coordinator":  newCoordinator,
	"alignment_sampler":      newSampler,
	"timestamps_operator":    newTimestampsOperator,
	"sql_watermark_assigner": newSQLAssigner,
	"metrics":                newMetrics,
}

// Known reports whether there is such a subject.
func Known(subject string) bool { return factories[subject] != nil }

// Answer runs a case and returns it with what came out in place of what was
// expected. An error says that the case is not of its subject's form.
func Answer(subject string, c Case, rules progress.Rules) (Case, error) {
	factory := factories[subject]
	if factory == nil {
		return Case{}, fmt.Errorf("unknown subject %q", subject)
	}
	answer := c
	answer.SetupError, answer.Steps = false, nil
	out := &log{}
	u, err := factory(c.Setup, rules, out)
	if _, bad := errors.AsType[malformedError](err); bad {
		return Case{}, fmt.Errorf("case %s: setup: %w", c.Name, err)
	}
	if err != nil {
		answer.SetupError = true
		return answer, nil
	}
	for i, step := range c.Steps {
		out.events = []Event{}
		err := u.step(step.In)
		if _, bad := errors.AsType[malformedError](err); bad {
			return Case{}, fmt.Errorf("case %s: step %d %s: %w", c.Name, i, step.In, err)
		}
		answered := Step{In: step.In, Out: out.events}
		if err != nil {
			answered.Out, answered.Error = []Event{}, true
		}
		if step.Check != nil {
			if answered.Check, err = u.check(step.Check); err != nil {
				return Case{}, fmt.Errorf("case %s: step %d: check %s: %w", c.Name, i, step.Check, err)
			}
		}
		answer.Steps = append(answer.Steps, answered)
		if answered.Error {
			break
		}
	}
	return answer, nil
}

// Difference says where two answers to the same case differ; it is empty if they
// do not.
func Difference(want, got Case) string {
	if want.SetupError != got.SetupError {
		return fmt.Sprintf("setup refused: want %t, got %t", want.SetupError, got.SetupError)
	}
	for i := range min(len(want.Steps), len(got.Steps)) {
		w, g := want.Steps[i], got.Steps[i]
		if w.Error != g.Error {
			return fmt.Sprintf("step %d %s: failed: want %t, got %t", i, w.In, w.Error, g.Error)
		}
		if !sameEvents(w.Out, g.Out) {
			return fmt.Sprintf("step %d %s:\n  want %s\n  got  %s", i, w.In, text(w.Out), text(g.Out))
		}
		// A call that failed leaves no defined state.
		if w.Check != nil && !w.Error && !sameJSON(w.Check, g.Check) {
			return fmt.Sprintf("step %d %s: check:\n  want %s\n  got  %s", i, w.In, w.Check, g.Check)
		}
	}
	if len(want.Steps) != len(got.Steps) {
		return fmt.Sprintf("%d steps, want %d", len(got.Steps), len(want.Steps))
	}
	return ""
}

// sameEvents compares in order, data and control events each for themselves.
func sameEvents(want, got []Event) bool {
	if len(want) != len(got) {
		return false
	}
	for _, control := range []bool{false, true} {
		other := func(e Event) bool { return e.isControl() != control }
		w := slices.DeleteFunc(slices.Clone(want), other)
		g := slices.DeleteFunc(slices.Clone(got), other)
		if !reflect.DeepEqual(w, g) {
			return false
		}
	}
	return true
}

// text is for messages.
func text(events []Event) string {
	b, err := json.Marshal(events)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// sameJSON compares values whose objects may be in any order. Numbers are
// compared as text, so large ones keep every digit.
func sameJSON(a, b json.RawMessage) bool {
	fieldsA, objectA := members[map[string]json.RawMessage](a)
	fieldsB, objectB := members[map[string]json.RawMessage](b)
	if objectA || objectB {
		if !objectA || !objectB || len(fieldsA) != len(fieldsB) {
			return false
		}
		for name, value := range fieldsA {
			other, ok := fieldsB[name]
			if !ok || !sameJSON(value, other) {
				return false
			}
		}
		return true
	}
	itemsA, arrayA := members[[]json.RawMessage](a)
	itemsB, arrayB := members[[]json.RawMessage](b)
	if arrayA || arrayB {
		return arrayA && arrayB && slices.EqualFunc(itemsA, itemsB, sameJSON)
	}
	return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}

func members[T any](raw json.RawMessage) (value T, ok bool) {
	return value, json.Unmarshal(raw, &value) == nil
}

// decode decodes strictly: unknown fields are malformed.
func decode[T any](raw json.RawMessage) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, malformedError{err}
	}
	return v, nil
}

func encode[T any](v T) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, malformedError{err}
	}
	return b, nil
}

// need returns the value of a field that must be there.
func need[T any](field *T, name string) (T, error) {
	if field == nil {
		var zero T
		return zero, malformed("missing", name)
	}
	return *field, nil
}

// log collects what comes out of any kind of output.
type log struct{ events []Event }

func (l *log) add(e Event) { l.events = append(l.events, e) }

func (l *log) record(t int64) { l.add(Event{Record: &t}) }

// Watermark and Status make it a progress.Output.
func (l *log) Watermark(t int64) error {
	l.add(Event{Watermark: &t})
	return nil
}

func (l *log) Status(idle bool) error {
	l.add(Event{Status: statusText(idle)})
	return nil
}

// EmitWatermark, MarkIdle and MarkActive make it an eventtime.WatermarkOutput.
func (l *log) EmitWatermark(t int64) { l.add(Event{Watermark: &t}) }
func (l *log) MarkIdle()             { l.add(Event{Call: "markIdle"}) }
func (l *log) MarkActive()           { l.add(Event{Call: "markActive"}) }

func statusText(idle bool) string {
	if idle {
		return "idle"
	}
	return "active"
}

func parseStatus(text string) (idle bool, err error) {
	switch text {
	case "idle":
		return true, nil
	case "active":
		return false, nil
	}
	return false, malformed("no such status", text)
}
