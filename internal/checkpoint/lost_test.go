package checkpoint

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// sharing begins a checkpoint of one subtask that refers to shared files.
func sharing(t *testing.T, s *Store, id int64, names ...string) (*Pending, *Segment) {
	t.Helper()
	p, err := s.Begin(id, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Segment("v", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := shareFile(g, name); err != nil {
			t.Fatal(err)
		}
	}
	return p, g
}

func shareFile(g *Segment, name string) error {
	_, err := g.Shared(name, int64(len(name)), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(name)), nil })
	return err
}

// A checkpoint whose files have been removed by somebody else is not published, and the next
// one stores anew what is missing.
func TestFilesThatAreGone(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"all":         os.RemoveAll,
		"shared":      func(dir string) error { return os.RemoveAll(filepath.Join(dir, "shared")) },
		"one of them": func(dir string) error { return os.Remove(filepath.Join(dir, "shared", "a")) },
		"cut short":   func(dir string) error { return os.Truncate(filepath.Join(dir, "shared", "a"), 0) },
	} {
		for when, early := range map[string]bool{"before": true, "meanwhile": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				dir := t.TempDir()
				s := openTest(t, dir)
				share(t, s, 1, "a", "bb")
				id := int64(2)
				if early && name != "cut short" { // which is seen when it counts
					if err := remove(dir); err != nil {
						t.Fatal(err)
					}
				} else {
					p, g := sharing(t, s, id, "a", "ccc")
					_, err := g.Finish()
					if err := errors.Join(err, remove(dir)); err != nil {
						t.Fatal(err)
					}
					if _, err := p.Complete(Manifest{}); err == nil || !strings.Contains(err.Error(), "something else has removed or changed") {
						t.Errorf("got %v", err)
					}
					id++
				}
				share(t, s, id, "a", "bb", "ccc")
			})
		}
	}
}

// A savepoint whose directory does not answer holds up neither the store's own checkpoints nor
// the removal of old ones.
func TestSavepointHangsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := strings.ReplaceAll(t.Name(), "/", "-") + "-target"
		s := openTest(t, "mem://"+t.Name())
		share(t, s, 1, "a")
		p, err := s.Begin(2, KindSavepoint, "mem://"+target)
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan struct{})
		DisturbMem(target, func(operation, file string) error {
			if operation == "commit" && strings.HasSuffix(file, manifestName) {
				<-answer
			}
			return nil
		})
		defer DisturbMem(target, nil)
		completed := make(chan error)
		go func() {
			_, err := p.Complete(Manifest{})
			completed <- err
		}()
		synctest.Wait()
		share(t, s, 3, "bb")
		if err := s.Retain(1); err != nil {
			t.Fatal(err)
		}
		if err := p.Abort(); err != nil {
			t.Error(err)
		}
		if got := listed(t, s.storage, sharedDir); len(got) != 1 {
			t.Errorf("left are %v", got)
		}
		close(answer)
		if err := <-completed; err != nil {
			t.Error(err)
		}
	})
}

// Shared files that cannot be removed hold up nothing but a file of the same name, which is
// stored anew then.
func TestRemovalOfSharedFilesHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t, "mem://"+t.Name())
		share(t, s, 1, "a")
		share(t, s, 2, "bb")
		answer := make(chan struct{})
		DisturbMem(t.Name(), func(operation, file string) error {
			if operation == "remove" && strings.Contains(file, sharedDir) {
				<-answer
			}
			return nil
		})
		defer DisturbMem(t.Name(), nil)
		retained := make(chan error)
		go func() { retained <- s.Retain(1) }()
		synctest.Wait()
		share(t, s, 3, "bb", "ccc")
		p, g := sharing(t, s, 4, "bb")
		again := make(chan error)
		go func() { again <- shareFile(g, "a") }()
		synctest.Wait()
		select {
		case err := <-again:
			t.Errorf("a file is stored while it is being removed: %v", err)
		default:
		}
		close(answer)
		err := errors.Join(<-retained, <-again)
		if _, finishErr := g.Finish(); err == nil {
			err = finishErr
		}
		if _, completeErr := p.Complete(Manifest{}); err == nil {
			err = completeErr
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Load("chk-4")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Verify(), c.Close()); err != nil {
			t.Error(err)
		}
	})
}
