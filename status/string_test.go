package status_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/status"
)

// TestUnknownValuesHaveAName: a value of another version, or one made up, is no panic.
func TestUnknownValuesHaveAName(t *testing.T) {
	for _, tt := range []struct {
		value fmt.Stringer
		want  string
	}{
		{status.SplitFinished, "finished"},
		{status.SplitState(4), "unknown (4)"},
		{status.SplitState(-1), "unknown (-1)"},
		{status.IdleByBroker, "broker"},
		{status.IdleReason(3), "unknown (3)"},
		{status.IdleReason(-1), "unknown (-1)"},
	} {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T: got %q, want %q", tt.value, got, tt.want)
		}
	}
}
