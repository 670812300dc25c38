package job

import (
	"math"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/status"
)

// TestLagsOfWrongUnits: with microseconds for milliseconds event time is further from the clock
// than a time.Duration goes.
func TestLagsOfWrongUnits(t *testing.T) {
	micros := time.Now().UnixMicro()
	m := metric.NewSource()
	m.RecordEmitted(micros)
	m.WatermarkEmitted(micros)
	m.MaxDesiredWatermark(0)
	s := sourceStatus(m)
	now := time.Now().UnixMilli()
	for name, test := range map[string]struct {
		got  *int64
		want int64
	}{
		"watermark": {s.WatermarkLagMillis, now - micros}, "event time": {s.EventTimeLagMillis, now - micros}, "alignment": {s.AlignmentDriftMillis, micros},
	} {
		if test.got == nil || *test.got > test.want || *test.got < test.want-60_000 {
			t.Errorf("%s: %v, want %d", name, test.got, test.want)
		}
	}
	for _, test := range []struct{ watermark, timestamp, want int64 }{
		{micros, 0, micros}, {math.MaxInt64, -1, math.MaxInt64}, {math.MinInt64, math.MinInt64, 0},
	} {
		if got := (status.LateSample{Watermark: test.watermark, Timestamp: test.timestamp}).BehindMillis(); got != test.want {
			t.Errorf("%d behind %d: %d, want %d", test.timestamp, test.watermark, got, test.want)
		}
	}
}
