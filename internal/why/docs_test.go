package why

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/why.md as they follow from the code")

const (
	docFile  = "../../docs/why.md"
	docBegin = "<!-- tables: go test ./internal/why -run Documented -rewrite -->\n"
	docEnd   = "<!-- end of tables -->"
)

// docTables are the tables of the page, from the registry and the remedies.
func docTables() string {
	var b strings.Builder
	b.WriteString("\n## Codes\n\n| code | meaning | takes to be sure | fixes, best first | explains |\n| --- | --- | --- | --- | --- |\n")
	for _, e := range Registry() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Code, e.Meaning, e.Needs, codeList(e.Fixes), codeList(e.explains))
	}
	b.WriteString("\n## Fixes\n\n| fix | what to do | in Go | costs |\n| --- | --- | --- | --- |\n")
	var codes []FixCode
	for code := range remedies {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		r := remedies[code]
		golang := ""
		if r.golang+r.broker != "" {
			golang = "`" + strings.ReplaceAll(strings.ReplaceAll(r.golang+r.broker, "\n", " "), "\t", "") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", code, named(r.do), named(golang), named(r.costs))
	}
	b.WriteString("\n")
	return b.String()
}

// named writes the fields of a remedy as a reader understands them.
func named(s string) string {
	return strings.NewReplacer("{source}", "S", "{topic}", "T", "{op}", "OP", "{n}", "N", "{d}", "D", "{go}", "D", "|", "\\|").Replace(s)
}

func codeList[C ~string](codes []C) string {
	var quoted []string
	for _, c := range codes {
		if string(c) != string(NotEnoughEvidence) {
			quoted = append(quoted, "`"+string(c)+"`")
		}
	}
	return strings.Join(quoted, ", ")
}

// TestDocumented holds the tables of docs/why.md against the code.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), docBegin)
	tables, after, ok2 := strings.Cut(rest, docEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the lines %q and %q", docFile, docBegin, docEnd)
	}
	if *rewrite {
		if err := os.WriteFile(docFile, []byte(before+docBegin+docTables()+docEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(docTables(), tables); diff != "" {
		t.Errorf("the tables of %s differ (-code +page); run with -rewrite:\n%s", docFile, diff)
	}
}

// TestRegistryIsComplete: every code of a scenario's vocabulary is described once, and every
// fix that is named has a remedy.
func TestRegistryIsComplete(t *testing.T) {
	vocabulary := strings.Fields(`quiet-partition over-parallel-source quiet-input all-inputs-quiet business-hours no-watermark-strategy
		side-input-without-watermarks no-timestamp-assigner timestamps-in-seconds timestamps-too-fine timezone-shift future-timestamp
		strategy-after-source filtered-before-generator idleness-too-short idle-while-blocked bound-too-small delay-by-design window-not-due
		alignment-blocked alignment-throttle partition-lag data-skew backpressure stalled-reader event-time-skew wallclock-watermark
		all-records-late max-watermark-leak restore-lateness watermark-dropped-in-operator session-never-gaps window-definition none`)
	for _, c := range vocabulary {
		if order(Code(c)) < 0 {
			t.Errorf("no entry for %s", c)
		}
	}
	seen := map[Code]bool{}
	for _, e := range Registry() {
		if seen[e.Code] {
			t.Errorf("two entries for %s", e.Code)
		}
		seen[e.Code] = true
		for _, c := range e.explains {
			if order(c) < 0 {
				t.Errorf("%s explains %s, which has no entry", e.Code, c)
			}
			if slices.Contains(entryOf(c).explains, e.Code) {
				t.Errorf("%s and %s explain each other", e.Code, c)
			}
		}
		for _, f := range e.Fixes {
			if remedies[f].do == "" {
				t.Errorf("%s names the fix %s, which has no remedy", e.Code, f)
			}
		}
	}
	for code, r := range remedies {
		if r.do == "" || r.costs == "" {
			t.Errorf("the fix %s says not what to do, or not what it costs", code)
		}
	}
}

// TestFixesAreFilledIn: no field of a text is left open in what people read.
func TestFixesAreFilledIn(t *testing.T) {
	for _, s := range allScenarios(t) {
		for _, f := range Diagnose(evidenceOf(t, s, false)).Findings {
			for _, fix := range f.Fixes {
				for _, text := range []string{fix.Do, fix.Costs, fix.Go, fix.Java, fix.SQL} {
					for _, field := range []string{"{source}", "{topic}", "{op}", "{d}", "{n}", "{go}", "{java}", "{sql}", "{option}", "  of "} {
						if strings.Contains(text, field) {
							t.Errorf("%s: %s: %q has %s", s.Name, fix.Code, text, field)
						}
					}
				}
			}
		}
	}
}
