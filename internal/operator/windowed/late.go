package windowed

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
)

// lateRecords is what a window operator does with records that come too late.
type lateRecords[T any] struct {
	operator.LateRecords
	// emitter is nil if nothing takes late records: no late output is set, or it has no
	// consumer.
	emitter *operator.Emitter[T]
	// dropped counts what was lost since the start.
	dropped int64
}

// openLate decides where late records go.
func (c *core[K, T, A]) openLate() {
	if c.LateOutput != "" && operator.HasSide(c.out, c.LateOutput) {
		c.lateRecords.emitter = operator.NewEmitter[T](c.out, c.LateOutput)
	}
}

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
	l.Add(b.Keys[i], t, c.watermark, b.Origins[i], l.emitter == nil)
	if l.emitter != nil {
		l.emitter.Append(b.Values[i], t, b.Origins[i])
		return
	}
	if l.dropped == 0 {
		c.tellDropped(b, i)
	}
	l.dropped++
}

// tellDropped logs the first late record that is lost. The others are only counted.
func (c *core[K, T, A]) tellDropped(b *keyedBatch[K, T], i int) {
	advice := "collect late records with SideOutputLate"
	if c.LateOutput != "" {
		advice = "consume the late output, which nothing does"
	}
	c.rt.Logger.Warn("dropped a record that came too late for its windows; more are counted without a message: "+
		"set AllowedLateness, or use a larger bound in the watermark strategy, or "+advice,
		"record", c.rt.Describe(b.Origins[i]), "key", fmt.Sprint(b.Keys[i]),
		timeAttr("timestamp", b.Timestamps[i]), timeAttr("watermark", c.watermark),
		behindAttr(b.Timestamps[i], c.watermark))
}

// timeAttr is a time in milliseconds for the log.
func timeAttr(name string, t int64) slog.Attr {
	switch t {
	case math.MinInt64:
		return slog.String(name, "none")
	case math.MaxInt64:
		return slog.String(name, "end of input")
	default:
		return slog.Time(name, time.UnixMilli(t).UTC())
	}
}

// behindAttr is how far t is behind a watermark that is not before it.
func behindAttr(t, watermark int64) slog.Attr {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	behind := uint64(watermark) - uint64(t) // right even where the signed difference is not
	return slog.Duration("late", time.Duration(min(behind, uint64(longest)))*time.Millisecond)
}

// tellTotal logs how many late records were lost.
func (c *core[K, T, A]) tellTotal() {
	if n := c.lateRecords.dropped; n > 0 {
		c.rt.Logger.Warn("late records were dropped", "records", n)
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
		c.rt.Describe(b.Origins[i]), b.Timestamps[i], b.Keys[i], c.windows, c.watermark))
}
