package lowwater_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// joinRow is a record of a window join vector.
type joinRow struct {
	Key   string
	Value int
	TS    int64
}

func (r *joinRow) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.Key, &r.Value, &r.TS})
}

type joinCase struct {
	ID       string    `json:"id"`
	Source   string    `json:"source"`
	Note     string    `json:"note"`
	Op       string    `json:"op"`
	Assigner assigner  `json:"assigner"`
	Left     []joinRow `json:"left"`
	Right    []joinRow `json:"right"`
	Emit     []any     `json:"emit"`
}

type assigner struct {
	Type   string `json:"type"`
	Time   string `json:"time"`
	Size   int64  `json:"size"`
	Slide  int64  `json:"slide"`
	Offset int64  `json:"offset"`
	Gap    int64  `json:"gap"`
}

func (a assigner) build(t *testing.T) window.Assigner {
	t.Helper()
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	if a.Time != "event" {
		t.Fatalf("unknown time %q", a.Time)
	}
	switch a.Type {
	case "tumbling":
		return window.Tumbling(ms(a.Size)).Offset(ms(a.Offset))
	case "sliding":
		return window.Sliding(ms(a.Size), ms(a.Slide)).Offset(ms(a.Offset))
	case "session":
		return window.Session(ms(a.Gap))
	}
	t.Fatalf("unknown assigner %q", a.Type)
	return nil
}

func TestConformanceWindowJoin(t *testing.T) {
	files := []string{"testdata/windows/window_join.json"}
	for _, dir := range filepath.SplitList(os.Getenv("LOWWATER_VECTORS")) {
		more, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	ran := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var header struct {
			Kind  string          `json:"kind"`
			Cases json.RawMessage `json:"cases"`
		}
		if err := json.Unmarshal(data, &header); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if header.Kind != "window_join" {
			continue // other packages replay the other kinds and refuse unknown ones
		}
		var cases []joinCase
		if err := strict(header.Cases, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases {
			ran++
			t.Run(c.ID, func(t *testing.T) { replayJoin(t, c) })
		}
	}
	if ran == 0 {
		t.Error("no case ran")
	}
}

func replayJoin(t *testing.T, c joinCase) {
	for _, parallelism := range []int{1, 3} {
		env := lowwater.NewEnvironment(lowwater.WithParallelism(parallelism))
		side := func(rows []joinRow) *lowwater.KeyedStream[string, joinRow] {
			return lowwater.FromSlice(env, rows).
				AssignTimestampsAndWatermarks(eventtime.ForMonotonousTimestamps[joinRow]().
					WithTimestampAssigner(func(r joinRow, _ int64) int64 { return r.TS })).
				Parallelism(1).
				KeyBy(func(r joinRow) string { return r.Key })
		}
		left, right := side(c.Left), side(c.Right)
		var out *lowwater.DataStream[map[string]any]
		switch c.Op {
		case "join":
			out = left.Join(right).Window(c.Assigner.build(t)).Apply(func(l, r joinRow) map[string]any {
				return map[string]any{"key": l.Key, "left": l.Value, "right": r.Value}
			})
		case "cogroup":
			out = left.CoGroup(right).Window(c.Assigner.build(t)).
				Apply(func(ctx *lowwater.WindowContext[string], l, r []joinRow, out *lowwater.Collector[map[string]any]) error {
					out.Emit(map[string]any{"key": ctx.Key(), "left": valuesOf(l), "right": valuesOf(r)})
					return nil
				})
		default:
			t.Fatalf("unknown op %q", c.Op)
		}
		collected := out.Collect()
		if err := env.Execute(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		var got []any
		for i, v := range collected.Values() {
			v["ts"] = collected.Timestamps()[i]
			got = append(got, v)
		}
		if diff := cmp.Diff(canonical(t, c.Emit), canonical(t, got)); diff != "" {
			t.Errorf("parallelism %d (-want +got):\n%s", parallelism, diff)
		}
	}
}

func valuesOf(rows []joinRow) []int {
	values := []int{}
	for _, r := range rows {
		values = append(values, r.Value)
	}
	slices.Sort(values)
	return values
}

// canonical makes a multiset of JSON values comparable.
func canonical(t *testing.T, values []any) []string {
	t.Helper()
	out := []string{}
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	slices.Sort(out)
	return out
}

func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
