package windowed

import (
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/metric"
)

// lateRecords is what one call found late, on its way into the metrics.
type lateRecords struct {
	count   int64
	bySplit map[uint32]int64
	samples []metric.LateRecord
}

// samplesPerBatch bounds what a flood of late records costs: only so many of a
// batch are described.
const samplesPerBatch = 8

// late handles record i, which no window took (spec windows 2.3).
func (c *core[K, T, A]) late(b *keyedBatch[K, T], i int) {
	t := b.Timestamps[i]
	if !c.eventTime {
		return
	}
	if t+c.AllowedLateness > c.watermark { // wraps around, as in Flink
		c.unclaimed(b, i)
		return
	}
	l := &c.lateRecords
	l.count++
	if l.bySplit == nil {
		l.bySplit = map[uint32]int64{}
	}
	l.bySplit[b.Origins[i].Split()]++
	if l.count <= samplesPerBatch {
		l.samples = append(l.samples, metric.LateRecord{
			Timestamp: t, Watermark: c.watermark, Key: fmt.Sprint(b.Keys[i]), Origin: b.Origins[i],
		})
	}
	if c.lateEmitter != nil {
		c.lateEmitter.Append(b.Values[i], t, b.Origins[i])
	}
}

// unclaimed handles a record that is not late but whose windows all are, which
// takes an assigner of one's own or a timestamp at the end of time. Flink loses
// it without a trace; here it is counted.
func (c *core[K, T, A]) unclaimed(b *keyedBatch[K, T], i int) {
	if len(c.windows) == 0 {
		return // in a gap between windows: in none by definition
	}
	c.rt.Metrics.Drop("windows-ended", fmt.Sprintf("%s with timestamp %d of key %v, assigned to %v, at watermark %d",
		c.describe(b.Origins[i]), b.Timestamps[i], b.Keys[i], c.windows, c.watermark))
}

// countLate moves the late records since the last call into the metrics.
func (c *core[K, T, A]) countLate() {
	l := &c.lateRecords
	if l.count == 0 {
		return
	}
	c.rt.Metrics.NumLateRecords.Add(l.count)
	if c.lateEmitter == nil {
		c.rt.Metrics.NumLateRecordsDropped.Add(l.count)
	}
	c.rt.Metrics.Late.Add(l.bySplit, l.samples)
	l.count, l.samples = 0, l.samples[:0]
	clear(l.bySplit)
}

// describe names a record by its place in its source.
func (c *core[K, T, A]) describe(o connector.Origin) string { return c.rt.Describe(o) }
