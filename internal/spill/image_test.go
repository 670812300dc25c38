package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// put writes an entry.
func put(t rapid.TB, s *Store, key, value string) {
	t.Helper()
	b := s.NewBatch()
	if err := errors.Join(b.Set([]byte(key), []byte(value)), b.Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
}

// get returns the value of a key, "" if it has none, as Get and a cursor find it.
func get(t rapid.TB, s *Store, key string) (value string) {
	t.Helper()
	if _, err := s.Get([]byte(key), func(v []byte) error { value = string(v); return nil }); err != nil {
		t.Fatal(err)
	}
	c, err := s.Cursor()
	if err != nil {
		t.Fatal(err)
	}
	also, _, err := c.Get([]byte(key))
	if string(also) != value || err != nil {
		t.Fatalf("%s: %q and %q, %v", key, value, also, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return value
}

// begin begins an image.
func begin(t rapid.TB, s *Store) *Image {
	t.Helper()
	i, err := s.Image()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// contents returns what an image that has been taken holds, read as after a restart, and the
// names of its tables.
func contents(t rapid.TB, i *Image, dir string) (all map[string]string, tables []string) {
	t.Helper()
	files, err := i.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsTable() {
			tables = append(tables, f.Name)
		}
	}
	r, err := OpenImage(context.Background(), Options{Dir: dir}, files)
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]string{}
	for e, err := range r.From([]byte("k"), []byte("k")) {
		if err != nil {
			t.Fatal(err)
		}
		all[string(e.Key)] = string(e.Value)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return all, tables
}

// An image is what there was when it was begun, whatever is written before it is taken and
// after, and all that is written is found.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s, err := Open(Options{Dir: dir})
		if err != nil {
			rt.Fatal(err)
		}
		model := map[string]string{}
		var image *Image
		var want map[string]string
		taken := false
		finish := func() {
			if image == nil {
				return
			}
			if err := image.Take(context.Background()); err != nil {
				rt.Fatal(err)
			}
			got, _ := contents(rt, image, dir)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("the image, -want +got:\n%s", diff)
			}
			if err := image.Close(); err != nil {
				rt.Fatal(err)
			}
			image, taken = nil, false
		}
		for n := range rapid.IntRange(0, 100).Draw(rt, "steps") {
			key := fmt.Sprint("k", rapid.IntRange(0, 30).Draw(rt, "key"))
			switch rapid.IntRange(0, 20).Draw(rt, "what") {
			case 0:
				finish()
				image, want = begin(rt, s), maps.Clone(model)
			case 1:
				if image != nil && !taken {
					taken = true
					if err := image.Take(context.Background()); err != nil {
						rt.Fatal(err)
					}
				}
			case 2:
				finish()
			case 3:
				v, got := s.View(), map[string]string{}
				for e, err := range v.From([]byte("k"), nil) {
					if err != nil {
						rt.Fatal(err)
					}
					got[string(e.Key)] = string(e.Value)
				}
				if err := v.Close(); err != nil {
					rt.Fatal(err)
				}
				if diff := cmp.Diff(model, got); diff != "" {
					rt.Fatalf("a view, -want +got:\n%s", diff)
				}
			case 4, 5, 6:
				delete(model, key)
				if err := s.Delete([]byte(key)); err != nil {
					rt.Fatal(err)
				}
			case 7, 8, 9, 10, 11:
				model[key] = fmt.Sprint(n)
				put(rt, s, key, model[key])
			default:
				if got := get(rt, s, key); got != model[key] {
					rt.Fatalf("%s is %q instead of %q", key, got, model[key])
				}
			}
		}
		finish()
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
	})
	if left, err := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Two images have the tables in common that did not change.
func TestImagesShareTables(t *testing.T) {
	s := open(t, Options{})
	shared := map[string]bool{}
	for round := range 3 {
		for i := range 100 {
			put(t, s, fmt.Sprint("k", round, i), strings.Repeat("x", 100))
		}
		i := begin(t, s)
		if err := i.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, tables := contents(t, i, t.TempDir())
		known := 0
		for _, name := range tables {
			if shared[name] {
				known++
			}
			shared[name] = true
		}
		if known != round || len(tables) != round+1 {
			t.Errorf("image %d has %d tables, %d of them known", round, len(tables), known)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What is held back for an image is bounded: beyond that the store's goroutine takes it.
func TestHeldWritesAreBounded(t *testing.T) {
	s := open(t, Options{})
	put(t, s, "k", "before")
	i := begin(t, s)
	value := strings.Repeat("x", 1<<20)
	for n := 0; s.Holding(); n++ {
		if n > maxHeld>>20 {
			t.Fatalf("%d MiB are held back", n)
		}
		put(t, s, fmt.Sprint("k", n), value)
	}
	if err := i.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, _ := contents(t, i, t.TempDir())
	if diff := cmp.Diff(map[string]string{"k": "before"}, got); diff != "" {
		t.Error(diff)
	}
	if get(t, s, "k3") != value {
		t.Error("what was held back is gone")
	}
	if err := errors.Join(i.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// An image that is given up holds nothing back any more, and the next one is whole.
func TestImageIsGivenUp(t *testing.T) {
	for name, give := range map[string]func(*Image) error{
		"closed": func(i *Image) error { return i.Close() },
		"its context ends": func(i *Image) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := i.Take(ctx); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("taken: %w", err)
			}
			return i.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			i := begin(t, s)
			put(t, s, "k", "v")
			if !s.Holding() || get(t, s, "k") != "v" {
				t.Error("the write is not held back, or not found")
			}
			if err := give(i); err != nil {
				t.Fatal(err)
			}
			if s.Holding() || get(t, s, "k") != "v" {
				t.Error("the write is still held back, or not found")
			}
			i = begin(t, s)
			if err := i.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, _ := contents(t, i, t.TempDir()); got["k"] != "v" {
				t.Errorf("the next image has %v", got)
			}
			if err := errors.Join(i.Close(), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store that is closed while an image is under way stays until that has been closed.
func TestCloseDuringImage(t *testing.T) {
	s := open(t, Options{})
	put(t, s, "k", "v")
	i := begin(t, s)
	put(t, s, "k", "later")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := i.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := contents(t, i, t.TempDir()); got["k"] != "v" {
		t.Errorf("the image has %v", got)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// A disk that fails while an image is taken fails the image, and waits for nothing.
func TestImageOnBrokenDisk(t *testing.T) {
	broken := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return errorfs.ErrInjected
		}
		return nil
	})
	s := open(t, Options{FS: errorfs.Wrap(vfs.Default, broken)})
	put(t, s, "k", "v")
	i := begin(t, s)
	if err := i.Take(t.Context()); !errors.Is(err, errorfs.ErrInjected) || !strings.Contains(err.Error(), "WithStateMemory") {
		t.Errorf("taken: %v", err)
	}
	if err := errors.Join(i.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// What cannot be read of an image is an error that says why, and leaves nothing behind.
func TestOpenImageFails(t *testing.T) {
	dir := t.TempDir()
	gone := errors.New("gone")
	text := func(s string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
	}
	for _, tt := range []struct {
		file File
		want string
	}{
		{File{"000001.sst", 1, func() (io.ReadCloser, error) { return nil, gone }}, "gone"},
		{File{"000001.sst", 2, text("x")}, "000001.sst of the snapshot has 1 bytes instead of 2"},
		{File{"../000001.sst", 1, text("x")}, "impossible"},
		{File{"000001.sst", 1, text("x")}, "no store"},
	} {
		_, err := OpenImage(context.Background(), Options{Dir: dir}, []File{tt.file})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v lacks %q", err, tt.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
