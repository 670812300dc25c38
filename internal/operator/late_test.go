package operator

import (
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/metric"
)

// However many late records one call finds, the samples are the latest.
func TestLateRecordsKeepTheLatest(t *testing.T) {
	var l LateRecords
	m := metric.NewOperator("windows", "")
	const records = 1000
	for i := range records {
		l.Add("key", int64(i), 5000, connector.MakeOrigin(uint32(1+i%2), int64(i)), i%4 == 0)
	}
	l.MoveTo(m)
	got := m.Late.Latest()
	if len(got) != metric.MaxLateSamples || got[0].Timestamp != records-metric.MaxLateSamples || got[len(got)-1].Timestamp != records-1 {
		t.Errorf("%d samples from %d to %d, want the last %d", len(got), got[0].Timestamp, got[len(got)-1].Timestamp, metric.MaxLateSamples)
	}
	if m.NumLateRecords.Value() != records || m.NumLateRecordsDropped.Value() != records/4 {
		t.Errorf("counted %d late records, %d of them dropped", m.NumLateRecords.Value(), m.NumLateRecordsDropped.Value())
	}
	if by := m.Late.BySplit(); by[1] != records/2 || by[2] != records/2 {
		t.Errorf("by split: %v", by)
	}
	l.MoveTo(m)
	if m.NumLateRecords.Value() != records {
		t.Error("records were counted twice")
	}
}
