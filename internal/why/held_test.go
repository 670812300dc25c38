package why

import (
	"strings"
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

// TestSplitsThatAreNoPartitions: a split of another source than Kafka goes by its ID, has no
// topic, and no advice that is for topics.
func TestSplitsThatAreNoPartitions(t *testing.T) {
	v := variant{
		name: "datagen", at: 2 * minute,
		topics: []scenarios.Topic{topic("web", 1, steady(0, 100)), topic("app", 1, until(steady(0, 1000), 1500))},
		job:    job(from("web", "web", 1, bounded(0, 0)), from("app", "app", 1, bounded(0, 0)), tumbling("w", 2000, "web", "app")),
	}
	e := evidenceOf(t, v.scenario(t, means[0].Means), false)
	for i := range e.Operators {
		if s := e.Operators[i].Source; s != nil {
			s.Topics = nil
		}
	}
	for i := range e.History {
		for k := range e.History[i].Splits {
			sp := &e.History[i].Splits[k]
			sp.ID, sp.Topic, sp.Partition = "split-0", "", 0
		}
	}
	d := Diagnose(e)
	a, text := d.Answer(), d.String()
	if a.Code != QuietInput || a.Culprit.Source != "app" || a.Culprit.Topic != "" || a.Culprit.Partitions != nil {
		t.Errorf("%s, %+v", a.Code, a.Culprit)
	}
	if len(a.Fixes) == 0 || strings.Contains(text, "topic") || strings.Contains(text, "WithBrokerIdleness") || strings.Contains(text, "partition 0") {
		t.Errorf("the report is of Kafka:\n%s", text)
	}
}
