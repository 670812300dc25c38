package operator

import (
	"errors"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/status"
)

// maxAnswerAge is how old the last word about a split's end may be to count.
const maxAnswerAge = 10 * time.Second

// sourceOperator reads a connector's source: it stamps origins, assigns timestamps,
// and keeps the event time of its splits.
type sourceOperator[T any] struct {
	source      connector.Source[T]
	strategy    eventtime.WatermarkStrategy[T]
	deadLetters *Emitter[connector.DeadLetter]
	deadID      string

	rt       *Runtime
	out      Output
	reader   connector.Reader[T]
	progress *progress.Source[T]
	assign   func(T, eventtime.RecordTime) int64
	future   futureLimit[T]
	ends     connector.EndReporter // with broker idleness
	splits   map[string]*sourceSplit[T]
	emitter  *Emitter[T]
	pool     *connector.Pool[T]
	probes   *probes
	// codec and snapshotter are set if there are checkpoints.
	codec       connector.SplitCodec
	snapshotter connector.SplitSnapshotter
}

// sourceSplit is one split with its number in the job and its metrics.
type sourceSplit[T any] struct {
	*progress.Split[T]
	number  uint32
	metrics *metric.Split
}

// NewSource returns the operator that reads source. Records that cannot be decoded go to
// the side output deadLetters if the connector is told to put them there.
func NewSource[T any](source connector.Source[T], strategy eventtime.WatermarkStrategy[T], deadLetters string) Source {
	return &sourceOperator[T]{
		source:   source,
		strategy: strategy,
		deadID:   deadLetters,
		assign:   strategy.TimestampAssigner(),
		future:   newFutureLimit(strategy),
		splits:   map[string]*sourceSplit[T]{},
		pool:     connector.NewPool[T](),
	}
}

func (s *sourceOperator[T]) Open(rt *Runtime, out Output) error {
	s.rt, s.out = rt, out
	s.emitter = NewEmitter[T](out, "")
	s.deadLetters = NewEmitter[connector.DeadLetter](out, s.deadID)
	reader, err := s.source.NewReader(rt.Context, connector.ReaderRuntime{
		Operator:      rt.Name,
		Subtask:       rt.Subtask,
		Parallelism:   rt.Parallelism,
		Logger:        rt.Logger,
		CountDropped:  rt.Metrics.Drop,
		CountBytes:    rt.Metrics.NumBytesIn.Add,
		Checkpointing: rt.Checkpointing,
	})
	if err != nil {
		return err // a reader that comes with an error may be a nil of its type
	}
	s.reader = reader
	if err := s.openState(); err != nil {
		return err
	}
	cfg := progress.SourceConfig{
		Samples:    rt.Alignment.Samples,
		Report:     rt.Alignment.Report,
		SplitState: s.splitState,
	}
	if s.strategy.BrokerIdleness() > 0 {
		var ok bool
		if s.ends, ok = s.reader.(connector.EndReporter); !ok {
			return errors.New("the strategy has WithBrokerIdleness, but this source's reader does not hear where its splits end: use WithIdleness")
		}
	}
	cfg.Pauser, _ = s.reader.(connector.SplitPauser)
	if _, aligned := s.strategy.Alignment(); aligned && cfg.Pauser == nil {
		return errors.New("the strategy has WithWatermarkAlignment, but this source's reader cannot pause splits: implement connector.SplitPauser")
	}
	now := rt.Timers.Now()
	if s.progress, err = progress.NewSource(s.strategy, cfg, now, (*sourceSignals[T])(s)); err != nil {
		return err
	}
	if alignment, on := s.strategy.Alignment(); on {
		s.every(alignment.UpdateInterval.Milliseconds(), s.progress.Sample)
	}
	s.probes = newProbes(rt, s.periodic)
	s.showPositions()
	return nil
}

// every calls f at a fixed delay in milliseconds; 0 means never.
func (s *sourceOperator[T]) every(interval int64, f func(now int64) error) {
	if interval == 0 {
		return
	}
	var again func(int64) error
	again = func(now int64) error {
		s.rt.Timers.At(now+interval, again)
		return f(now)
	}
	s.rt.Timers.At(s.rt.Timers.Now()+interval, again)
}

func (s *sourceOperator[T]) splitState(id string, state status.SplitState) {
	sp := s.splits[id]
	sp.metrics.Enter(state, sp.IdleBy())
}

func (s *sourceOperator[T]) periodic(now int64) (settled bool, err error) {
	if s.ends != nil {
		s.askEnds(now)
	}
	err = s.progress.Periodic(now)
	for _, sp := range s.splits {
		sp.metrics.CurrentWatermark.Set(sp.Watermark())
	}
	return s.progress.Settled(), err
}

// askEnds finds the splits that are quiet by what the outside knows.
func (s *sourceOperator[T]) askEnds(now int64) {
	long, fresh := s.strategy.BrokerIdleness(), time.UnixMilli(now).Add(-maxAnswerAge)
	s.ends.CaughtUp(func(id string, caughtUp bool, since, asOf time.Time) {
		if sp := s.splits[id]; sp != nil {
			sp.SetQuiet(caughtUp && asOf.Sub(since) >= long && !asOf.Before(fresh))
		}
	})
}

// showPositions lets those who read the metrics ask the reader, not the subtask: that may be
// blocked for long.
func (s *sourceOperator[T]) showPositions() {
	positions, _ := s.reader.(connector.SplitPositions)
	committer, _ := s.reader.(connector.OffsetCommitter)
	s.rt.Metrics.Splits.AskPositions(func() map[string]metric.Position {
		all := map[string]metric.Position{}
		if positions != nil {
			positions.Positions(func(id string, next, end int64) { all[id] = metric.Position{Next: next, End: end, Committed: -1} })
		}
		if committer != nil {
			committer.Committed(func(id string, offset int64) {
				p, ok := all[id]
				if !ok {
					p = metric.NoPosition
				}
				p.Committed = offset
				all[id] = p
			})
		}
		return all
	})
}

func (s *sourceOperator[T]) AddSplits(splits []connector.Split) error {
	s.probes.wake()
	bare, restored := unwrapSplits(splits)
	for _, split := range bare {
		id := split.ID()
		m := metric.NewSplit(id)
		if p, ok := split.(connector.PartitionSplit); ok {
			m.Topic, m.Partition = p.TopicPartition()
		}
		sp := &sourceSplit[T]{number: s.rt.Splits.Number(s.rt.Node, s.rt.Name, id), metrics: m}
		s.splits[id] = sp
		var err error
		if sp.Split, err = s.progress.AddSplit(id, s.rt.Timers.Now()); err != nil {
			return err
		}
		s.rt.Metrics.Splits.Add(m)
	}
	if err := s.reader.AddSplits(bare); err != nil {
		return err
	}
	for _, split := range restored {
		sp := s.splits[split.ID()]
		sp.Restore(split.Watermark) // may pause the split at the reader
		sp.metrics.CurrentWatermark.Set(sp.Watermark())
	}
	return nil
}

func (s *sourceOperator[T]) NoMoreSplits()              { s.reader.NoMoreSplits() }
func (s *sourceOperator[T]) Available() <-chan struct{} { return s.reader.Available() }

func (s *sourceOperator[T]) Poll() (connector.PollStatus, error) {
	s.progress.Tick(s.rt.Timers.Now())
	if s.progress.Blocked() {
		return connector.NothingAvailable, nil // until MaxAllowed, which wakes the task
	}
	status, err := s.reader.Poll(s)
	if err != nil {
		return status, err
	}
	if status == connector.NothingAvailable {
		s.rt.Metrics.Source.IdlingStarted(s.rt.Timers.Now())
	}
	return status, s.deadLetters.Flush()
}

func (s *sourceOperator[T]) BackPressure(soft, hard bool) {
	if s.progress != nil {
		s.progress.BackPressure(s.rt.Timers.Now(), hard, soft)
	}
}

func (s *sourceOperator[T]) MaxAllowed(limit int64) error {
	s.rt.Metrics.Source.MaxDesiredWatermark(limit)
	return s.progress.MaxAllowed(limit, s.rt.Timers.Now())
}

func (s *sourceOperator[T]) EndOfInput() error { return s.progress.End(true) }

func (s *sourceOperator[T]) Close() error {
	if s.reader == nil {
		return nil
	}
	// Metrics outlive the job, and are not to keep the reader and what it has fetched.
	last := s.rt.Metrics.Splits.Positions()
	s.rt.Metrics.Splits.AskPositions(func() map[string]metric.Position { return last })
	return s.reader.Close()
}
