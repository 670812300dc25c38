package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// disk is a storage that fails at a chosen step, and that forgets in a crash what has
// not been synced. As on a file system, content is safe after a commit, and a name, or
// that it is gone, after a sync of its folder.
type disk struct {
	mu sync.Mutex

	names   map[string][]byte // what a process sees
	safe    map[string][]byte // what survives any crash
	unsafe  []change          // since then, in order
	steps   int
	failAt  int   // the step that fails, 0 for none
	err     error // what it fails with
	crashed bool  // all steps after it fail, too
	dead    bool
}

// change is a name that has come or gone.
type change struct {
	name string
	data []byte
	gone bool
}

func newDisk() *disk { return &disk{names: map[string][]byte{}, safe: map[string][]byte{}} }

var errCrash = errors.New("crashed")

// step counts what changes the disk and fails where it should. The lock is held.
func (d *disk) step() error {
	d.steps++
	if d.dead {
		return errCrash
	}
	if d.steps == d.failAt {
		d.dead = d.crashed
		return d.err
	}
	return nil
}

func (d *disk) change(c change) {
	d.unsafe = append(d.unsafe, c)
	c.apply(d.names)
}

func (c change) apply(names map[string][]byte) {
	if c.gone {
		delete(names, c.name)
	} else {
		names[c.name] = c.data
	}
}

// afterCrash returns what a process finds later: the safe state with any of the changes
// since. A file that was not committed has any part of its content.
func (d *disk) afterCrash(r *rand.Rand) *disk {
	survive := r.Float64()
	names := maps.Clone(d.safe)
	for _, c := range d.unsafe {
		if r.Float64() > survive {
			continue
		}
		if strings.HasSuffix(c.name, partSuffix) && !c.gone {
			c.data = c.data[:r.IntN(len(c.data)+1)]
		}
		c.apply(names)
	}
	return &disk{names: names, safe: maps.Clone(names)}
}

func (d *disk) path(name string) string { return "/disk/" + name }

type diskWriter struct {
	bytes.Buffer
	d    *disk
	name string
	done bool
}

func (d *disk) create(name string) (fileWriter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return nil, err
	}
	d.change(change{name: name + partSuffix})
	return &diskWriter{d: d, name: name}, nil
}

func (w *diskWriter) Write(p []byte) (int, error) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if err := w.d.step(); err != nil {
		return 0, err
	}
	n, err := w.Buffer.Write(p)
	w.d.change(change{name: w.name + partSuffix, data: bytes.Clone(w.Bytes())})
	return n, err
}

func (w *diskWriter) commit() error {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if err := w.d.step(); err != nil {
		return err
	}
	w.done = true
	w.d.change(change{name: w.name + partSuffix, gone: true})
	w.d.change(change{name: w.name, data: w.Bytes()})
	return nil
}

func (w *diskWriter) abort() error {
	if w.done {
		return nil
	}
	w.done = true
	return w.d.remove(w.name + partSuffix)
}

func (d *disk) open(name string) (fileReader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errCrash
	}
	data, ok := d.names[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: d.path(name), Err: fs.ErrNotExist}
	}
	return memReader{bytes.NewReader(data)}, nil
}

func (d *disk) list(dir string) ([]fileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errCrash
	}
	var files []fileInfo
	for name, data := range d.names {
		if dir == "" || strings.HasPrefix(name, dir+"/") {
			files = append(files, fileInfo{name, int64(len(data))})
		}
	}
	return sortFiles(files), nil
}

func (d *disk) remove(names ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		if err := d.step(); err != nil {
			return err
		}
		if _, ok := d.names[name]; ok {
			d.change(change{name: name, gone: true})
		}
	}
	return nil
}

func (d *disk) sync(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.unsafe = slices.DeleteFunc(d.unsafe, func(c change) bool {
		// The folders around it are synced, too; the order within a folder is kept.
		synced := path.Dir(c.name) == dir || strings.HasPrefix(dir+"/", path.Dir(c.name)+"/")
		if synced {
			c.apply(d.safe)
		}
		return synced
	})
	return nil
}

func (d *disk) publish(name string, data []byte) error { return writeFile(d, name, data) }

// held is a hold on a storage that nobody else opens.
type held func() error

func (held) check() error     { return nil }
func (held) number() int64    { return 0 }
func (held) run() string      { return "" }
func (h held) release() error { return h() }

func (d *disk) lock() (owner, error) { return held(func() error { return nil }), nil }

func (d *disk) free() (uint64, bool) { return 17, true }

func (d *disk) close() error { return nil }

func openDisk(t *testing.T, d *disk) *Store {
	t.Helper()
	s, err := openStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newDiskWith returns a disk with checkpoint 1, all of it safe.
func newDiskWith(t *testing.T) *disk {
	d := newDisk()
	if _, err := take(openDisk(t, d), 1, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	d.safe, d.unsafe, d.steps = maps.Clone(d.names), nil, 0
	return d
}

// TestCrash crashes at every step of taking checkpoint 2 and removing checkpoint 1. What
// is found afterwards is always a whole checkpoint, the new one if it was said to be
// complete, and no damage; and the next run clears up.
func TestCrash(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	whole := newDiskWith(t)
	if _, err := take(openDisk(t, whole), 2, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	if err := openDisk(t, whole).Retain(1); err != nil {
		t.Fatal(err)
	}
	if whole.steps < 20 {
		t.Errorf("there are only %d steps", whole.steps)
	}
	for failAt := range whole.steps + 2 {
		for range 10 {
			d := newDiskWith(t)
			d.failAt, d.err, d.crashed = failAt, errCrash, true
			s := openDisk(t, d)
			_, takeErr := take(s, 2, KindCheckpoint, "")
			if takeErr == nil {
				_ = s.Retain(1) // it may crash
			}
			if err := checkAfterCrash(openDisk(t, d.afterCrash(r)), takeErr == nil); err != nil {
				t.Errorf("seed %d, crash at step %d: %v", seed, failAt, err)
			}
		}
	}
}

func checkAfterCrash(s *Store, completed bool) error {
	latest, skipped, err := s.Latest(0)
	if err != nil {
		return err
	}
	infos, err := s.List()
	if err != nil {
		return err
	}
	for _, info := range append(infos, skipped...) {
		if info.Err == nil {
			continue
		}
		if !errors.Is(info.Err, ErrUnfinished) {
			return fmt.Errorf("damaged: %w", info.Err)
		}
	}
	if latest == nil {
		return errors.New("there is no checkpoint")
	}
	id := latest.Manifest().ID
	if completed && id != 2 {
		return fmt.Errorf("checkpoint 2 was complete, and %d is found", id)
	}
	got, err := readAll(latest)
	if err = errors.Join(err, latest.Verify()); err != nil {
		return err
	}
	if got != wholeText(id, KindCheckpoint) {
		return fmt.Errorf("checkpoint %d has %s", id, got)
	}
	if err := latest.Close(); err != nil {
		return err
	}
	next, err := s.NextID()
	if err != nil {
		return err
	}
	if _, err := take(s, next, KindCheckpoint, ""); err != nil {
		return err
	}
	if err := s.Retain(1); err != nil {
		return err
	}
	files, err := s.storage.list("")
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	dir := fmt.Sprintf("chk-%d/", next)
	if want := []string{dir + "2-0.seg", dir + "2-1.seg", dir + "manifest", fmt.Sprintf("shared/sst-%d", next), "shared/sst-old"}; !slices.Equal(names, want) {
		return fmt.Errorf("left on the disk are %v", names)
	}
	return nil
}

// TestFullDisk runs out of space at every step. The checkpoint fails with an error that
// says where, it leaves nothing, and the one before is still there.
func TestFullDisk(t *testing.T) {
	for failAt := 1; ; failAt++ {
		d := newDiskWith(t)
		d.failAt, d.err = failAt, fmt.Errorf("write: %w", errNoSpace)
		s := openDisk(t, d)
		_, err := take(s, 2, KindCheckpoint, "")
		if d.steps < failAt {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if err == nil {
			t.Errorf("step %d: no error", failAt)
			continue
		}
		if text := err.Error(); !strings.Contains(text, "checkpoint 2") || !errors.Is(err, errNoSpace) {
			t.Errorf("step %d: %v", failAt, err)
		} else if !strings.Contains(text, "17 bytes are free in /disk/") {
			t.Errorf("step %d: %v", failAt, err)
		}
		if files, err := d.list("chk-2"); len(files) > 0 || err != nil {
			t.Errorf("step %d: left are %v, %v", failAt, files, err)
		}
		checkWhole(t, 1, KindCheckpoint)(s.Load("chk-1"))
		if _, err := take(s, 2, KindCheckpoint, ""); err != nil {
			t.Errorf("step %d: the next one: %v", failAt, err)
		}
	}
}

func TestDiskModel(t *testing.T) {
	d := newDisk()
	if err := writeFile(d, "a/b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	lost := 0
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		if len(d.afterCrash(r).names) == 0 {
			lost++
		}
	}
	if lost == 0 || lost == 100 {
		t.Errorf("lost %d of 100 times without a sync", lost)
	}
	if err := d.sync("a"); err != nil {
		t.Fatal(err)
	}
	if got := d.afterCrash(r).names; string(got["a/b"]) != "x" || len(got) != 1 {
		t.Errorf("got %v after a sync", got)
	}
}
