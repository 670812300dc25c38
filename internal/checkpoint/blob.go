//go:build lowwater_s3 || lowwater_gcs || lowwater_azure

package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

func init() { openBlob = openBucket }

// bucket is an object store. An object appears, complete, when its writer is closed, so
// there is nothing to sync. It cannot be locked: it belongs to the run that came last.
type bucket struct {
	ctx     context.Context
	bucket  *blob.Bucket
	address string // up to the root, without the query
	dir     string // the root in the bucket
	// patience is how long a request may take, besides the time for its data.
	patience time.Duration
}

const (
	requestPatience = 30 * time.Second
	// slowestBytes is how many bytes a second are slow, but no reason to give up.
	slowestBytes = 256 << 10
	// partSize is what drivers send at a time, writeConcurrency how many of them at once.
	// An object has at most 10000 parts on S3.
	partSize         = 8 << 20
	writeConcurrency = 2
)

func openBucket(ctx context.Context, scheme, address string) (storage, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	dir := strings.Trim(u.Path, "/")
	u.Path = "" // drivers want the bucket and options only
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w (is this lowwater built with -tags %s?)", shown(address), withoutSecrets(err), blobTags[scheme])
	}
	return newBucket(ctx, b, scheme+"://"+path.Join(u.Host, dir), dir), nil
}

func newBucket(ctx context.Context, b *blob.Bucket, address, dir string) *bucket {
	return &bucket{ctx: ctx, bucket: b, address: address, dir: dir, patience: requestPatience}
}

func (b *bucket) key(name string) string { return path.Join(b.dir, name) }

func (b *bucket) path(name string) string {
	if name == "" {
		return b.address
	}
	return b.address + "/" + name
}

// request returns the context of a request with n bytes of data. A store that does not
// answer must not stop a job for ever.
func (b *bucket) request(n int) (context.Context, context.CancelFunc) {
	d := b.allowed(n)
	return context.WithTimeoutCause(b.ctx, d, fmt.Errorf("no answer within %v", d))
}

func (b *bucket) allowed(n int) time.Duration {
	return b.patience + (time.Duration(n) * time.Second / slowestBytes).Round(time.Second)
}

// failed says which object err is about. ctx is that of the request.
func (b *bucket) failed(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && b.ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return fmt.Errorf("%w: %w", errUnreachable, &fs.PathError{Op: op, Path: b.path(name), Err: withoutSecrets(err)})
}

// secretsInURL are a URL's user and query: a query may be a signature that lets anyone in.
var secretsInURL = regexp.MustCompile(`([a-z0-9]+://)(?:[^\s"'/@]*@)?([^\s"'?]*)(?:\?[^\s"']*)?`)

// withoutSecrets is err with another text.
func withoutSecrets(err error) error { return hidden{err} }

type hidden struct{ error }

func (h hidden) Error() string { return secretsInURL.ReplaceAllString(h.error.Error(), "$1$2") }

func (h hidden) Unwrap() error { return h.error }

// objectWriter may be given up while it is written or committed.
type objectWriter struct {
	b      *bucket
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	writer *blob.Writer
	done   bool
}

func writerOptions() *blob.WriterOptions {
	return &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: partSize, MaxConcurrency: writeConcurrency}
}

func (b *bucket) create(name string) (fileWriter, error) {
	ctx, cancel := context.WithCancelCause(b.ctx)
	w, err := b.bucket.NewWriter(ctx, b.key(name), writerOptions())
	if err != nil {
		cancel(nil)
		return nil, b.failed(ctx, "write", name, err)
	}
	return &objectWriter{b: b, name: name, ctx: ctx, cancel: cancel, writer: w}, nil
}

// patiently has f end: drivers have sent all but so many bytes when a call returns.
func (w *objectWriter) patiently(n int, f func() error) error {
	d := w.b.allowed(n + (writeConcurrency+1)*partSize)
	timer := time.AfterFunc(d, func() { w.cancel(fmt.Errorf("no progress within %v", d)) })
	defer timer.Stop()
	return w.b.failed(w.ctx, "write", w.name, f())
}

func (w *objectWriter) Write(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return 0, errAborted
	}
	err = w.patiently(len(p), func() error {
		var err error
		n, err = w.writer.Write(p)
		return err
	})
	return n, err
}

func (w *objectWriter) commit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return errAborted
	}
	w.done = true
	err := w.patiently(0, w.writer.Close)
	w.cancel(nil)
	return err
}

func (w *objectWriter) abort() error {
	w.cancel(errAborted) // what hangs returns, and a writer that is closed then writes nothing
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.done = true
		_ = w.writer.Close() // which it says with an error
	}
	return nil
}

// publish has the store refuse to replace an object. An answer may get lost and the client
// try again: then what is there is its own.
func (b *bucket) publish(name string, data []byte) error {
	ctx, cancel := b.request(len(data))
	defer cancel()
	options := writerOptions()
	options.IfNotExist = true
	err := b.bucket.WriteAll(ctx, b.key(name), data, options)
	if err == nil {
		return nil
	}
	there, readErr := readFile(b, name, maxManifest)
	removed := errors.Is(readErr, fs.ErrNotExist) && gcerrors.Code(err) == gcerrors.FailedPrecondition
	switch {
	case readErr != nil && !removed:
		return b.failed(ctx, "write", name, err)
	case readErr == nil && bytes.Equal(there, data):
		return nil
	}
	return &fs.PathError{Op: "create", Path: b.path(name), Err: fs.ErrExist}
}

type object struct {
	b      *bucket
	name   string
	length int64
}

func (b *bucket) open(name string) (fileReader, error) {
	ctx, cancel := b.request(0)
	defer cancel()
	a, err := b.bucket.Attributes(ctx, b.key(name))
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, b.missing(name, err)
	}
	if err != nil {
		return nil, b.failed(ctx, "open", name, err)
	}
	return &object{b, name, a.Size}, nil
}

// missing returns fs.ErrNotExist if a list says so, too: not found is also what drivers call
// a bucket that is not there, and that of Google's storage one that may not be read.
func (b *bucket) missing(name string, err error) error {
	ctx, cancel := b.request(0)
	defer cancel()
	page, _, listErr := b.bucket.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: b.key(name)})
	if listErr != nil || len(page) > 0 && page[0].Key == b.key(name) {
		return b.failed(ctx, "open", name, cmp.Or(listErr, err))
	}
	return &fs.PathError{Op: "open", Path: b.path(name), Err: fs.ErrNotExist}
}

func (o *object) size() int64 { return o.length }

func (o *object) Close() error { return nil }

func (o *object) ReadAt(p []byte, offset int64) (n int, err error) {
	want := p[:max(0, min(int64(len(p)), o.length-offset))]
	if len(want) > 0 {
		if n, err = o.read(want, offset); err != nil {
			return n, err
		}
	}
	if len(want) < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (o *object) read(p []byte, offset int64) (n int, err error) {
	ctx, cancel := o.b.request(len(p))
	defer cancel()
	r, err := o.b.bucket.NewRangeReader(ctx, o.b.key(o.name), offset, int64(len(p)), nil)
	if err != nil {
		return 0, o.b.failed(ctx, "read", o.name, err)
	}
	n, err = io.ReadFull(r, p)
	return n, o.b.failed(ctx, "read", o.name, errors.Join(err, r.Close()))
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
	for token := blob.FirstPageToken; token != nil; {
		page, next, err := b.page(dir, prefix, token)
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			files = append(files, fileInfo{strings.TrimPrefix(o.Key, cut), o.Size})
		}
		token = next
	}
	return sortFiles(files), nil
}

func (b *bucket) page(dir, prefix string, token []byte) (page []*blob.ListObject, next []byte, err error) {
	ctx, cancel := b.request(0)
	defer cancel()
	page, next, err = b.bucket.ListPage(ctx, token, 1000, &blob.ListOptions{Prefix: prefix})
	return page, next, b.failed(ctx, "list", dir, err)
}

func (b *bucket) remove(names ...string) error {
	return atOnce(names, func(name string) error {
		ctx, cancel := b.request(0)
		defer cancel()
		err := b.bucket.Delete(ctx, b.key(name))
		if gcerrors.Code(err) == gcerrors.NotFound {
			return nil
		}
		return b.failed(ctx, "remove", name, err)
	})
}

func (b *bucket) sync(string) error { return nil }

func (b *bucket) lock() (owner, error) { return takeOver(b) }

func (b *bucket) free() (uint64, bool) { return 0, false }

func (b *bucket) close() error { return b.bucket.Close() }
