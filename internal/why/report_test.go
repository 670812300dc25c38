package why

import (
	"strings"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// TestReportMentions holds the text of each scenario's report against the facts that it
// must contain.
func TestReportMentions(t *testing.T) {
	for _, s := range allScenarios(t) {
		t.Run(s.Name, func(t *testing.T) { mentions(t, s) })
	}
}

func mentions(t *testing.T, s *scenarios.Scenario) {
	text := Diagnose(evidenceOf(t, s, true)).String()
	flat := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, fact := range s.Expected.MustMention {
		if !strings.Contains(flat, strings.ToLower(fact)) {
			t.Errorf("the report does not mention %q:\n%s", fact, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 45 {
		t.Errorf("%d lines are more than a screen:\n%s", lines, text)
	}
	t.Log("\n" + text)
}
