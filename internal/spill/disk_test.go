package spill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failingDisk is a file system on which operations of some kind on some files fail, from the
// nth on or only then.
type failingDisk struct {
	kind  errorfs.OpKind
	files string // a part of their names
	n     int64
	once  bool
	seen  atomic.Int64
}

// MaybeError implements errorfs.Injector.
func (d *failingDisk) MaybeError(op errorfs.Op) error {
	if op.Kind != d.kind || !strings.Contains(filepath.Base(op.Path), d.files) {
		return nil
	}
	if n := d.seen.Add(1); n < d.n || d.once && n > d.n {
		return nil
	}
	return errorfs.ErrInjected
}

// String implements errorfs.Injector.
func (d *failingDisk) String() string { return "failing disk" }

func (d *failingDisk) failed() bool { return d.seen.Load() >= d.n }

// use does with a store all that can be done, until an error or to the end.
func use(s *Store) error {
	b := s.NewBatch()
	defer b.Close()
	for round := range 15 {
		for i := range 10 {
			if err := b.Set(fmt.Append(nil, "k", round%3, i), bytes.Repeat([]byte{byte(round)}, 1000)); err != nil {
				return err
			}
		}
		if err := errors.Join(b.Commit(), s.Delete(fmt.Append(nil, "k", round%3, "5"))); err != nil {
			return err
		}
		i, err := s.Image()
		if err != nil {
			return err
		}
		if err = i.Take(context.Background()); err == nil {
			_, err = i.Files()
		}
		if err = errors.Join(err, i.Close()); err != nil {
			return err
		}
		if _, err := s.Get([]byte("k00"), func([]byte) error { return nil }); err != nil {
			return err
		}
		v := s.View()
		for _, err = range v.From([]byte("k"), nil) {
			if err != nil {
				break
			}
		}
		if err = errors.Join(err, v.Close()); err != nil {
			return err
		}
	}
	return nil
}

// useOnFailingDisk reports whether the disk has failed, and checks that this is an error that
// says where, and that nothing is left.
func useOnFailingDisk(t *testing.T, disk *failingDisk, runs bool) bool {
	t.Helper()
	base := t.TempDir()
	s, err := Open(Options{Dir: base, FS: errorfs.Wrap(vfs.Default, disk), Runs: runs})
	if err == nil {
		err = use(s)
		for deadline := time.Now().Add(10 * time.Second); err == nil && disk.failed() && time.Now().Before(deadline); {
			err = use(s) // what fails in the background may be noticed later
		}
		if closed := s.Close(); err == nil || closed != nil && !errors.Is(closed, errorfs.ErrInjected) {
			err = errors.Join(err, closed)
		}
	}
	left, _ := os.ReadDir(base)
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if !disk.failed() {
		if err != nil {
			t.Errorf("the disk has not failed, and yet: %v", err)
		}
		return false
	}
	if !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("the disk has failed, and the error is: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "panic") {
		t.Errorf("something has panicked: %v", err)
	}
	for _, part := range []string{filepath.Join(base, dirPrefix), "WithStateMemory"} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	return true
}

// A disk that fails at any write, for once or for good, is an error of the store that says
// where: it does not end the process, nobody waits for ever, and the directory is removed.
func TestDiskFailsAnywhere(t *testing.T) {
	for _, at := range []struct {
		name  string
		kind  errorfs.OpKind
		files string
	}{
		{"make the list of files", errorfs.OpCreate, "MANIFEST"},
		{"write the list of files", errorfs.OpFileWrite, "MANIFEST"},
		{"make a marker", errorfs.OpCreate, "marker."},
		{"make the options", errorfs.OpCreate, "OPTIONS"},
		{"write the options", errorfs.OpFileWrite, "OPTIONS"},
		{"rename the options", errorfs.OpRename, ""},
		{"make a table", errorfs.OpCreate, ".sst"},
		{"write a table", errorfs.OpFileWrite, ".sst"},
		{"make anything", errorfs.OpCreate, ""},
		{"write anything", errorfs.OpFileWrite, ""},
		{"make a directory", errorfs.OpMkdirAll, ""},
	} {
		for _, once := range []bool{true, false} {
			for _, runs := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, once %v, runs %v", at.name, once, runs), func(t *testing.T) {
					t.Parallel()
					for n := int64(1); ; n += 1 + n/4 {
						disk := &failingDisk{kind: at.kind, files: at.files, n: n, once: once}
						if failed := useOnFailingDisk(t, disk, runs); !failed || t.Failed() {
							t.Logf("%d operations, the disk failed at the first to the last of them", n-1)
							if n == 1 && !t.Failed() {
								t.Error("no such operation")
							}
							return
						}
					}
				})
			}
		}
	}
}

// Writers who wait for the disk stop waiting when it fails.
func TestDiskFailsWhileWritersWait(t *testing.T) {
	for _, file := range []string{".sst", "MANIFEST"} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				opened, full := false, make(chan struct{})
				disk := errorfs.InjectorFunc(func(op errorfs.Op) error {
					if !opened || op.Kind != errorfs.OpFileWrite || !strings.Contains(op.Path, file) {
						return nil
					}
					<-full
					return errorfs.ErrInjected
				})
				s := open(t, Options{Dir: dir, FS: errorfs.Wrap(vfs.Default, disk)})
				opened = true
				result := make(chan error, 1)
				written := 0
				go func() {
					b := s.NewBatch()
					var err error
					for ; err == nil; written++ {
						if err = b.Set(fmt.Append(nil, written), make([]byte, 1<<16)); err == nil {
							err = b.Commit()
						}
					}
					result <- errors.Join(err, b.Close())
				}()
				synctest.Wait()
				if n := written << 16; n < memTableBytes || n > 2*maxMemTables*memTableBytes {
					t.Errorf("the writer waits after %d bytes", n)
				}
				close(full)
				if err := <-result; !errors.Is(err, errorfs.ErrInjected) || !strings.Contains(err.Error(), s.Dir()) {
					t.Errorf("the writer got: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}
