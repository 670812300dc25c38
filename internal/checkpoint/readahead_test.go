package checkpoint

import (
	"bytes"
	"io"
	"testing"

	"github.com/zeebo/xxh3"
)

// requests is a file that counts how many times something is read of it.
type requests struct {
	*bytes.Reader
	n int
}

func (r *requests) size() int64  { return r.Size() }
func (r *requests) Close() error { return nil }

func (r *requests) ReadAt(p []byte, offset int64) (int, error) {
	r.n++
	return r.Reader.ReadAt(p, offset)
}

// A shared file is read with few requests, in whatever pieces its reader asks for.
func TestFewRequestsForASharedFile(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), readAhead/4)
	f := &requests{Reader: bytes.NewReader(content)}
	r := newCheckedReader(f, SharedRef{Name: "a", Size: f.size(), Checksum: xxh3.Hash(content)}, "a")
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if f.n > 4 {
		t.Errorf("%d requests for %d bytes", f.n, len(content))
	}
}
