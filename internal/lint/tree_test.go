package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// finding is one place that breaks a rule. The message says what to do.
type finding struct {
	path    string
	line    int
	message string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.message) }

// textFile is a file that people read.
type textFile struct {
	path string // from the root of the repository, with slashes
	text string
}

// goFile is a parsed Go file, whatever its build tags.
type goFile struct {
	textFile
	fset *token.FileSet
	ast  *ast.File
}

// dir is the folder of the file's package, "." for the root.
func (f *goFile) dir() string { return path.Dir(f.path) }

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f *goFile) isMain() bool { return f.ast.Name.Name == "main" }

func (f *goFile) find(n ast.Node, format string, args ...any) finding {
	return finding{f.path, f.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...)}
}

// declName names a top-level declaration in allow lists: dir.Func,
// dir.Type.Method or dir.Type.
func (f *goFile) declName(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return f.dir() + "." + d.Name.Name
		}
		return f.dir() + "." + typeName(d.Recv.List[0].Type) + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				return f.dir() + "." + spec.Name.Name
			case *ast.ValueSpec:
				return f.dir() + "." + spec.Names[0].Name
			}
		}
	}
	return f.dir() + "._"
}

// typeName returns the name of a receiver's type, without * and parameters.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.ParenExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "_"
}

// selects reports whether x is pkg.name for one of names, of which one that ends
// in * stands for all that begin so.
func selects(x ast.Node, pkg string, names ...string) bool {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok || id.Name != pkg {
		return false
	}
	for _, name := range names {
		if sel.Sel.Name == name || strings.HasSuffix(name, "*") && strings.HasPrefix(sel.Sel.Name, name[:len(name)-1]) {
			return true
		}
	}
	return false
}

func parse(file textFile) (*goFile, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file.path, file.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &goFile{file, fset, f}, nil
}

// tree is the whole repository.
type tree struct {
	root   string
	module string
	text   []textFile
	code   []*goFile
}

// skippedDirs are made by tools or are data; every dot folder but .ci is
// skipped too.
var skippedDirs = map[string]bool{"bin": true, "build": true, "dist": true, "node_modules": true, "testdata": true}

func loadTree(t *testing.T) *tree {
	t.Helper()
	tr := &tree{root: filepath.Join("..", "..")}
	err := filepath.WalkDir(tr.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" && name != tr.root
			if hidden || skippedDirs[d.Name()] {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // a file in other work trees of a repository
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(content, 0) >= 0 {
			return nil // not for people
		}
		rel, err := filepath.Rel(tr.root, name)
		if err != nil {
			return err
		}
		tr.text = append(tr.text, textFile{filepath.ToSlash(rel), string(content)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tr.text {
		if file.path == "go.mod" {
			first, _, _ := strings.Cut(file.text, "\n")
			tr.module = strings.TrimSpace(strings.TrimPrefix(first, "module"))
		}
		if strings.HasSuffix(file.path, ".go") {
			f, err := parse(file)
			if err != nil {
				t.Fatal(err)
			}
			tr.code = append(tr.code, f)
		}
	}
	if tr.module == "" || len(tr.code) == 0 {
		t.Fatalf("%s is not the root of the repository: no go.mod or no Go files", tr.root)
	}
	return tr
}

// allowList is the exceptions of one rule: what it allows and why.
type allowList struct {
	reasons map[string]string
	used    map[string]bool
}

func newAllowList(reasons map[string]string) *allowList {
	return &allowList{reasons, map[string]bool{}}
}

func (a *allowList) allows(name string) bool {
	_, ok := a.reasons[name]
	a.used[name] = a.used[name] || ok
	return ok
}

// unused returns the entries that allowed nothing.
func (a *allowList) unused() []string {
	var names []string
	for name := range a.reasons {
		if !a.used[name] {
			names = append(names, name)
		}
	}
	return names
}
