// Package spill keeps entries of state on disk that memory has no room for: byte strings
// by byte strings in a temporary directory, in order, with consistent views for snapshots.
//
// It is no durable store. There is no log and no fsync, the directory is removed at the
// end, and what a crashed process left is removed by the next one. What survives a crash
// is what checkpoints have of it. Which entries go to disk is package keyed's.
package spill

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// What a store takes in memory besides what the budget counts.
const (
	memTableBytes = 4 << 20
	cacheBytes    = 8 << 20
	// maxMemTables is how many full memtables may wait for the disk before writers do.
	maxMemTables = 8
)

// Store is a set of entries on disk. One goroutine changes it; views may be read by others.
type Store struct {
	dir  string
	lock *pebble.Lock
	db   *pebble.DB
	// broken is the first error that writing in the background met.
	broken atomic.Pointer[error]

	mu sync.Mutex
	// users are Close, until it was called, and the views that are open.
	users int
}

// Options are what a store is opened with.
type Options struct {
	// Dir is the directory under which the store makes its own, the system's for temporary
	// files if it is empty.
	Dir    string
	Logger *slog.Logger
	// FS is the file system, nil for the machine's.
	FS vfs.FS
}

// Open makes an empty store and removes what dead processes left beside it.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	dir, lock, err := makeDir(o.Dir)
	s := &Store{dir: dir, lock: lock, users: 1}
	if err != nil {
		s.dir = o.Dir
		return nil, s.failed("cannot be made", err)
	}
	options := &pebble.Options{
		FS: o.FS, Lock: lock, DisableWAL: true,
		MemTableSize: memTableBytes, MemTableStopWritesThreshold: maxMemTables, CacheSize: cacheBytes,
		Logger: logger{o.Logger},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { s.broken.CompareAndSwap(nil, &err) },
		},
	}
	for i := range options.Levels { // a look-up asks every level, most of them in vain
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if s.db, err = pebble.Open(dir, options); err != nil {
		return nil, errors.Join(s.failed("cannot be opened", err), lock.Close(), os.RemoveAll(dir))
	}
	return s, nil
}

const dirPrefix = "lowwater-spill-"

// makeDir makes and locks a directory of its own under base. Another process may take it
// for a dead one's before it is locked, and then it makes another.
func makeDir(base string) (dir string, lock *pebble.Lock, err error) {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", nil, err
	}
	removeDead(base)
	for range 10 {
		if dir, err = os.MkdirTemp(base, dirPrefix); err != nil {
			return "", nil, err
		}
		if lock, err = pebble.LockDirectory(dir, vfs.Default); err == nil {
			return dir, lock, nil
		}
	}
	return "", nil, err
}

// removeDead removes the directories that no living process has locked. What cannot be
// removed stays: it is in nobody's way.
func removeDead(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, dirPrefix+"*"))
	for _, dir := range dirs {
		lock, err := pebble.LockDirectory(dir, vfs.Default)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

// failed says what went wrong, where, and what to do.
func (s *Store) failed(what string, err error) error {
	return fmt.Errorf("the directory for spilled state %s %s: %w; "+
		"see that it is writable and has room, or raise the memory budget or name another directory (WithStateMemory)", s.dir, what, err)
}

// Dir returns the directory.
func (s *Store) Dir() string { return s.dir }

// Get calls f with the value of a key, if it has one. The value is valid during the call.
func (s *Store) Get(key []byte, f func(value []byte) error) (found bool, err error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, s.failed("cannot be read", err)
	}
	return true, errors.Join(f(value), closer.Close())
}

// Delete removes a key.
func (s *Store) Delete(key []byte) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.db.Delete(key, pebble.NoSync); err != nil {
		return s.failed("cannot be written to", err)
	}
	return nil
}

// Batch is a number of entries that are written together.
type Batch struct {
	store *Store
	batch *pebble.Batch
}

// NewBatch returns an empty batch. The caller ends it with Commit.
func (s *Store) NewBatch() *Batch { return &Batch{s, s.db.NewBatch()} }

// Set adds an entry. Both are copied.
func (b *Batch) Set(key, value []byte) error { return b.batch.Set(key, value, nil) }

// Delete adds the removal of a key.
func (b *Batch) Delete(key []byte) error { return b.batch.Delete(key, nil) }

// Len returns the number of bytes in the batch.
func (b *Batch) Len() int { return b.batch.Len() }

// Commit writes the entries. The batch is empty then and may be used again.
func (b *Batch) Commit() error {
	err := b.store.writable()
	if err == nil {
		if err = b.batch.Commit(pebble.NoSync); err != nil {
			err = b.store.failed("cannot be written to", err)
		}
	}
	b.batch.Reset()
	return err
}

// Close releases the batch.
func (b *Batch) Close() error { return b.batch.Close() }

// writable returns the error that writing in the background met: from then on, memory
// would fill up.
func (s *Store) writable() error {
	if err := s.broken.Load(); err != nil {
		return s.failed("cannot be written to", *err)
	}
	return nil
}

// View is the store as it was at one moment. It is used by one goroutine at a time, and
// keeps the store open.
type View struct {
	store    *Store
	snapshot *pebble.Snapshot
}

// View returns the store as it is now. The caller closes it.
func (s *Store) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	return &View{s, s.db.NewSnapshot()}
}

// Entry is a key and its value.
type Entry struct{ Key, Value []byte }

// From visits, in the order of their keys, the entries whose keys begin with prefix and
// are not below from. They are valid until the next one. It ends with the first error.
func (v *View) From(prefix, from []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		it, err := v.snapshot.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
		if err != nil {
			yield(Entry{}, v.store.failed("cannot be read", err))
			return
		}
		for ok := it.SeekGE(from); ok; ok = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				break // Close returns it, too
			}
			if !yield(Entry{it.Key(), value}, nil) {
				_ = it.Close() // nobody waits for what comes next
				return
			}
		}
		if err := it.Close(); err != nil {
			yield(Entry{}, v.store.failed("cannot be read", err))
		}
	}
}

// after returns the first key that is greater than all with the prefix, which has a byte
// below 255.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// Close closes the view.
func (v *View) Close() error {
	if err := v.snapshot.Close(); err != nil {
		return errors.Join(v.store.failed("cannot be closed", err), v.store.release())
	}
	return v.store.release()
}

// Close removes the store as soon as no view is open any more.
func (s *Store) Close() error { return s.release() }

func (s *Store) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	var errs []error
	for _, c := range []io.Closer{s.db, s.lock} {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(append(errs, os.RemoveAll(s.dir))...); err != nil {
		return s.failed("cannot be removed", err)
	}
	return nil
}

// logger passes the messages that matter on.
type logger struct{ to *slog.Logger }

func (logger) Infof(string, ...any) {}

func (l logger) Errorf(format string, args ...any) {
	if l.to != nil {
		l.to.Warn("disk store of spilled state: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf is called when files of the store are damaged, which nothing can go on from.
func (l logger) Fatalf(format string, args ...any) {
	panic("disk store of spilled state: " + fmt.Sprintf(format, args...))
}
