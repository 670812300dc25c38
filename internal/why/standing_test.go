package why

import (
	"slices"
	"strings"
	"testing"
)

// freeze lets the timestamps of partitions of a source stand still at the first snapshot, as
// far as they and what is behind them follow from that.
func freeze(e *Evidence, source string, event int64, partitions ...int32) {
	w := event - 2001
	for i := range e.History {
		s := &e.History[i]
		splitsOf(s, source, func(sp *Split) {
			if slices.Contains(partitions, sp.Partition) {
				sp.MaxEventMillis, sp.Watermark = Know(event), Know(w)
				sp.LastPayloadMillis = Know(event)
			}
		})
		subtasksOf(s, source, func(sub *Subtask) {
			if slices.Contains(partitions, int32(sub.Index)) {
				sub.OutputWatermark = Know(w)
			}
		})
		subtasksOf(s, "pair", func(sub *Subtask) { sub.InputWatermarks[0], sub.OutputWatermark = Know(w), Know(w) })
		subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(w) })
	}
}

// timestampsTest is a change to healthy evidence, and what is to be told of it.
type timestampsTest struct {
	name     string
	change   func(e *Evidence)
	want     Code
	severity Severity
	of       []int32
}

// run returns the answer, which is what is wanted.
func (test *timestampsTest) run(t *testing.T) *Finding {
	t.Helper()
	e := healthyEvidence(t)
	test.change(e)
	d := Diagnose(e)
	a := d.Answer()
	if a.Code != test.want || a.Severity != test.severity || !slices.Equal(a.Culprit.Partitions, test.of) {
		t.Fatalf("%s, %s, partitions %d; want %s, %s, %d\n%v", a.Code, a.Severity, a.Culprit.Partitions, test.want, test.severity, test.of, d)
	}
	return a
}

// TestTimestampsStandStill: records come, and their timestamps do not rise.
func TestTimestampsStandStill(t *testing.T) {
	base := healthyEvidence(t)
	now := base.AtMillis
	odd := now - 3*minute + 17_123 // in the middle of a minute
	tests := []timestampsTest{
		{"of all partitions of a source", func(e *Evidence) { freeze(e, "a", odd, 0, 1) }, TimestampsStandStill, Stall, []int32{0, 1}},
		{"of one partition", func(e *Evidence) { freeze(e, "a", odd, 1) }, TimestampsStandStill, Stall, []int32{1}},
		{"without gauges of splits", func(e *Evidence) {
			freeze(e, "a", odd, 1)
			eachSplit(e, withoutGauges)
		}, TimestampsStandStill, Stall, []int32{1}},
		{"of a window of a day", func(e *Evidence) {
			freeze(e, "a", odd, 1)
			operator(e, "per-minute").Window.SizeMillis = dayMillis
		}, TimestampsStandStill, Fine, []int32{1}},
		{"cut to whole minutes", func(e *Evidence) {
			freeze(e, "a", (now-1)/minute*minute, 0, 1)
			operator(e, "per-minute").Window.SizeMillis = 10_000
		}, None, Fine, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t) })
	}
	t.Run("how long", func(t *testing.T) {
		e := healthyEvidence(t)
		freeze(e, "a", odd, 1)
		e.StandsSince = map[string]int64{"per-minute": now - 163_000}
		if a := Diagnose(e).Answer(); !strings.Contains(strings.Join(a.Why, " "), "2 min 43 s") {
			t.Errorf("%q", a.Why)
		}
	})
}

// TestAWatermarkThatStandsIsNotHealthy: where nobody knows why, that is said.
func TestAWatermarkThatStandsIsNotHealthy(t *testing.T) {
	e := healthyEvidence(t)
	for i := range e.History {
		s := &e.History[i]
		splitsOf(s, "a", func(sp *Split) { *sp = Split{Source: "a", Topic: "a", Partition: sp.Partition} })
		for _, id := range []string{"a", "pair"} {
			subtasksOf(s, id, func(sub *Subtask) { sub.OutputWatermark, sub.InputWatermarks = Know(e.AtMillis-2*minute), nil })
		}
		subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(e.AtMillis - 2*minute) })
	}
	a := Diagnose(e).Answer()
	if a.Code == None || strings.Contains(a.Answer, "Nothing holds") || strings.Contains(strings.Join(a.Why, " "), "goes on by") {
		t.Errorf("%s: %s %q", a.Code, a.Answer, a.Why)
	}
}

// TestRecordsWithoutTime: timestamps of 0 and the like, as those of a field that is missing.
func TestRecordsWithoutTime(t *testing.T) {
	now := healthyEvidence(t).AtMillis
	tests := []timestampsTest{
		{"in all partitions", func(e *Evidence) { freeze(e, "a", 0, 0, 1) }, TimestampsMissing, Stall, []int32{0, 1}},
		{"in one partition", func(e *Evidence) { freeze(e, "a", 0, 1) }, TimestampsMissing, Stall, []int32{1}},
		{"in the first look", func(e *Evidence) {
			freeze(e, "a", 0, 1)
			e.History = e.History[1:]
		}, TimestampsMissing, Stall, []int32{1}},
		{"a year before 1970", func(e *Evidence) { freeze(e, "a", -yearMillis, 1) }, TimestampsMissing, Stall, []int32{1}},
		{"without gauges of splits", func(e *Evidence) {
			freeze(e, "a", 0, 1)
			eachSplit(e, withoutGauges)
		}, TimestampsMissing, Stall, []int32{1}},
		{"a few among others", func(e *Evidence) {
			setLate(&e.History[0], 50)
			setLate(&e.History[1], 100)
			subtasksOf(&e.History[1], "per-minute", func(sub *Subtask) {
				sub.LateSamples = []LateSample{{EventMillis: 0, WatermarkMillis: now - 2001, Topic: "b", Partition: 1}}
			})
		}, TimestampsMissing, Loss, []int32{1}},
		{"old data that go on", func(e *Evidence) {
			shift := now - minute*60*24*365
			for i := range e.History {
				s := &e.History[i]
				for k := range s.Splits {
					sp := &s.Splits[k]
					sp.MaxEventMillis.Value -= shift
					sp.Watermark.Value -= shift
					sp.LastPayloadMillis.Value -= shift
				}
				for k := range s.Subtasks {
					sub := &s.Subtasks[k]
					sub.InputWatermark.Value -= shift
					sub.OutputWatermark.Value -= shift
					for j := range sub.InputWatermarks {
						sub.InputWatermarks[j].Value -= shift
					}
				}
			}
		}, None, Fine, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := test.run(t)
			if test.want == TimestampsMissing && a.Fixes[0].Code != CheckTimestamps {
				t.Errorf("fixes %v", fixCodes(a))
			}
		})
	}
}
