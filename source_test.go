package lowwater_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// event is what most tests' streams are made of. At is its event time in
// milliseconds.
type event struct {
	Key string
	At  int64
	N   int
}

// atOf is the timestamp assigner of events.
func atOf(e event, _ int64) int64 { return e.At }

// bounded is the strategy of most tests.
func bounded(disorder time.Duration) eventtime.WatermarkStrategy[event] {
	return eventtime.ForBoundedOutOfOrderness[event](disorder).WithTimestampAssigner(atOf)
}

// step is a batch that a split of a script delivers, at a time after the reader's
// first poll.
type step[T any] struct {
	after  time.Duration
	values []T
}

// script is a source that plays what its splits are given, batch by batch. It runs no
// goroutines, so it shows all that the engine does wrong by itself.
type script[T any] struct {
	splits [][]step[T]
	// unbounded makes it wait for ever behind the last step.
	unbounded bool
	// endAfter keeps a split that has nothing left from ending before.
	endAfter time.Duration

	discoverErr, openErr, pollErr, closeErr error
	// delivered, if not nil, is called before each step is emitted.
	delivered func(split int, s step[T])
}

// splitsOf returns a script whose splits deliver their values at once, in batches of
// size.
func splitsOf[T any](size int, splits ...[]T) *script[T] {
	s := &script[T]{}
	for _, values := range splits {
		var steps []step[T]
		for len(values) > 0 {
			n := min(size, len(values))
			steps = append(steps, step[T]{0, values[:n]})
			values = values[n:]
		}
		s.splits = append(s.splits, steps)
	}
	return s
}

func (s *script[T]) Validate() error { return nil }

func (s *script[T]) Boundedness() connector.Boundedness { return connector.Boundedness(!s.unbounded) }

func (s *script[T]) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	if s.discoverErr != nil {
		return nil, s.discoverErr
	}
	return scriptEnumerator(len(s.splits)), nil
}

func (s *script[T]) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[T], error) {
	if s.openErr != nil {
		return nil, s.openErr
	}
	return &scriptReader[T]{script: s, wake: make(chan struct{}, 1)}, nil
}

// scriptSplit is the number of a split.
type scriptSplit int

func (s scriptSplit) ID() string { return fmt.Sprintf("split-%d", int(s)) }

// scriptEnumerator is the number of splits.
type scriptEnumerator int

func (e scriptEnumerator) Discover(context.Context) ([]connector.Split, error) {
	var splits []connector.Split
	for i := range int(e) {
		splits = append(splits, scriptSplit(i))
	}
	return splits, nil
}

func (e scriptEnumerator) Owner(s connector.Split, parallelism int) int {
	return int(s.(scriptSplit)) % parallelism
}

func (e scriptEnumerator) Close() error { return nil }

// playing is how far a reader is with one split.
type playing struct {
	split    scriptSplit
	next     int
	offset   int64
	finished bool
}

type scriptReader[T any] struct {
	script  *script[T]
	splits  []*playing
	turn    int
	noMore  bool
	started time.Time
	wake    chan struct{}
	timer   *time.Timer
	offsets []int64
}

func (r *scriptReader[T]) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		r.splits = append(r.splits, &playing{split: s.(scriptSplit)})
	}
	return nil
}

func (r *scriptReader[T]) NoMoreSplits()              { r.noMore = true }
func (r *scriptReader[T]) Available() <-chan struct{} { return r.wake }

func (r *scriptReader[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	if r.started.IsZero() {
		r.started = time.Now()
	}
	if r.script.pollErr != nil {
		return 0, r.script.pollErr
	}
	elapsed := time.Since(r.started)
	next := time.Duration(-1)
	live := 0
	for range r.splits {
		p := r.splits[r.turn]
		r.turn = (r.turn + 1) % len(r.splits)
		if p.finished {
			continue
		}
		live++
		due, last := r.script.endAfter, true
		if steps := r.script.splits[p.split]; p.next < len(steps) {
			due, last = steps[p.next].after, false
		}
		switch {
		case last && r.script.unbounded:
		case elapsed < due:
			if next < 0 || due < next {
				next = due
			}
		case last:
			p.finished = true
			return connector.MoreAvailable, out.FinishSplit(p.split.ID())
		default:
			return connector.MoreAvailable, r.emit(p, out)
		}
	}
	if live == 0 && r.noMore {
		return connector.EndOfInput, nil
	}
	if next >= 0 {
		r.wakeIn(next - elapsed)
	}
	return connector.NothingAvailable, nil
}

func (r *scriptReader[T]) wakeIn(d time.Duration) {
	if r.timer != nil {
		r.timer.Reset(d)
		return
	}
	r.timer = time.AfterFunc(d, func() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	})
}

func (r *scriptReader[T]) emit(p *playing, out connector.ReaderOutput[T]) error {
	s := r.script.splits[p.split][p.next]
	p.next++
	if r.script.delivered != nil {
		r.script.delivered(int(p.split), s)
	}
	b := out.Batch()
	r.offsets = r.offsets[:0]
	for _, v := range s.values {
		b.Append(v, eventtime.MinTimestamp, 0)
		r.offsets = append(r.offsets, p.offset)
		p.offset++
	}
	return out.Emit(p.split.ID(), b, r.offsets, eventtime.NoTimestamp)
}

func (r *scriptReader[T]) Close() error {
	if r.timer != nil {
		r.timer.Stop()
	}
	return r.script.closeErr
}

// from adds a source of events to env.
func from(env *lowwater.Environment, s *script[event], strategy eventtime.WatermarkStrategy[event]) *lowwater.DataStream[event] {
	return lowwater.FromSource(env, s, strategy, "events")
}
