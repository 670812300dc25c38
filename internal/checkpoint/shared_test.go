package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// share writes a checkpoint of one subtask that refers to shared files through its operator,
// and returns what is said of its sizes.
func share(t *testing.T, s *Store, id int64, names ...string) (segment SegmentInfo, operator Operator) {
	t.Helper()
	p, err := s.Begin(id, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Segment("v", 0)
	if err != nil {
		t.Fatal(err)
	}
	w := g.Operator(OperatorInfo{ID: "op", Parallelism: 1, MaxParallelism: 1}, nil)
	if !w.Incremental() {
		t.Error("a checkpoint is not incremental")
	}
	if err := writeParts(w, []written{{part: snapshot.Part{Name: "files", Kind: snapshot.Union}, entries: texts("1234")}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time is none
		for _, name := range names {
			if err := w.Share(name, int64(len(name)), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(name)), nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if segment, err = g.Finish(); err != nil {
		t.Fatal(err)
	}
	m := Manifest{Operators: []Operator{{ID: "op", Parallelism: 1, MaxParallelism: 1}}}
	if _, err := p.Complete(m); err != nil {
		t.Fatal(err)
	}
	c, err := s.Load(fmt.Sprint("chk-", id))
	if err != nil {
		t.Fatal(err)
	}
	operator = c.Manifest().Operators[0]
	for _, name := range names {
		r := readerOf(t, c)
		f, err := r.Shared(name)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(f); string(content) != name || err != nil {
			t.Errorf("%s: %q, %v", name, content, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(c.Verify(), c.Close()); err != nil {
		t.Error(err)
	}
	return segment, operator
}

func readerOf(t *testing.T, c *Checkpoint) snapshot.Reader {
	t.Helper()
	op, ok := c.Operator("op")
	if !ok {
		t.Fatal("the operator is not there")
	}
	r, err := op.Reader(0, 1, ranges)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is stored for a checkpoint is told apart from what its state takes.
func TestSizesOfSharedFiles(t *testing.T) {
	s := openTest(t, t.TempDir())
	type sizes struct{ state, written, operator int64 }
	for i, tt := range []struct {
		names []string
		want  sizes // beside the segments
	}{
		{[]string{"a", "bb"}, sizes{3, 3, 4 + 3}},
		{[]string{"bb", "ccc"}, sizes{5, 3, 4 + 5}},
		{[]string{"bb"}, sizes{2, 0, 4 + 2}},
	} {
		segment, operator := share(t, s, int64(i+1), tt.names...)
		got := sizes{segment.StateSize() - segment.Size, segment.WrittenSize() - segment.Size, operator.Size}
		if got != tt.want {
			t.Errorf("checkpoint %d: %+v, want %+v", i+1, got, tt.want)
		}
	}
}

// A damaged shared file damages all checkpoints that refer to it, by name, and none else.
func TestDamagedSharedFile(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	share(t, s, 1, "a")
	share(t, s, 2, "a", "bb")
	share(t, s, 3, "bb", "ccc")
	if err := os.WriteFile(filepath.Join(dir, "shared", "bb"), []byte("bB"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, skipped, err := s.Latest(0)
	if err != nil || c == nil || c.Manifest().ID != 1 {
		t.Fatalf("the latest is %v, %v", c, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var ids []int64
	for _, info := range skipped {
		ids = append(ids, info.ID)
		if !strings.Contains(info.Err.Error(), "shared/bb") {
			t.Errorf("checkpoint %d: %v", info.ID, info.Err)
		}
	}
	if diff := cmp.Diff([]int64{3, 2}, ids); diff != "" {
		t.Error(diff)
	}
}
