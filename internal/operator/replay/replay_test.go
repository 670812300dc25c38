package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) (c Case) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A vector must never pass because a part of it was skipped.
func TestWhatIsNotUnderstoodFails(t *testing.T) {
	windows := func(c Case) error { _, err := AnswerWindowOperator(c, General); return err }
	fast := func(c Case) error { _, err := AnswerWindowOperator(c, Fast); return err }
	trigger := func(c Case) error { _, err := AnswerTrigger(c); return err }
	timers := func(c Case) error { _, err := AnswerTimers(c, nil); return err }
	join := func(c Case) error { _, err := AnswerIntervalJoin(c, nil); return err }
	const tumbling = `{"op": {"assigner": {"type": "tumbling", "size": 5}, "function": "sum"}, "steps": [%]}`
	for _, test := range []struct {
		answer     func(Case) error
		text, step string
		want       string
	}{
		{windows, `{}`, ``, "missing op"},
		{windows, `{"op": {"assigner": {"type": "hopping"}, "function": "sum"}}`, ``, "no such assigner hopping"},
		{windows, `{"op": {"assigner": {"type": "global"}, "function": "average"}}`, ``, "no such function average"},
		{windows, `{"op": {"assigner": {"type": "global"}, "function": "sum", "trigger": {"type": "purging"}}}`, ``, "missing inner"},
		{windows, `{"op": {"assigner": {"type": "global"}, "function": "sum", "evictor": {"type": "last"}}}`, ``, "no such evictor last"},
		{windows, tumbling, `{"do": "jump"}`, "no such step jump"},
		{windows, tumbling, `{"do": "element", "key": "a", "ts": 1}`, "missing value"},
		{windows, tumbling, `{"do": "processing_time"}`, "missing t"},
		{fast, tumbling, `{"do": "checkpoint_restore"}`, "needs the general operator"},
		{trigger, `{}`, ``, "missing trigger"},
		{trigger, `{"trigger": {"type": "sometimes"}}`, ``, "no such trigger sometimes"},
		{trigger, `{"trigger": {"type": "count", "n": 1}, "steps": [%]}`, `{"do": "element"}`, "missing window"},
		{trigger, `{"trigger": {"type": "count", "n": 1}, "steps": [%]}`, `{"do": "merge", "from": []}`, "missing into"},
		{timers, `{"steps": [%]}`, `{"do": "checkpoint_restore"}`, "no such step"},
		{join, `{"join": {}, "steps": [%]}`, `{"do": "left", "key": "a", "ts": 1}`, "missing value"},
	} {
		text := strings.Replace(test.text, "%", test.step, 1)
		if err := test.answer(parse(t, text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", text, err, test.want)
		}
	}
}

func TestVectorsAreStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind": "trigger", "cases": [{"id": "x", "flavour": 1}]}`: "flavour",
		`{"kind": "triggers"}`:      "unknown vectors",
		`{"subject": "valves"}`:     "unknown vectors",
		`{"kind": "trigger", "cas`:  "unexpected end",
		`{"kind": "assigner"}`:      "",
		`{"subject": "valve"}`:      "",
		`{"kind": "trigger"}`:       "",
		`{"kind": "interval_join"}`: "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Vectors("trigger", dir)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Vectors("trigger", "nowhere"); err == nil {
		t.Error("a directory that is not there: no error")
	}
}

func TestDifference(t *testing.T) {
	const op = `"op": {"assigner": {"type": "tumbling", "size": 5}, "function": "list"}, `
	const base = `{` + op + `"steps": [{"do": "watermark", "ts": 9, "emit": [{"key": "a", "value": [1, 2], "w": [0, 5], "ts": 4}, {"late": ["b", 1], "ts": 0}]}],
		"end": {"lateDropped": 0, "eventTimers": 1, "processingTimers": 0}}`
	change := func(old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("nothing to change: %s", old)
		}
		return strings.Replace(base, old, new, 1)
	}
	for _, test := range []struct {
		name, other string
		different   bool
	}{
		{"equal", base, false},
		{"another order", `{` + op + `"steps": [{"do": "watermark", "ts": 9, "emit": [{"late": ["b", 1], "ts": 0}, {"w": [0, 5], "key": "a", "ts": 4, "value": [1, 2]}]}]}`, false},
		{"value", change("[1, 2]", "[1, 3]"), true},
		{"order of values", change("[1, 2]", "[2, 1]"), true},
		{"window", change("[0, 5]", "[0, 6]"), true},
		{"timestamp", change(`"ts": 4`, `"ts": 5`), true},
		{"late", change(`["b", 1]`, `["b", 2]`), true},
		{"nothing", change(`, {"late": ["b", 1], "ts": 0}`, ``), true},
		{"dropped", change(`"lateDropped": 0`, `"lateDropped": 1`), true},
		{"timers", change(`"eventTimers": 1`, `"eventTimers": 2`), true},
		{"error", change(`"emit": [`, `"error": "failed", "emit": [`), true},
		{"refused", `{"constructError": "no"}`, true},
		{"no step", `{` + op + `"steps": []}`, true},
	} {
		if d := Difference(parse(t, base), parse(t, test.other)); (d != "") != test.different {
			t.Errorf("%s: %q, want a difference: %t", test.name, d, test.different)
		}
	}
}

// What an operator must never do counts whatever was recorded.
func TestBrokenRulesAreDifferences(t *testing.T) {
	c := parse(t, `{"steps": [{"do": "watermark", "ts": 1}]}`)
	broken := parse(t, `{"steps": [{"do": "watermark", "ts": 1}]}`)
	broken.Steps[0].Broken = "windows fired out of order"
	if Difference(c, broken) == "" {
		t.Error("no difference")
	}
	a, b := int64(1), int64(2)
	late, early := Emitted{Window: &Window{}, Timestamp: &b}, Emitted{Window: &Window{}, Timestamp: &a}
	if firedInOrder([]Emitted{late, early}) || !firedInOrder([]Emitted{early, late}) {
		t.Error("the order of firing is misjudged")
	}
}
