package scenarios

import (
	"encoding/json/jsontext"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFilesAreValid decodes every file strictly, those that cannot be replayed and the
// fixed ones included.
func TestFilesAreValid(t *testing.T) {
	for _, dir := range dirs() {
		all, err := Load(dir)
		if err != nil {
			t.Error(err)
		}
		for _, s := range all {
			if _, err := s.Records(); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			if _, err := s.Fixed(); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			if s.Mode == Evidence && len(s.Snapshots) == 0 {
				t.Errorf("%s: neither records nor snapshots", s.Name)
			}
			if s.Expected.Verdict.Cause == "" {
				t.Errorf("%s: no cause", s.Name)
			}
		}
	}
}

// dirs returns testdata, what is in it, and the directories in LOWWATER_SCENARIOS.
func dirs() []string {
	return append([]string{"testdata", "testdata/more"}, filepath.SplitList(os.Getenv("LOWWATER_SCENARIOS"))...)
}

const minimal = `{
	"format": "eventtime-scenario/1", "name": "n", "title": "t", "mode": "replay",
	"wall_start_ms": 1000000, "duration_ms": 5000, "watermark_interval_ms": 200,
	"evidence": {"rest": true},
	"topics": [{"name": "in", "partitions": 2,
		"series": [{"p": 0, "from": -500, "to": 1500, "every": 500, "ts0": 10, "ts_step": 5, "keys": ["a", "b"]}],
		"rows": [[0, 1, 7, "c"]]}],
	"job": {
		"sources": [{"id": "s", "topic": "in", "parallelism": 1, "strategy": {"kind": "bounded", "delay_ms": 5}}],
		"operators": [{"id": "w", "kind": "window", "inputs": [["s"]], "type": "tumbling", "size_ms": 10}]},
	"snapshots": [{"at_ms": 100, "sources": {"s": []}, "operators": {"w": {"input_watermark": "min"}}, "kafka": {"in": []}}],
	"expected": {
		"verdict": {"cause": "none", "severity": "none", "culprit": {"source": "s", "gap_ms": 60000}, "fix": []},
		"results": {"windows_columns": ["count", "key"], "windows": [[3, "a"]], "late_total": 1,
			"late_by_partition": {"in": {"1": 1}}, "open_windows_at_end": {"w": 2}, "watermark_at_end": {"w": "max"}},
		"after_fix": {"patch": [{"path": "/job/sources/0/strategy/idleness_ms", "value": 30}],
			"results": {"windows_columns": [], "windows": [], "late_total": 0}}}}`

func TestDecode(t *testing.T) {
	s, err := Decode([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	want := &Results{
		Windows:         []FiredWindow{{Key: "a", Count: 3}},
		LateTotal:       1,
		LateByPartition: map[string]map[int32]int64{"in": {1: 1}},
		OpenWindows:     map[string]int64{"w": 2},
		Watermark:       map[string]Instant{"w": Max},
	}
	if diff := cmp.Diff(want, s.Expected.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Culprit{Source: "s", Facts: map[string]jsontext.Value{"gap_ms": jsontext.Value("60000")}}, s.Expected.Verdict.Culprit); diff != "" {
		t.Errorf("culprit (-want +got):\n%s", diff)
	}
	if got := s.Snapshots[0].Operators["w"].InputWatermark; got == nil || *got != Min {
		t.Errorf("input watermark %v, want min", got)
	}
	if diff := cmp.Diff([]Input{{"s"}}, s.Job.Operators[0].Inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name, old, new string
		// want is part of the error.
		want string
	}{
		{"unknown field", `"title": "t"`, `"tittle": "t"`, "tittle"},
		{"unknown field of a series", `"every"`, `"evry"`, "evry"},
		{"unknown field of a snapshot", `"input_watermark"`, `"watermark"`, "watermark"},
		{"unknown column", `["count", "key"]`, `["count", "kee"]`, `unknown column "kee"`},
		{"cells", `[[3, "a"]]`, `[[3]]`, "1 cells in 2 columns"},
		{"time", `"w": "max"`, `"w": "maximum"`, `"maximum" is not a time`},
		{"format", `scenario/1`, `scenario/2`, "scenario/2"},
		{"mode", `"replay"`, `"repeat"`, `mode "repeat"`},
		{"duration", `"duration_ms": 5000`, `"duration_ms": 0`, "duration_ms 0"},
		{"interval", `"watermark_interval_ms": 200`, `"watermark_interval_ms": 0`, "watermark_interval_ms 0"},
		{"partition", `"p": 0`, `"p": 2`, "no partition 2"},
		{"partition of a row", `[0, 1, 7, "c"]`, `[0, 2, 7, "c"]`, "no partition 2"},
		{"endless series", `"every": 500`, `"every": 0`, "every 0"},
		{"half a slow reader", `"every": 500`, `"every": 500, "read_from": 7`, "go together"},
		{"topic", `"topic": "in"`, `"topic": "out"`, `unknown topic "out"`},
		{"parallelism", `"parallelism": 1`, `"parallelism": 0`, "parallelism 0"},
		{"assignment", `"parallelism": 1`, `"parallelism": 1, "assignment": [[0]]`, "assignment [[0]]"},
		{"strategy", `"bounded"`, `"punctuated"`, `"punctuated"`},
		{"timestamp", `"delay_ms": 5`, `"delay_ms": 5, "timestamp": "header"`, `"header"`},
		{"input", `[["s"]]`, `["t"]`, `unknown input "t"`},
		{"inputs", `[["s"]]`, `["s", "s"]`, "2 inputs"},
		{"operator", `"kind": "window"`, `"kind": "join"`, `unknown kind "join"`},
		{"custom operator", `"kind": "window"`, `"kind": "custom"`, "cannot be replayed"},
		{"window", `"tumbling"`, `"global"`, `unknown type "global"`},
		{"size", `"size_ms": 10`, `"slide_ms": 10`, "length of 0"},
		{"id", `"id": "w"`, `"id": "s"`, `"s" is there twice`},
		{"snapshot", `"sources": {"s": []}`, `"sources": {"x": []}`, `unknown source "x"`},
		{"routing", `"kind": "window"`, `"kind": "assign", "partitioning": "hash"`, "no routing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(minimal, test.old) != 1 {
				t.Fatalf("%q is not in the document once", test.old)
			}
			_, err := Decode([]byte(strings.Replace(minimal, test.old, test.new, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestReplayNeedsResults(t *testing.T) {
	without, err := set([]byte(minimal), Change{"/expected/results", []byte("null")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(without); err == nil || !strings.Contains(err.Error(), "no results") {
		t.Errorf("error %v", err)
	}
}

func TestFixed(t *testing.T) {
	s, err := Decode([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	fixed, err := s.Fixed()
	if err != nil {
		t.Fatal(err)
	}
	if got := fixed.Job.Sources[0].Strategy; got.IdlenessMillis != 30 || got.DelayMillis != 5 {
		t.Errorf("the fixed strategy is %+v", *got)
	}
	if fixed.Expected.Results.LateTotal != 0 || fixed.Expected.AfterFix != nil {
		t.Errorf("the fixed scenario expects %+v", fixed.Expected)
	}
	if s.Job.Sources[0].Strategy.IdlenessMillis != 0 {
		t.Error("the original changed")
	}
	if again, err := fixed.Fixed(); again != nil || err != nil {
		t.Errorf("a fixed scenario has the fix %v, %v", again, err)
	}
}

func TestPatch(t *testing.T) {
	tests := []struct {
		path, want string
	}{
		{"/a", `{"a":7,"b/c":[1,{"~":2}]}`},
		{"/new", `{"a":1,"b/c":[1,{"~":2}],"new":7}`},
		{"/b~1c/0", `{"a":1,"b/c":[7,{"~":2}]}`},
		{"/b~1c/1/~0", `{"a":1,"b/c":[1,{"~":7}]}`},
		{"a", `a JSON pointer begins with "/"`},
		{"/x/y", `no member "x"`},
		{"/a/x", `no member "x"`},
		{"/b~1c/2", `no element "2" of 2`},
		{"/b~1c/-", `no element "-" of 2`},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			got, err := set([]byte(`{"a":1,"b/c":[1,{"~":2}]}`), Change{test.path, []byte("7")})
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
					t.Errorf("error %v, want %q in it", err, test.want)
				}
				return
			}
			if err := got.Canonicalize(); err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil {
		t.Error("a directory without files is no error")
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte(`{"format": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "good.json"), []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Load(dir)
	if err == nil || !strings.Contains(err.Error(), "bad.json") || len(all) != 1 {
		t.Errorf("loaded %d, error %v", len(all), err)
	}
}
