package checkpoint

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// mem is a storage in memory, for tests of jobs. It lives as long as the process; what
// has the same name is the same. As an object store, it belongs to the run that came last.
type mem struct {
	*memFiles
	name string // with the scheme
	dir  string
}

type memFiles struct {
	mu      sync.Mutex
	files   map[string][]byte
	disturb func(operation, file string) error
}

// memories has the storages of the process by name.
var memories sync.Map

func openMem(name, dir string) storage {
	files, _ := memories.LoadOrStore(name, &memFiles{files: map[string][]byte{}})
	return &mem{files.(*memFiles), "mem://" + name, dir}
}

// DisturbMem has f called before each operation (create, commit, open, list, remove) on a
// file or folder of mem://name: while f does not return, the operation hangs, and an error of
// f is its own. nil ends that.
func DisturbMem(name string, f func(operation, file string) error) {
	m := openMem(name, "").(*mem)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disturb = f
}

// disturbed is called before an operation.
func (m *mem) disturbed(operation, file string) error {
	m.mu.Lock()
	f := m.disturb
	m.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(operation, file)
}

func (m *mem) full(name string) string { return path.Join(m.dir, name) }

func (m *mem) path(name string) string { return m.name + "/" + m.full(name) }

// memWriter may be given up while it is committed.
type memWriter struct {
	bytes.Buffer
	m    *mem
	name string
	// aborted is guarded by the lock of m.
	aborted bool
}

func (m *mem) create(name string) (fileWriter, error) {
	if err := m.disturbed("create", name); err != nil {
		return nil, err
	}
	return &memWriter{m: m, name: m.full(name)}, nil
}

func (w *memWriter) commit() error {
	if err := w.m.disturbed("commit", w.name); err != nil {
		return err
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.aborted {
		return errAborted
	}
	w.m.files[w.name] = w.Bytes()
	return nil
}

func (w *memWriter) abort() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.aborted = true
	return nil
}

func (m *mem) open(name string) (fileReader, error) {
	if err := m.disturbed("open", name); err != nil {
		return nil, err
	}
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
	if err := m.disturbed("list", dir); err != nil {
		return nil, err
	}
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
	for _, name := range names {
		if err := m.disturbed("remove", name); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.files, m.full(name))
	}
	return nil
}

func (m *mem) sync(string) error { return nil }

func (m *mem) publish(name string, data []byte) error {
	for _, operation := range []string{"create", "commit"} {
		if err := m.disturbed(operation, name); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[m.full(name)]; ok {
		return &fs.PathError{Op: "create", Path: m.path(name), Err: fs.ErrExist}
	}
	m.files[m.full(name)] = bytes.Clone(data)
	return nil
}

func (m *mem) lock() (owner, error) { return takeOver(m) }

func (m *mem) free() (uint64, bool) { return 0, false }

func (m *mem) close() error { return nil }
