package scenarios

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
)

// Answer is the verdict of a diagnosis, in the words of the README.
type Answer struct {
	Cause    string
	Severity string
	Text     string // for what was missed
	Culprit  Culprit
	Fixes    []string
	Numbers  map[string]int64
}

// Score is what an answer is worth.
type Score struct {
	Points, Of int
	// Missed says what points were lost for.
	Missed []string
	// FalseAlarm: the job is healthy, and the answer is not.
	FalseAlarm bool
}

func (p *Score) add(ok bool, n int, format string, args ...any) {
	p.Of += n
	if ok {
		p.Points += n
	} else {
		p.Missed = append(p.Missed, fmt.Sprintf(format, args...))
	}
}

// Score compares an answer with the verdict of the scenario, by the README's scheme.
func (s *Scenario) Score(a *Answer) Score {
	var p Score
	want := &s.Expected.Verdict
	if want.Severity == "none" {
		if p.FalseAlarm = a.Severity != "none"; p.FalseAlarm {
			return Score{-3, 2, []string{"false alarm: " + a.Cause + ": " + a.Text}, true}
		}
		p.add(want.Cause == "none" || a.Cause == want.Cause, 2, "cause %s, want %s", a.Cause, want.Cause)
		return p
	}
	p.cause(s, a)
	p.culprit(&want.Culprit, &a.Culprit)
	if len(want.Fix) > 0 {
		p.add(len(a.Fixes) > 0 && a.Fixes[0] == want.Fix[0], 1, "fixes %v, want %s", a.Fixes, want.Fix[0])
	}
	p.numbers(&want.Culprit, a.Numbers)
	for _, fix := range s.Expected.RejectFix {
		if slices.Contains(a.Fixes, fix) {
			p.Points--
			p.Missed = append(p.Missed, "advice that does not help: "+fix)
		}
	}
	return p
}

func (p *Score) cause(s *Scenario, a *Answer) {
	p.Of += 2
	want := s.Expected.Verdict.Cause
	switch {
	case a.Cause == want:
		p.Points += 2
	case slices.Contains(s.Expected.Accept, a.Cause):
		p.Points++
		p.Missed = append(p.Missed, fmt.Sprintf("cause %s is accepted, want %s", a.Cause, want))
	case slices.Contains(s.Expected.Reject, a.Cause):
		p.Points -= 2
		p.Missed = append(p.Missed, fmt.Sprintf("cause %s is rejected, want %s: %s", a.Cause, want, a.Text))
	default:
		p.Missed = append(p.Missed, fmt.Sprintf("cause %s, want %s: %s", a.Cause, want, a.Text))
	}
}

func (p *Score) culprit(want, got *Culprit) {
	if want.Source != "" || want.Operator != "" {
		p.add((want.Source == "" || want.Source == got.Source) && (want.Operator == "" || want.Operator == got.Operator), 1,
			"culprit %q %q, want %q %q", got.Source, got.Operator, want.Source, want.Operator)
	}
	if want.Partitions != nil || want.Subtasks != nil {
		right := slices.Equal(want.Partitions, got.Partitions)
		if want.Partitions == nil {
			right = slices.Equal(want.Subtasks, got.Subtasks)
		}
		p.add(right, 1, "partitions %v subtasks %v, want %v %v", got.Partitions, got.Subtasks, want.Partitions, want.Subtasks)
	}
}

// numbers compares the numbers of a culprit, which may be off by a tenth.
func (p *Score) numbers(want *Culprit, got map[string]int64) {
	var wrong []string
	facts := 0
	for name, raw := range want.Facts {
		var n int64
		if name == "input" || json.Unmarshal(raw, &n) != nil {
			continue
		}
		facts++
		if v, ok := got[name]; !ok || max(v-n, n-v)*10 > max(n, -n) {
			wrong = append(wrong, fmt.Sprintf("%s %d (known: %t), want %d", name, v, ok, n))
		}
	}
	if facts > 0 {
		p.add(len(wrong) == 0, 1, "%s", strings.Join(wrong, ", "))
	}
}
