package progress

import "github.com/lowwater/lowwater/eventtime"

// TimestampsOperator is the event time of an operator that assigns timestamps
// and watermarks somewhere behind a source (spec watermarks 7). It has one
// generator whatever the number of splits, and cuts off what it gets from
// upstream: watermarks but for MaxTimestamp, and statuses.
//
// For each record the caller assigns the timestamp, emits the record and then
// calls OnEvent or OnBatch. Times are milliseconds and must not fall.
type TimestampsOperator[T any] struct {
	generator  Generator[T]
	output     *SubtaskOutput
	clock      PausableClock
	hard, soft bool
	downstream bool
	interval   int64
	next       int64
	settled    bool
}

// NewTimestampsOperator returns the operator's event time. interval is the
// auto-watermark interval in milliseconds, 0 for no periodic calls. In batch
// mode there are none and the generator is not used.
func NewTimestampsOperator[T any](strategy eventtime.WatermarkStrategy[T], interval int64, batch bool, now int64, out Output) (*TimestampsOperator[T], error) {
	if err := strategy.Validate(); err != nil {
		return nil, err
	}
	if strategy.NewGenerator() == nil {
		return nil, errNilGenerator
	}
	if batch {
		strategy, interval = eventtime.NoWatermarks[T](), 0
	}
	return &TimestampsOperator[T]{
		generator: NewGenerator(strategy),
		output:    NewSubtaskOutput(out),
		interval:  interval,
		next:      now + interval,
	}, nil
}

// CanBatch reports whether OnBatch may be used.
func (o *TimestampsOperator[T]) CanBatch() bool { return o.generator.CanBatch() }

// OnEvent is told about each record after it was emitted.
func (o *TimestampsOperator[T]) OnEvent(value T, timestamp int64) error {
	o.generator.OnEvent(value, timestamp, o.output)
	return o.output.Err()
}

// OnBatch is OnEvent for a run of records that were emitted. The slices are of
// equal length and stay the caller's.
func (o *TimestampsOperator[T]) OnBatch(values []T, timestamps []int64) {
	o.generator.OnBatch(values, timestamps)
}

// Activity is told about records that were emitted and are not to move the watermark.
func (o *TimestampsOperator[T]) Activity() { o.generator.Activity() }

// NextPeriodic returns when Periodic is due, and whether it ever is.
func (o *TimestampsOperator[T]) NextPeriodic() (at int64, ok bool) {
	return o.next, o.interval > 0
}

// Periodic is the auto-watermark timer's call.
func (o *TimestampsOperator[T]) Periodic(now int64) error {
	o.next = now + o.interval
	o.settled = o.generator.OnPeriodic(o.clock.Time(now), o.output)
	return o.output.Err()
}

// Settled reports, after Periodic, that further calls of it would change nothing until
// there is a record.
func (o *TimestampsOperator[T]) Settled() bool { return o.settled }

// BackPressure tells whether the task is blocked in emitting (hard) and whether
// it takes no input because an output is full (soft). Meanwhile the idle timer
// does not run.
func (o *TimestampsOperator[T]) BackPressure(now int64, hard, soft bool) {
	setPaused(&o.clock, now, &o.hard, hard)
	setPaused(&o.clock, now, &o.soft, soft)
}

// Downstream is as for Source.
func (o *TimestampsOperator[T]) Downstream(now int64, working bool) {
	setPaused(&o.clock, now, &o.downstream, working)
}

// Watermark takes a watermark from upstream. All but MaxTimestamp are dropped.
func (o *TimestampsOperator[T]) Watermark(t int64) error {
	if t == maxTime {
		o.output.EmitWatermark(t)
	}
	return o.output.Err()
}

// Status takes a status from upstream and drops it.
func (o *TimestampsOperator[T]) Status(bool) error { return o.output.Err() }

// Finish is called at the end of input, also when the job drains: the generator
// has one last periodic call.
func (o *TimestampsOperator[T]) Finish(now int64) error {
	o.generator.OnPeriodic(o.clock.Time(now), o.output)
	return o.output.Err()
}

// Current returns the last watermark, MinTimestamp at first, and the announced
// status.
func (o *TimestampsOperator[T]) Current() (watermark int64, idle bool) { return o.output.Current() }
