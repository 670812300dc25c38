package lint

import (
	"go/ast"
	"regexp"
	"strings"
)

// codeRule looks at one Go file.
type codeRule struct {
	name  string
	check func(*goFile, *allowList) []finding
	// allow says which declarations may break the rule, and why.
	allow map[string]string
}

var codeRules = []codeRule{
	{name: "sleep", check: noSleepInTests},
	{name: "panic", check: noPanic, allow: map[string]string{}},
	{name: "print", check: noPrint},
	{name: "any", check: noAnyInDataPlane, allow: map[string]string{
		"internal/operator.Panic":    "what a user function panicked with has no other type, and ends the job",
		"internal/operator.NewPanic": "as Panic",
	}},
	{name: "wall clock", check: noWallClock},
	{name: "goroutine", check: noGoroutine, allow: map[string]string{
		"internal/operator.async.start": "its purpose is to wait for the outside many times at once; the goroutines are bounded, touch no state and end at Close",
	}},
}

// under reports whether dir is one of rooms or in one of them.
func under(dir string, rooms ...string) bool {
	for _, room := range rooms {
		if dir == room || strings.HasPrefix(dir, room+"/") {
			return true
		}
	}
	return false
}

// noSleepInTests: a test that sleeps is slow, and still fails on a slow machine.
// In a bubble of testing/synctest the same sleep is virtual, so a function that
// makes a bubble, or calls what only works in one, may sleep.
func noSleepInTests(f *goFile, _ *allowList) []finding {
	if !f.isTest() {
		return nil
	}
	var found []finding
	for _, decl := range f.ast.Decls {
		var sleeps []ast.Node
		virtual := false
		ast.Inspect(decl, func(n ast.Node) bool {
			if n != nil && selects(n, "time", "Sleep") {
				sleeps = append(sleeps, n)
			}
			virtual = virtual || n != nil && selects(n, "synctest", "Test", "Wait", "Sleep")
			return true
		})
		if virtual {
			continue
		}
		for _, n := range sleeps {
			found = append(found, f.find(n, "time.Sleep in a test: use testing/synctest, where time is virtual (synctest.Test, synctest.Sleep)"))
		}
	}
	return found
}

// noPanic: a panic in a subtask ends the process of someone who embeds lowwater.
func noPanic(f *goFile, allow *allowList) []finding {
	if f.isTest() || under(f.dir(), "internal/invariants") {
		return nil
	}
	var found []finding
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Must") {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			id, ok := call.Fun.(*ast.Ident)
			if ok && id.Name == "panic" && !allow.allows(f.declName(decl)) {
				found = append(found, f.find(call, "panic in %s: return an error; for a broken invariant of our own code use internal/invariants, "+
					"for a wrong call by the programmer add the function to the allow list in internal/lint/code_test.go with a reason", f.declName(decl)))
			}
			return true
		})
	}
	return found
}

// noPrint: standard output and the default logger belong to the program.
func noPrint(f *goFile, allow *allowList) []finding {
	if f.isMain() {
		return nil
	}
	var found []finding
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && f.isTest() && strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			id, builtin := call.Fun.(*ast.Ident)
			builtin = builtin && (id.Name == "print" || id.Name == "println")
			printed := builtin || selects(call.Fun, "fmt", "Print*") || selects(call.Fun, "log", "Print*", "Fatal*", "Panic*")
			if printed && !allow.allows(f.declName(decl)) {
				found = append(found, f.find(call, "printing in a package: write to the *slog.Logger or io.Writer that the caller gave; in a test use t.Log"))
			}
			return true
		})
	}
	return found
}

// noAnyInDataPlane: an any in a field, a parameter, a result or an element is
// an allocation per record. Type parameters' constraints and conversions to any
// for a type switch are not meant.
func noAnyInDataPlane(f *goFile, allow *allowList) []finding {
	if f.isTest() || !under(f.dir(), "internal/exchange", "internal/operator", "internal/progress", "internal/keyed") {
		return nil
	}
	var found []finding
	for _, decl := range f.ast.Decls {
		exempt := map[ast.Node]bool{}
		ast.Inspect(decl, func(n ast.Node) bool {
			if exempt[n] {
				return false
			}
			switch n := n.(type) {
			case *ast.TypeSpec:
				exempt[n.TypeParams] = n.TypeParams != nil
			case *ast.FuncType:
				exempt[n.TypeParams] = n.TypeParams != nil
			case *ast.CallExpr:
				exempt[n.Fun] = isAny(n.Fun)
			case ast.Expr:
				if isAny(n) && !allow.allows(f.declName(decl)) {
					found = append(found, f.find(n, "any in %s, in the data plane: use a type parameter, or an interface with methods called once a batch; "+
						"off the record path add it to the allow list in internal/lint/code_test.go with a reason", f.declName(decl)))
				}
			}
			return true
		})
	}
	return found
}

func isAny(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "any"
	case *ast.InterfaceType:
		return len(x.Methods.List) == 0
	}
	return false
}

// noWallClock: event time comes from records, processing time from the task.
// A rule that looks at a clock itself cannot be replayed.
func noWallClock(f *goFile, allow *allowList) []finding {
	if f.isTest() || !under(f.dir(), "eventtime", "window", "state", "internal/progress", "internal/operator", "internal/keyed") {
		return nil
	}
	var found []finding
	for _, decl := range f.ast.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			clock := n != nil && selects(n, "time", "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep")
			if clock && !allow.allows(f.declName(decl)) {
				found = append(found, f.find(n, "wall clock in %s: take the time, or a timer, from the caller (the task has the clock)", f.declName(decl)))
			}
			return true
		})
	}
	return found
}

// noGoroutine: these rooms are state machines; their callers own the goroutines.
func noGoroutine(f *goFile, allow *allowList) []finding {
	if f.isTest() || !under(f.dir(), "eventtime", "window", "internal/progress", "internal/operator") {
		return nil
	}
	var found []finding
	for _, decl := range f.ast.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			if stmt, ok := n.(*ast.GoStmt); ok && !allow.allows(f.declName(decl)) {
				found = append(found, f.find(stmt, "goroutine in %s: the task that owns this state runs it; hand work to the task's mailbox", f.declName(decl)))
			}
			return true
		})
	}
	return found
}

var sentenceEnd = regexp.MustCompile(`[.!?]['")\]]*(\s|$)`)

// packageComments: a package says its purpose and what it is not for. files are
// all Go files of the repository.
func packageComments(files []*goFile) []finding {
	type pkg struct {
		first *goFile
		doc   string
		wants string
	}
	var dirs []string
	pkgs := map[string]*pkg{}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		p := pkgs[f.dir()]
		if p == nil {
			p = &pkg{first: f, wants: "Package " + f.ast.Name.Name + " "}
			if f.isMain() {
				p.wants = "Command " + f.dir()[strings.LastIndexByte(f.dir(), '/')+1:] + " "
			}
			pkgs[f.dir()] = p
			dirs = append(dirs, f.dir())
		}
		if f.ast.Doc != nil {
			p.doc += f.ast.Doc.Text()
		}
	}
	var found []finding
	for _, dir := range dirs {
		p := pkgs[dir]
		switch {
		case p.doc == "":
			found = append(found, p.first.find(p.first.ast, "%s has no package comment: say what it is for and what it is not for, beginning with %q", dir, p.wants))
		case !strings.HasPrefix(p.doc, p.wants):
			found = append(found, p.first.find(p.first.ast, "the comment of %s must begin with %q", dir, p.wants))
		case len(sentenceEnd.FindAllString(p.doc, -1)) < 2:
			found = append(found, p.first.find(p.first.ast, "the comment of %s has one sentence: add what the package is not for", dir))
		}
	}
	return found
}
