package eventtime

import "time"

// WatermarkOutput is where a generator puts watermarks. It is valid only during
// the call it was passed to.
type WatermarkOutput interface {
	// EmitWatermark says that no record with a timestamp of t (milliseconds
	// since the epoch) or less is expected any more. It ends idleness. A
	// watermark that is not larger than an earlier one has no other effect.
	EmitWatermark(t int64)
	// MarkIdle says that watermarks should be derived without this generator
	// until it emits one or is marked active (spec watermarks 5.6).
	MarkIdle()
	// MarkActive ends idleness.
	MarkActive()
}

// WatermarkGenerator derives watermarks from the records of one split (spec
// watermarks 4). Every split has a generator of its own; it is called by one
// goroutine at a time.
type WatermarkGenerator[T any] interface {
	// OnEvent is called for every record after it was emitted, with its event time in
	// milliseconds. What it emits takes effect at once (spec watermarks 5.3).
	OnEvent(event T, timestamp int64, out WatermarkOutput)
	// OnPeriodicEmit is called at every auto-watermark interval, 200 ms by default, but
	// not while the generator's split is idle by timeout (spec watermarks 4.8); see also
	// EventDriven.
	OnPeriodicEmit(out WatermarkOutput)
}

// BatchGenerator is implemented by generators that never emit in OnEvent. The
// engine then hands over whole batches.
type BatchGenerator[T any] interface {
	// OnBatch is equivalent to OnEvent for each element of the two slices,
	// which are of equal length and stay the caller's.
	OnBatch(events []T, timestamps []int64)
}

// EventDriven is implemented by generators whose OnPeriodicEmit depends on nothing but
// the events seen: without new ones it emits the same again, or nothing. The engine
// leaves out calls of them that would change nothing, so that a split without records
// costs nothing.
type EventDriven interface {
	// EventDriven does nothing; that a generator has it is the promise.
	EventDriven()
}

// boundedOutOfOrderness emits the largest timestamp minus a bound, minus one
// because a watermark excludes its own timestamp.
type boundedOutOfOrderness[T any] struct {
	max   int64
	bound int64
}

func newBoundedOutOfOrderness[T any](bound time.Duration) *boundedOutOfOrderness[T] {
	b := bound.Milliseconds()
	// So that the first watermark is MinTimestamp and cannot underflow.
	return &boundedOutOfOrderness[T]{max: MinTimestamp + b + 1, bound: b}
}

func (g *boundedOutOfOrderness[T]) OnEvent(_ T, timestamp int64, _ WatermarkOutput) {
	g.max = max(g.max, timestamp)
}

func (g *boundedOutOfOrderness[T]) OnBatch(_ []T, timestamps []int64) {
	largest := g.max
	for _, t := range timestamps {
		largest = max(largest, t)
	}
	g.max = largest
}

func (*boundedOutOfOrderness[T]) EventDriven() {}

func (g *boundedOutOfOrderness[T]) OnPeriodicEmit(out WatermarkOutput) {
	out.EmitWatermark(g.max - g.bound - 1)
}

// noWatermarks never emits.
type noWatermarks[T any] struct{}

func (noWatermarks[T]) OnEvent(T, int64, WatermarkOutput) {}
func (noWatermarks[T]) OnBatch([]T, []int64)              {}
func (noWatermarks[T]) OnPeriodicEmit(WatermarkOutput)    {}
func (noWatermarks[T]) EventDriven()                      {}

// rowWatermarks emits the largest watermark of its rows.
type rowWatermarks[T any] struct {
	watermark func(T) (int64, bool)
	largest   int64
}

func (g *rowWatermarks[T]) OnEvent(value T, _ int64, _ WatermarkOutput) {
	if t, ok := g.watermark(value); ok {
		g.largest = max(g.largest, t)
	}
}

func (g *rowWatermarks[T]) OnBatch(values []T, _ []int64) {
	for _, v := range values {
		g.OnEvent(v, 0, nil)
	}
}

func (g *rowWatermarks[T]) OnPeriodicEmit(out WatermarkOutput) { out.EmitWatermark(g.largest) }
