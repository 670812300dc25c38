package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// partSuffix is that of files that are not complete.
const partSuffix = ".part"

// local is a folder of the operating system.
type local struct{ root string }

func openLocal(root string, write bool) (storage, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	l := &local{root: root}
	if !write {
		info, err := os.Stat(root)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("checkpoint: %s is not a directory", root)
		}
		return l, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if err := syncDir(filepath.Dir(root)); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return l, nil
}

func (l *local) path(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

func (l *local) create(name string) (fileWriter, error) {
	full := l.path(name)
	var err error
	for range 3 {
		if err = os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return nil, err
		}
		var f *os.File
		if f, err = os.Create(full + partSuffix); err == nil {
			return &localWriter{File: f, name: full}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // else the folder was empty, and its last writer has been given up
			break
		}
	}
	return nil, err
}

// localWriter may be given up while it is committed.
type localWriter struct {
	*os.File
	name string
	mu   sync.Mutex
	done bool
}

func (w *localWriter) commit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.Sync(); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.Rename(w.Name(), w.name); err != nil {
		return err
	}
	w.done = true
	return nil
}

func (w *localWriter) abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return nil
	}
	w.done = true
	_ = w.Close() // it is removed, whatever became of it
	err := os.Remove(w.Name())
	_ = os.Remove(filepath.Dir(w.name)) // if it is empty
	return err
}

func (l *local) open(name string) (fileReader, error) {
	f, err := os.Open(l.path(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", l.path(name))
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return &localReader{f, info.Size()}, nil
}

type localReader struct {
	*os.File
	length int64
}

func (r *localReader) size() int64 { return r.length }

func (l *local) list(dir string) ([]fileInfo, error) {
	var files []fileInfo
	err := filepath.WalkDir(l.path(dir), func(full string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // never there, or removed meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(l.root, full)
		if err != nil {
			return err
		}
		files = append(files, fileInfo{filepath.ToSlash(name), info.Size()})
		return nil
	})
	return sortFiles(files), err
}

func (l *local) remove(names ...string) error {
	dirs := map[string]bool{}
	for _, name := range names {
		if err := os.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		l.removeEmpty(dir)
	}
	return nil
}

// removeEmpty removes a folder and those around it as far as they are empty.
func (l *local) removeEmpty(dir string) {
	for dir != "." && os.Remove(l.path(dir)) == nil {
		dir = path.Dir(dir)
	}
}

func (l *local) sync(dir string) error {
	for {
		if err := syncDir(l.path(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if dir == "" {
			return nil
		}
		if dir = path.Dir(dir); dir == "." {
			dir = ""
		}
	}
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// publish relies on the lock: nobody else creates files.
func (l *local) publish(name string, data []byte) error { return writeFile(l, name, data) }

func (l *local) lock() (owner, error) {
	f, err := l.lockNow()
	if err != nil {
		return nil, err
	}
	return &fileLock{local: l, file: f}, nil
}

// lockNow locks the folder until the file that it returns is closed.
func (l *local) lockNow() (*os.File, error) {
	name := l.path(lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		owner, _ := os.ReadFile(name) // what it says is only for the message
		_ = f.Close()
		return nil, fmt.Errorf("the checkpoint directory %s is in use by %s: give each job a directory of its own, or stop the other process (%w)",
			l.root, strings.TrimSpace(string(owner)), err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	owner := fmt.Sprintf("process %d on %s\n", os.Getpid(), host)
	if err := errors.Join(f.Truncate(0), writeAt(f, owner)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

const lockName = "lock"

// fileLock is the hold on a folder: a file in it that is locked. The lock is worth nothing
// any more if somebody removes that file. Then it is made and locked anew, unless another
// run has come first.
type fileLock struct {
	local *local
	mu    sync.Mutex
	file  *os.File
}

func (k *fileLock) check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	mine, err := k.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(k.local.path(lockName))
	if err == nil && os.SameFile(mine, there) {
		return nil
	}
	_ = os.MkdirAll(k.local.root, 0o755) // if that fails, so does what follows
	f, err := k.local.lockNow()
	if isLocked(err) {
		return fmt.Errorf("%w, whose file %q something had removed: %w", ErrTakenOver, lockName, err)
	}
	if err != nil {
		return nil // nobody can write here now, which whoever tries is told
	}
	_ = k.file.Close() // it is gone
	k.file = f
	return nil
}

func (*fileLock) number() int64 { return 0 }

func (*fileLock) run() string { return "" }

func (k *fileLock) release() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file.Close()
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func (l *local) free() (uint64, bool) { return freeSpace(l.root) }

func (l *local) close() error { return nil }
