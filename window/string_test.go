package window_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/window"
)

// TestUnknownValuesHaveAName: a value of another version, or one made up, is no panic.
func TestUnknownValuesHaveAName(t *testing.T) {
	for _, tt := range []struct {
		value fmt.Stringer
		want  string
	}{
		{window.BySilence, "closed by silence"},
		{window.Timing(4), "unknown (4)"},
		{window.StaggerNatural, "window.StaggerNatural"},
		{window.Stagger(7), "unknown (7)"},
	} {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T: got %q, want %q", tt.value, got, tt.want)
		}
	}
}
