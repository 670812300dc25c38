package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/progress"
)

// oneCase returns a case from the text of its setup and steps.
func oneCase(t *testing.T, setup, steps string) Case {
	t.Helper()
	c := Case{Name: "test", Setup: json.RawMessage(setup)}
	if err := json.Unmarshal([]byte(steps), &c.Steps); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhatIsNotUnderstoodFails: a vector must never pass because a part of it was
// skipped.
func TestWhatIsNotUnderstoodFails(t *testing.T) {
	tests := []struct {
		name, subject, setup, steps string
		want                        string
	}{
		{"subject", "vlave", `{}`, `[]`, `unknown subject "vlave"`},
		{"setup field", "valve", `{"channels": 1, "speed": 2}`, `[]`, "speed"},
		{"event field", "valve", `{"channels": 1}`, `[{"in": {"channel": 0, "watermark": 1, "hint": 2}}]`, "hint"},
		{"channel", "valve", `{"channels": 1}`, `[{"in": {"channel": 1, "watermark": 1}}]`, "no such channel"},
		{"missing channel", "valve", `{"channels": 1}`, `[{"in": {"watermark": 1}}]`, "missing channel"},
		{"status", "valve", `{"channels": 1}`, `[{"in": {"channel": 0, "status": "asleep"}}]`, "no such status asleep"},
		{"check field", "valve", `{"channels": 1}`, `[{"in": {"channel": 0, "watermark": 1}, "check": [{"channel": 0, "colour": 1}]}]`, "colour"},
		{"check of a stateless subject", "operator", `{"inputs": 2}`, `[{"in": {"input": 0, "watermark": 1}, "check": {}}]`, "no state"},
		{"input", "operator", `{"inputs": 2}`, `[{"in": {"input": 2, "watermark": 1}}]`, "no such input"},
		{"op", "source", `{"generator": {"kind": "none"}}`, `[{"in": {"op": "jump"}}]`, "no such op jump"},
		{"generator", "source", `{"generator": {"kind": "guess"}}`, `[]`, "no such generator guess"},
		{"missing generator", "source", `{}`, `[]`, "missing generator"},
		{"mode", "multiplexer", `{}`, `[{"in": {"op": "register", "id": "1"}}, {"in": {"op": "idle", "id": "1", "mode": "later"}}]`, "no such mode later"},
		{"source", "alignment_coordinator", `{"sources": []}`, `[{"in": {"source": "s", "announce": true}}]`, "no such source s"},
		{"metric", "metrics", `{"inputs": 1}`, `[{"in": {"op": "read", "metric": "currentInput2Watermark"}}]`, "no such metric"},
		{"a watermark of text", "valve", `{"channels": 1}`, `[{"in": {"channel": 0, "watermark": "1"}}]`, "watermark"},
		{"a watermark beyond 64 bits", "valve", `{"channels": 1}`, `[{"in": {"channel": 0, "watermark": 9223372036854775808}}]`, "watermark"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Answer(tt.subject, oneCase(t, tt.setup, tt.steps), progress.Current)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Answer: %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestReadIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"document field": `{"subject": "valve", "flavour": 1}`,
		"case field":     `{"subject": "valve", "cases": [{"name": "x", "flavour": 1}]}`,
		"event out":      `{"subject": "valve", "cases": [{"name": "x", "steps": [{"in": {}, "out": [{"flavour": 1}]}]}]}`,
		"half":           `{"subject": "valve"`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	documents, err := Read(strings.NewReader(`{"subject": "a"} {"subject": "b"}`))
	if err != nil || len(documents) != 2 {
		t.Errorf("two documents: %v, %v", documents, err)
	}
}

func TestFailedCallsAreAnswers(t *testing.T) {
	c := oneCase(t, `{}`, `[{"in": {"op": "register", "id": "1"}}, {"in": {"op": "register", "id": "1"}}, {"in": {"op": "periodic"}}]`)
	got, err := Answer("multiplexer", c, progress.Current)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 2 || got.Steps[0].Error || !got.Steps[1].Error {
		t.Errorf("answered %+v, want the second of two steps failed", got.Steps)
	}
	c = oneCase(t, `{"generator": {"kind": "boundedOutOfOrderness", "boundMs": -1}}`, `[]`)
	if got, err = Answer("generator", c, progress.Current); err != nil || !got.SetupError {
		t.Errorf("a negative bound: %+v, %v", got, err)
	}
}

func TestDifference(t *testing.T) {
	steps := func(text string) Case {
		t.Helper()
		return oneCase(t, `{}`, text)
	}
	base := `[{"in": 1, "out": [{"record": 1}, {"watermark": 9223372036854775807}, {"pause": ["1"]}], "check": {"a": {"x": 1}, "b": [1, 2]}}]`
	tests := []struct {
		name, other string
		different   bool
	}{
		{"equal", base, false},
		{"control among data", `[{"in": 1, "out": [{"record": 1}, {"pause": ["1"]}, {"watermark": 9223372036854775807}], "check": {"b": [1, 2], "a": {"x": 1}}}]`, false},
		{"data order", `[{"in": 1, "out": [{"watermark": 9223372036854775807}, {"record": 1}, {"pause": ["1"]}], "check": {"a": {"x": 1}, "b": [1, 2]}}]`, true},
		{"last digit", `[{"in": 1, "out": [{"record": 1}, {"watermark": 9223372036854775806}, {"pause": ["1"]}], "check": {"a": {"x": 1}, "b": [1, 2]}}]`, true},
		{"one more", `[{"in": 1, "out": [{"record": 1}, {"watermark": 9223372036854775807}, {"pause": ["1"]}, {"status": "idle"}], "check": {"a": {"x": 1}, "b": [1, 2]}}]`, true},
		{"check value", `[{"in": 1, "out": [{"record": 1}, {"watermark": 9223372036854775807}, {"pause": ["1"]}], "check": {"a": {"x": 2}, "b": [1, 2]}}]`, true},
		{"check order", `[{"in": 1, "out": [{"record": 1}, {"watermark": 9223372036854775807}, {"pause": ["1"]}], "check": {"a": {"x": 1}, "b": [2, 1]}}]`, true},
		{"check field", `[{"in": 1, "out": [{"record": 1}, {"watermark": 9223372036854775807}, {"pause": ["1"]}], "check": {"a": {"y": 1}, "b": [1, 2]}}]`, true},
		{"failed", `[{"in": 1, "out": [], "error": true}]`, true},
		{"fewer steps", `[]`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := Difference(steps(base), steps(tt.other)); (diff != "") != tt.different {
				t.Errorf("difference %q", diff)
			}
		})
	}
	if Difference(Case{SetupError: true}, Case{}) == "" {
		t.Error("a refused setup is no difference")
	}
}
