package why

import (
	"slices"
	"strings"
	"testing"
)

// keyedLoad is what the four subtasks of a window do: records in the last minute, and
// time in ms/s.
type keyedLoad struct{ records, busy [4]int64 }

// blockedEvidence is of a job whose window has four subtasks and blocks source b, whose
// lag grows.
func blockedEvidence(t *testing.T, load keyedLoad) *Evidence {
	e := healthyEvidence(t)
	operator(e, "per-minute").Parallelism = 4
	for i := range e.History {
		s := &e.History[i]
		at := slices.IndexFunc(s.Subtasks, func(sub Subtask) bool { return sub.Operator == "per-minute" })
		whole := s.Subtasks[at]
		s.Subtasks = slices.Delete(s.Subtasks, at, at+1)
		s.Tasks = slices.DeleteFunc(s.Tasks, func(t Task) bool { return t.Vertex == "per-minute" })
		for k := range 4 {
			sub := whole
			sub.Index, sub.RecordsIn = k, Know(1000+int64(i)*load.records[k])
			s.Subtasks = append(s.Subtasks, sub)
			s.Tasks = append(s.Tasks, Task{Vertex: "per-minute", Subtask: k, BusyMillis: Know(load.busy[k]), BackPressuredMillis: Know[int64](0), IdleMillis: Know(1000 - load.busy[k])})
		}
		for k := range s.Tasks {
			if s.Tasks[k].Vertex == "b" {
				s.Tasks[k].BackPressuredMillis = Know[int64](700)
			}
		}
		splitsOf(s, "b", func(sp *Split) {
			sp.Lag, sp.PositionOffset, sp.EndOffset = Know(int64(200+20*i)), Know(int64(300+40*i)), Know(int64(500+60*i))
		})
	}
	return e
}

// TestDataSkew: an operator that is slow for some of its keys is told from one that is slow.
func TestDataSkew(t *testing.T) {
	hot := keyedLoad{[4]int64{10, 12, 900, 8}, [4]int64{20, 30, 990, 20}}
	tests := []struct {
		name     string
		load     keyedLoad
		change   func(*Evidence)
		want     Code
		subtasks []int
	}{
		{"one hot key", hot, nil, DataSkew, []int{2}},
		{"two hot keys", keyedLoad{[4]int64{700, 12, 900, 8}, [4]int64{900, 30, 990, 20}}, nil, DataSkew, []int{0, 2}},
		{"three of four", keyedLoad{[4]int64{700, 800, 900, 8}, [4]int64{900, 900, 990, 20}}, nil, Backpressure, nil},
		{"all alike", keyedLoad{[4]int64{200, 210, 220, 190}, [4]int64{980, 970, 990, 980}}, nil, Backpressure, nil},
		{"others half busy", keyedLoad{[4]int64{100, 300, 900, 100}, [4]int64{300, 600, 990, 300}}, nil, Backpressure, nil},
		{"slow without more records", keyedLoad{[4]int64{200, 210, 220, 190}, [4]int64{50, 60, 990, 50}}, nil, Backpressure, nil},
		{"records not by key", hot, func(e *Evidence) { operator(e, "per-minute").Inputs[0].Edges[0].Ship = ShipRebalance }, Backpressure, nil},
		{"records not counted", hot, func(e *Evidence) {
			eachSnapshot(e, func(s *Snapshot) {
				subtasksOf(s, "per-minute", func(sub *Subtask) { sub.RecordsIn = Known[int64]{} })
			})
		}, Backpressure, nil},
		{"load of one not known", hot, func(e *Evidence) {
			eachSnapshot(e, func(s *Snapshot) {
				for i := range s.Tasks {
					if s.Tasks[i].Vertex == "per-minute" && s.Tasks[i].Subtask == 0 {
						s.Tasks[i].BusyMillis = Known[int64]{}
					}
				}
			})
		}, Backpressure, nil},
		// Healthy: most records have one key, and the subtask keeps up with them.
		{"a hot key that is no trouble", hot, func(e *Evidence) {
			eachSnapshot(e, func(s *Snapshot) {
				splitsOf(s, "b", func(sp *Split) { sp.Lag, sp.PositionOffset = Know[int64](0), sp.EndOffset })
			})
		}, None, nil},
		{"a hot key with time left", keyedLoad{hot.records, [4]int64{20, 30, 500, 20}}, func(e *Evidence) {
			eachSnapshot(e, func(s *Snapshot) {
				splitsOf(s, "b", func(sp *Split) { sp.Lag, sp.PositionOffset = Know[int64](3), Know(sp.EndOffset.Value-3) })
			})
		}, None, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := blockedEvidence(t, tt.load)
			if tt.change != nil {
				tt.change(e)
			}
			a := Diagnose(e).Answer()
			if a.Code != tt.want || !slices.Equal(a.Culprit.Subtasks, tt.subtasks) && tt.want == DataSkew {
				t.Fatalf("got %s of subtasks %v, want %s of %v: %s", a.Code, a.Culprit.Subtasks, tt.want, tt.subtasks, a.Answer)
			}
			if tt.want == DataSkew && (a.Culprit.Operator != "per-minute" || a.Severity != Slow || a.Fixes[0].Code != SplitHotKeys) {
				t.Errorf("culprit %+v, severity %s, fixes %v", a.Culprit, a.Severity, fixCodes(a))
			}
		})
	}
	a := Diagnose(blockedEvidence(t, hot)).Answer()
	for _, want := range []string{"subtask 2 of operator", "96 % of its records", "blocks source"} {
		if !strings.Contains(a.Answer, want) {
			t.Errorf("the answer lacks %q: %s", want, a.Answer)
		}
	}
}
