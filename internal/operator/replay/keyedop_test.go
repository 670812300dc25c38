package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The cases of process functions and interval joins that do without snapshots come out as
// recorded, also if the operator is restored from snapshots at random. Package keyedop's own
// tests run all of them, and look inside.
func TestConformanceOfKeyedOperators(t *testing.T) {
	for kind, answer := range map[string]func(Case, *rand.Rand) (Case, error){"timers": AnswerTimers, "interval_join": AnswerIntervalJoin} {
		cases, err := Vectors(kind, "../keyedop/testdata/windows")
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, c := range cases {
			restores := slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Do == "checkpoint_restore" })
			if restores || c.ConstructError != "" {
				continue
			}
			ran++
			t.Run(kind+"/"+c.ID, func(t *testing.T) {
				for seed := range uint64(10) {
					var random *rand.Rand
					if seed > 0 {
						random = rand.New(rand.NewPCG(seed, 0))
					}
					got, err := answer(c, random)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if d := Difference(c, got); d != "" {
						t.Errorf("seed %d: %s", seed, d)
					}
				}
			})
		}
		if ran == 0 {
			t.Errorf("no case of kind %s", kind)
		}
	}
}
