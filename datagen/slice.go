package datagen

import (
	"context"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// Slice returns a bounded source of the given values, in one split and in order.
// The records have no timestamps.
func Slice[T any](values []T) connector.Source[T] { return sliceSource[T]{values} }

type sliceSource[T any] struct{ values []T }

func (s sliceSource[T]) Validate() error                    { return nil }
func (s sliceSource[T]) Boundedness() connector.Boundedness { return connector.Bounded }

func (s sliceSource[T]) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return &enumerator{splits: []connector.Split{split(0)}}, nil
}

func (s sliceSource[T]) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[T], error) {
	return &sliceReader[T]{values: s.values, wake: make(chan struct{})}, nil
}

type sliceReader[T any] struct {
	values  []T
	next    int
	split   string
	wake    chan struct{}
	offsets []int64
}

func (r *sliceReader[T]) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		r.split = s.ID()
	}
	return nil
}

func (r *sliceReader[T]) NoMoreSplits()              {}
func (r *sliceReader[T]) Available() <-chan struct{} { return r.wake }
func (r *sliceReader[T]) Close() error               { return nil }

func (r *sliceReader[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	if r.split == "" || r.next == len(r.values) {
		return connector.EndOfInput, nil
	}
	to := min(r.next+connector.BatchSize, len(r.values))
	b := out.Batch()
	r.offsets = r.offsets[:0]
	for ; r.next < to; r.next++ {
		b.Append(r.values[r.next], eventtime.MinTimestamp, 0)
		r.offsets = append(r.offsets, int64(r.next))
	}
	if err := out.Emit(r.split, b, r.offsets, eventtime.NoTimestamp); err != nil {
		return 0, err
	}
	if r.next == len(r.values) {
		return connector.MoreAvailable, out.FinishSplit(r.split)
	}
	return connector.MoreAvailable, nil
}
