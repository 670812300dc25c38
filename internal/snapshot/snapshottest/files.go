package snapshottest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// Files are the files that snapshots share.
type Files struct {
	mu      sync.Mutex
	files   map[string][]byte
	written int64
}

// Written returns how many bytes have been stored.
func (f *Files) Written() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written
}

// Damage has change make another content of every file, nil if it is to be missing.
func (f *Files) Damage(change func(name string, content []byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, content := range f.files {
		if f.files[name] = change(name, bytes.Clone(content)); f.files[name] == nil {
			delete(f.files, name)
		}
	}
}

// share stores a file, or compares it with the one that is there: it never changes.
func (f *Files) share(name string, size int64, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.files[name]
	switch {
	case int64(len(content)) != size:
		return fmt.Errorf("snapshottest: shared file %q has %d bytes instead of %d", name, len(content), size)
	case known && !bytes.Equal(before, content):
		return fmt.Errorf("snapshottest: shared file %q has changed", name)
	case known:
		return nil
	case f.files == nil:
		f.files = map[string][]byte{}
	}
	f.files[name] = content
	f.written += size
	return nil
}

func (f *Files) open(name string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, ok := f.files[name]
	if !ok {
		return nil, fmt.Errorf("snapshottest: shared file %q: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}
