package lint

import (
	"slices"
	"testing"
)

// TestTree applies every rule to the whole repository.
func TestTree(t *testing.T) {
	tr := loadTree(t)
	rule := func(name string, check func() []finding) {
		t.Run(name, func(t *testing.T) {
			for _, f := range check() {
				t.Error(f)
			}
		})
	}

	rule("imports", func() []finding { return importsPointDown(tr.module, tr.code) })
	rule("package comment", func() []finding { return packageComments(tr.code) })
	for _, r := range codeRules {
		rule(r.name, func() []finding { return applyCodeRule(r, tr.code) })
	}
	for _, r := range textRules {
		rule(r.name, func() []finding {
			var found []finding
			for _, file := range tr.text {
				found = append(found, r.check(file)...)
			}
			return found
		})
	}

	if i := slices.IndexFunc(tr.text, func(f textFile) bool { return f.path == differencesFile }); i >= 0 {
		rule("differences", func() []finding { return differencesAreTested(tr.text[i], tr.code) })
	}

	required := requirements(t, tr.root)
	rule("requirements", func() []finding { return requirementsAreDirect(required, tr.code) })
	if i := slices.IndexFunc(tr.text, func(f textFile) bool { return f.path == "DESIGN.md" }); i >= 0 {
		rule("dependency budget", func() []finding { return dependencyBudget(required, tr.text[i].text) })
	}
}

// applyCodeRule returns what breaks the rule, and the entries of its allow list
// that allow nothing.
func applyCodeRule(r codeRule, files []*goFile) []finding {
	allow := newAllowList(r.allow)
	var found []finding
	for _, f := range files {
		found = append(found, r.check(f, allow)...)
	}
	for _, name := range allow.unused() {
		found = append(found, finding{"internal/lint/code_test.go", 1, "the rule \"" + r.name + "\" allows " + name + ", which does not need it any more: remove the entry"})
	}
	return found
}
