package operator

import (
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
)

// Sink hands records to a connector's writer, and keeps its promise over checkpoints.
type Sink[T any] struct {
	sink       connector.Sink[T]
	guarantee  connector.SinkGuarantee
	rt         *Runtime
	writer     connector.Writer[T]
	watermarks connector.WatermarkWriter
	// twoPhase is the writer of an exactly-once sink, nil for others; prepared is what it
	// has prepared and not committed, oldest first.
	twoPhase connector.TwoPhaseWriter
	prepared []preparedOutput
}

func NewSink[T any](s connector.Sink[T]) *Sink[T] {
	return &Sink[T]{sink: s, guarantee: GuaranteeOf(s)}
}

// GuaranteeOf returns what a sink promises: at least once, unless it says otherwise.
func GuaranteeOf[T any](s connector.Sink[T]) connector.SinkGuarantee {
	if g, ok := s.(connector.GuaranteedSink); ok {
		return g.Guarantee()
	}
	return connector.AtLeastOnce
}

func (s *Sink[T]) Open(rt *Runtime, _ Output) error {
	s.rt = rt
	if s.guarantee == connector.ExactlyOnce && !rt.Checkpointing {
		return errors.New("an exactly-once sink makes its output visible when a checkpoint completes, but checkpoints are off: switch them on, or have the sink give at-least-once")
	}
	writer, err := s.sink.NewWriter(rt.Context, connector.WriterRuntime{
		Operator:    rt.Name,
		Subtask:     rt.Subtask,
		Parallelism: rt.Parallelism,
		Logger:      rt.Logger,
		CountBytes:  rt.Metrics.NumBytesOut.Add,
	})
	if err != nil {
		return err // a writer that comes with an error may be a nil of its type
	}
	s.writer = writer
	s.watermarks, _ = s.writer.(connector.WatermarkWriter)
	if s.guarantee == connector.ExactlyOnce {
		var ok bool
		if s.twoPhase, ok = s.writer.(connector.TwoPhaseWriter); !ok {
			return fmt.Errorf("the sink promises exactly-once, but its writer cannot prepare a commit: implement connector.TwoPhaseWriter on %T", s.writer)
		}
	}
	if err := s.recover(); err != nil {
		return err
	}
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

// Flush implements Flusher. What an exactly-once sink has written becomes visible with a
// checkpoint or not at all.
func (s *Sink[T]) Flush() error {
	if s.twoPhase != nil {
		return nil
	}
	return s.writer.Flush(s.rt.Context)
}

func (s *Sink[T]) Close() error {
	if s.writer == nil {
		return nil
	}
	return s.writer.Close()
}
