package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

const differencesFile = "docs/flink-differences.md"

var testName = regexp.MustCompile("`(Test[A-Za-z0-9_]*)")

// differencesAreTested finds rows of the differences from Flink that name no test, or a
// test that does not exist. The last section, what goes beyond Flink, differs only
// where it is asked for and needs none.
func differencesAreTested(doc textFile, code []*goFile) []finding {
	tests := map[string]bool{}
	for _, f := range code {
		if !f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				tests[fn.Name.Name] = true
			}
		}
	}
	text, _, _ := strings.Cut(doc.text, "\n## Beyond Flink")
	var found []finding
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| difference") {
			continue
		}
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 && !strings.Contains(line, "the fuzzer") && !strings.Contains(line, "`test/fuzzflink`") {
			found = append(found, finding{doc.path, i + 1, "this difference names no test"})
		}
		for _, name := range names {
			if !tests[name[1]] {
				found = append(found, finding{doc.path, i + 1, fmt.Sprintf("there is no test %s", name[1])})
			}
		}
	}
	return found
}

func TestDifferencesAreTested(t *testing.T) {
	file, err := parse(textFile{"a/a_test.go", "package a\nfunc TestThere(t *testing.T) {}\n"})
	if err != nil {
		t.Fatal(err)
	}
	code := []*goFile{file}
	doc := textFile{differencesFile, strings.Join([]string{
		"| difference | why | test |", "| --- | --- | --- |",
		"| one | why | `TestThere/case` |",
		"| two | why | `TestGone` |",
		"| three | why | |",
		"", "## Beyond Flink", "| four | where |",
	}, "\n")}
	got := differencesAreTested(doc, code)
	if len(got) != 2 || got[0].line != 4 || got[1].line != 5 {
		t.Errorf("got %v, want the rows two and three", got)
	}
}
