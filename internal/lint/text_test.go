package lint

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
)

// textRules look at one file of any kind.
var textRules = []struct {
	name  string
	check func(textFile) []finding
}{
	{"length", shortFiles},
	{"left over", nothingLeftOver},
	{"own paths", noOwnPaths},
}

const maxLines = 600

// shortFiles: a long file is a room with two purposes.
func shortFiles(file textFile) []finding {
	switch path.Ext(file.path) {
	case ".go":
		if f, err := parse(file); err == nil && ast.IsGenerated(f.ast) {
			return nil
		}
	case ".ts", ".tsx":
	default:
		return nil
	}
	if lines := strings.Count(file.text, "\n"); lines > maxLines {
		return []finding{{file.path, lines, "more than 600 lines: split the file by purpose"}}
	}
	return nil
}

// leftOver is written in two halves so that this file has none.
var leftOver = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// nothingLeftOver: what is still to do is an issue, not a comment.
func nothingLeftOver(file textFile) []finding {
	return eachLine(file, leftOver, "%s left over: do it, or write an issue")
}

var ownPath = regexp.MustCompile(`(?:^|[^\w.)}/])(/(?:home|Users|root|work)/\w[\w./-]*)`)

// noOwnPaths: a path of one machine means nothing on another.
func noOwnPaths(file textFile) []finding {
	return eachLine(file, ownPath, "%s is a path of one machine: use a path from the root of the repository, $HOME or a temporary folder")
}

// eachLine finds the lines that match, except in lists of checksums. The
// message gets the first group of the match.
func eachLine(file textFile, pattern *regexp.Regexp, message string) []finding {
	switch path.Base(file.path) {
	case "go.sum", "package-lock.json":
		return nil
	}
	var found []finding
	line := 0
	for text := range strings.Lines(file.text) {
		line++
		if m := pattern.FindStringSubmatch(text); m != nil {
			found = append(found, finding{file.path, line, strings.Replace(message, "%s", m[1], 1)})
		}
	}
	return found
}
