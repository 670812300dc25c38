package operator

import (
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/metric"
)

// LateRecords is what one call of an operator found late, on its way into the metrics.
// The zero value is ready for use.
type LateRecords struct {
	count   int64
	dropped int64
	bySplit map[uint32]int64
	samples []metric.LateRecord
}

// Add notes a record that came too late; dropped says that it went to no late output.
func (l *LateRecords) Add[K any](key K, timestamp, watermark int64, origin connector.Origin, dropped bool) {
	l.count++
	if dropped {
		l.dropped++
	}
	if l.bySplit == nil {
		l.bySplit = map[uint32]int64{}
	}
	l.bySplit[origin.Split()]++
	if len(l.samples) == metric.MaxLateSamples {
		l.samples = slices.Delete(l.samples, 0, 1)
	}
	l.samples = append(l.samples, metric.LateRecord{
		Timestamp: timestamp, Watermark: watermark, Key: fmt.Sprint(key), Origin: origin,
	})
}

// MoveTo moves what was noted since the last call into the metrics.
func (l *LateRecords) MoveTo(m *metric.Operator) {
	if l.count == 0 {
		return
	}
	m.NumLateRecords.Add(l.count)
	m.NumLateRecordsDropped.Add(l.dropped)
	m.Late.Add(l.bySplit, l.samples)
	l.count, l.dropped, l.samples = 0, 0, l.samples[:0]
	clear(l.bySplit)
}
