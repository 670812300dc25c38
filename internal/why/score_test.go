package why

import (
	"strings"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// score compares the answer of a diagnosis with a scenario's verdict.
func score(d *Diagnosis, s *scenarios.Scenario) scenarios.Score {
	a := d.Answer()
	answer := scenarios.Answer{
		Cause: string(a.Code), Severity: string(a.Severity), Text: a.Answer,
		Culprit: scenarios.Culprit{
			Source: a.Culprit.Source, Topic: a.Culprit.Topic, Partitions: a.Culprit.Partitions, Subtasks: a.Culprit.Subtasks, Operator: a.Culprit.Operator,
		},
		Numbers: map[string]int64{},
	}
	for _, fix := range a.Fixes {
		answer.Fixes = append(answer.Fixes, string(fix.Code))
	}
	for _, n := range a.Numbers {
		answer.Numbers[n.Name] = n.Value
	}
	return s.Score(&answer)
}

func fixCodes(f *Finding) []FixCode {
	var codes []FixCode
	for _, fix := range f.Fixes {
		codes = append(codes, fix.Code)
	}
	return codes
}

// TestScore scores the scenario files of the repository, and those in the directories
// that LOWWATER_SCENARIOS names: with what a doctor who may read Kafka finds in the
// topics, and from the job and its snapshots alone.
func TestScore(t *testing.T) {
	for _, mode := range []struct {
		name    string
		history bool
		percent int
		line    string
	}{
		{"snapshots and topics", true, 98, "why, with what is in the topics"},
		{"snapshots", false, 95, "why"},
	} {
		t.Run(mode.name, func(t *testing.T) {
			got, of := 0, 0
			for _, s := range allScenarios(t) {
				p := score(Diagnose(evidenceOf(t, s, mode.history)), s)
				got, of = got+p.Points, of+p.Of
				t.Logf("%-45s %2d of %d  %s", s.Name, p.Points, p.Of, strings.Join(p.Missed, "; "))
				if p.FalseAlarm {
					t.Errorf("%s: a false alarm", s.Name)
				}
			}
			t.Logf("%s: %d of %d points", mode.line, got, of)
			if got*100 < of*mode.percent {
				t.Errorf("less than %d %%", mode.percent)
			}
		})
	}
}
