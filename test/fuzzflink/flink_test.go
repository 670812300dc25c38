//go:build flink

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// budgetEnv is how long to compare; without it the test does a fixed number of
// events.
const budgetEnv = "LOWWATER_FUZZ_BUDGET"

func TestAgainstFlink(t *testing.T) {
	o := options{
		seed:     1,
		events:   200_000,
		subjects: strings.Join(subjectNames(), ","),
		oracle:   filepath.Join("..", "oracle", "oracle"),
		dir:      filepath.Join(os.TempDir(), "lowwater-oracle"),
		steps:    120,
		batch:    100,
		failures: 5,
	}
	if text := os.Getenv(budgetEnv); text != "" {
		budget, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", budgetEnv, err)
		}
		o.duration, o.events = budget, 1<<62
		o.seed = uint64(time.Now().UnixNano())
	}
	if err := run(t.Context(), o, t.Output()); err != nil {
		t.Fatal(err)
	}
}
