package operator

import (
	"fmt"
	"slices"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// This file is what a source does with what its reader puts out.

// Batch implements connector.ReaderOutput.
func (s *sourceOperator[T]) Batch() *connector.Batch[T] { return s.pool.Get() }

// Emit implements connector.ReaderOutput.
func (s *sourceOperator[T]) Emit(splitID string, b *connector.Batch[T], offsets []int64, timestamps connector.TimestampType) error {
	if b.Len() == 0 {
		b.Release()
		return nil
	}
	sp := s.splits[splitID]
	if sp == nil {
		return fmt.Errorf("the reader emitted records of split %q, which it was not assigned", splitID)
	}
	for i, offset := range offsets {
		b.Origins[i] = connector.MakeOrigin(sp.number, offset)
	}
	if timestamps == connector.NoTimestamp {
		for i := range b.Timestamps {
			b.Timestamps[i] = eventtime.MinTimestamp
		}
	}
	if s.assign != nil {
		for i, v := range b.Values {
			b.Timestamps[i] = s.assign(v, eventtime.RecordTime{Millis: b.Timestamps[i], Type: timestamps})
		}
	}
	s.probes.wake()
	latest := s.measure(sp, b)
	limit := s.future.at(s.rt.Timers.Now())
	if s.strategy.Idleness() > 0 {
		// While the chain works on the batch, or a sink in it blocks, nothing is read.
		s.progress.Downstream(s.rt.Timers.Now(), true)
		defer func() { s.progress.Downstream(s.rt.Timers.Now(), false) }()
	}
	if !sp.CanBatch() {
		return s.emitOneByOne(sp, b, limit)
	}
	// Such a generator emits nothing before its periodic call, so it makes no difference
	// that it sees the records before the chain does.
	if latest <= limit {
		sp.OnBatch(b.Values, b.Timestamps)
	} else {
		values, times := s.future.within(b, limit, s.rt, &sp.metrics.Future)
		sp.Activity()
		sp.OnBatch(values, times)
	}
	return s.out.Emit(b)
}

// emitOneByOne lets a watermark cut the batch behind the record that caused it.
func (s *sourceOperator[T]) emitOneByOne(sp *sourceSplit[T], b *connector.Batch[T], limit int64) error {
	if s.future.exceeded(b, limit) {
		s.future.within(b, limit, s.rt, &sp.metrics.Future)
	}
	for i, v := range b.Values {
		s.emitter.Append(v, b.Timestamps[i], b.Origins[i])
		if b.Timestamps[i] > limit {
			sp.Activity()
			continue
		}
		if err := sp.OnEvent(v, b.Timestamps[i]); err != nil {
			return err
		}
	}
	b.Release()
	sp.metrics.CurrentWatermark.Set(sp.Watermark())
	return s.emitter.Flush()
}

// measure returns the largest timestamp of b.
func (s *sourceOperator[T]) measure(sp *sourceSplit[T], b *connector.Batch[T]) (latest int64) {
	m := sp.metrics
	latest = slices.Max(b.Timestamps)
	if m.NumRecordsIn.Value() == 0 {
		s.checkUnit(sp.ID(), latest)
	}
	m.LastEventTime.Set(max(latest, m.LastEventTime.Value()))
	m.NumRecordsIn.Add(int64(b.Len()))
	m.CurrentOffset.Set(b.Origins[b.Len()-1].Offset() + 1)
	now, last := s.rt.Timers.Now(), m.LastRecordAt.Value()
	if last != 0 && now-last > m.LongestPause.Value() {
		m.LongestPause.Set(now - last)
	}
	m.LastRecordAt.Set(now)
	s.rt.Metrics.NumRecordsIn.Add(int64(b.Len()))
	s.rt.Metrics.Source.RecordEmitted(b.Timestamps[b.Len()-1])
	return latest
}

// checkUnit looks at a split's first event times: seconds, microseconds or nanoseconds
// taken for milliseconds lie decades off.
func (s *sourceOperator[T]) checkUnit(splitID string, millis int64) {
	const (
		year1980 = 315_532_800_000
		year2200 = 7_258_118_400_000
	)
	unit := "seconds"
	switch {
	case millis == eventtime.MinTimestamp || millis >= year1980 && millis < year2200:
		return
	case millis >= year2200:
		unit = "microseconds or nanoseconds"
	}
	if at := time.UnixMilli(millis).UTC(); millis >= 1_000_000 { // small numbers are tests and simulations
		s.rt.Logger.Warn("the first event times are far from now: if they are "+unit+", let the timestamp assigner convert them to milliseconds",
			"split", splitID, "timestamp", millis, "date", at.Format(time.DateOnly))
	}
}

// EmitSide implements connector.ReaderOutput.
func (s *sourceOperator[T]) EmitSide(record connector.DeadLetter) error {
	var origin connector.Origin
	if sp := s.splits[record.SplitID]; sp != nil {
		origin = connector.MakeOrigin(sp.number, record.Offset)
	}
	s.deadLetters.Append(record, record.Timestamp, origin)
	return nil
}

// FinishSplit implements connector.ReaderOutput.
func (s *sourceOperator[T]) FinishSplit(id string) error {
	s.probes.wake()
	if sp := s.splits[id]; sp != nil {
		sp.metrics.CurrentWatermark.Set(sp.Watermark())
		s.progress.ReleaseSplit(sp.Split)
		delete(s.splits, id)
	}
	return nil
}

// EmitWatermark implements connector.ReaderOutput.
func (s *sourceOperator[T]) EmitWatermark(splitID string, t int64) error {
	lane, err := s.signals(splitID)
	if err != nil {
		return err
	}
	return lane.EmitWatermark(t)
}

// MarkIdle implements connector.ReaderOutput.
func (s *sourceOperator[T]) MarkIdle(splitID string) error {
	lane, err := s.signals(splitID)
	if err != nil {
		return err
	}
	return lane.MarkIdle()
}

// MarkActive implements connector.ReaderOutput.
func (s *sourceOperator[T]) MarkActive(splitID string) error {
	lane, err := s.signals(splitID)
	if err != nil {
		return err
	}
	return lane.MarkActive()
}

// signaller is a split or the main output.
type signaller interface {
	EmitWatermark(t int64) error
	MarkIdle() error
	MarkActive() error
}

func (s *sourceOperator[T]) signals(splitID string) (signaller, error) {
	s.probes.wake()
	if splitID == "" {
		return s.progress.Main(), nil
	}
	sp := s.splits[splitID]
	if sp == nil {
		return nil, fmt.Errorf("the reader signalled for split %q, which it was not assigned", splitID)
	}
	return sp, nil
}

// sourceSignals is where the source's event time goes: behind the records emitted so
// far.
type sourceSignals[T any] sourceOperator[T]

func (s *sourceSignals[T]) Watermark(t int64) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.rt.Metrics.Source.WatermarkEmitted(t)
	return s.out.Watermark(t)
}

func (s *sourceSignals[T]) Status(idle bool) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.out.Status(idle)
}

func (s *sourceSignals[T]) flush() error {
	if err := s.emitter.Flush(); err != nil {
		return err
	}
	return s.deadLetters.Flush()
}
