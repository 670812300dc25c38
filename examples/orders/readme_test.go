package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadme: the job in the README is this program's, line by line and in order.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "```go\n")
	shown, _, closed := strings.Cut(shown, "```")
	if !found || !closed {
		t.Fatal("the README shows no Go code")
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.Split(string(source), "\n")
	for line := range strings.Lines(shown) {
		line = strings.TrimSpace(line)
		at := 0
		for at < len(rest) && strings.TrimSpace(rest[at]) != line {
			at++
		}
		if at == len(rest) {
			t.Fatalf("the README has the line %q, which main.go does not have there", line)
		}
		rest = rest[at+1:]
	}
}
