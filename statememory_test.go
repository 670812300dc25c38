package lowwater_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// counting returns an environment with a budget whose job counts by key, once and in windows
// that spill, and in ways that stay in memory if it is to.
func counting(inMemory bool, bytes int64, dir string) *lowwater.Environment {
	env := newEnv(lowwater.WithParallelism(2), lowwater.WithStateMemory(bytes, dir))
	s := from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}}, bounded(2*time.Second))
	keyed := s.KeyBy(keyOf)
	keyed.Reduce(first).Name("latest").Collect()
	keyed.Window(window.Tumbling(time.Second)).Reduce(first).Name("by second").Collect()
	keyed.Window(window.Sliding(2*time.Second, time.Second)).Reduce(first).Name("sliding").Collect()
	if inMemory {
		countInOrder(keyed).Name("in order").Collect()
		keyed.SortByEventTime().Collect()
	}
	return env
}

// countInOrder counts in windows that stay in memory.
func countInOrder(s *lowwater.KeyedStream[string, event]) *lowwater.DataStream[window.Pane[string, int64]] {
	return s.Window(window.Sliding(2*time.Second, time.Second)).Aggregate(window.InArrivalOrder(lowwater.Count[event]()))
}

// A budget that cannot be meant is refused before anything runs.
func TestStateMemoryIsChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	inMemoryOnly := newEnv(lowwater.WithStateMemory(1<<20, ""))
	countInOrder(from(inMemoryOnly, &script[event]{splits: [][]step[event]{{{0, timeline}}}}, bounded(time.Second)).KeyBy(keyOf)).Collect()
	for _, test := range []struct {
		name string
		env  *lowwater.Environment
		want []string
	}{
		{"negative", counting(false, -1, ""), []string{"WithStateMemory(-1)", "at least 16384"}},
		{"unit forgotten", counting(false, 4, ""), []string{"WithStateMemory(4)", "at least 16384", "1<<30"}},
		{"a file", counting(false, 1<<20, file), []string{file, "not a directory", "WithStateMemory"}},
		{"below a file", counting(false, 1<<20, file+"/dir"), []string{file, "WithStateMemory"}},
		{"no state that spills", inMemoryOnly, []string{"WithStateMemory", "no operator", "leave it out"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.env.Execute(t.Context(), "job")
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "made", "by", "the", "job")
	if err := counting(false, 16<<10, dir).Execute(t.Context(), "job"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left in the directory, %v", left, err)
	}
}

// A plan says what each subtask may take, and names what the budget does not cover.
func TestStateMemoryInPlan(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		text, err := counting(inMemory, 12<<20, "").Plan("job")
		if err != nil {
			t.Fatal(err)
		}
		var plan struct {
			Operators []struct {
				Name             string
				Parallelism      int
				StateMemoryBytes int64 `json:"state_memory_bytes"`
			}
			Warnings []struct{ Code, Operator, Message string }
		}
		if err := json.Unmarshal(text, &plan); err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, o := range plan.Operators {
			if o.StateMemoryBytes > 0 {
				got[o.Name] = o.StateMemoryBytes
			}
		}
		if want := fmt.Sprint(map[string]int64{"latest": 2 << 20, "by second": 2 << 20, "sliding": 2 << 20}); fmt.Sprint(got) != want {
			t.Errorf("budgets %v, want %s", got, want)
		}
		found := 0
		for _, w := range plan.Warnings {
			if w.Code != "state-outside-budget" {
				continue
			}
			found++
			for _, want := range []string{`"in order" (windows)`, `"Sort" (sorting)`, "WithStateMemory"} {
				if !strings.Contains(w.Message, want) {
					t.Errorf("warning %q lacks %q", w.Message, want)
				}
			}
		}
		if inMemory != (found == 1) {
			t.Errorf("%d warnings about state outside of the budget", found)
		}
	}
}
