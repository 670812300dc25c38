package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format"
)

// writer writes the files of one subtask.
type writer[T any] struct {
	dir       *directory
	cfg       sinkConfig
	format    format.File[T]
	byValue   func(v T, timestamp int64) string
	rt        connector.WriterRuntime
	log       *slog.Logger
	run       string
	extension string

	// current are the open files by bucket, last the one that was written to last.
	current map[string]*part[T]
	last    *part[T]
	parts   int    // how many files were begun
	records uint64 // how many were written
	// ended are files that are whole and safe on disk, but neither visible nor prepared.
	ended []string
	spare []*streams
	// second is the one that timeBucket is the bucket of; text is where it is written.
	second     int64
	timeBucket string
	text       []byte
}

var (
	_ connector.Writer[int]     = (*writer[int])(nil)
	_ connector.TwoPhaseWriter  = (*writer[int])(nil)
	_ connector.WatermarkWriter = (*writer[int])(nil)
)

func newWriter[T any](s *Sink[T], rt connector.WriterRuntime) (connector.Writer[T], error) {
	dir, err := openDirectory(s.dir)
	if err != nil {
		return nil, fmt.Errorf("files sink: opening its directory: %w", err)
	}
	log := rt.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &writer[T]{
		dir: dir, cfg: s.cfg, format: s.format, byValue: s.bucket,
		rt: rt, log: log.With("operator", rt.Operator, "subtask", rt.Subtask),
		run: newRun(), extension: s.format.Extension() + s.cfg.codec.extension(),
		current: map[string]*part[T]{}, second: math.MinInt64,
	}, nil
}

// noTime is the bucket by time of records that have none.
const noTime = "no-time"

func (w *writer[T]) errorf(format string, args ...any) error {
	return fmt.Errorf("files sink: in %s: %w", w.dir.path, fmt.Errorf(format, args...))
}

// Write implements connector.Writer.
func (w *writer[T]) Write(_ context.Context, b *connector.Batch[T]) error {
	if err := w.endAged(); err != nil {
		return err
	}
	for i, v := range b.Values {
		p, err := w.partFor(w.bucketOf(v, b.Timestamps[i]))
		if err != nil {
			return err
		}
		if err := p.records.Write(v); err != nil {
			return w.failed(p, err)
		}
		w.records++
		p.used = w.records
		if p.streams.written >= w.cfg.rollSize {
			if err := w.roll(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer[T]) bucketOf(v T, timestamp int64) string {
	switch {
	case w.byValue != nil:
		return w.byValue(v, timestamp)
	case w.cfg.bucketLayout == "":
		return ""
	case timestamp == eventtime.MinTimestamp:
		return noTime
	}
	if second := time.UnixMilli(timestamp).Unix(); second != w.second {
		w.second = second
		w.text = time.Unix(second, 0).UTC().AppendFormat(w.text[:0], w.cfg.bucketLayout)
		if string(w.text) != w.timeBucket {
			w.timeBucket = string(w.text)
		}
	}
	return w.timeBucket
}

// partFor returns the open file of a bucket.
func (w *writer[T]) partFor(bucket string) (*part[T], error) {
	if w.last != nil && w.last.bucket == bucket {
		return w.last, nil
	}
	p, ok := w.current[bucket]
	if !ok {
		var err error
		if p, err = w.open(bucket); err != nil {
			return nil, err
		}
	}
	w.last = p
	return p, nil
}

// WriteWatermark implements connector.WatermarkWriter: it is a moment to look at the age of
// files.
func (w *writer[T]) WriteWatermark(context.Context, int64) error { return w.endAged() }

func (w *writer[T]) endAged() error {
	if w.cfg.rollAfter == 0 || len(w.current) == 0 {
		return nil
	}
	now := time.Now()
	for _, p := range w.current {
		if now.Sub(p.opened) >= w.cfg.rollAfter {
			if err := w.roll(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// endOldest ends the file that was not written to for longest.
func (w *writer[T]) endOldest() error {
	var oldest *part[T]
	for _, p := range w.current {
		if oldest == nil || p.used < oldest.used {
			oldest = p
		}
	}
	return w.roll(oldest)
}

// roll ends a file between checkpoints. At-least-once makes it visible.
func (w *writer[T]) roll(p *part[T]) error {
	if err := w.end(p); err != nil {
		return err
	}
	if w.cfg.guarantee == connector.ExactlyOnce {
		return nil
	}
	return w.revealEnded()
}

// endAll ends all open files, in the order in which they were begun.
func (w *writer[T]) endAll() error {
	open := slices.SortedFunc(maps.Values(w.current), func(a, b *part[T]) int { return a.opened.Compare(b.opened) })
	for _, p := range open {
		if err := w.end(p); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements connector.Writer. In exactly-once mode it is not called.
func (w *writer[T]) Flush(context.Context) error {
	if err := w.endAll(); err != nil {
		return err
	}
	return w.revealEnded()
}

func (w *writer[T]) revealEnded() error {
	if err := w.reveal(w.ended); err != nil {
		return err
	}
	w.ended = nil
	return nil
}

// preparedJSON is what a checkpoint keeps of files that are to be made visible.
type preparedJSON struct {
	// Files are their visible names, relative to the directory.
	Files []string `json:"files"`
}

// Prepare implements connector.TwoPhaseWriter.
func (w *writer[T]) Prepare(context.Context, int64) ([]byte, error) {
	if err := w.endAll(); err != nil {
		return nil, err
	}
	if len(w.ended) == 0 {
		return nil, nil
	}
	if err := w.dir.syncOf(w.ended); err != nil {
		return nil, w.errorf("%w", err)
	}
	prepared, err := json.Marshal(preparedJSON{w.ended})
	w.ended = nil
	return prepared, err
}

// Commit implements connector.TwoPhaseWriter.
func (w *writer[T]) Commit(_ context.Context, prepared []byte) error {
	files, err := w.decode(prepared)
	if err != nil {
		return err
	}
	return w.reveal(files)
}

func (w *writer[T]) decode(prepared []byte) ([]string, error) {
	var stored preparedJSON
	if err := json.Unmarshal(prepared, &stored); err != nil {
		return nil, fmt.Errorf("files sink: the prepared output %.200q is unreadable: %w", prepared, err)
	}
	return stored.Files, nil
}

// reveal makes files visible, safely on disk. For those that are visible it does nothing.
func (w *writer[T]) reveal(files []string) error {
	var there []string
	for _, f := range files {
		err := w.dir.reveal(f)
		switch {
		case errors.Is(err, fs.ErrNotExist) && w.cfg.ignoreMissing:
			w.log.Error("a file that is to be made visible is missing; the job goes on, as IgnoreMissing says", "directory", w.dir.path, "file", f)
			continue
		case errors.Is(err, fs.ErrNotExist):
			return w.errorf("%s, which is to be made visible, is missing under this name and as %s, and its records with it: "+
				"bring it back; if the sink wrote to another directory, restore with that one; if it was taken away after it had been visible, use IgnoreMissing", f, hidden(f))
		case err != nil:
			return w.errorf("making %s visible: %w", f, err)
		}
		there = append(there, f)
	}
	if err := w.dir.syncOf(there); err != nil {
		return w.errorf("%w", err)
	}
	return nil
}

// Recover implements connector.TwoPhaseWriter.
func (w *writer[T]) Recover(ctx context.Context, prepared, undecided [][]byte) error {
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	keep := map[string]bool{}
	for _, p := range undecided {
		files, err := w.decode(p)
		if err != nil {
			return err
		}
		for _, f := range files {
			keep[hidden(f)] = true
		}
	}
	removed, err := w.dir.removeUnfinished(w.cfg.prefix, keep, func(subtask int) bool {
		return subtask%w.rt.Parallelism == w.rt.Subtask
	})
	if err != nil {
		return w.errorf("removing unfinished files of earlier runs: %w", err)
	}
	if removed > 0 {
		w.log.Info("removed unfinished files of earlier runs; the job writes their records again", "directory", w.dir.path, "files", removed)
	}
	return nil
}

// Close implements connector.Writer. Files that are neither visible nor prepared are removed.
func (w *writer[T]) Close() error {
	var errs []error
	for _, p := range w.current {
		p.file.Close() // a second time if ending it has failed
		errs = append(errs, w.dir.root.Remove(hidden(p.name)))
	}
	for _, f := range w.ended {
		if err := w.dir.root.Remove(hidden(f)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, w.dir.root.Close())...)
}
