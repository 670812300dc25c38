package why

import (
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// TestHeldIsNotNotDue: a window that one input would have closed long ago is not waiting
// for its end. How long the other has been silent, only a look that is long enough tells.
func TestHeldIsNotNotDue(t *testing.T) {
	for _, test := range []struct {
		name     string
		at, span int64
		want     Code
	}{
		{"a short look soon", minute, 12_000, NotEnoughEvidence},
		{"a short look", 100_000, 12_000, NotEnoughEvidence},
		{"a look of more than the patience", 100_000, 40_000, QuietInput},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := variant{
				name: "held", at: test.at,
				topics: []scenarios.Topic{topic("web", 1, steady(0, 100)), topic("app", 1, until(steady(0, 1000), 1500))},
				job:    job(from("web", "web", 1, bounded(0, 0)), from("app", "app", 1, bounded(0, 0)), tumbling("w", 2000, "web", "app")),
			}
			e := evidenceOf(t, v.scenario(t, means[0].Means), false)
			past := &e.History[0]
			past.AtMillis = e.AtMillis - test.span
			for i := range e.History {
				splitsOf(&e.History[i], "app", func(sp *Split) {
					sp.LastReadMillis, sp.LastAppendMillis, sp.LastRecordMillis = Known[int64]{}, Known[int64]{}, Known[int64]{}
					sp.EndOffset, sp.PositionOffset, sp.Lag = Known[int64]{}, Known[int64]{}, Known[int64]{}
				})
			}
			if d := Diagnose(e); d.Answer().Code != test.want {
				t.Errorf("%s, want %s\n%v", d.Answer().Code, test.want, d)
			}
		})
	}
}
