// Package datagen makes records without an outside system: from a slice, or from a
// function at a limited rate. It is for demos, tests and benchmarks.
//
// A job restored from a checkpoint goes on with the record after the last one that the
// checkpoint covers. Nothing else is kept: started anew, the sources begin again.
package datagen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// Option is a setting of a generator. Wrong ones are returned by Source.Validate, and so are
// build errors of the job.
type Option func(*settings)

type settings struct {
	splits  int
	bounded bool
	count   int64
	limited bool
	rate    float64
}

// Splits sets the number of splits, and so the largest useful parallelism. The
// default is 1, the least, and 32768 the most. Split s of n makes the records number s, s+n,
// s+2n, ... A checkpoint can be gone on from with the same number only.
func Splits(n int) Option { return func(s *settings) { s.splits = n } }

// Count makes the source bounded: it ends after n records in all, at once for 0. n must not
// be negative. By default the source never ends.
func Count(n int64) Option { return func(s *settings) { s.bounded, s.count = true, n } }

// RatePerSecond limits how many records all splits make together per second: record
// number n comes n/r seconds after the start. r is above 0 and at most 1e9, and may be a
// fraction. The default is no limit.
func RatePerSecond(r float64) Option { return func(s *settings) { s.limited, s.rate = true, r } }

// Source makes records by calling a function.
type Source[T any] struct {
	settings
	make func(n int64) T
}

// NewSource returns a source of the records make(0), make(1), ... Their record
// timestamp is the wall clock when they are made. make is called by several
// subtasks at once if there are several splits. It must depend on its argument only if a
// restored job is to make the same records again.
func NewSource[T any](make func(n int64) T, options ...Option) *Source[T] {
	s := &Source[T]{settings{splits: 1}, make}
	for _, o := range options {
		o(&s.settings)
	}
	return s
}

// Validate implements connector.Source: it reports all wrong options.
func (s *Source[T]) Validate() error {
	var errs []error
	if s.make == nil {
		errs = append(errs, errors.New("datagen.NewSource: the function is nil"))
	}
	if s.splits < 1 || s.splits > maxSplits {
		errs = append(errs, fmt.Errorf("datagen.Splits(%d): must be from 1 to %d", s.splits, maxSplits))
	}
	if s.count < 0 {
		errs = append(errs, fmt.Errorf("datagen.Count(%d): must not be negative", s.count))
	}
	if s.limited && !(s.rate > 0 && s.rate <= maxRate) {
		errs = append(errs, fmt.Errorf("datagen.RatePerSecond(%v): must be above 0 and not above %v", s.rate, maxRate))
	}
	return errors.Join(errs...)
}

const (
	maxSplits = 1 << 15
	maxRate   = 1e9
)

// Boundedness implements connector.Source: it is Bounded with the option Count.
func (s *Source[T]) Boundedness() connector.Boundedness {
	return connector.Boundedness(s.bounded)
}

// NewEnumerator implements connector.Source.
func (s *Source[T]) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	e := &enumerator{}
	for i := range s.splits {
		e.splits = append(e.splits, split{number: i})
	}
	return e, nil
}

// NewReader implements connector.Source.
func (s *Source[T]) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[T], error) {
	return &reader[T]{source: s, wake: make(chan struct{}, 1)}, nil
}

// progress is how far one split is.
type progress struct {
	id       string
	number   int
	next     int64 // the next record's number
	made     int64
	finished bool
	paused   bool
}

type reader[T any] struct {
	source *Source[T]
	splits []*progress
	turn   int
	noMore bool
	ended  int

	// started is when the first Poll was, base how many records all splits together had
	// made then, in an earlier run.
	started time.Time
	base    int64
	wake    chan struct{}
	timer   *time.Timer
	offsets []int64
}

func (r *reader[T]) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		sp := s.(split)
		r.splits = append(r.splits, &progress{
			id:     sp.ID(),
			number: sp.number,
			next:   int64(sp.number) + sp.made*int64(r.source.splits),
			made:   sp.made,
		})
	}
	return nil
}

// SnapshotSplits implements connector.SplitSnapshotter.
func (r *reader[T]) SnapshotSplits() (splits []connector.Split, err error) {
	for _, p := range r.splits {
		if !p.finished {
			splits = append(splits, split{p.number, p.made})
		}
	}
	return splits, nil
}

func (r *reader[T]) NoMoreSplits() { r.noMore = true }

// PauseSplits implements connector.SplitPauser.
func (r *reader[T]) PauseSplits(ids []string) { r.setPaused(ids, true) }

// ResumeSplits implements connector.SplitPauser.
func (r *reader[T]) ResumeSplits(ids []string) { r.setPaused(ids, false) }

func (r *reader[T]) setPaused(ids []string, paused bool) {
	for _, p := range r.splits {
		if slices.Contains(ids, p.id) {
			p.paused = paused
		}
	}
	r.signal()
}

func (r *reader[T]) Available() <-chan struct{} { return r.wake }

// Poll makes up to a batch of one split, the splits taking turns.
func (r *reader[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	if r.started.IsZero() {
		r.start()
	}
	for range r.splits {
		p := r.splits[r.turn]
		r.turn = (r.turn + 1) % len(r.splits)
		if p.finished || p.paused {
			continue
		}
		n := r.allowed(p)
		if n > 0 {
			if err := r.emit(p, n, out); err != nil {
				return 0, err
			}
		}
		if r.source.bounded && p.next >= r.source.count {
			p.finished = true
			r.ended++
			if err := out.FinishSplit(p.id); err != nil {
				return 0, err
			}
		}
		if n > 0 {
			return connector.MoreAvailable, nil
		}
	}
	if r.noMore && r.ended == len(r.splits) {
		return connector.EndOfInput, nil
	}
	r.sleep()
	return connector.NothingAvailable, nil
}

// start starts the clock of the rate where the slowest split is.
func (r *reader[T]) start() {
	r.started = time.Now()
	for i, p := range r.splits {
		if all := p.made * int64(r.source.splits); i == 0 || all < r.base {
			r.base = all
		}
	}
}

// allowed returns how many records p may make now.
func (r *reader[T]) allowed(p *progress) int {
	n, step := int64(connector.BatchSize), int64(r.source.splits)
	// upTo returns how many of p's numbers are below limit.
	upTo := func(limit int64) int64 {
		if limit <= p.next {
			return 0
		}
		return (limit-1-p.next)/step + 1
	}
	if r.source.limited {
		n = min(n, upTo(r.due()))
	}
	if r.source.bounded {
		n = min(n, upTo(r.source.count))
	}
	return int(n)
}

// due is how many records all splits together should have made by now.
func (r *reader[T]) due() int64 {
	const rounding = 1e-6 // a record must not come late because its time was rounded down
	return r.base + 1 + int64(time.Since(r.started).Seconds()*r.source.rate+rounding)
}

// sleep asks for a wake-up when the next record is due.
func (r *reader[T]) sleep() {
	if !r.source.limited || r.ended == len(r.splits) {
		return
	}
	next := int64(math.MaxInt64)
	for _, p := range r.splits {
		if !p.finished {
			next = min(next, p.next)
		}
	}
	// An hour at most, so that the slowest rates do not overflow a duration.
	after := time.Duration(min(float64(next-r.base)/r.source.rate-time.Since(r.started).Seconds(), 3600) * float64(time.Second))
	after = max(after, time.Millisecond) // high rates come in batches
	if r.timer == nil {
		r.timer = time.AfterFunc(after, r.signal)
		return
	}
	r.timer.Reset(after)
}

func (r *reader[T]) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reader[T]) emit(p *progress, n int, out connector.ReaderOutput[T]) error {
	b, now := out.Batch(), time.Now().UnixMilli()
	r.offsets = r.offsets[:0]
	for range n {
		b.Append(r.source.make(p.next), now, 0)
		r.offsets = append(r.offsets, p.made)
		p.next += int64(r.source.splits)
		p.made++
	}
	return out.Emit(p.id, b, r.offsets, eventtime.CreateTime)
}

func (r *reader[T]) Close() error {
	if r.timer != nil {
		r.timer.Stop()
	}
	return nil
}
