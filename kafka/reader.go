package kafka

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
)

// reader decodes what its fetcher fetches.
type reader[T any] struct {
	*fetcher
	rt     connector.ReaderRuntime
	decode decodeFunc[T]
	// offsets is parallel to the batch being filled.
	offsets []int64
	// dropped counts the records that were not passed on, by reason.
	dropped map[string]int64
}

var (
	_ connector.Reader[int]    = (*reader[int])(nil)
	_ connector.SplitPauser    = (*reader[int])(nil)
	_ connector.SplitPositions = (*reader[int])(nil)
	_ connector.EndReporter    = (*reader[int])(nil)

	_ connector.OffsetCommitter = (*reader[int])(nil)
)

func newReader[T any](cfg *sourceConfig, decode decodeFunc[T], rt connector.ReaderRuntime) (connector.Reader[T], error) {
	f, err := newFetcher(cfg, rt.Logger, rt.Checkpointing)
	if err != nil {
		return nil, err
	}
	return &reader[T]{fetcher: f, rt: rt, decode: decode, dropped: map[string]int64{}}, nil
}

func (r *reader[T]) AddSplits(splits []connector.Split) error { return r.add(splits) }
func (r *reader[T]) NoMoreSplits()                            { r.setNoMore() }
func (r *reader[T]) Available() <-chan struct{}               { return r.available }
func (r *reader[T]) PauseSplits(ids []string)                 { r.setPaused(ids, true) }
func (r *reader[T]) ResumeSplits(ids []string)                { r.setPaused(ids, false) }

func (r *reader[T]) Close() error {
	r.close()
	for _, reason := range slices.Sorted(maps.Keys(r.dropped)) {
		r.log.Warn("records were dropped in all", "reason", reason, "records", r.dropped[reason])
	}
	return nil
}

// Poll passes on one batch of one split.
func (r *reader[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	if err := r.failure(); err != nil {
		return connector.NothingAvailable, err
	}
	for {
		if err := r.finishEnded(out); err != nil {
			return connector.NothingAvailable, err
		}
		if s := r.nextReady(); s != nil {
			r.starving.Store(false)
			return connector.MoreAvailable, r.emit(out, s)
		}
		if r.noMore && r.open == 0 {
			return connector.EndOfInput, nil
		}
		if !r.receive() {
			r.starving.Store(true)
			return connector.NothingAvailable, nil
		}
	}
}

// finishEnded reports splits that ended without a last record.
func (r *reader[T]) finishEnded(out connector.ReaderOutput[T]) error {
	for _, s := range r.ended {
		r.finish(s)
		if err := out.FinishSplit(s.id); err != nil {
			return err
		}
	}
	r.ended = r.ended[:0]
	return nil
}

// emit passes on the next records of s: at most a batch, all with the same type
// of timestamp.
func (r *reader[T]) emit(out connector.ReaderOutput[T], s *split) error {
	b := out.Batch()
	r.offsets = r.offsets[:0]
	var timestamps connector.TimestampType
	next := s.next.Load()
	size := 0
	for range connector.BatchSize {
		rec := s.peek()
		if rec == nil || s.reached(next) {
			break
		}
		if s.reached(rec.Offset) {
			next = rec.Offset
			break
		}
		if !rec.Attrs.IsControl() {
			t := timestampTypeOf(rec)
			if b.Len() > 0 && t != timestamps {
				break
			}
			timestamps = t
			if err := r.append(out, b, rec); err != nil {
				return err
			}
			size += len(rec.Key) + len(rec.Value)
		}
		next = rec.Offset + 1
		s.drop()
	}
	if r.rt.CountBytes != nil {
		r.rt.CountBytes(int64(size))
	}
	if err := r.pass(out, s, b, timestamps); err != nil {
		return err
	}
	s.next.Store(next)
	if !s.reached(next) {
		return nil
	}
	r.finish(s)
	return out.FinishSplit(s.id)
}

func (r *reader[T]) pass(out connector.ReaderOutput[T], s *split, b *connector.Batch[T], t connector.TimestampType) error {
	if b.Len() == 0 {
		b.Release()
		return nil
	}
	return out.Emit(s.id, b, r.offsets, t)
}

// append decodes a record into the batch, or does with it what is done with
// records that cannot be decoded.
func (r *reader[T]) append(out connector.ReaderOutput[T], b *connector.Batch[T], rec *kgo.Record) error {
	var zero T // batches are recycled, and decoders need not set every field
	n := b.Len()
	b.Values = append(b.Values, zero)
	if err := r.decode(rec, &b.Values[n]); err != nil {
		b.Values = b.Values[:n]
		return r.reject(out, rec, err)
	}
	b.Timestamps = append(b.Timestamps, timestampOf(rec))
	b.Origins = append(b.Origins, 0)
	r.offsets = append(r.offsets, rec.Offset)
	return nil
}

func (r *reader[T]) reject(out connector.ReaderOutput[T], rec *kgo.Record, cause error) error {
	switch {
	case cause == errTombstone:
		r.drop("tombstone", rec, cause)
		return nil
	case r.cfg.onDecodeError == SkipRecord:
		r.drop("malformed", rec, cause)
		return nil
	case r.cfg.onDecodeError == ToDeadLetters:
		return out.EmitSide(deadLetterOf(rec, cause))
	default:
		return fmt.Errorf("kafka source: cannot decode %s: %w; correct the decoder, or set OnDecodeError to SkipRecord or ToDeadLetters",
			placeOf(rec), cause)
	}
}

// drop counts a record that is not passed on, and logs the first for each reason.
func (r *reader[T]) drop(reason string, rec *kgo.Record, cause error) {
	sample := sampleOf(rec, cause)
	r.rt.CountDropped(reason, sample)
	r.dropped[reason]++
	if r.dropped[reason] == 1 {
		r.log.Warn("a record was dropped; those that follow are only counted", "reason", reason, "record", sample)
	}
}

// Positions yields the splits that are not finished. With ReadCommitted the end
// is the last stable offset. It may be called from any goroutine.
func (r *reader[T]) Positions(yield func(splitID string, next, end int64)) {
	for _, s := range r.snapshot() {
		if !s.finished.Load() {
			yield(s.id, s.next.Load(), s.end.Load())
		}
	}
}

// Committed implements connector.OffsetCommitter. It may be called from any goroutine.
func (r *reader[T]) Committed(yield func(splitID string, offset int64)) {
	for _, s := range r.snapshot() {
		yield(s.id, s.committed.Load())
	}
}

// CaughtUp yields the splits that are not finished, with what brokers say about
// their ends. caughtUp means that every record of the split has been passed on
// and that nothing was appended from since to asOf, both on this machine's
// clock: asOf stands still while brokers do not answer, and while a transaction
// is open. From the first call on brokers are asked about every quiet split once a
// second. It may be called from any goroutine.
func (r *reader[T]) CaughtUp(yield func(splitID string, caughtUp bool, since, asOf time.Time)) {
	r.fresh.Store(true)
	for _, s := range r.snapshot() {
		if s.finished.Load() {
			continue
		}
		r.mu.Lock()
		t := s.tail
		r.mu.Unlock()
		if t.at != s.next.Load() || t.since.IsZero() {
			t = tail{}
		}
		yield(s.id, !t.since.IsZero(), t.since, t.asOf)
	}
}

// snapshot returns the splits added so far. The slice only grows.
func (f *fetcher) snapshot() []*split {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.splits[:len(f.splits):len(f.splits)]
}
