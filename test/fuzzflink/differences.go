package main

import (
	"encoding/json"
	"slices"

	"github.com/lowwater/lowwater/internal/progress/replay"
)

// expected is Flink's answer with what is known to differ replaced. Everything
// else must be equal.
func expected(subject string, flink, ours replay.Case) replay.Case {
	if subject != "source" {
		return flink
	}
	flink.Steps = slices.Clone(flink.Steps)
	for i := range flink.Steps {
		step := &flink.Steps[i]
		if ends(step.In) {
			step.Out = withoutPauses(step.Out)
			if step.Error && cannotPause(flink.Setup) {
				*step = ours.Steps[i]
			}
		}
		if step.Check != nil && i < len(ours.Steps) && ours.Steps[i].Check != nil {
			step.Check = showPaused(step.Check, ours.Steps[i].Check)
		}
	}
	return flink
}

// ends reports whether the reader ends in this step.
func ends(in json.RawMessage) bool {
	var e struct{ Op string }
	return json.Unmarshal(in, &e) == nil && (e.Op == "endOfInput" || e.Op == "stop")
}

// withoutPauses: Flink takes one more alignment sample when a reader has ended,
// and may pause or resume its splits. We leave an ended reader alone.
func withoutPauses(out []replay.Event) []replay.Event {
	return slices.DeleteFunc(slices.Clone(out), func(e replay.Event) bool { return e.Pause != nil || e.Resume != nil })
}

// cannotPause: the sample above fails if it must pause a split and cannot.
func cannotPause(setup json.RawMessage) bool {
	var s struct{ PauseUnsupported, AllowUnaligned bool }
	return json.Unmarshal(setup, &s) == nil && s.PauseUnsupported && !s.AllowUnaligned
}

// showPaused: a split that was idle while it was paused, and is active again, is
// still paused at the reader. Flink's metrics show it as active, ours as paused.
func showPaused(flink, ours json.RawMessage) json.RawMessage {
	type check struct {
		Waiting          *bool             `json:"waiting,omitempty"`
		Paused           []string          `json:"paused"`
		Splits           map[string]string `json:"splits,omitempty"`
		CurrentWatermark map[string]int64  `json:"currentWatermark,omitempty"`
	}
	var f, o check
	if json.Unmarshal(flink, &f) != nil || json.Unmarshal(ours, &o) != nil {
		return flink
	}
	for id, state := range f.Splits {
		if state == "active" && slices.Contains(f.Paused, id) && o.Splits[id] == "paused" {
			f.Splits[id] = "paused"
		}
	}
	text, err := json.Marshal(f)
	if err != nil {
		return flink
	}
	return text
}
