// Package replay runs recorded cases of operators, of windows above all, on this
// engine: it answers what came out for what went in. Conformance tests compare the
// answers with recorded ones, fuzzers with those of another engine.
//
// The format is that of the vectors in testdata/windows beside the packages that
// replay them. Nothing of a running job uses this package.
package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Document is one file of cases of one kind.
type Document struct {
	Subject    string `json:"subject"`
	Kind       string `json:"kind"`
	ProducedBy string `json:"producedBy"`
	Cases      []Case `json:"cases"`
}

// Case is a thing to build and the steps to take with it. Which fields are set depends
// on the kind.
type Case struct {
	ID     string `json:"id"`
	Source string `json:"source,omitempty"`
	Note   string `json:"note,omitempty"`
	// Quirk marks what is a defect of Flink.
	Quirk bool `json:"quirk,omitempty"`

	Op      *Operator `json:"op,omitempty"`
	Trigger *Trigger  `json:"trigger,omitempty"`
	Join    *Join     `json:"join,omitempty"`
	// OnTimer is what a process function does when timers fire.
	OnTimer []TimerRule `json:"onTimer,omitempty"`
	// ValueOrder "any" says that the order of values within a window is not defined.
	ValueOrder string `json:"valueOrder,omitempty"`
	// ConstructError says that the thing cannot be built.
	ConstructError string `json:"constructError,omitempty"`
	Steps          []Step `json:"steps"`
	End            *End   `json:"end,omitempty"`
	// CanMerge says whether a trigger may be used with merging windows.
	CanMerge *bool `json:"canMerge,omitempty"`
	// EndEventTimers is how many timers Flink's interval join has left.
	EndEventTimers *int `json:"endEventTimers,omitempty"`
	// ReplayError is set by an engine that did not understand the case.
	ReplayError string `json:"replayError,omitempty"`
}

// Step is one thing that is done, and what came out.
type Step struct {
	Do             string    `json:"do"`
	Key            string    `json:"key,omitempty"`
	Value          *int32    `json:"value,omitempty"`
	Timestamp      Timestamp `json:"ts,omitzero"`
	Time           *int64    `json:"t,omitempty"`
	ProcessingTime *int64    `json:"processingTime,omitempty"`
	Window         *Window   `json:"window,omitempty"`
	Into           *Window   `json:"into,omitempty"`
	From           []Window  `json:"from,omitempty"`
	Cmds           []Command `json:"cmds,omitempty"`

	Emit             []Emitted     `json:"emit,omitempty"`
	Result           string        `json:"result,omitempty"`
	Results          []TriggerCall `json:"results,omitempty"`
	EventTimers      *int          `json:"eventTimers,omitempty"`
	ProcessingTimers *int          `json:"processingTimers,omitempty"`
	// LeftBuffer and RightBuffer are what an interval join keeps.
	LeftBuffer  []int64 `json:"leftBuffer,omitempty"`
	RightBuffer []int64 `json:"rightBuffer,omitempty"`
	// Error says that the step failed; it is the last one then.
	Error string `json:"error,omitempty"`

	// Broken is a rule that every operator has to keep and this one did not.
	Broken string `json:"-"`
}

// End is what an operator has to show for itself at the end.
type End struct {
	LateDropped int64 `json:"lateDropped"`
	// EventTimers and ProcessingTimers are nil if the operator does not work with
	// timers.
	EventTimers      *int `json:"eventTimers"`
	ProcessingTimers *int `json:"processingTimers"`
}

// Emitted is one thing that came out of an operator. Which fields are set depends on what
// it is.
type Emitted struct {
	Key       string          `json:"key,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Window    *Window         `json:"w,omitempty"`
	Timestamp *int64          `json:"ts,omitempty"`
	Side      string          `json:"side,omitempty"`
	// Late is [key, value] of a window operator, the side of an interval join.
	Late json.RawMessage `json:"late,omitempty"`

	// Trigger is a call that a scripted trigger has seen.
	Trigger string `json:"trigger,omitempty"`
	// At is the time of a timer.
	At *int64 `json:"at,omitempty"`

	// Of a process function.
	Timer          string `json:"timer,omitempty"`
	Emit           string `json:"emit,omitempty"`
	CtxTimestamp   *int64 `json:"ctxTimestamp,omitempty"`
	Watermark      *int64 `json:"watermark,omitempty"`
	ProcessingTime *int64 `json:"processingTime,omitempty"`

	// Of an interval join.
	Left           *int32 `json:"left,omitempty"`
	Right          *int32 `json:"right,omitempty"`
	LeftTimestamp  *int64 `json:"leftTs,omitempty"`
	RightTimestamp *int64 `json:"rightTs,omitempty"`
}

// TriggerCall is a trigger's answer to a timer.
type TriggerCall struct {
	Window Window `json:"window"`
	Result string `json:"result"`
}

// kinds lists every kind of vector document that exists, and subjects those of
// documents without a kind, so that a file of another package's can be told from one
// that nobody replays.
var (
	kinds = []string{
		"assigner", "broadcast", "connected", "interval_join", "key_groups", "sql", "timers", "trigger", "ttl",
		"window_join", "window_merge", "window_operator", "window_start",
	}
	subjects = []string{
		"alignment_coordinator", "alignment_sampler", "generator", "metrics", "multiplexer", "operator", "output_gate",
		"source", "sql_watermark_assigner", "task", "timestamps_operator", "valve", "watermark_to_output",
	}
)

// Vectors returns the cases of a kind in the JSON files of dirs. A field that is not
// known is an error, and so is a kind.
func Vectors(kind string, dirs ...string) ([]Case, error) {
	var cases []Case
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
				return err
			}
			found, err := read(kind, path)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			cases = append(cases, found...)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("looking for vectors: %w", err)
		}
	}
	return cases, nil
}

func read(kind, path string) ([]Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var head struct{ Subject, Kind string }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Kind == "" && !slices.Contains(subjects, head.Subject) || head.Kind != "" && !slices.Contains(kinds, head.Kind) {
		return nil, fmt.Errorf("unknown vectors: kind %q, subject %q", head.Kind, head.Subject)
	}
	if head.Kind != kind {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var doc Document
	err = d.Decode(&doc)
	return doc.Cases, err
}

// malformedError says that a case is not of its kind's form.
type malformedError struct{ text string }

func (e malformedError) Error() string { return e.text }

func malformed(words ...string) error { return malformedError{strings.Join(words, " ")} }

// need returns the value of a field that must be there.
func need[T any](field *T, name string) (T, error) {
	if field == nil {
		var zero T
		return zero, malformed("missing", name)
	}
	return *field, nil
}
