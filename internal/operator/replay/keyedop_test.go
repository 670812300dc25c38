package replay

import (
	"slices"
	"testing"
)

// The cases of process functions and interval joins that do without snapshots come out as
// recorded. Package keyedop's own tests run all of them, and look inside.
func TestConformanceOfKeyedOperators(t *testing.T) {
	for kind, answer := range map[string]func(Case) (Case, error){"timers": AnswerTimers, "interval_join": AnswerIntervalJoin} {
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
				got, err := answer(c)
				if err != nil {
					t.Fatal(err)
				}
				if d := Difference(c, got); d != "" {
					t.Error(d)
				}
			})
		}
		if ran == 0 {
			t.Errorf("no case of kind %s", kind)
		}
	}
}
