package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// maxHeld is how many bytes of writes are held back for an image before the store's
// goroutine waits until it has been taken.
const maxHeld = 16 << 20

// Image is the store as it was at one moment, as files. Those that hold entries never change
// once they are written, so images of the same store have most of them in common.
//
// Until it has been taken, which takes a flush and a hard link for each file, the store's
// goroutine goes on: what it writes is held back in memory, where it finds it, and the files
// stay what they were. Any goroutine may use the image. It keeps the store open.
type Image struct {
	store *Store
	dir   string
	spans []pebble.CheckpointSpan

	// mu is held while the image is taken, and while it is closed.
	mu  sync.Mutex
	err error
	// over says that writes need not be held back any more: the image has been taken, or
	// could not be, or has been given up.
	over atomic.Bool
}

// Image begins an image of the store as it is now, and reads and writes nothing. With prefixes
// it is good for keys that begin with one of them: files without such keys are not in it. The
// store's goroutine calls it; the caller closes the image.
func (s *Store) Image(prefixes ...[]byte) (*Image, error) {
	if err := s.release(); err != nil {
		return nil, err
	}
	s.use()
	s.images++
	s.image = &Image{store: s, dir: filepath.Join(s.dir, fmt.Sprint("image-", s.images))}
	for _, prefix := range prefixes {
		s.image.spans = append(s.image.spans, pebble.CheckpointSpan{Start: prefix, End: after(prefix)})
	}
	s.held = s.db.NewIndexedBatch()
	return s.image, nil
}

// Holding reports whether writes are being held back for an image. A View would wait for it.
func (s *Store) Holding() bool { return s.image != nil && !s.image.over.Load() }

// catchUp writes what was held back for an image that is over.
func (s *Store) catchUp() error {
	if s.image == nil || !s.image.over.Load() {
		return nil
	}
	held := s.held
	s.image, s.held = nil, nil
	if err := s.waitForRoom(held.Len()); err != nil {
		return errors.Join(err, held.Close())
	}
	if err := errors.Join(held.Commit(pebble.NoSync), held.Close()); err != nil {
		return s.failed("cannot be written to", err)
	}
	return nil
}

// release sees that nothing is held back: the image is taken now if it is not over. What went
// wrong with it is for who waits for the image, also that the store's goroutine is to end.
func (s *Store) release() error {
	if s.image != nil {
		_ = s.image.Take(s.ctx)
	}
	return s.catchUp()
}

// reader returns what the store's goroutine reads: the files, and before them what is held back.
func (s *Store) reader() (pebble.Reader, error) {
	if err := s.usable("cannot be read"); err != nil {
		return nil, err
	}
	if err := s.catchUp(); err != nil {
		return nil, err
	}
	if s.held != nil {
		return s.held, nil
	}
	return s.db, nil
}

// write has f write n bytes where writes go now.
func (s *Store) write(n int, f func(pebble.Writer) error) error {
	if err := s.usable("cannot be written to"); err != nil {
		return err
	}
	if err := s.catchUp(); err != nil {
		return err
	}
	if s.held == nil {
		if err := s.waitForRoom(n); err != nil {
			return err
		}
		if err := f(s.db); err != nil {
			return s.failed("cannot be written to", err)
		}
		return nil
	}
	if err := f(s.held); err != nil {
		return s.failed("cannot be written to", err)
	}
	if s.held.Len() > maxHeld {
		return s.release()
	}
	return nil
}

// Take makes the files, if that has not been done. It returns soon when ctx ends.
func (i *Image) Take(ctx context.Context) error {
	i.store.disturbed()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over.Load() {
		i.err = i.take(ctx)
		i.over.Store(true)
	}
	return i.err
}

func (i *Image) take(ctx context.Context) error {
	s := i.store
	if err := s.usable("cannot be written to"); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return s.failed("cannot be written to", err)
	}
	select {
	case <-flushed:
	case <-s.health.isBroken:
		return s.usable("cannot be written to")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.db.Checkpoint(i.dir, pebble.WithRestrictToSpans(i.spans)); err != nil {
		return s.failed("cannot be written to", err)
	}
	return s.usable("cannot be written to") // else the list of files may be cut short
}

// File is one of the files of an image.
type File struct {
	Name string
	Size int64
	Open func() (io.ReadCloser, error)
}

// IsTable reports whether the file holds entries, and so never changes: in all images of a
// store, a table of that name is the same.
func (f *File) IsTable() bool { return filepath.Ext(f.Name) == ".sst" }

// OpenUntil opens the file. It cannot be read any more when ctx has ended.
func (f *File) OpenUntil(ctx context.Context) (io.ReadCloser, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	return &readerUntil{ctx, r}, nil
}

type readerUntil struct {
	ctx context.Context
	io.ReadCloser
}

func (r *readerUntil) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

// Files returns the files of an image that has been taken. They are there until Close.
func (i *Image) Files() ([]File, error) {
	entries, err := os.ReadDir(i.dir)
	if err != nil {
		return nil, i.store.failed("cannot be read", err)
	}
	var files []File
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, i.store.failed("cannot be read", err)
		}
		path := filepath.Join(i.dir, e.Name())
		files = append(files, File{e.Name(), info.Size(), func() (io.ReadCloser, error) { return os.Open(path) }})
	}
	return files, nil
}

// Close removes the files. An image that has not been taken is given up.
func (i *Image) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.over.Load() {
		i.err = errGivenUp
		i.over.Store(true)
	}
	err := os.RemoveAll(i.dir)
	if err != nil {
		err = i.store.failed("cannot be removed", err)
	}
	return errors.Join(err, i.store.unuse())
}

var errGivenUp = errors.New("the image has been given up")
