package operator

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// rowWatermarks makes watermarks of what the records say, behind a source, as Flink's SQL
// operator does (spec watermarks 10.5).
type rowWatermarks[T any] struct {
	strategy  eventtime.WatermarkStrategy[T]
	watermark func(T) (int64, bool)
	assign    func(T, eventtime.RecordTime) int64
	rt        *Runtime
	out       Output
	assigner  *progress.SQLWatermarkAssigner
	emitter   *Emitter[T]
	floor     watermarkFloor
	// finished says that the input has ended.
	finished bool
}

func (o *rowWatermarks[T]) Open(rt *Runtime, out Output) error {
	o.rt, o.out = rt, out
	o.emitter = NewEmitter[T](out, "")
	if err := o.floor.open(rt, out); err != nil {
		return err
	}
	o.assigner = progress.NewSQLWatermarkAssigner(
		rt.WatermarkInterval.Milliseconds(), o.strategy.Idleness().Milliseconds(), rt.Timers.Now(), (*rowSignals[T])(o))
	o.arm()
	return nil
}

func (o *rowWatermarks[T]) arm() {
	if at, ok := o.assigner.NextTimer(); ok {
		o.rt.Timers.At(at, func(now int64) error {
			err := o.assigner.Timer(now)
			o.arm()
			return err
		})
	}
}

func (o *rowWatermarks[T]) Process(_ int, p exchange.Payload) error {
	b := p.(*connector.Batch[T])
	if err := o.floor.resume(); err != nil {
		return err
	}
	for i, v := range b.Values {
		timestamp := b.Timestamps[i]
		if o.assign != nil {
			timestamp = o.assign(v, previous(timestamp))
		}
		if err := o.assigner.BeforeRow(); err != nil {
			return err
		}
		o.emitter.Append(v, timestamp, b.Origins[i])
		if err := o.assigner.AfterRow(o.watermark(v)); err != nil {
			return err
		}
	}
	b.Release()
	return o.emitter.Flush()
}

func (o *rowWatermarks[T]) Watermark(t int64) error { return o.assigner.Watermark(t) }
func (o *rowWatermarks[T]) Status(idle bool) error  { return o.assigner.Status(idle) }
func (o *rowWatermarks[T]) Close() error            { o.floor.close(); return nil }

func (o *rowWatermarks[T]) Finish() error {
	o.finished = true
	return o.assigner.Finish()
}

// PrepareBarrier implements BeforeBarrier: see timestamps.
func (o *rowWatermarks[T]) PrepareBarrier(int64) error {
	if o.finished {
		return nil
	}
	return o.assigner.Advance()
}

// Snapshot implements Stateful.
func (o *rowWatermarks[T]) Snapshot(w snapshot.Writer) error { return o.floor.snapshot(w) }

// BackPressure implements BackPressured.
func (o *rowWatermarks[T]) BackPressure(soft, hard bool) {
	if o.assigner != nil {
		o.assigner.BackPressure(o.rt.Timers.Now(), hard, soft)
	}
}

// rowSignals is where the operator's event time goes: behind the records emitted so far.
type rowSignals[T any] rowWatermarks[T]

func (o *rowSignals[T]) Watermark(t int64) error {
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.floor.watermark(t)
}

func (o *rowSignals[T]) Status(idle bool) error {
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.out.Status(idle)
}
