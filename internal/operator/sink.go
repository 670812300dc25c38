package operator

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
)

// Sink hands records to a connector's writer.
type Sink[T any] struct {
	sink       connector.Sink[T]
	rt         *Runtime
	writer     connector.Writer[T]
	watermarks connector.WatermarkWriter
}

func NewSink[T any](s connector.Sink[T]) *Sink[T] { return &Sink[T]{sink: s} }

func (s *Sink[T]) Open(rt *Runtime, _ Output) error {
	s.rt = rt
	writer, err := s.sink.NewWriter(rt.Context, connector.WriterRuntime{
		Operator:    rt.Name,
		Subtask:     rt.Subtask,
		Parallelism: rt.Parallelism,
		Logger:      rt.Logger,
	})
	if err != nil {
		return err // a writer that comes with an error may be a nil of its type
	}
	s.writer = writer
	s.watermarks, _ = s.writer.(connector.WatermarkWriter)
	if f, ok := s.writer.(connector.FailureReporter); ok {
		s.lookForFailure(f)
	}
	return nil
}

// failureInterval is how often a quiet writer is asked whether it failed, in
// milliseconds.
const failureInterval = 1000

func (s *Sink[T]) lookForFailure(f connector.FailureReporter) {
	s.rt.Timers.At(s.rt.Timers.Now()+failureInterval, func(int64) error {
		s.lookForFailure(f)
		return f.Failure()
	})
}

func (s *Sink[T]) Process(_ int, p exchange.Payload) error {
	b := p.(*connector.Batch[T])
	err := s.writer.Write(s.rt.Context, b)
	b.Release()
	return err
}

func (s *Sink[T]) Watermark(t int64) error {
	if s.watermarks == nil {
		return nil
	}
	return s.watermarks.WriteWatermark(s.rt.Context, t)
}

func (s *Sink[T]) Status(bool) error { return nil }
func (s *Sink[T]) Finish() error     { return nil }

// Flush implements Flusher.
func (s *Sink[T]) Flush() error { return s.writer.Flush(s.rt.Context) }

func (s *Sink[T]) Close() error {
	if s.writer == nil {
		return nil
	}
	return s.writer.Close()
}
