package progress_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/internal/progress/replay"
)

// vectorsEnv names further folders of vectors, separated like a PATH.
const vectorsEnv = "LOWWATER_VECTORS"

// deviations are the cases of Flink 2.3 in which the engine differs on purpose.
// The twin has the same input and what the engine does. Each why is a row of
// docs/flink-differences.md.
var deviations = []struct{ subject, name, twin, why string }{
	{
		"valve", "flush-skipped-if-last-idle-channel-is-unaligned-2.3", "flush-if-last-idle-channel-is-unaligned-next",
		"FLINK-40475: what the other channels had promised is not forgotten when the last one goes idle",
	},
	{
		"valve", "reactivated-only-aligned-channel-stalls-2.3", "reactivated-only-aligned-channel-advances-next",
		"FLINK-40475: the only aligned channel's watermark does not wait for its next one",
	},
	{
		"source", "end-of-input-while-idle-loses-max-2.3", "end-of-input-while-idle-announces-active",
		"FLINK-40499: an idle subtask does not lose its final watermark",
	},
	{
		"source", "stop-with-drain-while-idle-loses-max-2.3", "stop-with-drain-while-idle-announces-active",
		"FLINK-40499: an idle subtask does not lose its final watermark",
	},
	{
		"source", "split-that-went-idle-while-paused-stays-paused-2.3", "split-that-went-idle-while-paused-is-resumed",
		"FLINK-40093: a split that went idle while it was paused is read again",
	},
}

func TestConformanceValve(t *testing.T)                { conform(t, "valve") }
func TestConformanceOperator(t *testing.T)             { conform(t, "operator") }
func TestConformanceTask(t *testing.T)                 { conform(t, "task") }
func TestConformanceOutputGate(t *testing.T)           { conform(t, "output_gate") }
func TestConformanceMultiplexer(t *testing.T)          { conform(t, "multiplexer") }
func TestConformanceWatermarkToOutput(t *testing.T)    { conform(t, "watermark_to_output") }
func TestConformanceGenerator(t *testing.T)            { conform(t, "generator") }
func TestConformanceSource(t *testing.T)               { conform(t, "source") }
func TestConformanceTimestampsOperator(t *testing.T)   { conform(t, "timestamps_operator") }
func TestConformanceAlignmentCoordinator(t *testing.T) { conform(t, "alignment_coordinator") }
func TestConformanceAlignmentSampler(t *testing.T)     { conform(t, "alignment_sampler") }
func TestConformanceMetrics(t *testing.T)              { conform(t, "metrics") }
func TestConformanceSQLWatermarkAssigner(t *testing.T) { conform(t, "sql_watermark_assigner") }

// conform runs every case with the rules of each profile it lists, and a case of
// Flink 2.3 alone with the engine's rules as well: only the listed deviations may
// differ there.
func conform(t *testing.T, subject string) {
	cases := vectors(t)[subject]
	if len(cases) == 0 {
		t.Fatalf("no cases of subject %s", subject)
	}
	for _, v := range cases {
		t.Run(v.Name, func(t *testing.T) {
			for _, profile := range v.Profiles {
				switch profile {
				case "2.3":
					compare(t, subject, v.Case, progress.Flink23)
				case "next":
					compare(t, subject, v.Case, progress.Current)
				default:
					t.Errorf("unknown profile %q", profile)
				}
			}
			switch {
			case slices.Contains(v.Profiles, "next") || deviates(subject, v.Name):
			case v.foreign:
				onlyAdds(t, subject, v.Case)
			default:
				compare(t, subject, v.Case, progress.Current)
			}
		})
	}
}

func compare(t *testing.T, subject string, want replay.Case, rules progress.Rules) {
	t.Helper()
	if diff := replay.Difference(want, answer(t, subject, want, rules)); diff != "" {
		t.Errorf("rules %d: %s", rules, diff)
	}
}

func answer(t *testing.T, subject string, c replay.Case, rules progress.Rules) replay.Case {
	t.Helper()
	answered, err := replay.Answer(subject, c, rules)
	if err != nil {
		t.Fatal(err)
	}
	return answered
}

// onlyAdds: a case that this package has not seen may need one of the
// deviations. All of them emit something that Flink 2.3 keeps to itself.
func onlyAdds(t *testing.T, subject string, want replay.Case) {
	t.Helper()
	got := answer(t, subject, want, progress.Current)
	diff := replay.Difference(want, got)
	if diff == "" {
		return
	}
	for i := range min(len(want.Steps), len(got.Steps)) {
		w, g := want.Steps[i].Out, got.Steps[i].Out
		if cmp.Equal(w, g) {
			continue
		}
		for _, e := range g {
			if len(w) > 0 && cmp.Equal(w[0], e) {
				w = w[1:]
			}
		}
		if len(w) == 0 {
			t.Logf("the engine's rules add to step %d: %s", i, diff)
			return
		}
		break
	}
	t.Errorf("the engine's rules: %s", diff)
}

func deviates(subject, name string) bool {
	for _, d := range deviations {
		if d.subject == subject && d.name == name {
			return true
		}
	}
	return false
}

// TestDeviationsHaveTwins: the twin, which has its own subtest, must ask the same
// question and must get another answer.
func TestDeviationsHaveTwins(t *testing.T) {
	all := vectors(t)
	find := func(subject, name string) replay.Case {
		for _, v := range all[subject] {
			if v.Name == name {
				return v.Case
			}
		}
		t.Fatalf("no case %s of subject %s", name, subject)
		return replay.Case{}
	}
	for _, d := range deviations {
		theirs, ours := find(d.subject, d.name), find(d.subject, d.twin)
		if !cmp.Equal(theirs.Profiles, []string{"2.3"}) || !cmp.Equal(ours.Profiles, []string{"next"}) {
			t.Errorf("%s and %s must be of profiles 2.3 and next", d.name, d.twin)
		}
		if !cmp.Equal(string(theirs.Setup), string(ours.Setup)) || !cmp.Equal(inputs(theirs), inputs(ours)) {
			t.Errorf("%s and %s have different input", d.name, d.twin)
		}
		if replay.Difference(theirs, ours) == "" {
			t.Errorf("%s and %s have the same output", d.name, d.twin)
		}
	}
}

func inputs(c replay.Case) (in []string) {
	for _, step := range c.Steps {
		in = append(in, string(step.In))
	}
	return in
}

// vector is a case; foreign ones come from the environment's folders.
type vector struct {
	replay.Case
	foreign bool
}

// vectors returns all cases by subject, from testdata and from the folders in
// the environment.
func vectors(t *testing.T) map[string][]vector {
	t.Helper()
	all := map[string][]vector{}
	add := func(folder string, foreign bool) {
		var files []string
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".json" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, doc := range readFile(t, file) {
				if !replay.Known(doc.Subject) {
					t.Fatalf("%s: unknown subject %q", file, doc.Subject)
				}
				for _, c := range doc.Cases {
					all[doc.Subject] = append(all[doc.Subject], vector{c, foreign})
				}
			}
		}
	}
	add(filepath.Join("testdata", "watermarks"), false)
	add(filepath.Join("testdata", "more"), false)
	for _, folder := range filepath.SplitList(os.Getenv(vectorsEnv)) {
		add(folder, true)
	}
	return all
}

// readFile returns the documents of a file; those that have a kind are other
// packages'.
func readFile(t *testing.T, file string) []replay.Document {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kind struct {
		Kind *json.RawMessage `json:"kind"`
	}
	if err := json.NewDecoder(strings.NewReader(string(text))).Decode(&kind); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if kind.Kind != nil {
		return nil
	}
	documents, err := replay.Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return documents
}
