package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme: the program in the README compiles as it is shown.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "```go\n")
	shown, _, closed := strings.Cut(shown, "```")
	if !found || !closed || !strings.HasPrefix(shown, "package main\n") {
		t.Fatal("the README shows no program")
	}
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	// In this directory, so that the imports are of this module.
	if out, err := exec.CommandContext(t.Context(), "go", "vet", program).CombinedOutput(); err != nil {
		t.Errorf("the program of the README: %v\n%s", err, out)
	}
}
