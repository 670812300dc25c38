package spill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The filter never misses what was added and not removed, counts right, and is empty in
// the end.
func TestFilter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var f Filter
		counts := map[uint64]int{}
		n := 0
		// Few values, so that hashes come several times; some share a shard.
		hashes := rapid.SliceOfNDistinct(rapid.Uint64(), 1, 200, rapid.ID[uint64]).Draw(rt, "hashes")
		for range rapid.IntRange(0, 2000).Draw(rt, "steps") {
			h := rapid.SampledFrom(hashes).Draw(rt, "hash")
			if rapid.Bool().Draw(rt, "add") {
				f.Add(h)
				counts[h]++
				n++
			} else if counts[h] > 0 {
				f.Remove(h)
				counts[h]--
				n--
			}
			if f.Len() != n {
				rt.Fatalf("%d hashes instead of %d", f.Len(), n)
			}
		}
		for h, n := range counts {
			if n > 0 && !f.Has(h) {
				rt.Fatalf("%x is missed", h)
			}
			for range n {
				f.Remove(h)
			}
		}
		for _, h := range hashes {
			if f.Has(h) {
				rt.Fatalf("%x is there, in an empty filter", h)
			}
		}
	})
}

func TestFilterErrors(t *testing.T) {
	var f Filter
	const n = 1 << 20
	for i := range uint64(n) {
		f.Add(i << 32)
	}
	wrong := 0
	for i := range uint64(n) {
		if f.Has((n + i) << 32) {
			wrong++
		}
	}
	if wrong > n/1000 {
		t.Errorf("%d of %d answers are wrong", wrong, n)
	}
	if perHash := float64(f.Bytes()) / n; perHash > 11 {
		t.Errorf("%.1f bytes a hash", perHash)
	}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A view shows what there was, also after the store has been closed; then the directory is
// gone.
func TestView(t *testing.T) {
	s := open(t, Options{})
	b := s.NewBatch()
	for i := range 100 {
		if err := b.Set(fmt.Appendf(nil, "%c%02d", 'a'+i%2, i), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	if err := errors.Join(s.Delete([]byte("b99")), b.Set([]byte("b97"), []byte("x")), b.Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Get([]byte("b99"), func([]byte) error { return nil }); found || err != nil {
		t.Errorf("deleted: %v, %v", found, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range v.From([]byte("b"), []byte("b95")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(string(e.Key), e.Value))
	}
	if diff := cmp.Diff([]string{"b95[95]", "b97[97]", "b99[99]"}, got); diff != "" {
		t.Error(diff)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// Scans of a view walk at several places at once, and begin anew where they are told to.
func TestScan(t *testing.T) {
	s := open(t, Options{Runs: true})
	b := s.NewBatch()
	for _, key := range []string{"a1", "a2", "b1", "b2"} {
		if err := b.Set([]byte(key), []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	if err := errors.Join(b.DeletePrefix([]byte("b")), b.Set([]byte("a3"), nil), b.Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
	var scans [2]*Scan
	for i, prefix := range []string{"a", "b"} {
		var err error
		if scans[i], err = v.Scan([]byte(prefix)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	next := func(i int) {
		e, ok, err := scans[i].Next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(string(e.Key), string(e.Value), ok))
	}
	for range 3 {
		next(0)
		next(1)
	}
	scans[0].Restart([]byte("b2"))
	next(0)
	next(0)
	want := []string{"a1a1true", "b1b1true", "a2a2true", "b2b2true", "false", "false", "b2b2true", "false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(scans[0].Close(), scans[1].Close(), v.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// A panic of what looks at the entries, such as a function that a window calls, leaves nothing
// open.
func TestVisitorPanics(t *testing.T) {
	s := open(t, Options{})
	put(t, s, "k1", "v")
	put(t, s, "k2", "v")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		v := s.View()
		defer func() {
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}()
		for range v.From([]byte("k"), []byte("k")) {
			panic("user code")
		}
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The directory goes even if something of the store is still open, and that is an error.
func TestCloseWithOpenIterator(t *testing.T) {
	s := open(t, Options{})
	put(t, s, "k", "v")
	i := begin(t, s)
	if err := errors.Join(i.Take(t.Context()), i.Close()); err != nil { // so that the entry is in a file
		t.Fatal(err)
	}
	c, err := s.Cursor()
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := c.Get([]byte("k")); !found || err != nil {
		t.Fatalf("found: %v, %v", found, err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), s.Dir()) {
		t.Errorf("closing: %v", err)
	}
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// What a dead process left is removed, what a living one has is not.
func TestRemoveDead(t *testing.T) {
	base := t.TempDir()
	dead := filepath.Join(base, dirPrefix+"dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	first, second := open(t, Options{Dir: base}), open(t, Options{Dir: base})
	for dir, want := range map[string]bool{dead: false, first.Dir(): true, second.Dir(): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

// Stores of one directory come and go at the same time, as at a restart with another
// parallelism: none takes what another one is removing for a dead one's.
func TestStoresComeAndGo(t *testing.T) {
	base := t.TempDir()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 10 {
				s, err := Open(Options{Dir: base})
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A disk that cannot be written to is an error that says where and what to do, also if it
// is met in the background only.
func TestDiskErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(err error, dir string) {
		t.Helper()
		for _, part := range []string{dir, "WithStateMemory"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v lacks %q", err, part)
			}
		}
	}
	_, err := Open(Options{Dir: file})
	check(err, file)

	full := errorfs.ErrInjected
	broken := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return full
		}
		return nil
	})
	s := open(t, Options{FS: errorfs.Wrap(vfs.Default, broken)})
	b := s.NewBatch()
	for i := 0; err == nil || i == 0; i++ {
		if err = b.Set(fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, 1<<16)); err == nil {
			err = b.Commit()
		}
		if i > 64*maxMemTables {
			t.Fatal("nothing failed")
		}
	}
	check(err, s.Dir())
	if err := errors.Join(b.Close(), s.Close()); err != nil {
		t.Errorf("closing after the disk failed: %v", err)
	}
	if !errors.Is(err, full) {
		t.Errorf("error %v does not have its cause", err)
	}
}
