//go:build lowwater_s3 || lowwater_gcs || lowwater_azure

package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"
)

// storesVariable has the addresses of real object stores to test on, as name=address,
// separated by spaces. test/objectstores sets it.
const storesVariable = "LOWWATER_TEST_OBJECTSTORES"

func init() {
	blobTags["bucket"] = "lowwater_s3"
	blob.DefaultURLMux().RegisterBucket("bucket", &memBuckets{all: map[string]*blob.Bucket{}})
	objectStores["bucket"] = "bucket://all"
	for text := range strings.FieldsSeq(os.Getenv(storesVariable)) {
		name, address, _ := strings.Cut(text, "=")
		objectStores[name] = address
	}
}

// memBuckets opens object stores in memory by name.
type memBuckets struct {
	mu  sync.Mutex
	all map[string]*blob.Bucket
}

func (m *memBuckets) OpenBucketURL(_ context.Context, u *url.URL) (*blob.Bucket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[u.Host] == nil {
		m.all[u.Host] = memblob.OpenBucket(nil)
	}
	return blob.PrefixedBucket(m.all[u.Host], "in/"), nil
}

// silent is a driver that answers nothing: every call hangs until its context ends, as a
// server does that is there and does nothing.
type silent struct{ driver.Bucket }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (silent) Close() error { return nil }

func (silent) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.Unknown }

func (silent) Attributes(ctx context.Context, _ string) (*driver.Attributes, error) {
	return nil, hang(ctx)
}

func (silent) ListPaged(ctx context.Context, _ *driver.ListOptions) (*driver.ListPage, error) {
	return nil, hang(ctx)
}

func (silent) NewRangeReader(ctx context.Context, _ string, _, _ int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	return nil, hang(ctx)
}

func (silent) Delete(ctx context.Context, _ string, _ *driver.DeleteOptions) error { return hang(ctx) }

func (silent) NewTypedWriter(ctx context.Context, _, _ string, _ *driver.WriterOptions) (driver.Writer, error) {
	return silentWriter{ctx}, nil
}

type silentWriter struct{ ctx context.Context }

func (w silentWriter) Write([]byte) (int, error) { return 0, hang(w.ctx) }
func (w silentWriter) Close() error              { return hang(w.ctx) }

func driven(t *testing.T, by driver.Bucket) *bucket {
	return newBucket(t.Context(), blob.NewBucket(by), "s3://silent/dir", "dir")
}

// TestNoAnswer: every operation ends, and says on what, when the store does not answer.
func TestNoAnswer(t *testing.T) {
	for name, op := range map[string]func(b *bucket, w fileWriter) error{
		"open": func(b *bucket, _ fileWriter) error { _, err := b.open("x"); return err },
		"read": func(b *bucket, _ fileWriter) error {
			_, err := (&object{b, "x", 100}).ReadAt(make([]byte, 10), 0)
			return err
		},
		"list":    func(b *bucket, _ fileWriter) error { _, err := b.list("x"); return err },
		"remove":  func(b *bucket, _ fileWriter) error { return b.remove("x", "y") },
		"publish": func(b *bucket, _ fileWriter) error { return b.publish("x", []byte("data")) },
		"own":     func(b *bucket, _ fileWriter) error { _, err := b.lock(); return err },
		"write":   func(_ *bucket, w fileWriter) error { _, err := w.Write(make([]byte, 1<<20)); return err },
		"commit":  func(_ *bucket, w fileWriter) error { return w.commit() },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := driven(t, silent{})
			w, err := b.create("x")
			if err != nil {
				t.Fatal(err)
			}
			started := time.Now()
			err = op(b, w)
			if !errors.Is(err, errUnreachable) || !strings.Contains(err.Error(), "s3://silent/dir") || !strings.Contains(err.Error(), " within ") {
				t.Errorf("%s: got %v", name, err)
			}
			if d := time.Since(started); d < requestPatience || d > 5*time.Minute {
				t.Errorf("%s: it ended after %v", name, d)
			}
			if err := w.abort(); err != nil {
				t.Error(err)
			}
		})
	}
}

// stuck is an empty store that takes the header of a segment and then nothing more.
type stuck struct{ silent }

var errMissing = errors.New("missing")

func (stuck) ErrorCode(err error) gcerrors.ErrorCode {
	if err == errMissing {
		return gcerrors.NotFound
	}
	return gcerrors.Unknown
}

func (stuck) Attributes(context.Context, string) (*driver.Attributes, error) { return nil, errMissing }

func (stuck) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	return &driver.ListPage{}, nil
}

func (stuck) NewTypedWriter(ctx context.Context, _, _ string, _ *driver.WriterOptions) (driver.Writer, error) {
	return stuckWriter{silentWriter{ctx}}, nil
}

type stuckWriter struct{ silentWriter }

func (w stuckWriter) Write(p []byte) (int, error) {
	if len(p) <= headerSize {
		return len(p), nil
	}
	return w.silentWriter.Write(p)
}

// TestAbortOfHangingWrite: a checkpoint is given up at once although its write hangs.
func TestAbortOfHangingWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t.Context(), driven(t, stuck{}))
		s.owner = held(func() error { return nil })
		p, err := s.Begin(1, KindCheckpoint, "")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		for subtask := range 2 {
			segment, err := p.Segment("2", subtask)
			if err != nil {
				t.Fatal(err)
			}
			if err := writeParts(segment.Operator(OperatorInfo{ID: counting.ID, Subtask: subtask, Parallelism: 2, MaxParallelism: 16}, nil), countingParts(subtask, 1)); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := segment.Finish()
				ended <- err
			}()
		}
		synctest.Wait()
		started := time.Now()
		if err := p.Abort(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, errAborted) {
				t.Errorf("got %v", err)
			}
		}
		if d := time.Since(started); d > 0 {
			t.Errorf("it took %v", d)
		}
	})
}

func TestSecretsStayHidden(t *testing.T) {
	for text, want := range map[string]string{
		`Put "https://acc.blob.core.windows.net/c/key?sig=SECRET&se=2": refused`: `Put "https://acc.blob.core.windows.net/c/key": refused`,
		"open bucket s3://user:SECRET@bucket?key=SECRET: bad":                    "open bucket s3://bucket bad",
		"no address: a?b": "no address: a?b",
	} {
		if got := withoutSecrets(errors.New(text)).Error(); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	_, err := openStorage(t.Context(), "bucketx://user:SECRET@all/dir?token=SECRET", true)
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("got %v", err)
	}
}

// TestUnreachableIsNotDamaged: what cannot be read now may be whole, so nothing older is
// taken in its place, and nothing that it may refer to is removed.
func TestUnreachableIsNotDamaged(t *testing.T) {
	address := addresses(t)["bucket"]
	s := openAgain(t, address)
	for id := range int64(2) {
		if _, err := take(s, id+1, KindCheckpoint, ""); err != nil {
			t.Fatal(err)
		}
	}
	flaky := &unreachable{bucket: s.storage.(*bucket)}
	s = openOn(t, flaky)
	for _, name := range []string{"chk-2/manifest", "chk-2/2-0-run1.seg", "shared/sst-2"} {
		flaky.name = name
		c, skipped, err := s.Latest(0)
		if c != nil || len(skipped) > 0 || !errors.Is(err, errUnreachable) {
			t.Errorf("%s: got %v, %v, %v", name, c, skipped, err)
		}
	}
	flaky.name = "chk-1/manifest"
	if _, err := openStore(t.Context(), flaky); !errors.Is(err, errUnreachable) {
		t.Errorf("opened with %v", err)
	}
}

// unreachable is a store that has trouble with one object.
type unreachable struct {
	*bucket
	name string
}

func (u *unreachable) open(name string) (fileReader, error) {
	if name == u.name {
		return nil, u.failed(u.ctx, "open", name, errors.New("503 slow down"))
	}
	return u.bucket.open(name)
}

func (u *unreachable) lock() (owner, error) { return takeOver(u) }

// forbidden is a store that calls what may not be read missing.
type forbidden struct{ stuck }

func (forbidden) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	return nil, errMissing
}

func TestForbiddenIsNotMissing(t *testing.T) {
	for name, b := range map[string]*bucket{"missing": driven(t, stuck{}), "forbidden": driven(t, forbidden{})} {
		_, err := b.open("x")
		if errors.Is(err, fs.ErrNotExist) != (name == "missing") || errors.Is(err, errUnreachable) != (name == "forbidden") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
