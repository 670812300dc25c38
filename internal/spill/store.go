// Package spill keeps entries of state on disk that memory has no room for: byte strings
// by byte strings in a temporary directory, in order, with consistent views and images for
// snapshots.
//
// It is no durable store. There is no log and no fsync, the directory is removed at the
// end, and what a crashed process left is removed by the next one. What survives a crash
// is what checkpoints have of it. Which entries go to disk, and how images get into
// checkpoints, is package keyed's.
package spill

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// What a store takes in memory besides what the budget counts.
const (
	memTableBytes = 4 << 20
	// cacheBytes includes the memtables: Pebble takes what they have from the cache for
	// blocks. So it must be well above two of them, or every look-up reads its blocks anew.
	cacheBytes = 16 << 20
	// manifestBytes is about how much Pebble's list of files may grow before it is written anew. Every
	// image has a copy.
	manifestBytes = 64 << 10
	// maxMemTables is how many full memtables may wait for the disk before writers do.
	maxMemTables = 8
)

// Store is a set of entries on disk. One goroutine uses it; views and images may be used by
// others.
type Store struct {
	place
	id  string
	db  *pebble.DB
	ctx context.Context

	// What follows is the goroutine's: how much it has written, the image that is being taken,
	// what is held back meanwhile, and how many images there have been.

	throttle throttle
	image    *Image
	held     *pebble.Batch
	images   int

	mu sync.Mutex
	// users are Close, until it was called, and the views and images that are open.
	users int
}

// Options are what a store is opened with.
type Options struct {
	// Dir is the directory under which the store makes its own, the system's for temporary
	// files if it is empty.
	Dir    string
	Logger *slog.Logger
	// Context ends when the store's goroutine is to end: then it does not wait until an image
	// has been taken on a disk that is slow or stuck. Without one it waits.
	Context context.Context
	// FS is the file system, nil for the machine's.
	FS vfs.FS
	// Runs says that entries are written many at a time and sorted, read in their order and
	// removed by prefix; and hardly ever looked up one by one.
	Runs bool
}

// Open makes an empty store and removes what dead processes left beside it.
func Open(o Options) (*Store, error) {
	place, err := newPlace(&o)
	if err != nil {
		return nil, err
	}
	s := &Store{place: place, id: newID(), ctx: o.Context, users: 1}
	if s.ctx == nil {
		s.ctx = context.Background()
	}
	options := o.pebble(&place)
	s.throttle = o.throttle(options)
	if s.db, err = pebble.Open(place.dir, options); err != nil {
		return nil, errors.Join(s.failed("cannot be opened", err), place.close())
	}
	if err := s.usable("cannot be opened"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// ID returns what no other store has: 16 hexadecimal digits.
func (s *Store) ID() string { return s.id }

// pebble returns Pebble's options. Writers never wait in it: that is up to a throttle.
func (o *Options) pebble(p *place) *pebble.Options {
	options := &pebble.Options{
		FS: unsynced{o.FS, p.health}, Lock: p.lock, DisableWAL: true, EventListener: p.health.listener(),
		MemTableSize: memTableBytes, MemTableStopWritesThreshold: never, L0StopWritesThreshold: never, CacheSize: cacheBytes,
		MaxManifestFileSize: manifestBytes,
		// Blocks by column: a look-up in them is cheaper than in the older format, the default.
		// That is also written with a pool of channels that all stores of the process share,
		// which must not be carried from one bubble of testing/synctest to another.
		FormatMajorVersion: pebble.FormatColumnarBlocks,
		Logger:             logger{o.Logger, p.health},
	}
	if o.Runs {
		o.forRuns(options)
		return options
	}
	for i := range options.Levels { // a look-up asks every level, most of them in vain
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return options
}

// never is a limit, of memtables and of files, that is not reached.
const never = 1 << 30

// place is a locked temporary directory.
type place struct {
	dir    string
	lock   *pebble.Lock
	health *health
}

// newPlace makes a directory, and fills in the options that are not set.
func newPlace(o *Options) (place, error) {
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	dir, lock, err := makeDir(o.Dir)
	if err != nil {
		wanted := place{dir: o.Dir}
		return wanted, wanted.failed("cannot be made", err)
	}
	return place{dir, lock, newHealth()}, nil
}

// close removes the directory. It gets another name first, so that nobody who looks for what
// dead processes left locks it meanwhile, which makes a file in it.
func (p *place) close() error {
	gone := filepath.Join(filepath.Dir(p.dir), removedPrefix+strings.TrimPrefix(filepath.Base(p.dir), dirPrefix))
	err := os.Rename(p.dir, gone)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // somebody has removed it
	}
	if err := errors.Join(err, os.RemoveAll(gone), p.lock.Close()); err != nil {
		return p.failed("cannot be removed", err)
	}
	return nil
}

const (
	dirPrefix     = "lowwater-spill-"
	removedPrefix = "lowwater-removed-"
)

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

// removeDead removes the directories that no living process has locked, and those that are
// being removed. What cannot be removed stays: it is in nobody's way.
func removeDead(base string) {
	removed, _ := filepath.Glob(filepath.Join(base, removedPrefix+"*"))
	for _, dir := range removed {
		_ = os.RemoveAll(dir)
	}
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
func (p *place) failed(what string, err error) error {
	return fmt.Errorf("the directory for spilled state %s %s: %w; "+
		"see that it is writable and has room, or raise the memory budget or name another directory (WithStateMemory)", p.dir, what, err)
}

// usable returns what went wrong before, as the reason why something cannot be done now.
func (p *place) usable(what string) error {
	if err := p.health.cause(); err != nil {
		return p.failed(what, err)
	}
	return nil
}

// DiskBytes returns what the store's files take. What was written last may still be in
// memory.
func (s *Store) DiskBytes() int64 { return int64(s.db.Metrics().DiskSpaceUsage()) }

// Dir returns the directory.
func (p *place) Dir() string { return p.dir }

// Get calls f with the value of a key, if it has one. The value is valid during the call.
func (s *Store) Get(key []byte, f func(value []byte) error) (found bool, err error) {
	r, err := s.reader()
	if err != nil {
		return false, err
	}
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, s.failed("cannot be read", err)
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	return true, f(value)
}

// Delete removes a key.
func (s *Store) Delete(key []byte) error {
	return s.write(len(key), func(w pebble.Writer) error { return w.Delete(key, pebble.NoSync) })
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
	err := b.store.write(b.batch.Len(), func(w pebble.Writer) error { return w.Apply(b.batch, pebble.NoSync) })
	b.batch.Reset()
	return err
}

// Close releases the batch.
func (b *Batch) Close() error { return b.batch.Close() }

// View is the store as it was at one moment. It is used by one goroutine at a time, and
// keeps the store open.
type View struct {
	store    *Store
	snapshot *pebble.Snapshot
	// err is why there is nothing to see.
	err error
}

// View returns the store as it is now. The caller closes it. It waits for an image that is
// being taken.
func (s *Store) View() *View {
	v := &View{store: s, err: s.release()}
	s.use()
	v.snapshot = s.db.NewSnapshot()
	return v
}

// Entry is a key and its value.
type Entry struct{ Key, Value []byte }

// From visits, in the order of their keys, the entries whose keys begin with prefix and
// are not below from. They are valid until the next one. It ends with the first error.
func (v *View) From(prefix, from []byte) iter.Seq2[Entry, error] {
	if v.err != nil {
		return func(yield func(Entry, error) bool) { yield(Entry{}, v.err) }
	}
	return v.store.scan(v.snapshot, prefix, from)
}

// scan visits the entries of r with a prefix that are not below from. The visitor may be
// user code, which may panic.
func (p *place) scan(r pebble.Reader, prefix, from []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
		if err != nil {
			yield(Entry{}, p.failed("cannot be read", err))
			return
		}
		atEnd := false
		defer func() {
			if !atEnd {
				_ = it.Close() // nobody waits for what comes next
			}
		}()
		for ok := it.SeekGE(from); ok; ok = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				break // Close returns it, too
			}
			if !yield(Entry{it.Key(), value}, nil) {
				return
			}
		}
		atEnd = true
		err = it.Close()
		if err == nil {
			err = p.health.cause()
		}
		if err != nil {
			yield(Entry{}, p.failed("cannot be read", err))
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
		return errors.Join(v.store.failed("cannot be closed", err), v.store.unuse())
	}
	return v.store.unuse()
}

// Close removes the store as soon as no view and no image is open any more.
func (s *Store) Close() error {
	var err error
	if s.held != nil { // nobody will read it
		err = s.held.Close()
		s.image, s.held = nil, nil
	}
	return errors.Join(err, s.unuse())
}

// use keeps the store open until unuse.
func (s *Store) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

func (s *Store) unuse() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	return errors.Join(s.closeDB(s.db), s.place.close())
}

// closeDB closes Pebble, which panics when something of it is still open. That is a bug here, but
// none that may keep the directory. What a store that has failed says at its end is no news.
func (p *place) closeDB(db *pebble.DB) (err error) {
	defer func() {
		bug := recover()
		switch {
		case p.health.cause() != nil:
			err = nil
		case bug != nil:
			err = p.failed("cannot be closed", fmt.Errorf("panic: %v", bug))
		case err != nil:
			err = p.failed("cannot be closed", err)
		}
	}()
	return db.Close()
}
