package checkpoint

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// mem is a storage in memory, for tests of jobs. It lives as long as the process; what
// has the same name is the same.
type mem struct {
	*memFiles
	name string // with the scheme
	dir  string
}

type memFiles struct {
	mu     sync.Mutex
	files  map[string][]byte
	locked bool
}

// memories has the storages of the process by name.
var memories sync.Map

func openMem(name, dir string) storage {
	files, _ := memories.LoadOrStore(name, &memFiles{files: map[string][]byte{}})
	return &mem{files.(*memFiles), "mem://" + name, dir}
}

func (m *mem) full(name string) string { return path.Join(m.dir, name) }

func (m *mem) path(name string) string { return m.name + "/" + m.full(name) }

type memWriter struct {
	bytes.Buffer
	m    *mem
	name string
}

func (m *mem) create(name string) (fileWriter, error) {
	return &memWriter{m: m, name: m.full(name)}, nil
}

func (w *memWriter) commit() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.files[w.name] = w.Bytes()
	return nil
}

func (w *memWriter) abort() error { return nil }

func (m *mem) open(name string) (fileReader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[m.full(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: m.path(name), Err: fs.ErrNotExist}
	}
	return memReader{bytes.NewReader(data)}, nil
}

type memReader struct{ *bytes.Reader }

func (r memReader) size() int64 { return r.Size() }

func (memReader) Close() error { return nil }

func (m *mem) list(dir string) ([]fileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	below := m.full(dir)
	if below != "" {
		below += "/"
	}
	cut := ""
	if m.dir != "" {
		cut = m.dir + "/"
	}
	var files []fileInfo
	for name, data := range m.files {
		if strings.HasPrefix(name, below) {
			files = append(files, fileInfo{strings.TrimPrefix(name, cut), int64(len(data))})
		}
	}
	return sortFiles(files), nil
}

func (m *mem) remove(names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.files, m.full(name))
	}
	return nil
}

func (m *mem) sync(string) error { return nil }

func (m *mem) lock() (func() error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, fmt.Errorf("the checkpoint directory %s is in use by this process: give each job one of its own", m.name)
	}
	m.locked = true
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locked = false
		return nil
	}, nil
}

func (m *mem) free() (uint64, bool) { return 0, false }

func (m *mem) close() error { return nil }
