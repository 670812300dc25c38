package lint

import (
	"path"
	"strconv"
	"strings"
)

// house is the order of the packages, from the top: imports of non-test code
// point down it or stay on a level. A room includes the folders in it; the root
// package is ".". A new room needs a sentence, beside it here and in DESIGN.md,
// that none of the others can be given.
var house = [][]string{
	{"cmd", "examples", "bench", "test", "internal/lint"},
	{"lowwatertest"},
	{"."},
	{
		"kafka", "files", "datagen",
		"internal/kafkatest", // the embedded broker, for tests of connectors and for lowwatertest
	},
	{"format"},
	{
		"internal/rest",
		"web", // the Web UI's embedded build, which only internal/rest serves
	},
	{
		"internal/why",
		"internal/gaps", // the gaps and the disorder of a topic, from its records
	},
	{"internal/job"},
	{"internal/checkpoint"},
	{"internal/graph"},
	{"internal/task"},
	{"internal/operator"},
	{"internal/exchange"},
	{"internal/keyed"},
	{"internal/spill"},
	{"internal/codec"},    // state as bytes; formats for the outside are format's
	{"internal/snapshot"}, // words between operators and checkpoints, which must not know each other
	{"internal/progress"},
	{"internal/metric"},
	{"connector", "state", "status", "window", "eventtime"},
	{"internal/invariants", "internal/enum"}, // assertions, and names of constants, that every room may use
}

// roomOf returns the level of a package's folder from the top and its room, or
// false if it is in none.
func roomOf(dir string) (level int, room string, ok bool) {
	for i, rooms := range house {
		for _, r := range rooms {
			inside := dir == r || r != "." && strings.HasPrefix(dir, r+"/")
			if inside && len(r) > len(room) {
				level, room, ok = i, r, true
			}
		}
	}
	return level, room, ok
}

// importsPointDown: a lower room that knows a higher one can no longer be
// understood, tested or replaced without it.
func importsPointDown(module string, files []*goFile) []finding {
	var found []finding
	unknown := map[string]bool{}
	for _, f := range files {
		level, room, ok := roomOf(f.dir())
		if !ok {
			if !unknown[f.dir()] {
				found = append(found, f.find(f.ast.Name, "%s is in no room of the house: put it into one, or add a room to internal/lint/house_test.go "+
					"and to DESIGN.md with the reason why none of the others will do", f.dir()))
			}
			unknown[f.dir()] = true
			continue
		}
		if f.isTest() {
			continue // a test may look up: at the API, at helpers
		}
		for _, spec := range f.ast.Imports {
			dir, own := ownImport(module, spec.Path.Value)
			if !own {
				continue
			}
			if to, toRoom, ok := roomOf(dir); ok && to < level {
				found = append(found, f.find(spec, "%s imports %s, which is above it (%s over %s): declare an interface here and let the caller implement it, "+
					"or move what is needed down", f.dir(), dir, toRoom, room))
			}
		}
	}
	return found
}

// ownImport returns the folder of an import of this module.
func ownImport(module, quoted string) (dir string, ok bool) {
	imported, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	rest, ok := strings.CutPrefix(imported, module)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Clean("./" + rest), true
}
