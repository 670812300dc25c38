package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Restored is an image of a store, maybe of another process, open for reading.
type Restored struct {
	place
	db *pebble.DB
}

// fetchers is how many files of an image are copied at a time: they may come from far away.
const fetchers = 4

// OpenImage copies the files of an image into a temporary directory, a few at a time, and opens
// them. The caller closes it. The first error ends it, as does ctx, when what is being read at
// that moment has been. Other fields of the options than for a store do not matter.
func OpenImage(ctx context.Context, o Options, files []File) (*Restored, error) {
	place, err := newPlace(&o)
	if err != nil {
		return nil, err
	}
	r := &Restored{place: place}
	if err := r.fetch(ctx, files); err != nil {
		return nil, errors.Join(err, r.place.close())
	}
	options := o.pebble(&r.place)
	options.ReadOnly, options.ErrorIfNotExists = true, true
	if r.db, err = pebble.Open(r.dir, options); err != nil {
		return nil, errors.Join(fmt.Errorf("the files of the snapshot are no store: %w", err), r.place.close())
	}
	return r, nil
}

// fetch copies files into the directory, and returns when nothing is being read or written
// any more.
func (r *Restored) fetch(ctx context.Context, files []File) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var taken atomic.Int64
	var group sync.WaitGroup
	for range min(fetchers, len(files)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(files) {
					return
				}
				if err := r.copy(ctx, &files[i]); err != nil {
					fail(err) // the first one counts
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// copy copies one file into the directory. Errors of what it is read from are returned as they
// are.
func (r *Restored) copy(ctx context.Context, f *File) (err error) {
	if filepath.Base(f.Name) != f.Name {
		return fmt.Errorf("the name %q of a file of the snapshot is impossible", f.Name)
	}
	from, err := f.OpenUntil(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.Create(filepath.Join(r.dir, f.Name))
	if err != nil {
		return r.failed("cannot be written to", err)
	}
	written := &counted{Writer: to}
	_, err = io.Copy(written, from)
	closed := to.Close()
	if written.err == nil {
		written.err = closed
	}
	switch {
	case written.err != nil:
		return r.failed("cannot be written to", written.err)
	case err != nil:
		return err
	case written.n != f.Size:
		return fmt.Errorf("the file %s of the snapshot has %d bytes instead of %d", f.Name, written.n, f.Size)
	}
	return nil
}

// counted counts what is written, and remembers what went wrong.
type counted struct {
	io.Writer
	n   int64
	err error
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}

// From visits entries as View.From does.
func (r *Restored) From(prefix, from []byte) iter.Seq2[Entry, error] {
	return r.scan(r.db, prefix, from)
}

// Close removes the directory.
func (r *Restored) Close() error { return errors.Join(r.closeDB(r.db), r.place.close()) }
