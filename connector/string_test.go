package connector_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/connector"
)

// TestUnknownValuesHaveAName: a value of another version, or one made up, is no panic.
func TestUnknownValuesHaveAName(t *testing.T) {
	for _, tt := range []struct {
		value fmt.Stringer
		want  string
	}{
		{connector.ExactlyOnce, "exactly-once"},
		{connector.SinkGuarantee(3), "unknown (3)"},
		{connector.DecodeErrorPolicy(7), "DecodeErrorPolicy(7)"},
	} {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T: got %q, want %q", tt.value, got, tt.want)
		}
	}
}
