package why

import (
	"strings"
	"testing"
)

// stuckEvidence is of a job in which source a has passed on nothing since the first snapshot,
// while records were appended to its topic.
func stuckEvidence(t *testing.T, load Task) *Evidence {
	e := healthyEvidence(t)
	past, now := &e.History[0], &e.History[len(e.History)-1]
	for i := range now.Subtasks {
		now.Subtasks[i] = past.Subtasks[i]
	}
	for i := range now.Splits {
		end := now.Splits[i].EndOffset
		now.Splits[i] = past.Splits[i]
		now.Splits[i].EndOffset, now.Splits[i].Lag = end, Know[int64](0) // as heard before
	}
	for i := range now.Tasks {
		if now.Tasks[i].Vertex == "a" {
			now.Tasks[i].BusyMillis, now.Tasks[i].BackPressuredMillis, now.Tasks[i].IdleMillis = load.BusyMillis, load.BackPressuredMillis, Know[int64](0)
		}
	}
	e.Operators = append(e.Operators, Operator{ID: "enrich", Name: "enrich", Kind: KindPlain, Vertex: "a", Parallelism: 2,
		Inputs: []Input{{Edges: []Edge{{From: "a", Ship: ShipForward}}}}})
	return e
}

var (
	busyTask    = Task{BusyMillis: Know[int64](1000), BackPressuredMillis: Know[int64](0)}
	blockedTask = Task{BusyMillis: Know[int64](0), BackPressuredMillis: Know[int64](1000)}
)

// TestStuckIsNotSilent: a subtask that is busy or blocked does not tell that nothing comes.
func TestStuckIsNotSilent(t *testing.T) {
	silent := func(e *Evidence) {
		eachSplit(e, func(sp *Split) {
			sp.LastReadMillis, sp.LastAppendMillis = Know(e.AtMillis-4*minute), Known[int64]{}
			sp.EndOffset = Known[int64]{}
		})
	}
	tests := []struct {
		name   string
		load   Task
		change func(*Evidence)
		want   string // in the answer
	}{
		{"chained", busyTask, nil, `operator "enrich"`},
		{"chained, nobody tells ends", busyTask, silent, `operator "enrich"`},
		{"chained, nothing to read", busyTask, func(e *Evidence) {
			eachSplit(e, func(sp *Split) {
				sp.EndOffset, sp.LastReadMillis, sp.LastAppendMillis = sp.PositionOffset, Know(e.AtMillis-4*minute), Know(e.AtMillis-4*minute)
			})
		}, `operator "enrich"`},
		{"behind", blockedTask, func(e *Evidence) {
			now := &e.History[len(e.History)-1]
			for i := range now.Tasks {
				if now.Tasks[i].Vertex == "per-minute" {
					now.Tasks[i].BusyMillis = Know[int64](1000)
				}
			}
		}, `operator "per-minute"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := stuckEvidence(t, tt.load)
			if tt.change != nil {
				tt.change(e)
			}
			d := Diagnose(e)
			a := d.Answer()
			if a.Code != Backpressure || a.Severity != Stall || !strings.Contains(a.Answer, tt.want) {
				t.Errorf("want backpressure, %s:\n%v", tt.want, d)
			}
			for _, f := range d.Findings {
				if f.Code == AllInputsQuiet || f.Code == QuietPartition || f.Code == StalledReader && f.Culprit.Source == "a" {
					t.Errorf("found %s: %s", f.Code, f.Answer)
				}
			}
		})
	}
	t.Run("idle", func(t *testing.T) {
		e := stuckEvidence(t, Task{BusyMillis: Know[int64](0), BackPressuredMillis: Know[int64](0)})
		splitsOf(&e.History[0], "a", func(sp *Split) { sp.Lag = Know[int64](10) })
		if a := Diagnose(e).Answer(); a.Code != StalledReader {
			t.Errorf("%s, want %s", a.Code, StalledReader)
		}
	})
}

// TestMarkersAreNoLag: the end of a partition is behind the markers of transactions.
func TestMarkersAreNoLag(t *testing.T) {
	e := healthyEvidence(t)
	for i := range e.History {
		splitsOf(&e.History[i], "a", func(sp *Split) {
			sp.PositionOffset, sp.EndOffset, sp.Lag = Know[int64](100), Know[int64](101), Know[int64](0)
			sp.Records, sp.LastReadMillis, sp.LastAppendMillis = Know[int64](100), Know(e.AtMillis-4*minute), Know(e.AtMillis-4*minute)
		})
	}
	for _, f := range Diagnose(e).Findings {
		if f.Code == StalledReader {
			t.Errorf("found %s: %s", f.Code, f.Answer)
		}
	}
}

// TestOldPositionsAreNoLag: positions that are some seconds older than the ends are no backlog
// of a reader that reads what comes and knows of none.
func TestOldPositionsAreNoLag(t *testing.T) {
	e := healthyEvidence(t)
	jitter := int64(0)
	eachSplit(e, func(sp *Split) {
		sp.Lag = Know[int64](0)
		jitter++
		sp.EndOffset = Know(sp.PositionOffset.Value + 10 + jitter) // so more seems to come than is read
	})
	v := newView(e)
	for _, s := range v.sources {
		for _, sp := range s.splits {
			if n := sp.read(); !n.OK || n.Value == 0 || sp.appended().Or(0) <= n.Value {
				t.Fatalf("%s: read %v, appended %v", sp.called(), n, sp.appended())
			}
			if lag := sp.lag(); lag != Know[int64](0) {
				t.Errorf("%s: lag %v, want 0", sp.called(), lag)
			}
		}
	}
}

// TestLoadIsOfTheSpan: what a task does at the moment of the last look is not what limits it.
func TestLoadIsOfTheSpan(t *testing.T) {
	e := healthyEvidence(t)
	past, now := e.History[0], e.History[len(e.History)-1]
	e.History = []Snapshot{past}
	for i, busy := range []int64{900, 900, 0} {
		s := now
		s.AtMillis = past.AtMillis + (now.AtMillis-past.AtMillis)*int64(i+1)/3
		s.Tasks = []Task{{Vertex: "a", BusyMillis: Know(busy)}}
		e.History = append(e.History, s)
	}
	e.History[3].AtMillis = now.AtMillis
	v := newView(e)
	if got := v.load(v.ops["a"], busyOf); got != Know[int64](600) && got != Know[int64](599) {
		t.Errorf("busy %d ms/s, want 600", got.Value)
	}
}

// TestKafkaDoesNotAnswer: a reader that cannot ask does not tell that nothing comes.
func TestKafkaDoesNotAnswer(t *testing.T) {
	e := stuckEvidence(t, Task{BusyMillis: Know[int64](0), BackPressuredMillis: Know[int64](0)})
	e.Means.KafkaOffsets = false
	now := &e.History[len(e.History)-1]
	for i := range now.Splits {
		sp := &now.Splits[i]
		sp.Lag, sp.EndOffset, sp.LastAppendMillis = Known[int64]{}, Known[int64]{}, Known[int64]{}
		sp.LastReadMillis, sp.EndLost = Know(e.AtMillis-4*minute), true
	}
	a := Diagnose(e).Answer()
	if a.Code != StalledReader || !strings.Contains(a.Answer, "does not answer") || len(a.Unless) == 0 || a.Fixes[0].Code != CheckBrokerAccess {
		t.Errorf("%s: %s", a.Code, a.Answer)
	}
}

// TestBatches: where records come in batches, the pause between them is no silence.
func TestBatches(t *testing.T) {
	tests := []struct {
		name           string
		records, pause int64
		quiet          int64 // since the last record
		want           bool
	}{
		{"first batch", 3, 0, 2 * minute, false},
		{"pauses of 100 s", 30, 100_000, 2 * minute, false},
		{"pauses of 100 s, and long after", 30, 100_000, 4 * minute, true},
		{"no pauses", 300, 1000, 2 * minute, true},
	}
	for _, tt := range tests {
		e := healthyEvidence(t)
		for i := range e.History {
			eachSplit(e, func(sp *Split) {
				sp.LastAppendMillis, sp.LastRecordMillis, sp.LastPayloadMillis, sp.Profile = Known[int64]{}, Known[int64]{}, Known[int64]{}, nil
				sp.PositionOffset, sp.EndOffset, sp.Lag = Know(tt.records), Know(tt.records), Known[int64]{}
				sp.Records, sp.LastReadMillis, sp.LongestPauseMillis = Know(tt.records), Know(e.AtMillis-tt.quiet), Know(tt.pause)
			})
			subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(e.AtMillis - tt.quiet - 2001) })
		}
		d := Diagnose(e)
		if got := d.Answer().Code == AllInputsQuiet; got != tt.want {
			t.Errorf("%s: %s: %s", tt.name, d.Answer().Code, d.Answer().Answer)
		}
	}
}

// TestSlowChain: what runs in the task of a source is named where that is too slow.
func TestSlowChain(t *testing.T) {
	e := stuckEvidence(t, busyTask)
	for i := range e.History {
		splitsOf(&e.History[i], "a", func(sp *Split) {
			sp.Lag, sp.PositionOffset, sp.EndOffset = Known[int64]{}, Know(int64(300+20*i)), Know(int64(500+60*i))
			sp.Records = sp.PositionOffset
		})
	}
	a := Diagnose(e).Answer()
	if a.Code != Backpressure || a.Severity != Slow || a.Culprit.Operator != "enrich" || a.Fixes[0].Code != RemoveBottleneck {
		t.Errorf("%s, %s, %s: %s", a.Code, a.Severity, a.Culprit.Operator, a.Answer)
	}
}
