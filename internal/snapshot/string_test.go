package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// TestUnknownValuesHaveAName: a value of another version, or one made up, is no panic.
func TestUnknownValuesHaveAName(t *testing.T) {
	for _, tt := range []struct {
		value fmt.Stringer
		want  string
	}{
		{snapshot.Broadcast, "broadcast"},
		{snapshot.Kind(7), "unknown (7)"},
	} {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T: got %q, want %q", tt.value, got, tt.want)
		}
	}
}
