package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder whose lock was removed is locked anew, unless another run has come first.
func TestLockIsRemoved(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"the file":   func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) },
		"the folder": os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "checkpoints")
			first := openTest(t, dir)
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := first.CheckOwner(); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "in use by process") {
				t.Fatalf("another run opens it: %v", err)
			}
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			second := openTest(t, dir)
			if _, err := first.Begin(1, KindCheckpoint, ""); !errors.Is(err, ErrTakenOver) || !strings.Contains(err.Error(), dir) {
				t.Errorf("the first run goes on: %v", err)
			}
			if err := second.CheckOwner(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A savepoint that is given up leaves nothing, not even its folder.
func TestAbortedSavepointLeavesNothing(t *testing.T) {
	s, target := openTest(t, t.TempDir()), t.TempDir()
	p, err := s.Begin(1, KindSavepoint, target)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Segment("v", 0)
	if err := errors.Join(err, p.Abort()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(target); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
