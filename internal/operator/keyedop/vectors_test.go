package keyedop

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// knownKinds lists every kind of vector document that exists, and knownSubjects
// those of documents without a kind, so that a test can tell a document that is
// another package's from one that nobody replays.
var (
	knownKinds = []string{
		"assigner", "broadcast", "connected", "interval_join", "key_groups", "sql", "timers", "trigger", "ttl",
		"window_join", "window_merge", "window_operator", "window_start",
	}
	knownSubjects = []string{
		"alignment_coordinator", "alignment_sampler", "generator", "metrics", "multiplexer", "operator", "output_gate",
		"source", "sql_watermark_assigner", "task", "timestamps_operator", "valve", "watermark_to_output",
	}
)

type vectorDocument struct {
	Subject string
	Kind    string
	Cases   []json.RawMessage
}

// caseHead is what the cases of all kinds have.
type caseHead struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Note   string `json:"note"`
	Quirk  bool   `json:"quirk"`
}

// replay calls run for every case of the given kind in testdata/windows and in
// the directories that the environment variable LOWWATER_VECTORS lists
// (separated as in PATH). A field that C lacks is an error.
func replay[C any](t *testing.T, kind string, run func(t *testing.T, c C)) {
	t.Helper()
	dirs := append([]string{"testdata/windows"}, filepath.SplitList(os.Getenv("LOWWATER_VECTORS"))...)
	for _, dir := range dirs {
		cases := 0
		for _, path := range jsonFiles(t, dir) {
			cases += replayFile(t, path, kind, run)
		}
		if dir == dirs[0] && cases == 0 {
			t.Errorf("%s: no cases of kind %s", dir, kind)
		}
	}
}

func jsonFiles(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".json") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("looking for vectors: %v", err)
	}
	return paths
}

func replayFile[C any](t *testing.T, path, kind string, run func(t *testing.T, c C)) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc vectorDocument
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if doc.Kind == "" && !slices.Contains(knownSubjects, doc.Subject) ||
		doc.Kind != "" && !slices.Contains(knownKinds, doc.Kind) {
		t.Fatalf("%s: unknown vectors: kind %q, subject %q", path, doc.Kind, doc.Subject)
	}
	if doc.Kind != kind {
		return 0
	}
	for _, raw := range doc.Cases {
		var head caseHead
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		t.Run(head.ID, func(t *testing.T) {
			var c C
			unmarshalStrict(t, raw, &c)
			run(t, c)
		})
	}
	return len(doc.Cases)
}

func unmarshalStrict(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("decoding %s: %v", raw, err)
	}
}
