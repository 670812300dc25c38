package enum_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/window"
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
		{window.BySilence, "closed by silence"},
		{window.Timing(4), "unknown (4)"},
		{window.StaggerNatural, "window.StaggerNatural"},
		{window.Stagger(7), "unknown (7)"},
		{status.SplitFinished, "finished"},
		{status.SplitState(4), "unknown (4)"},
		{status.SplitState(-1), "unknown (-1)"},
		{status.IdleByBroker, "broker"},
		{status.IdleReason(3), "unknown (3)"},
		{status.IdleReason(-1), "unknown (-1)"},
		{exchange.BarrierKind, "barrier"},
		{exchange.Kind(7), "unknown (7)"},
		{graph.Custom, "CUSTOM"},
		{graph.Partitioning(7), "unknown (7)"},
		{snapshot.Broadcast, "broadcast"},
		{snapshot.Kind(7), "unknown (7)"},
		{keyedop.ProcessingTime, "processing time"},
		{keyedop.Domain(7), "unknown (7)"},
	} {
		if got := tt.value.String(); got != tt.want {
			t.Errorf("%T: got %q, want %q", tt.value, got, tt.want)
		}
	}
}
