package operator

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// timestamps assigns timestamps and makes watermarks behind a source, with one
// generator per subtask (spec watermarks 7).
type timestamps[T any] struct {
	strategy eventtime.WatermarkStrategy[T]
	rt       *Runtime
	out      Output
	progress *progress.TimestampsOperator[T]
	assign   func(T, eventtime.RecordTime) int64
	future   futureLimit[T]
	emitter  *Emitter[T]
	probes   *probes
	floor    watermarkFloor
	// finished says that the input has ended.
	finished bool
}

// NewTimestamps returns the operator of AssignTimestampsAndWatermarks.
func NewTimestamps[T any](strategy eventtime.WatermarkStrategy[T]) Operator {
	if row := strategy.RowWatermark(); row != nil {
		return &rowWatermarks[T]{strategy: strategy, watermark: row, assign: strategy.TimestampAssigner()}
	}
	return &timestamps[T]{strategy: strategy, assign: strategy.TimestampAssigner(), future: newFutureLimit(strategy)}
}

func (o *timestamps[T]) Open(rt *Runtime, out Output) (err error) {
	o.rt, o.out = rt, out
	o.emitter = NewEmitter[T](out, "")
	if err := o.floor.open(rt, out); err != nil {
		return err
	}
	o.progress, err = progress.NewTimestampsOperator(
		o.strategy, rt.WatermarkInterval.Milliseconds(), false, rt.Timers.Now(), (*timestampsSignals[T])(o))
	if err != nil {
		return err
	}
	o.probes = newProbes(rt, func(now int64) (settled bool, err error) {
		err = o.progress.Periodic(now)
		return o.progress.Settled(), err
	})
	return nil
}

func (o *timestamps[T]) Process(_ int, p exchange.Payload) error {
	b := p.(*connector.Batch[T])
	o.probes.wake()
	if err := o.floor.resume(); err != nil {
		return err
	}
	if o.assign != nil {
		for i, v := range b.Values {
			b.Timestamps[i] = o.assign(v, previous(b.Timestamps[i]))
		}
	}
	limit := o.future.at(o.rt.Timers.Now())
	values, times := b.Values, b.Timestamps
	if o.future.exceeded(b, limit) {
		values, times = o.future.within(b, limit, o.rt, &o.rt.Metrics.Future)
		o.progress.Activity()
	}
	if o.progress.CanBatch() {
		o.progress.OnBatch(values, times)
		return o.out.Emit(b)
	}
	for i, v := range b.Values {
		o.emitter.Append(v, b.Timestamps[i], b.Origins[i])
		if b.Timestamps[i] > limit {
			continue
		}
		if err := o.progress.OnEvent(v, b.Timestamps[i]); err != nil {
			return err
		}
	}
	b.Release()
	return o.emitter.Flush()
}

// previous is what an assigner behind a source sees: the timestamp so far, of a type
// that is no longer known.
func previous(timestamp int64) eventtime.RecordTime {
	return eventtime.RecordTime{Millis: timestamp, Type: eventtime.NoTimestamp}
}

func (o *timestamps[T]) Watermark(t int64) error { return o.progress.Watermark(t) }
func (o *timestamps[T]) Status(idle bool) error  { return o.progress.Status(idle) }
func (o *timestamps[T]) Close() error            { o.floor.close(); return nil }

func (o *timestamps[T]) Finish() error {
	o.finished = true
	return o.progress.Finish(o.rt.Timers.Now())
}

// PrepareBarrier implements BeforeBarrier. As with a source, what the generator knows is
// emitted: its own memory is not kept.
func (o *timestamps[T]) PrepareBarrier(int64) error {
	if o.finished || o.rt.WatermarkInterval == 0 {
		return nil
	}
	return o.progress.Periodic(o.rt.Timers.Now())
}

// Snapshot implements Stateful.
func (o *timestamps[T]) Snapshot(w snapshot.Writer) error { return o.floor.snapshot(w) }

// BackPressure implements BackPressured.
func (o *timestamps[T]) BackPressure(soft, hard bool) {
	if o.progress != nil {
		o.progress.BackPressure(o.rt.Timers.Now(), hard, soft)
	}
}

// timestampsSignals is where the operator's event time goes: behind the records
// emitted so far.
type timestampsSignals[T any] timestamps[T]

func (o *timestampsSignals[T]) Watermark(t int64) error {
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.floor.watermark(t)
}

func (o *timestampsSignals[T]) Status(idle bool) error {
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.out.Status(idle)
}
