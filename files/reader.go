package files

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// reader passes on what its fetcher has read. The subtask alone writes it.
type reader[T any] struct {
	cfg   sourceConfig
	rt    connector.ReaderRuntime
	log   *slog.Logger
	fetch *fetcher[T]
	// files are those that are not finished, in the order in which they are read. They are
	// written under the fetcher's mu.
	files  []*file[T]
	noMore bool
	// held are chunks of files that were paused when the chunks were there.
	held    []*chunk[T]
	dropped int64
}

func newReader[T any](s *Source[T], rt connector.ReaderRuntime) *reader[T] {
	log := rt.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &reader[T]{cfg: s.cfg, rt: rt, log: log.With("operator", rt.Operator, "subtask", rt.Subtask), fetch: newFetcher(s.format, s.cfg)}
	go r.fetch.run()
	return r
}

// AddSplits implements connector.Reader.
func (r *reader[T]) AddSplits(splits []connector.Split) error {
	r.fetch.mu.Lock()
	for _, s := range splits {
		sp := s.(split)
		r.files = append(r.files, &file[T]{id: sp.path, from: sp, split: sp, passed: -1})
	}
	slices.SortStableFunc(r.files, func(a, b *file[T]) int { return cmp.Compare(a.split.number, b.split.number) })
	r.fetch.mu.Unlock()
	r.fetch.setFiles(slices.Clone(r.files))
	signal(r.fetch.wake)
	return nil
}

// NoMoreSplits implements connector.Reader.
func (r *reader[T]) NoMoreSplits() {
	r.noMore = true
	signal(r.fetch.wake)
}

// Available implements connector.Reader.
func (r *reader[T]) Available() <-chan struct{} { return r.fetch.wake }

// Close implements connector.Reader.
func (r *reader[T]) Close() error {
	close(r.fetch.stop)
	<-r.fetch.stopped
	return nil
}

// PauseSplits implements connector.SplitPauser.
func (r *reader[T]) PauseSplits(ids []string) { r.setPaused(ids, true) }

// ResumeSplits implements connector.SplitPauser.
func (r *reader[T]) ResumeSplits(ids []string) { r.setPaused(ids, false) }

func (r *reader[T]) setPaused(ids []string, paused bool) {
	r.fetch.mu.Lock()
	for _, f := range r.files {
		if slices.Contains(ids, f.id) {
			f.paused = paused
		}
	}
	r.fetch.mu.Unlock()
	signal(r.fetch.changed)
	signal(r.fetch.wake)
}

// Positions implements connector.SplitPositions.
func (r *reader[T]) Positions(yield func(splitID string, next, end int64)) {
	r.fetch.mu.Lock()
	defer r.fetch.mu.Unlock()
	for _, f := range r.files {
		yield(f.id, f.split.position, f.passed)
	}
}

// SnapshotSplits implements connector.SplitSnapshotter.
func (r *reader[T]) SnapshotSplits() ([]connector.Split, error) {
	var splits []connector.Split
	for _, f := range r.files {
		splits = append(splits, f.split)
	}
	return splits, nil
}

// Poll implements connector.Reader.
func (r *reader[T]) Poll(out connector.ReaderOutput[T]) (connector.PollStatus, error) {
	if c := r.nextChunk(); c != nil {
		return connector.MoreAvailable, r.pass(out, c)
	}
	if r.noMore && len(r.files) == 0 {
		return connector.EndOfInput, nil
	}
	return connector.NothingAvailable, nil
}

func (r *reader[T]) nextChunk() *chunk[T] {
	for i, c := range r.held {
		if !c.file.paused {
			r.held = slices.Delete(r.held, i, i+1)
			return c
		}
	}
	for {
		select {
		case c := <-r.fetch.chunks:
			if !c.file.paused {
				return c
			}
			r.held = append(r.held, c)
		default:
			return nil
		}
	}
}

// pass passes on a chunk.
func (r *reader[T]) pass(out connector.ReaderOutput[T], c *chunk[T]) error {
	f := c.file
	if len(c.values) > 0 {
		if err := out.Emit(f.id, r.batch(out, c), c.offsets, connector.NoTimestamp); err != nil {
			return err
		}
	}
	for _, record := range c.rejected {
		if err := r.reject(out, f, record); err != nil {
			return err
		}
	}
	if c.err != nil {
		return c.err
	}
	r.fetch.mu.Lock()
	f.split.position, f.split.size, f.split.modified, f.passed = c.next, c.size, c.modified, c.end
	r.fetch.mu.Unlock()
	if c.finished {
		if err := r.finish(out, f); err != nil {
			return err
		}
	}
	r.fetch.giveBack(c)
	return nil
}

func (r *reader[T]) batch(out connector.ReaderOutput[T], c *chunk[T]) *connector.Batch[T] {
	b := out.Batch()
	b.Values = append(b.Values, c.values...)
	for range c.values {
		b.Timestamps = append(b.Timestamps, eventtime.MinTimestamp)
		b.Origins = append(b.Origins, 0)
	}
	return b
}

// finish ends a file. The next one may be idle by now, for a strategy with an idle timeout:
// it is active again before, so that the subtask does not look idle in between.
func (r *reader[T]) finish(out connector.ReaderOutput[T], f *file[T]) error {
	r.fetch.mu.Lock()
	r.files = slices.DeleteFunc(r.files, func(other *file[T]) bool { return other == f })
	r.fetch.mu.Unlock()
	if len(r.files) > 0 {
		if err := out.MarkActive(r.files[0].id); err != nil {
			return err
		}
	}
	return out.FinishSplit(f.id)
}

func (r *reader[T]) reject(out connector.ReaderOutput[T], f *file[T], record rejected) error {
	if r.cfg.onDecodeError == ToDeadLetters {
		return out.EmitSide(connector.DeadLetter{
			SplitID: f.id, Offset: record.offset, Timestamp: eventtime.MinTimestamp, Value: record.data, Err: record.err,
		})
	}
	sample := fmt.Sprintf("%s, byte %d: %.64q: %.200s", f.id, record.offset, record.data, record.err)
	r.rt.CountDropped("malformed", sample)
	if r.dropped++; r.dropped == 1 {
		r.log.Warn("a record was dropped; those that follow are only counted", "reason", "malformed", "record", sample)
	}
	return nil
}
