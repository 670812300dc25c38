package why

import (
	"slices"
	"strings"
	"testing"
)

// TestLateOutput: what went to a side output is told of, and is no loss, unless results lack
// practically all of it.
func TestLateOutput(t *testing.T) {
	bounded := func(late int64) func(e *Evidence) {
		return func(e *Evidence) {
			for i := range e.History {
				subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) {
					sub.LateOutput = Know(late * int64(1+i))
					sub.LateSamples = []LateSample{{EventMillis: e.AtMillis - 12_000, WatermarkMillis: e.AtMillis - 2001, Topic: "b", Partition: 1}}
				})
			}
		}
	}
	tests := []struct {
		name     string
		change   func(e *Evidence)
		want     Code
		severity Severity
		says     string
	}{
		{"some", bounded(20), BoundTooSmall, Fine, `Window "per-minute" sends records to its side output as late because`},
		{"all, by the clock", func(e *Evidence) {
			operator(e, "a").Source.Strategy.Kind = StrategyWallClock
			for i := range e.History {
				subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) { sub.LateOutput = sub.RecordsIn })
			}
		}, WallClockWatermark, WrongResult, "sends every record to its side output as late because"},
		{"some, by the clock, and nothing else is said of it", func(e *Evidence) {
			bounded(20)(e)
			operator(e, "b").Source.Strategy.Kind = StrategyWallClock
		}, WallClockWatermark, Fine, "sends records to its side output as late because"},
		{"around a restart", func(e *Evidence) {
			e.Restarts = Know[int64](1)
			for i := range e.History {
				subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) { sub.LateOutput = Know[int64](300) })
			}
		}, RestoreLateness, Fine, "has sent 300 records to its side output as late around a restart"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := healthyEvidence(t)
			for i := range e.History {
				setLate(&e.History[i], 0)
			}
			test.change(e)
			d := Diagnose(e)
			a := d.Answer()
			if a.Code != test.want || a.Severity != test.severity || !strings.Contains(a.Answer, test.says) {
				t.Fatalf("%s, %s, want %s, %s and %q:\n%v", a.Code, a.Severity, test.want, test.severity, test.says, d)
			}
			if n, ok := a.Number("late_side_output"); !ok || n == 0 || strings.Contains(d.String(), "drop") {
				t.Errorf("side output %d; the report:\n%v", n, d)
			}
			if slices.Contains(fixCodes(a), LateSideOutput) {
				t.Errorf("the fixes are %v: it has a side output", fixCodes(a))
			}
			if len(d.Findings) != 1 {
				t.Errorf("further findings: %v", d)
			}
		})
	}
}

// TestFewLateRecords: a small loss is told with its number and share, and is no alarm.
func TestFewLateRecords(t *testing.T) {
	tests := []struct {
		name   string
		growth int64
		aside  bool
		want   string
	}{
		{"steady", 900, false, `Window "per-minute" has dropped 90900 records as late (0.09 %), 900 of them in the last 60 s (0.09 %).`},
		{"past", 0, false, `Window "per-minute" has dropped 90000 records as late (0.089 %). That`},
		{"to a side output", 900, true, `Window "per-minute" has sent 90900 records to its side output as late (0.09 %), 900`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := healthyEvidence(t)
			for i := range e.History {
				subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) {
					n := Know(90_000 + int64(i)*test.growth)
					if sub.RecordsIn = Know(int64(100_000_000 + i*1_000_000)); test.aside {
						sub.LateDropped, sub.LateOutput = Know[int64](0), n
					} else {
						sub.LateDropped = n
					}
				})
			}
			d := Diagnose(e)
			if a := d.Answer(); a.Code != None || a.Severity != Fine {
				t.Errorf("the answer is %s, %s", a.Code, a.Severity)
			}
			if len(d.Findings) != 2 || d.Findings[1].Severity != Fine || !strings.HasPrefix(d.Findings[1].Answer, test.want) {
				t.Errorf("want %q:\n%v", test.want, d)
			}
		})
	}
}
