package why

import (
	"slices"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// healthyEvidence is of a job with two sources, a connect and a window, ten minutes after
// its start, with nothing wrong. Cases change it.
func healthyEvidence(t *testing.T) *Evidence {
	t.Helper()
	v := variant{
		name: "base", at: 10 * minute,
		topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000)), topic("b", 2, steady(0, 1000), steady(1, 1000))},
		job: job(from("a", "a", 2, bounded(2000, 0)), from("b", "b", 2, bounded(2000, 0)),
			scenarios.Operator{ID: "pair", Kind: scenarios.Connect, Inputs: []scenarios.Input{{"a"}, {"b"}}}, tumbling("per-minute", minute, "pair")),
	}
	return evidenceOf(t, v.scenario(t, means[0].Means), false)
}

func subtasksOf(s *Snapshot, operator string, do func(*Subtask)) {
	for i := range s.Subtasks {
		if s.Subtasks[i].Operator == operator {
			do(&s.Subtasks[i])
		}
	}
}

func splitsOf(s *Snapshot, source string, do func(*Split)) {
	for i := range s.Splits {
		if s.Splits[i].Source == source {
			do(&s.Splits[i])
		}
	}
}

func setLate(s *Snapshot, n int64) {
	subtasksOf(s, "per-minute", func(sub *Subtask) { sub.LateDropped = Know(n) })
}

func operator(e *Evidence, id string) *Operator {
	i := slices.IndexFunc(e.Operators, func(o Operator) bool { return o.ID == id })
	return &e.Operators[i]
}

// TestCases are states that a simulation does not get into: of other engines, of broken
// operators, or of evidence that only they have.
func TestCases(t *testing.T) {
	tests := []struct {
		name     string
		change   func(e *Evidence, past, now *Snapshot)
		want     Code
		severity Severity
		fix      FixCode
		culprit  func(c *Culprit) bool
	}{
		{"nothing", func(*Evidence, *Snapshot, *Snapshot) {}, None, Fine, "", nil},
		{
			"an operator that swallows watermarks", func(_ *Evidence, past, now *Snapshot) {
				for _, s := range []*Snapshot{past, now} {
					subtasksOf(s, "pair", func(sub *Subtask) { sub.OutputWatermark = Know(MinTime) })
					subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(MinTime) })
				}
			}, WatermarkDropped, Stall, FixOperator, func(c *Culprit) bool { return c.Operator == "pair" },
		},
		{
			"an operator that stopped to pass them on", func(_ *Evidence, past, now *Snapshot) {
				at := past.AtMillis - 5*minute
				for _, s := range []*Snapshot{past, now} {
					subtasksOf(s, "pair", func(sub *Subtask) { sub.OutputWatermark = Know(at) })
					subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(at) })
				}
			}, WatermarkDropped, Stall, FixOperator, func(c *Culprit) bool { return c.Operator == "pair" },
		},
		{
			"an operator that tells no output, seen by what is behind it", func(_ *Evidence, past, now *Snapshot) {
				for _, s := range []*Snapshot{past, now} {
					subtasksOf(s, "pair", func(sub *Subtask) { sub.OutputWatermark = Known[int64]{} })
					subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(MinTime) })
				}
			}, WatermarkDropped, Stall, FixOperator, func(c *Culprit) bool { return c.Operator == "pair" },
		},
		{
			"the end of time from a reader that has ended", func(_ *Evidence, past, now *Snapshot) {
				for _, s := range []*Snapshot{past, now} {
					subtasksOf(s, "a", func(sub *Subtask) { sub.OutputWatermark = Know(MaxTime) })
					subtasksOf(s, "b", func(sub *Subtask) { sub.Idle = Know(true) })
					subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(MaxTime) })
				}
				setLate(past, 100)
				setLate(now, 200)
			}, MaxWatermarkLeak, Loss, UpgradeEngine, func(c *Culprit) bool { return c.Source == "a" },
		},
		{
			"a bounded job that has just ended", func(_ *Evidence, past, now *Snapshot) {
				for _, id := range []string{"a", "b"} {
					subtasksOf(now, id, func(sub *Subtask) { sub.OutputWatermark = Know(MaxTime) })
				}
				subtasksOf(now, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(MaxTime) })
			}, None, Fine, "", nil,
		},
		{
			"a backlog that was left out, seen by gauges", func(e *Evidence, past, now *Snapshot) {
				operator(e, "b").Source.Strategy.IdlenessMillis = Know[int64](30_000)
				setLate(past, 50)
				setLate(now, 250)
				for i, s := range []*Snapshot{past, now} {
					for k := range s.Splits {
						if sp := &s.Splits[k]; sp.Source == "b" && sp.Partition == 1 {
							sp.State, sp.Watermark = Know(SplitActive), Know(s.AtMillis-4*minute)
							sp.Lag, sp.PositionOffset, sp.EndOffset = Know(int64(200+20*i)), Know(int64(300+40*i)), Know(int64(500+60*i))
						}
					}
					for k := range s.Tasks {
						switch s.Tasks[k].Vertex {
						case "b":
							s.Tasks[k].BackPressuredMillis = Know[int64](700)
						case "pair":
							s.Tasks[k].BusyMillis = Know[int64](990)
						}
					}
				}
			}, IdleWhileBlocked, Loss, RemoveBottleneck, func(c *Culprit) bool { return c.Operator == "pair" && slices.Equal(c.Partitions, []int32{1}) },
		},
		{
			"a record of tomorrow that the strategy keeps from the watermark", func(e *Evidence, past, now *Snapshot) {
				operator(e, "b").Source.Strategy.MaxFutureMillis = Know[int64](60_000)
				setLate(past, 50)
				setLate(now, 70)
				for _, s := range []*Snapshot{past, now} {
					splitsOf(s, "b", func(sp *Split) { sp.MaxEventMillis = Know(now.AtMillis + dayMillis) })
				}
			}, BoundTooSmall, Loss, RaiseBound, nil,
		},
		{
			"late records around a restart", func(e *Evidence, past, now *Snapshot) {
				e.Restarts = Know[int64](1)
				setLate(past, 300)
				setLate(now, 300)
			}, RestoreLateness, Loss, LateSideOutput, nil,
		},
		{
			"late records that nobody can explain any more", func(_ *Evidence, past, now *Snapshot) {
				setLate(past, 300)
				setLate(now, 300)
			}, None, Fine, "", nil,
		},
		{
			"right after a restart", func(e *Evidence, _, now *Snapshot) {
				e.StartedMillis = Know(now.AtMillis - 5000)
				subtasksOf(now, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(MinTime) })
				subtasksOf(now, "a", func(sub *Subtask) { sub.OutputWatermark, sub.RecordsOut = Know(MinTime), Know[int64](0) })
			}, None, Fine, "", nil,
		},
		{
			"right after a restart that only counters show", func(e *Evidence, _, now *Snapshot) {
				e.StartedMillis = Known[int64]{}
				subtasksOf(now, "per-minute", func(sub *Subtask) { sub.InputWatermark, sub.RecordsIn = Know(MinTime), Know[int64](0) })
				subtasksOf(now, "a", func(sub *Subtask) { sub.OutputWatermark, sub.RecordsOut = Know(MinTime), Know[int64](0) })
			}, None, Fine, "", nil,
		},
		{
			"ten seconds without reading, as in a rebalance", func(_ *Evidence, past, now *Snapshot) {
				past.AtMillis = now.AtMillis - 12_000
				for _, s := range []*Snapshot{past, now} {
					splitsOf(s, "a", func(sp *Split) {
						sp.PositionOffset, sp.EndOffset, sp.Records = Know[int64](580), Know[int64](595), Know[int64](580)
						sp.Lag = Know[int64](15)
					})
				}
			}, None, Fine, "", nil,
		},
		{
			"a partition that nobody reads", func(_ *Evidence, past, now *Snapshot) {
				for i, s := range []*Snapshot{past, now} {
					s.Splits = append(s.Splits, Split{Source: "a", Topic: "a", Partition: 2, Unassigned: true, EndOffset: Know(int64(100 + 60*i))})
				}
			}, StalledReader, Stall, EnablePartitionDiscovery, func(c *Culprit) bool { return slices.Equal(c.Partitions, []int32{2}) },
		},
		{
			"a partition that seldom has records, of a topic that is older than the job", func(e *Evidence, past, now *Snapshot) {
				for _, s := range []*Snapshot{past, now} {
					subtasksOf(s, "a", func(sub *Subtask) {
						if sub.Index == 1 {
							sub.OutputWatermark, sub.RecordsOut = Know(now.AtMillis-52_000), Know[int64](10)
						}
					})
					subtasksOf(s, "pair", func(sub *Subtask) {
						sub.InputWatermarks[0], sub.OutputWatermark = Know(now.AtMillis-52_000), Know(now.AtMillis-52_000)
					})
					subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(now.AtMillis - 52_000) })
					splitsOf(s, "a", func(sp *Split) {
						sp.EndOffset, sp.PositionOffset, sp.Lag = Know[int64](900_000), Know[int64](900_000), Know[int64](0)
						if sp.Partition == 1 {
							sp.LastAppendMillis, sp.LastRecordMillis, sp.LastPayloadMillis = Know(now.AtMillis-50_000), Know(now.AtMillis-50_000), Know(now.AtMillis-50_000)
						}
						withoutGauges(sp)
					})
				}
				operator(e, "per-minute").Window = &Window{Kind: Tumbling, SizeMillis: 10_000}
			}, None, Fine, "", nil,
		},
		{
			"windows that slide by more than their length", func(e *Evidence, _, _ *Snapshot) {
				operator(e, "per-minute").Window = &Window{Kind: Sliding, SizeMillis: minute, SlideMillis: 5 * minute}
			}, WindowDefinition, WrongResult, FixOperator, func(c *Culprit) bool { return c.Operator == "per-minute" },
		},
		{
			"a window of a thousand days", func(e *Evidence, _, _ *Snapshot) {
				operator(e, "per-minute").Window = &Window{Kind: Tumbling, SizeMillis: 1000 * dayMillis}
			}, WindowDefinition, Stall, FixOperator, nil,
		},
		{
			"a year of windows that end every day", func(e *Evidence, _, _ *Snapshot) {
				operator(e, "per-minute").Window = &Window{Kind: Sliding, SizeMillis: 365 * dayMillis, SlideMillis: dayMillis}
			}, WindowNotDue, Fine, Wait, nil,
		},
		{
			"a year of windows that end every minute", func(e *Evidence, _, _ *Snapshot) {
				operator(e, "per-minute").Window = &Window{Kind: Sliding, SizeMillis: 365 * dayMillis, SlideMillis: minute}
			}, None, Fine, "", nil,
		},
		{
			"windows that end every hundred days", func(e *Evidence, _, _ *Snapshot) {
				operator(e, "per-minute").Window = &Window{Kind: Sliding, SizeMillis: 200 * dayMillis, SlideMillis: 100 * dayMillis}
			}, WindowDefinition, Stall, FixOperator, nil,
		},
		{"a backlog read through a narrow alignment", throttle, AlignmentThrottle, Slow, RaiseDrift, func(c *Culprit) bool { return len(c.Paused) == 2 }},
		{
			"the same, without gauges of splits", func(e *Evidence, past, now *Snapshot) {
				throttle(e, past, now)
				eachSplit(e, withoutGauges)
			}, AlignmentThrottle, Slow, RaiseDrift, nil,
		},
		{
			"late samples that tell the bound", func(_ *Evidence, past, now *Snapshot) {
				setLate(past, 50)
				setLate(now, 70)
				subtasksOf(now, "per-minute", func(sub *Subtask) {
					sub.LateSamples = []LateSample{{EventMillis: now.AtMillis - 12_000, WatermarkMillis: now.AtMillis - 2001, Topic: "b", Partition: 1}}
				})
			}, BoundTooSmall, Loss, RaiseBound, func(c *Culprit) bool { return c.Source == "b" && slices.Equal(c.Partitions, []int32{1}) },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := healthyEvidence(t)
			test.change(e, &e.History[0], &e.History[1])
			d := Diagnose(e)
			a := d.Answer()
			if a.Code != test.want || a.Severity != test.severity {
				t.Fatalf("%s, %s; want %s, %s\n%v", a.Code, a.Severity, test.want, test.severity, d)
			}
			if test.fix != "" && (len(a.Fixes) == 0 || a.Fixes[0].Code != test.fix) {
				t.Errorf("the fixes are %v, want %s first", fixCodes(a), test.fix)
			}
			if test.culprit != nil && !test.culprit(&a.Culprit) {
				t.Errorf("the culprit is %+v", a.Culprit)
			}
		})
	}
}

// throttle is a job whose two sources are paused most of the time, with a long backlog.
func throttle(e *Evidence, past, now *Snapshot) {
	for _, id := range []string{"a", "b"} {
		operator(e, id).Source.Strategy.Alignment = &Alignment{Group: "g", DriftMillis: Know[int64](1000), UpdateMillis: Know[int64](1000)}
	}
	for i, s := range []*Snapshot{past, now} {
		at := now.AtMillis - hour + int64(i)*minute
		for _, id := range []string{"a", "b"} {
			subtasksOf(s, id, func(sub *Subtask) { sub.OutputWatermark = Know(at) })
			splitsOf(s, id, func(sp *Split) {
				n := int64(i) * 60
				sp.Watermark, sp.State, sp.PausedMillisPerSecond = Know(at), Know(SplitPaused), Know[int64](800)
				sp.MaxEventMillis = Know(at + 2001)
				sp.PositionOffset, sp.EndOffset, sp.Records, sp.Lag = Know(1000+n), Know(4600+n), Know(1000+n), Know[int64](3600)
			})
		}
		subtasksOf(s, "pair", func(sub *Subtask) {
			sub.InputWatermarks, sub.OutputWatermark = []Known[int64]{Know(at), Know(at)}, Know(at)
		})
		subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(at) })
	}
}
