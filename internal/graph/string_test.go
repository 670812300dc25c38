package graph_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/internal/graph"
)

// TestUnknownValuesHaveAName: a value of another version, or one made up, is no panic.
func TestUnknownValuesHaveAName(t *testing.T) {
	for _, tt := range []struct {
		value fmt.Stringer
		want  string
	}{
		{graph.Custom, "CUSTOM"},
		{graph.Partitioning(7), "unknown (7)"},
	} {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T: got %q, want %q", tt.value, got, tt.want)
		}
	}
}
