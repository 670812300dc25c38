package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mustParse parses a snippet at a path of the repository.
func mustParse(t *testing.T, path, source string) *goFile {
	t.Helper()
	f, err := parse(textFile{path, source})
	if err != nil {
		t.Fatalf("the snippet does not parse: %v", err)
	}
	return f
}

// marked returns the lines of a snippet that end in the comment "// bad".
func marked(source string) []int {
	var lines []int
	n := 0
	for line := range strings.Lines(source) {
		n++
		if strings.HasSuffix(strings.TrimRight(line, "\n"), "// bad") {
			lines = append(lines, n)
		}
	}
	return lines
}

func linesOf(found []finding) []int {
	var lines []int
	for _, f := range found {
		lines = append(lines, f.line)
	}
	return lines
}

// TestCodeRules gives every rule a snippet with all that it forbids, each line
// marked, beside what it allows.
func TestCodeRules(t *testing.T) {
	tests := []struct {
		rule, path, source string
		// elsewhere is a path where the rule does not hold.
		elsewhere string
		allow     map[string]string
	}{
		{
			rule: "sleep", path: "kafka/reader_test.go", elsewhere: "kafka/reader.go",
			source: `package kafka
func TestSlow(t *testing.T) {
	time.Sleep(time.Second) // bad
	go func() {
		time.Sleep(1) // bad
	}()
	f := time.Sleep // bad
}
func TestVirtual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { time.Sleep(time.Hour) })
}
func settle() { time.Sleep(time.Minute); synctest.Wait() }
`,
		},
		{
			rule: "panic", path: "window/window.go", elsewhere: "internal/invariants/check.go",
			allow: map[string]string{"window.Range.Start": "called wrongly", "window.New": "called wrongly"},
			source: `package window
func Of(n int) { panic("n") } // bad
func (r *Range[T]) End() int {
	return func() int { panic(r) }() // bad
}
func (r *Range[T]) Start() int { panic(r) }
func New() { panic(0) }
func MustParse(s string) { panic(s) }
func Why() string { return "panic(0)" }
`,
		},
		{
			rule: "print", path: "kafka/sink.go",
			allow: map[string]string{"kafka.Dump": "dumps"},
			source: `package kafka
func f(w io.Writer, logger *slog.Logger) {
	fmt.Println("x") // bad
	fmt.Print("x") // bad
	fmt.Printf("x") // bad
	log.Printf("x") // bad
	log.Fatal("x") // bad
	println("x") // bad
	fmt.Fprintln(w, "x")
	logger.Info("x")
	_ = fmt.Sprint("x")
}
func Dump() { fmt.Println() }
`,
		},
		{
			rule: "any", path: "internal/operator/map.go", elsewhere: "internal/why/rules.go",
			allow: map[string]string{"internal/operator.Panic": "recovered", "internal/operator.logf": "messages"},
			source: `package operator
type Value struct {
	V any // bad
	W []interface{} // bad
	M map[string]any // bad
	C chan *any // bad
}
type Panic struct{ Value any }
type Map[In, Out any] struct{ f func(In) Out }
type Payload interface{ Len() int }
func (m *Map[In, Out]) Apply(x any) {} // bad
func result[T any](x T) any { // bad
	var none interface{} // bad
	_, _ = any(x).(Payload)
	return []any{none} // bad
}
func pooled(p *Pool[any]) {} // bad
func logf(format string, args ...any) {}
`,
		},
		{
			rule: "wall clock", path: "internal/progress/idle.go", elsewhere: "internal/task/clock.go",
			allow: map[string]string{"internal/progress.clock": "the default"},
			source: `package progress
var now = time.Now // bad
var clock = time.Now
func f() {
	_ = time.Since(start) // bad
	time.AfterFunc(1, f) // bad
	<-time.After(1) // bad
	_ = time.UnixMilli(1).Add(time.Second)
}
`,
		},
		{
			rule: "goroutine", path: "internal/progress/valve.go", elsewhere: "internal/task/task.go",
			source: `package progress
func f() {
	go f() // bad
	func() { go f() }() // bad
	f()
}
`,
		},
	}
	tested := map[string]bool{}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			tested[test.rule] = true
			var rule codeRule
			for _, r := range codeRules {
				if r.name == test.rule {
					rule = r
				}
			}
			rule.allow = test.allow
			file := mustParse(t, test.path, test.source)
			if diff := cmp.Diff(marked(test.source), linesOf(applyCodeRule(rule, []*goFile{file}))); diff != "" {
				t.Errorf("lines found (-marked +found):\n%s", diff)
			}
			rule.allow = nil
			if test.elsewhere != "" {
				if found := applyCodeRule(rule, []*goFile{mustParse(t, test.elsewhere, test.source)}); found != nil {
					t.Errorf("in %s, where the rule does not hold: %v", test.elsewhere, found)
				}
			}
			rule.allow = map[string]string{"kafka.Gone": "was here"}
			if found := applyCodeRule(rule, nil); len(found) != 1 || !strings.Contains(found[0].message, "kafka.Gone") {
				t.Errorf("an entry that allows nothing: found %v, want one finding that names it", found)
			}
		})
	}
	for _, r := range codeRules {
		if !tested[r.name] {
			t.Errorf("the rule %q has no snippet here", r.name)
		}
	}
}

func TestPrintInMainAndExamples(t *testing.T) {
	allow := newAllowList(nil)
	for path, source := range map[string]string{
		"cmd/lowwater/main.go":   "package main\nfunc main() { fmt.Println() }",
		"window/example_test.go": "package window_test\nfunc ExampleTumbling() { fmt.Println() }",
	} {
		if found := noPrint(mustParse(t, path, source), allow); found != nil {
			t.Errorf("found %v, want nothing", found)
		}
	}
	if found := noPrint(mustParse(t, "window/window_test.go", "package window\nfunc TestX(t *testing.T) { fmt.Println() }"), allow); len(found) != 1 {
		t.Errorf("found %v in a test that prints, want one finding", found)
	}
}

func TestPackageComments(t *testing.T) {
	const good = "// Package kafka reads topics. It decodes nothing (see package format).\n"
	tests := []struct {
		name, path, source string
		want               string // part of the finding, or none
	}{
		{"good", "kafka/doc.go", good + "package kafka", ""},
		{"good command", "cmd/lowwater/main.go", "// Command lowwater runs jobs.\n// It has no state.\npackage main", ""},
		{"none", "kafka/doc.go", "package kafka", "no package comment"},
		{"detached", "kafka/doc.go", good + "\npackage kafka", "no package comment"},
		{"other name", "kafka/doc.go", "// Package reader reads. It writes nothing.\npackage kafka", `begin with "Package kafka "`},
		{"main", "examples/sessions/main.go", "// Package main shows it. No more.\npackage main", `begin with "Command sessions "`},
		{"one sentence", "kafka/doc.go", "// Package kafka reads Kafka 2.0 and later.\npackage kafka", "one sentence"},
		{"tests only", "kafka/kafka_test.go", "package kafka", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantFinding(t, packageComments([]*goFile{mustParse(t, test.path, test.source)}), test.want)
		})
	}
	files := []*goFile{mustParse(t, "kafka/a.go", "package kafka"), mustParse(t, "kafka/doc.go", good+"package kafka")}
	wantFinding(t, packageComments(files), "")
}

// wantFinding checks for exactly one finding that contains want, or for none if
// want is empty.
func wantFinding(t *testing.T, found []finding, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("found %v, want nothing", found)
	case want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), want)):
		t.Errorf("found %v, want one finding with %q", found, want)
	}
}

func TestImportsPointDown(t *testing.T) {
	tests := []struct {
		path, imports string
		want          string
	}{
		{"job.go", "m/internal/job", ""},
		{"format/json/json.go", "m/format", ""},
		{"internal/operator/windowed/panes.go", "m/internal/operator", ""},
		{"internal/progress/valve.go", "m/eventtime", ""},
		{"window/window.go", "m/eventtime", ""},
		{"internal/task/task.go", "madrigal/internal/job", ""},
		{"window/vectors_test.go", "m/internal/operator", ""},
		{"internal/task/task.go", "m/internal/job", "internal/task imports internal/job, which is above it"},
		{"kafka/kafka.go", "m", "kafka imports ., which is above it"},
		{"state/state.go", "m/internal/keyed", "state imports internal/keyed"},
		{"internal/progress/replay/replay.go", "m/internal/task", "internal/progress/replay imports internal/task"},
		{"internal/why/why.go", "m/internal/rest/client", "internal/why imports internal/rest/client"},
		{"internal/managers/m.go", "m/window", "internal/managers is in no room"},
		{"internal/taskpool/m.go", "m/window", "internal/taskpool is in no room"},
		{"pulsar/pulsar_test.go", "testing", "pulsar is in no room"},
	}
	for _, test := range tests {
		t.Run(test.path+" "+test.imports, func(t *testing.T) {
			file := mustParse(t, test.path, fmt.Sprintf("package p\nimport %q", test.imports))
			wantFinding(t, importsPointDown("m", []*goFile{file}), test.want)
		})
	}
}

func TestTextRules(t *testing.T) {
	lines := func(n int) string { return "package p\n" + strings.Repeat("\n", n-1) }
	todo, home := "TO"+"DO", "/ho"+"me/"
	tests := []struct {
		rule, path, text string
		want             string
	}{
		{"length", "a.go", lines(600), ""},
		{"length", "a.go", lines(601), "a.go:601: more than 600"},
		{"length", "web/src/a.tsx", lines(601), "more than 600"},
		{"length", "a.go", "// Code generated by x. DO NOT EDIT.\n" + lines(601), ""},
		{"length", "README.md", lines(601), ""},
		{"left over", "a.go", "package p\n// " + todo + ": later\n", "a.go:2: " + todo},
		{"left over", "README.md", "XX" + "X", "left over"},
		{"left over", ".ci/run", "# FIX" + "ME", "left over"},
		{"left over", "a.go", "ctx := context." + todo + "()", "left over"},
		{"left over", "a.go", "// a " + todo + "LIST is one word", ""},
		{"left over", "go.sum", "h1:a/" + todo + "/b=", ""},
		{"own paths", "README.md", "see\n" + home + "ann/x", "README.md:2: " + home + "ann/x is a path of one machine"},
		{"own paths", "a.go", `"/wor` + `k/main"`, "path of one machine"},
		{"own paths", "a.sh", "cd /ro" + "ot/x", "path of one machine"},
		{"own paths", "README.md", "https://example.org" + home + "ann and a" + home + "b", ""},
		{"own paths", "a.sh", "$dir" + home + "x ${dir}" + home + "x", ""},
	}
	tested := map[string]bool{}
	for i, test := range tests {
		t.Run(fmt.Sprint(i, " ", test.rule), func(t *testing.T) {
			for _, r := range textRules {
				if r.name == test.rule {
					tested[r.name] = true
					wantFinding(t, r.check(textFile{test.path, test.text}), test.want)
				}
			}
		})
	}
	for _, r := range textRules {
		if !tested[r.name] {
			t.Errorf("the rule %q has no text here", r.name)
		}
	}
}

func TestRequirementsAreDirect(t *testing.T) {
	file := mustParse(t, "kafka/a.go", "package kafka\nimport (\"a.org/kgo/pkg/kgo\"; \"a.org/kgo/pkg/kadm\"; \"fmt\")")
	required := []requirement{{"a.org/kgo", false}, {"a.org/kgo/pkg/kadm", false}, {"a.org/lz4", true}}
	wantFinding(t, requirementsAreDirect(required, []*goFile{file}), "")
	required[1].Indirect = true
	wantFinding(t, requirementsAreDirect(required, []*goFile{file}), "a.org/kgo/pkg/kadm is imported but marked")
	required[1] = requirement{"a.org/kg", false}
	wantFinding(t, requirementsAreDirect(required, []*goFile{file}), "a.org/kg is required but not imported")
}

func TestDependencyBudget(t *testing.T) {
	required := []requirement{{"a.org/kgo", false}, {"a.org/cmp", false}, {"a.org/lz4", true}}
	section := func(lines ...string) string {
		return "# Design\n- `a.org/elsewhere`: no\n\n## Dependencies (few)\n\nWhy few: `a.org/prose`.\n\n" + strings.Join(lines, "\n") + "\n\n## Next\n- `a.org/other`: no\n"
	}
	kgo, gocmp := "- `a.org/kgo`: the Kafka client", "| a.org/cmp | diffs in tests |"
	tests := []struct {
		name, design string
		want         string
	}{
		{"complete", section("| module | why |", "| --- | --- |", kgo, gocmp), ""},
		{"no section", "# Design\n", "no section"},
		{"missing", section(kgo), "the direct dependency a.org/cmp has no line"},
		{"not a line of its own", section(kgo, "and `a.org/cmp`: diffs"), "a.org/cmp has no line"},
		{"no reason", section(kgo, "- `a.org/cmp`"), "a.org/cmp in Dependencies gives no reason"},
		{"empty cell", section(kgo, "| a.org/cmp | |"), "gives no reason"},
		{"stale", section(kgo, gocmp, "- `a.org/old`: once needed"), "a.org/old, which go.mod does not require"},
		{"indirect", section(kgo, gocmp, "- `a.org/lz4`: compression"), "a.org/lz4, which go.mod does not require"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantFinding(t, dependencyBudget(required, test.design), test.want)
		})
	}
}
