package window_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/window"
)

// TestNilIsRefused: what wraps a nil trigger or evictor is made without a panic and says
// so when asked.
func TestNilIsRefused(t *testing.T) {
	type validator interface{ Validate() error }
	none := window.TimeoutOptions{}
	for _, test := range []struct {
		what validator
		want string
	}{
		{window.ForElements[int](nil), "the trigger is nil"},
		{window.PurgingTrigger(nil), "window.PurgingTrigger: the trigger is nil"},
		{window.PurgingElementTrigger[int](nil), "window.PurgingTrigger: the trigger is nil"},
		{window.TimeoutTrigger(nil, time.Second, none), "window.TimeoutTrigger: the trigger is nil"},
		{window.TimeoutElementTrigger[int](nil, time.Second, none), "window.TimeoutTrigger: the trigger is nil"},
		{window.PurgingTrigger(window.TimeoutTrigger(nil, time.Second, none)), "window.PurgingTrigger: window.TimeoutTrigger: the trigger is nil"},
		{window.PurgingTrigger(window.CountTrigger(0)), "window.CountTrigger: 0"},
		{window.TimeoutTrigger(window.CountTrigger(1), 0, none), "window.TimeoutTrigger: timeout 0s"},
		{window.BuiltInEvictor[int]{}, "the evictor is nil"},
		{window.DeltaEvictor[int](1, nil), "delta function is nil"},
	} {
		if err := test.what.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
