package datagen

import (
	"context"
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// Slice returns a bounded source of the given values, in one split and in order.
// The records have no timestamps. The slice must not change while a job reads it, nor
// between a checkpoint and a run that goes on from it; one that has become shorter than
// what was read fails the start.
func Slice[T any](values []T) connector.Source[T] { return sliceSource[T]{values} }

type sliceSource[T any] struct{ values []T }

func (s sliceSource[T]) Validate() error                    { return nil }
func (s sliceSource[T]) Boundedness() connector.Boundedness { return connector.Bounded }

func (s sliceSource[T]) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return &enumerator{splits: []connector.Split{split{}}}, nil
}

// EncodeSplit implements connector.SplitCodec.
func (s sliceSource[T]) EncodeSplit(sp connector.Split) ([]byte, error) { return encodeSplit(sp, 1) }

// DecodeSplit implements connector.SplitCodec.
func (s sliceSource[T]) DecodeSplit(data []byte) (connector.Split, error) {
	sp, err := decodeSplit(data, 1)
	if err == nil && sp.made > int64(len(s.values)) {
		err = fmt.Errorf("datagen.Slice: the checkpoint has read %d values, of which there are only %d now", sp.made, len(s.values))
	}
	return sp, err
}

func (s sliceSource[T]) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[T], error) {
	return &sliceReader[T]{values: s.values, wake: make(chan struct{})}, nil
}

type sliceReader[T any] struct {
	values []T
	next   int
	// split is empty if the subtask has none or has finished it.
	split   string
	wake    chan struct{}
	offsets []int64
}

func (r *sliceReader[T]) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		r.split, r.next = s.ID(), int(s.(split).made)
	}
	return nil
}

// SnapshotSplits implements connector.SplitSnapshotter.
func (r *sliceReader[T]) SnapshotSplits() ([]connector.Split, error) {
	if r.split == "" {
		return nil, nil
	}
	return []connector.Split{split{made: int64(r.next)}}, nil
}

func (r *sliceReader[T]) NoMoreSplits()              {}
func (r *sliceReader[T]) Available() <-chan struct{} { return r.wake }
func (r *sliceReader[T]) Close() error               { return nil }

func (r *sliceReader[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	if r.split == "" {
		return connector.EndOfInput, nil
	}
	if r.next < len(r.values) {
		if err := r.emit(out); err != nil {
			return 0, err
		}
	}
	if r.next == len(r.values) {
		finished := r.split
		r.split = ""
		return connector.MoreAvailable, out.FinishSplit(finished)
	}
	return connector.MoreAvailable, nil
}

func (r *sliceReader[T]) emit(out connector.ReaderOutput[T]) error {
	to := min(r.next+connector.BatchSize, len(r.values))
	b := out.Batch()
	r.offsets = r.offsets[:0]
	for ; r.next < to; r.next++ {
		b.Append(r.values[r.next], eventtime.MinTimestamp, 0)
		r.offsets = append(r.offsets, int64(r.next))
	}
	return out.Emit(r.split, b, r.offsets, eventtime.NoTimestamp)
}
