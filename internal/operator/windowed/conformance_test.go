package windowed_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowwater/lowwater/internal/operator/replay"
)

// vectors returns the cases in testdata/windows and in the directories that the
// environment variable LOWWATER_VECTORS lists, separated as in PATH.
func vectors(t *testing.T) []replay.Case {
	t.Helper()
	cases, err := replay.Vectors("window_operator", append([]string{"testdata/windows"}, filepath.SplitList(os.Getenv("LOWWATER_VECTORS"))...)...)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	return cases
}

func conform(t *testing.T, c replay.Case, path replay.Path) {
	t.Run(c.ID, func(t *testing.T) {
		got, err := replay.AnswerWindowOperator(c, path)
		if err != nil {
			t.Fatal(err)
		}
		if d := replay.Difference(c, got); d != "" {
			t.Error(d)
		}
	})
}

func TestConformanceWindowOperator(t *testing.T) {
	ran, all := 0, vectors(t)
	for _, c := range all {
		if c.HasFastPath() {
			ran++
			conform(t, c, replay.Fast)
		}
	}
	t.Logf("%d cases ran on the fast operators, %d need the general one", ran, len(all)-ran)
	if ran == 0 {
		t.Error("no case ran")
	}
}

// Cases of windows that spill give the same with next to no memory.
func TestConformanceSpilled(t *testing.T) {
	ran := 0
	for _, c := range vectors(t) {
		if c.Spills() {
			ran++
			conform(t, c, replay.Spilled)
		}
	}
	if t.Logf("%d cases ran", ran); ran == 0 {
		t.Error("no case ran")
	}
}

// All cases run on the general operator.
func TestConformanceGeneralWindowOperator(t *testing.T) {
	for _, c := range vectors(t) {
		conform(t, c, replay.General)
	}
}

// All cases give the same on the general operator with next to no memory.
func TestConformanceSpilledGeneral(t *testing.T) {
	for _, c := range vectors(t) {
		conform(t, c, replay.SpilledGeneral)
	}
}

// All cases give the same with checkpoints and restarts in between, on all operators that
// can answer them.
func TestConformanceWithCheckpoints(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i, c := range vectors(t) {
		paths := []replay.Path{replay.General, replay.SpilledGeneral}
		if c.HasFastPath() {
			paths = append(paths, replay.Fast)
		}
		if c.Spills() {
			paths = append(paths, replay.Spilled)
		}
		for _, path := range paths {
			for round := range uint64(10) {
				random := rand.New(rand.NewPCG(seed+round, uint64(i)))
				got, err := replay.AnswerWithCheckpoints(c, path, random)
				if err != nil {
					t.Fatal(err)
				}
				if d := replay.Difference(c, got); d != "" {
					t.Errorf("%s, %s operator, seed %d: %s", c.ID, path, seed+round, d)
				}
			}
		}
	}
}
