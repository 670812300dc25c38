package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// slowFiles are files of 1000 bytes that come at one each second, except for one, of which
// reading fails after a few.
type slowFiles struct {
	mu           sync.Mutex
	opened, open int
	most         int
}

var errSlow = errors.New("gone")

func (s *slowFiles) files(n, failing int) (files []File) {
	for i := range n {
		r := &slowReader{files: s, left: 1000}
		if i == failing {
			r.left, r.err = 3, errSlow
		}
		files = append(files, File{fmt.Sprintf("%06d.sst", i), 1000, r.start})
	}
	return files
}

type slowReader struct {
	files *slowFiles
	left  int
	err   error
}

func (r *slowReader) start() (io.ReadCloser, error) {
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	r.files.opened++
	r.files.open++
	r.files.most = max(r.files.most, r.files.open)
	return r, nil
}

func (r *slowReader) Read(p []byte) (int, error) {
	<-time.After(time.Second)
	if r.left--; r.left < 0 {
		if r.err != nil {
			return 0, r.err
		}
		return 0, io.EOF
	}
	p[0] = 'x'
	return 1, nil
}

func (r *slowReader) Close() error {
	r.files.mu.Lock()
	defer r.files.mu.Unlock()
	r.files.open--
	return nil
}

// Files of an image come a few at a time, whatever they are; the first error ends all of them, as
// does the context, and nothing is left behind.
func TestOpenImageAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name           string
		failing        int
		cancelled      bool
		opened         int
		atLeast, under time.Duration
		want           string
	}{
		{"all", -1, false, 10, 3003 * time.Second, 3010 * time.Second, "no store"},
		{"one fails", 2, false, fetchers, 4 * time.Second, 6 * time.Second, "gone"},
		{"cancelled", -1, true, fetchers, 5 * time.Second, 7 * time.Second, "canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancelled {
					time.AfterFunc(5*time.Second, cancel)
				}
				var s slowFiles
				began := time.Now()
				_, err := OpenImage(ctx, Options{Dir: dir}, s.files(10, tt.failing))
				if err == nil || !strings.Contains(err.Error(), tt.want) || tt.failing < 0 && errors.Is(err, errSlow) {
					t.Errorf("error %v lacks %q", err, tt.want)
				}
				if took := time.Since(began); took < tt.atLeast || took > tt.under {
					t.Errorf("it took %v", took)
				}
				if s.opened != tt.opened || s.most != fetchers || s.open != 0 {
					t.Errorf("%d were opened, %d at once, %d are open", s.opened, s.most, s.open)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		})
	}
}

// An image is the same in whatever order its files come.
func TestOpenImageInAnyOrder(t *testing.T) {
	s := open(t, Options{})
	var i *Image
	for round := range 5 {
		put(t, s, fmt.Sprint("k", round), "v")
		if i = begin(t, s); round < 4 {
			if err := errors.Join(i.Take(t.Context()), i.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := i.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := i.Files()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := OpenImage(t.Context(), Options{Dir: t.TempDir()}, files)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for e, err := range r.From([]byte("k"), nil) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, string(e.Key))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if want := []string{"k0", "k1", "k2", "k3", "k4"}; !slices.Equal(keys, want) {
			t.Errorf("got %v", keys)
		}
		slices.Reverse(files)
	}
	if err := errors.Join(i.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// A store's goroutine that is to end does not wait for an image on a disk that is stuck.
func TestImageOnStuckDisk(t *testing.T) {
	stuck, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	wait := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			once.Do(func() { close(stuck) })
			<-free
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := open(t, Options{FS: errorfs.Wrap(vfs.Default, wait), Context: ctx})
	put(t, s, "k", "before")
	i := begin(t, s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.View().Close(); err != nil {
			t.Error(err)
		}
	}()
	<-stuck
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
	close(free)
	<-ended
	if err := i.Take(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("taken: %v", err)
	}
	if err := errors.Join(i.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
