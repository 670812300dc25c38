package metric_test

import (
	"math"
	"testing"

	"github.com/lowwater/lowwater/internal/metric"
)

func TestMetricsDoNotWrapAround(t *testing.T) {
	m := metric.NewSource()
	m.WatermarkEmitted(math.MinInt64 + 1)
	if lag, ok := m.WatermarkLag(1000); lag != math.MaxInt64 || !ok {
		t.Errorf("WatermarkLag = %d, %t", lag, ok)
	}
	m.MaxDesiredWatermark(math.MaxInt64)
	if drift, ok := m.AlignmentDrift(); drift != math.MinInt64 || !ok {
		t.Errorf("AlignmentDrift = %d, %t", drift, ok)
	}
	m.IdlingStarted(2000)
	m.IdlingStarted(2500)
	if got := m.IdleTime(3000); got != 1000 {
		t.Errorf("IdleTime = %d, want 1000", got)
	}
	m.RecordEmitted(1)
	if got := m.IdleTime(3000); got != 0 {
		t.Errorf("IdleTime = %d after a record", got)
	}
}
