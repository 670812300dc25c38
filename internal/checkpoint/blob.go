//go:build lowwater_s3 || lowwater_gcs || lowwater_azure

package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

func init() { openBlob = openBucket }

// bucket is an object store. An object appears, complete, when its writer is closed, so
// there is nothing to sync. There is no lock: two jobs with one directory are not found
// out.
type bucket struct {
	ctx     context.Context
	bucket  *blob.Bucket
	address string // up to the root, without the query
	dir     string // the root in the bucket
}

func openBucket(ctx context.Context, scheme, address string) (storage, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	dir := strings.Trim(u.Path, "/")
	u.Path = "" // drivers want the bucket and options only
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w (is this lowwater built with -tags %s?)", shown(address), err, blobTags[scheme])
	}
	return &bucket{ctx: ctx, bucket: b, address: scheme + "://" + path.Join(u.Host, dir), dir: dir}, nil
}

func (b *bucket) key(name string) string { return path.Join(b.dir, name) }

func (b *bucket) path(name string) string {
	if name == "" {
		return b.address
	}
	return b.address + "/" + name
}

// failed says which object err is about, and makes a missing one fs.ErrNotExist.
func (b *bucket) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = fs.ErrNotExist
	}
	return &fs.PathError{Op: op, Path: b.path(name), Err: err}
}

// objectWriter may be given up while it is committed.
type objectWriter struct {
	*blob.Writer
	b      *bucket
	name   string
	cancel context.CancelFunc
	done   atomic.Bool
}

func (b *bucket) create(name string) (fileWriter, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	w, err := b.bucket.NewWriter(ctx, b.key(name), &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		cancel()
		return nil, b.failed("create", name, err)
	}
	return &objectWriter{Writer: w, b: b, name: name, cancel: cancel}, nil
}

func (w *objectWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	return n, w.b.failed("write", w.name, err)
}

func (w *objectWriter) commit() error {
	if w.done.Swap(true) {
		return errAborted
	}
	err := w.Close()
	w.cancel()
	return w.b.failed("write", w.name, err)
}

func (w *objectWriter) abort() error {
	w.cancel() // a writer that is closed then writes nothing
	if !w.done.Swap(true) {
		_ = w.Close() // which it says with an error
	}
	return nil
}

type object struct {
	b      *bucket
	name   string
	length int64
}

func (b *bucket) open(name string) (fileReader, error) {
	a, err := b.bucket.Attributes(b.ctx, b.key(name))
	if err != nil {
		return nil, b.failed("open", name, err)
	}
	return &object{b, name, a.Size}, nil
}

func (o *object) size() int64 { return o.length }

func (o *object) Close() error { return nil }

func (o *object) ReadAt(p []byte, offset int64) (n int, err error) {
	r, err := o.b.bucket.NewRangeReader(o.b.ctx, o.b.key(o.name), offset, int64(len(p)), nil)
	if err != nil {
		return 0, o.b.failed("read", o.name, err)
	}
	n, err = io.ReadFull(r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF // as io.ReaderAt has it
	} else if err != nil && err != io.EOF {
		err = o.b.failed("read", o.name, err)
	}
	return n, errors.Join(err, r.Close())
}

func (b *bucket) list(dir string) ([]fileInfo, error) {
	prefix := b.key(dir)
	if prefix != "" {
		prefix += "/"
	}
	cut := ""
	if b.dir != "" {
		cut = b.dir + "/"
	}
	var files []fileInfo
	objects := b.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		o, err := objects.Next(b.ctx)
		if err == io.EOF {
			return sortFiles(files), nil
		}
		if err != nil {
			return nil, b.failed("list", dir, err)
		}
		files = append(files, fileInfo{strings.TrimPrefix(o.Key, cut), o.Size})
	}
}

func (b *bucket) remove(names ...string) error {
	for _, name := range names {
		err := b.bucket.Delete(b.ctx, b.key(name))
		if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return b.failed("remove", name, err)
		}
	}
	return nil
}

func (b *bucket) sync(string) error { return nil }

func (b *bucket) lock() (func() error, error) { return func() error { return nil }, nil }

func (b *bucket) free() (uint64, bool) { return 0, false }

func (b *bucket) close() error { return b.bucket.Close() }
