package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// points is the score of one file, by the scheme of the scenarios' README.
type points struct {
	got, of int
	missed  []string
	alarm   bool // on a healthy job
}

func (p *points) add(ok bool, n int, format string, args ...any) {
	p.of += n
	if ok {
		p.got += n
	} else {
		p.missed = append(p.missed, fmt.Sprintf(format, args...))
	}
}

// score compares a diagnosis with a verdict.
func score(d *Diagnosis, s *scenarios.Scenario) points {
	var p points
	want, got := &s.Expected.Verdict, d.Answer()
	if want.Severity == "none" {
		p.of = 2
		if p.alarm = got.Severity != Fine; p.alarm {
			p.got, p.missed = -3, []string{fmt.Sprintf("false alarm: %s: %s", got.Code, got.Answer)}
			return p
		}
		p.got = 2
		if want.Cause != "none" {
			p.of, p.got = 0, 0
			p.add(string(got.Code) == want.Cause, 2, "cause %s, want %s", got.Code, want.Cause)
		}
		return p
	}
	p.of = 2
	switch {
	case string(got.Code) == want.Cause:
		p.got += 2
	case slices.Contains(s.Expected.Accept, string(got.Code)):
		p.got++
		p.missed = append(p.missed, fmt.Sprintf("cause %s is accepted, want %s", got.Code, want.Cause))
	case slices.Contains(s.Expected.Reject, string(got.Code)):
		p.got -= 2
		p.missed = append(p.missed, fmt.Sprintf("cause %s is REJECTED, want %s: %s", got.Code, want.Cause, got.Answer))
	default:
		p.missed = append(p.missed, fmt.Sprintf("cause %s, want %s: %s", got.Code, want.Cause, got.Answer))
	}
	w, c := &want.Culprit, &got.Culprit
	if w.Source != "" || w.Operator != "" {
		p.add((w.Source == "" || w.Source == c.Source) && (w.Operator == "" || w.Operator == c.Operator), 1,
			"culprit %s/%s, want %s/%s", c.Source, c.Operator, w.Source, w.Operator)
	}
	if w.Partitions != nil || w.Subtasks != nil {
		p.add((w.Partitions == nil || slices.Equal(w.Partitions, c.Partitions)) && (w.Partitions != nil || slices.Equal(w.Subtasks, c.Subtasks)), 1,
			"partitions %v subtasks %v, want %v %v", c.Partitions, c.Subtasks, w.Partitions, w.Subtasks)
	}
	if len(want.Fix) > 0 {
		p.add(len(got.Fixes) > 0 && string(got.Fixes[0].Code) == want.Fix[0], 1, "fix %v, want %s", fixCodes(got), want.Fix[0])
	}
	if facts := factsOf(w); len(facts) > 0 {
		var bad []string
		for name, n := range facts {
			if v, ok := got.Number(name); !ok || max(v-n, n-v)*10 > max(n, -n) {
				bad = append(bad, fmt.Sprintf("%s %d (%t), want %d", name, v, ok, n))
			}
		}
		p.add(len(bad) == 0, 1, "%s", strings.Join(bad, ", "))
	}
	for _, fix := range s.Expected.RejectFix {
		if slices.Contains(fixCodes(got), FixCode(fix)) {
			p.got--
			p.missed = append(p.missed, "advice that does not help: "+fix)
		}
	}
	return p
}

func fixCodes(f *Finding) []FixCode {
	var codes []FixCode
	for _, fix := range f.Fixes {
		codes = append(codes, fix.Code)
	}
	return codes
}

// TestScore scores the scenario files of the repository, and those in the directories
// that LOWWATER_SCENARIOS names: first from the job and its snapshots alone, then with
// what a doctor who may read Kafka finds in the topics.
func TestScore(t *testing.T) {
	for _, mode := range []struct {
		name    string
		history bool
		percent int
	}{{"snapshots", false, 95}, {"snapshots and topics", true, 98}} {
		t.Run(mode.name, func(t *testing.T) {
			got, of := 0, 0
			for _, s := range allScenarios(t) {
				p := score(Diagnose(evidenceOf(t, s, mode.history)), s)
				got, of = got+p.got, of+p.of
				t.Logf("%-45s %2d of %d  %s", s.Name, p.got, p.of, strings.Join(p.missed, "; "))
				if p.alarm {
					t.Errorf("%s: a false alarm", s.Name)
				}
			}
			t.Logf("why: %d of %d points", got, of)
			if got*100 < of*mode.percent {
				t.Errorf("less than %d %%", mode.percent)
			}
		})
	}
}
