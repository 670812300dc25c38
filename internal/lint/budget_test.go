package lint

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requirement is a module that go.mod requires.
type requirement struct {
	Path     string
	Indirect bool
}

// requirements reads go.mod.
func requirements(t *testing.T, root string) []requirement {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit -json: %v", err)
	}
	var mod struct{ Require []requirement }
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatalf("go mod edit -json: %v", err)
	}
	return mod.Require
}

// moduleOf returns the required module that an import path belongs to, or "".
func moduleOf(imported string, required []requirement) string {
	longest := ""
	for _, r := range required {
		if (imported == r.Path || strings.HasPrefix(imported, r.Path+"/")) && len(r.Path) > len(longest) {
			longest = r.Path
		}
	}
	return longest
}

// requirementsAreDirect: go.mod marks as indirect exactly what no file imports.
func requirementsAreDirect(required []requirement, files []*goFile) []finding {
	imported := map[string]bool{}
	for _, f := range files {
		for _, spec := range f.ast.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil {
				imported[moduleOf(name, required)] = true
			}
		}
	}
	var found []finding
	for _, r := range required {
		switch {
		case imported[r.Path] && r.Indirect:
			found = append(found, finding{"go.mod", 1, r.Path + " is imported but marked // indirect: run go mod tidy"})
		case !imported[r.Path] && !r.Indirect:
			found = append(found, finding{"go.mod", 1, r.Path + " is required but not imported: run go mod tidy"})
		}
	}
	return found
}

var (
	budgetHeading = regexp.MustCompile(`(?m)^## Dependencies\b.*$`)
	nextHeading   = regexp.MustCompile(`(?m)^## `)
	// A line of the budget: a list item or a table row that opens with a module
	// path and goes on with why it is there.
	budgetLine = regexp.MustCompile("(?m)^(?:[-*] |\\| )`?([\\w-]+\\.[\\w.-]+(?:/[\\w./-]+)?)`?[ :|,]*(.*)$")
)

// dependencyBudget compares the direct dependencies with the section
// Dependencies of DESIGN.md, which has a line for each with its reason.
func dependencyBudget(required []requirement, design string) []finding {
	report := func(format string, args ...any) finding {
		return finding{"DESIGN.md", 1, fmt.Sprintf(format, args...)}
	}
	at := budgetHeading.FindStringIndex(design)
	if at == nil {
		return []finding{report("no section \"## Dependencies\": add it with one line \"| module | reason |\" for each direct dependency of go.mod")}
	}
	section := design[at[1]:]
	if end := nextHeading.FindStringIndex(section); end != nil {
		section = section[:end[0]]
	}
	var found []finding
	var budget []string
	for _, line := range budgetLine.FindAllStringSubmatch(section, -1) {
		budget = append(budget, line[1])
		if strings.Trim(line[2], " |.") == "" {
			found = append(found, report("the line of %s in Dependencies gives no reason", line[1]))
		}
	}
	var direct []string
	for _, r := range required {
		if r.Indirect {
			continue
		}
		direct = append(direct, r.Path)
		if !slices.Contains(budget, r.Path) {
			found = append(found, report("the direct dependency %s has no line in Dependencies: do without it, or add \"| %s | reason |\"", r.Path, r.Path))
		}
	}
	for _, module := range budget {
		if !slices.Contains(direct, module) {
			found = append(found, report("Dependencies names %s, which go.mod does not require: remove the line", module))
		}
	}
	return found
}
