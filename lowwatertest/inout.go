package lowwatertest

import (
	"context"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// Element is a record with its event time in milliseconds since the epoch,
// eventtime.MinTimestamp for none.
type Element[T any] struct {
	Value T
	// Timestamp is in milliseconds since the epoch.
	Timestamp int64
}

// Input is a stream that the test feeds.
type Input[T any] struct {
	h      *Harness
	source *manualSource[T]
	stream *lowwater.DataStream[T]
	ended  bool
}

// Stream returns what the part of the job begins with.
func (in *Input[T]) Stream() *lowwater.DataStream[T] { return in.stream }

// Push sends a record with an event time in milliseconds since the epoch, or
// eventtime.MinTimestamp. It does not move the watermark.
func (in *Input[T]) Push(value T, timestamp int64) {
	in.h.t.Helper()
	in.PushAll(Element[T]{value, timestamp})
}

// PushAll sends records in one batch, or in several of connector.BatchSize.
func (in *Input[T]) PushAll(elements ...Element[T]) {
	in.h.t.Helper()
	in.do(func(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
		return connector.MoreAvailable, in.source.emit(out, elements)
	})
}

// Watermark sends a watermark, in milliseconds: no record with a timestamp of t or less
// is expected any more. It ends idleness. One that is not larger than the last has no
// effect, as from any source.
func (in *Input[T]) Watermark(t int64) {
	in.h.t.Helper()
	in.do(func(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
		return connector.MoreAvailable, out.EmitWatermark("", t)
	})
}

// Idle says that the input is not to hold back the watermark of what it is combined
// with.
func (in *Input[T]) Idle() {
	in.h.t.Helper()
	in.do(func(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
		return connector.MoreAvailable, out.MarkIdle("")
	})
}

// Active ends idleness.
func (in *Input[T]) Active() {
	in.h.t.Helper()
	in.do(func(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
		return connector.MoreAvailable, out.MarkActive("")
	})
}

// End ends the input, as the end of a bounded source: with the largest watermark, which
// fires all event-time windows once all inputs have ended. Using the input after that fails
// the test.
func (in *Input[T]) End() {
	in.h.t.Helper()
	in.do(func(connector.ReaderOutput[T]) (connector.PollStatus, error) {
		in.ended = true
		return connector.EndOfInput, nil
	})
}

// do has the reader do something and waits for all that follows.
func (in *Input[T]) do(f manualStep[T]) {
	in.h.t.Helper()
	in.h.run()
	synctest.Wait()
	if in.ended {
		in.h.t.Fatalf("the input %q has ended", in.source.name)
	}
	in.source.add(f)
	synctest.Wait()
}

// manualStep is one thing that a manual source's reader does.
type manualStep[T any] func(out connector.ReaderOutput[T]) (connector.PollStatus, error)

// manualSource is a source of one split, and its own reader, that does what it is told.
type manualSource[T any] struct {
	name string
	wake chan struct{}

	mu    sync.Mutex
	steps []manualStep[T]

	offsets []int64 // of the batch being emitted
	next    int64   // offset
}

func newManualSource[T any](name string) *manualSource[T] {
	return &manualSource[T]{name: name, wake: make(chan struct{}, 1)}
}

func (s *manualSource[T]) add(step manualStep[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *manualSource[T]) emit(out connector.ReaderOutput[T], elements []Element[T]) error {
	for part := range slices.Chunk(elements, connector.BatchSize) {
		b := out.Batch()
		s.offsets = s.offsets[:0]
		for _, e := range part {
			b.Append(e.Value, e.Timestamp, 0)
			s.offsets = append(s.offsets, s.next)
			s.next++
		}
		if err := out.Emit(s.name, b, s.offsets, connector.CreateTime); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements connector.Source.
func (s *manualSource[T]) Validate() error { return nil }

// Boundedness implements connector.Source.
func (s *manualSource[T]) Boundedness() connector.Boundedness { return connector.Unbounded }

// NewEnumerator implements connector.Source.
func (s *manualSource[T]) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return &onlySplit{splits: []connector.Split{manualSplit{s.name, 0}}}, nil
}

// NewReader implements connector.Source.
func (s *manualSource[T]) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[T], error) {
	return s, nil
}

// AddSplits implements connector.Reader.
func (s *manualSource[T]) AddSplits(splits []connector.Split) error {
	for _, split := range splits {
		s.next = split.(manualSplit).next
	}
	return nil
}

// NoMoreSplits implements connector.Reader.
func (s *manualSource[T]) NoMoreSplits() {}

// Poll implements connector.Reader.
func (s *manualSource[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	s.mu.Lock()
	if len(s.steps) == 0 {
		s.mu.Unlock()
		return connector.NothingAvailable, nil
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	s.mu.Unlock()
	return step(out)
}

// Available implements connector.Reader.
func (s *manualSource[T]) Available() <-chan struct{} { return s.wake }

// Close implements connector.Reader.
func (s *manualSource[T]) Close() error { return nil }

// manualSplit is the split of an input, with the offset of the next record.
type manualSplit struct {
	name string
	next int64
}

func (s manualSplit) ID() string { return s.name }

// onlySplit is an enumerator of one split.
type onlySplit struct{ splits []connector.Split }

func (e *onlySplit) Discover(context.Context) (found []connector.Split, err error) {
	found, e.splits = e.splits, nil
	return found, nil
}

func (e *onlySplit) Owner(connector.Split, int) int { return 0 }
func (e *onlySplit) Close() error                   { return nil }

// silent leaves event time to the reader.
type silent[T any] struct{}

func (silent[T]) OnEvent(T, int64, eventtime.WatermarkOutput) {}
func (silent[T]) OnBatch([]T, []int64)                        {}
func (silent[T]) OnPeriodicEmit(eventtime.WatermarkOutput)    {}
func (silent[T]) EventDriven()                                {}

// Output notes what a stream emits.
type Output[T any] struct {
	mu        sync.Mutex
	elements  []Element[T]
	watermark int64
}

// Take returns the records that came since the last Take or TakeValues, nil if there are
// none.
func (o *Output[T]) Take() []Element[T] {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.elements
	o.elements = nil
	return taken
}

// TakeValues is Take without timestamps.
func (o *Output[T]) TakeValues() []T {
	var values []T
	for _, e := range o.Take() {
		values = append(values, e.Value)
	}
	return values
}

// Watermark returns the stream's watermark in milliseconds, eventtime.MinTimestamp if there
// was none yet.
func (o *Output[T]) Watermark() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watermark
}

// noted is the sink of an output.
type noted[T any] struct{ out *Output[T] }

func (s noted[T]) Validate() error { return nil }

func (s noted[T]) NewWriter(context.Context, connector.WriterRuntime) (connector.Writer[T], error) {
	return s, nil
}

func (s noted[T]) Write(_ context.Context, b *connector.Batch[T]) error {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	for i, v := range b.Values {
		s.out.elements = append(s.out.elements, Element[T]{v, b.Timestamps[i]})
	}
	return nil
}

// WriteWatermark implements connector.WatermarkWriter.
func (s noted[T]) WriteWatermark(_ context.Context, t int64) error {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.watermark = t
	return nil
}

func (s noted[T]) Flush(context.Context) error { return nil }
func (s noted[T]) Close() error                { return nil }
