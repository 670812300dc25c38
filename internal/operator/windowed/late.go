package windowed

import (
	"fmt"
	"slices"
	"sync"

	"github.com/lowwater/lowwater/connector"
)

// LateSample describes one record that came after its windows had ended.
type LateSample struct {
	// Timestamp is the record's and Watermark the operator's, in milliseconds
	// since the epoch.
	Timestamp int64
	Watermark int64
	Key       string
	Origin    connector.Origin
}

// Behind returns how far the record was behind the watermark, in milliseconds.
func (s LateSample) Behind() int64 { return s.Watermark - s.Timestamp }

// LateSamples holds the latest late records. It may be read by any goroutine.
type LateSamples struct {
	mu     sync.Mutex
	latest []LateSample
	// oldest is the position of the oldest once all places are taken.
	oldest int
}

const maxLateSamples = 100

// Latest returns up to 100 samples, oldest first.
func (l *LateSamples) Latest() []LateSample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.latest[l.oldest:], l.latest[:l.oldest])
}

func (l *LateSamples) add(s LateSample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.latest) < maxLateSamples {
		l.latest = append(l.latest, s)
		return
	}
	l.latest[l.oldest] = s
	l.oldest = (l.oldest + 1) % maxLateSamples
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
	c.lateRecords++
	if c.lateRecords <= samplesPerBatch {
		c.samples.add(LateSample{t, c.watermark, fmt.Sprint(b.Keys[i]), b.Origins[i]})
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
	if c.lateRecords == 0 {
		return
	}
	c.rt.Metrics.NumLateRecords.Add(c.lateRecords)
	if c.lateEmitter == nil {
		c.rt.Metrics.NumLateRecordsDropped.Add(c.lateRecords)
	}
	c.lateRecords = 0
}

// describe names a record by its place in the source.
func (c *core[K, T, A]) describe(o connector.Origin) string {
	if c.rt.Splits != nil {
		if name, ok := c.rt.Splits.Name(o.Split()); ok {
			return fmt.Sprintf("record %d of %s %s", o.Offset(), name.Source, name.Split)
		}
	}
	return "record " + o.String()
}
