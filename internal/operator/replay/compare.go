package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowwater/lowwater/window"
)

// Difference says where two answers to the same case differ; it is empty if they do not.
// Within a step results have no order, nor have the values of windows that merge; that
// windows fire in the order of time is a rule of its own (Step.Broken).
func Difference(want, got Case) string {
	if (want.ConstructError != "") != (got.ConstructError != "") {
		return fmt.Sprintf("building: want %q, got %q", want.ConstructError, got.ConstructError)
	}
	if want.ConstructError != "" {
		return ""
	}
	sorted := want.ValueOrder == "any" || want.Op != nil && want.Op.Assigner.Merges()
	for i := range min(len(want.Steps), len(got.Steps)) {
		if d := stepDifference(want.Steps[i], got.Steps[i], sorted); d != "" {
			return fmt.Sprintf("step %d (%s): %s", i, want.Steps[i].Do, d)
		}
	}
	if len(want.Steps) != len(got.Steps) {
		return fmt.Sprintf("%d steps, want %d", len(got.Steps), len(want.Steps))
	}
	if want.CanMerge != nil && *want.CanMerge != *got.CanMerge {
		return fmt.Sprintf("can merge: want %t", *want.CanMerge)
	}
	return endDifference(want, got)
}

func stepDifference(want, got Step, sorted bool) string {
	switch {
	case got.Broken != "":
		return got.Broken
	case (want.Error != "") != (got.Error != ""):
		return fmt.Sprintf("failed: want %q, got %q", want.Error, got.Error)
	case want.Error != "":
		return ""
	case want.Result != got.Result:
		return fmt.Sprintf("want %s, got %s", want.Result, got.Result)
	}
	if d := textsDifference(emittedTexts(want.Emit, sorted), emittedTexts(got.Emit, sorted)); d != "" {
		return d
	}
	if d := timersDifferenceInOrder(want.Emit, got.Emit); d != "" {
		return d
	}
	if d := textsDifference(callTexts(want.Results), callTexts(got.Results)); d != "" {
		return d
	}
	return timersDifference(want.EventTimers, want.ProcessingTimers, got.EventTimers, got.ProcessingTimers)
}

// timersDifferenceInOrder compares the times of a process function's timers in the order of
// firing, for each key: those of different keys at one time have no order, and so neither has
// what they set off.
func timersDifferenceInOrder(want, got []Emitted) string {
	times := func(emit []Emitted) map[string][]int64 {
		byKey := map[string][]int64{}
		for _, e := range emit {
			if e.Timer != "" {
				byKey[e.Key] = append(byKey[e.Key], *e.At)
			}
		}
		return byKey
	}
	if w, g := times(want), times(got); !maps.EqualFunc(w, g, slices.Equal) {
		return fmt.Sprintf("timers fired in the order %v, want %v", g, w)
	}
	return ""
}

func endDifference(want, got Case) string {
	if want.End == nil || got.End == nil {
		return ""
	}
	if n := len(want.Steps); n > 0 && want.Steps[n-1].Error != "" {
		return "" // a step that failed leaves no defined state
	}
	if want.End.LateDropped != got.End.LateDropped {
		return fmt.Sprintf("%d late records dropped, want %d", got.End.LateDropped, want.End.LateDropped)
	}
	return timersDifference(want.End.EventTimers, want.End.ProcessingTimers, got.End.EventTimers, got.End.ProcessingTimers)
}

func timersDifference(wantEvent, wantProcessing, gotEvent, gotProcessing *int) string {
	if wantEvent == nil || gotEvent == nil || wantProcessing == nil || gotProcessing == nil ||
		*wantEvent == *gotEvent && *wantProcessing == *gotProcessing {
		return ""
	}
	return fmt.Sprintf("%d event and %d processing timers left, want %d and %d", *gotEvent, *gotProcessing, *wantEvent, *wantProcessing)
}

// textsDifference compares without order.
func textsDifference(want, got []string) string {
	slices.Sort(want)
	slices.Sort(got)
	if slices.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("\n  want %s\n  got  %s", strings.Join(want, " "), strings.Join(got, " "))
}

// callTexts leaves out answers that have no effect.
func callTexts(calls []TriggerCall) (texts []string) {
	for _, c := range calls {
		if c.Result != window.Continue.String() {
			texts = append(texts, text(c))
		}
	}
	return texts
}

// emittedTexts writes results as JSON, the same for what counts as the same. The order in
// which windows of a key fire at the same time is not defined, and so it is not in how many
// firings of the key each has seen: that is compared for all of them together.
func emittedTexts(emit []Emitted, sorted bool) (texts []string) {
	firings := map[string][]int{}
	for _, e := range emit {
		var values []int64
		var c contextValue
		switch {
		case sorted && json.Unmarshal(e.Value, &values) == nil:
			slices.Sort(values)
			e.Value = json.RawMessage(text(values))
		case strings.HasPrefix(string(e.Value), "{") && json.Unmarshal(e.Value, &c) == nil:
			firings[e.Key] = append(firings[e.Key], c.KeyFirings)
			c.KeyFirings = 0
			e.Value = json.RawMessage(text(c))
		}
		texts = append(texts, text(e))
	}
	for _, key := range slices.Sorted(maps.Keys(firings)) {
		slices.Sort(firings[key])
		texts = append(texts, fmt.Sprintf("firings of %s: %v", key, firings[key]))
	}
	return texts
}

// text is JSON without spaces.
func text[T any](v T) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
