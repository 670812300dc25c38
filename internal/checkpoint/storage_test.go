package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// objectStores has the addresses of the object stores that tests run on, by name, in builds
// that have any.
var objectStores = map[string]string{}

// addresses are those of each kind of storage, with nothing there.
func addresses(t *testing.T) map[string]string {
	all := map[string]string{"local": t.TempDir(), "memory": "mem://" + t.Name() + fmt.Sprint(rand.Uint64())}
	for name, address := range objectStores {
		all[name] = below(address, t.Name()+fmt.Sprint(rand.Uint64()))
	}
	return all
}

// below is an address below another, which may have options.
func below(address, name string) string {
	root, query, found := strings.Cut(address, "?")
	if root += "/" + name; found {
		root += "?" + query
	}
	return root
}

// within is a path as messages show it with the options of an address.
func within(address, path string) string {
	_, query, found := strings.Cut(address, "?")
	if found {
		path += "?" + query
	}
	return path
}

func openTestStorage(t *testing.T, address string) storage {
	t.Helper()
	s, err := openStorage(t.Context(), address, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func listed(t *testing.T, s storage, dir string) (names []string) {
	t.Helper()
	files, err := s.list(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, fmt.Sprintf("%s %d", f.name, f.size))
	}
	return names
}

func content(t *testing.T, s storage, name string) string {
	t.Helper()
	data, err := readFile(s, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestStorage(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openTestStorage(t, address)
			t.Run("missing", func(t *testing.T) { testMissing(t, s) })
			t.Run("appears", func(t *testing.T) { testAppears(t, s) })
			t.Run("publish", func(t *testing.T) { testPublish(t, s) })
			t.Run("list", func(t *testing.T) { testList(t, s) })
			t.Run("read", func(t *testing.T) { testRead(t, s) })
			t.Run("many", func(t *testing.T) { testMany(t, s) })
			t.Run("root", func(t *testing.T) { testRoot(t, s, address) })
		})
	}
}

func testMissing(t *testing.T, s storage) {
	if _, err := s.open("missing/file"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), s.path("missing/file")) {
		t.Errorf("open: %v", err)
	}
	if got := listed(t, s, "missing"); got != nil {
		t.Errorf("listed %v", got)
	}
	if err := s.remove("missing/file", "missing/other"); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// testAppears: a file appears with its commit, and not at all if it is given up.
func testAppears(t *testing.T, s storage) {
	aborted, err := s.create("appears/aborted")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := s.create("appears/committed")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []fileWriter{aborted, committed} {
		if _, err := w.Write([]byte("first ")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("second")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"appears/aborted", "appears/committed"} {
		if _, err := s.open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there before its commit: %v", name, err)
		}
	}
	if err := errors.Join(aborted.abort(), aborted.abort(), committed.commit(), committed.abort(), s.sync("appears")); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"appears/committed 12"}, listed(t, s, "appears")); diff != "" {
		t.Error(diff)
	}
	if got := content(t, s, "appears/committed"); got != "first second" {
		t.Errorf("it has %q", got)
	}
	if err := writeFile(s, "appears/empty", nil); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, "appears/empty"); got != "" {
		t.Errorf("the empty one has %q", got)
	}
	if err := s.remove("appears/committed", "appears/empty"); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, s, "appears"); got != nil {
		t.Errorf("left are %v", got)
	}
}

// testPublish: of many that publish under one name one does. A storage with a lock has no
// others.
func testPublish(t *testing.T, s storage) {
	if _, ok := s.(*local); ok {
		if err := s.publish("publish/name", []byte("x")); err != nil {
			t.Fatal(err)
		}
		return
	}
	var mu sync.Mutex
	var won []string
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			text := fmt.Sprint("writer ", i)
			err := s.publish("publish/name", []byte(text))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, text)
			case !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), s.path("publish/name")):
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 || content(t, s, "publish/name") != won[0] {
		t.Errorf("%v have published, there is %q", won, content(t, s, "publish/name"))
	}
}

func testList(t *testing.T, s storage) {
	names := []string{"list/b/2", "list/a", "list/b/1", "list/bb", "list2/c"}
	for _, name := range names {
		if err := writeFile(s, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"list/a 6", "list/b/1 8", "list/b/2 8", "list/bb 7"}, listed(t, s, "list")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"list/b/1 8", "list/b/2 8"}, listed(t, s, "list/b")); diff != "" {
		t.Error(diff)
	}
	all := listed(t, s, "")
	for _, name := range names {
		if want := fmt.Sprintf("%s %d", name, len(name)); !slices.Contains(all, want) {
			t.Errorf("%q is not listed", want)
		}
	}
	if err := s.remove(names...); err != nil {
		t.Fatal(err)
	}
}

// testRead reads at the ends, in the middle of a file of several parts, and from many
// goroutines.
func testRead(t *testing.T, s storage) {
	data := make([]byte, 20<<20+17)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	w, err := s.create("read/large")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
	f, err := s.open("read/large")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(data))
	if f.size() != size {
		t.Errorf("its size is %d", f.size())
	}
	var group sync.WaitGroup
	for _, at := range []struct {
		offset int64
		length int
		want   int
	}{{0, 1, 1}, {0, len(data), len(data)}, {8<<20 - 5, 10, 10}, {size - 1, 1, 1}, {size - 5, 10, 5}, {size, 1, 0}, {size + 1, 1, 0}, {3, 0, 0}} {
		group.Go(func() {
			p := make([]byte, at.length)
			n, err := f.ReadAt(p, at.offset)
			wantErr := error(nil)
			if at.want < at.length {
				wantErr = io.EOF
			}
			if n != at.want || err != wantErr || !bytes.Equal(p[:n], data[min(at.offset, size):][:n]) {
				t.Errorf("%d bytes at %d: got %d, %v", at.length, at.offset, n, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(f.Close(), s.remove("read/large")); err != nil {
		t.Error(err)
	}
}

// testMany has more files than a page of a list, written and removed at the same time.
func testMany(t *testing.T, s storage) {
	const writers, each = 8, 130
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for j := range each {
				if err := writeFile(s, fmt.Sprintf("many/%d-%d", i, j), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	files, err := s.list("many")
	if err != nil || len(files) != writers*each {
		t.Fatalf("there are %d, %v", len(files), err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	if err := s.remove(names...); err != nil {
		t.Fatal(err)
	}
	if left := listed(t, s, "many"); left != nil {
		t.Errorf("left are %d", len(left))
	}
}

// testRoot: two directories of one storage do not see each other, also if the name of one
// begins as the other's.
func testRoot(t *testing.T, s storage, address string) {
	if _, ok := s.(*local); ok {
		address = t.TempDir()
	}
	one, two := openTestStorage(t, below(address, "root")), openTestStorage(t, below(address, "root2"))
	for _, s := range []storage{one, two} {
		if err := writeFile(s, "dir/file", []byte(s.path("dir/file"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []storage{one, two} {
		if got, want := content(t, s, "dir/file"), s.path("dir/file"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := listed(t, s, ""); len(got) != 1 {
			t.Errorf("%s has %v", s.path(""), got)
		}
		if err := s.remove("dir/file"); err != nil {
			t.Error(err)
		}
	}
}

// distant is an object store far away: every call takes its time.
type distant struct{ storage }

const distance = 20 * time.Millisecond

func (d distant) create(name string) (fileWriter, error) {
	w, err := d.storage.create(name)
	return distantWriter{w}, err
}

type distantWriter struct{ fileWriter }

func (w distantWriter) commit() error {
	<-time.After(distance)
	return w.fileWriter.commit()
}

func (d distant) open(name string) (fileReader, error) {
	<-time.After(distance)
	r, err := d.storage.open(name)
	return distantReader{r}, err
}

type distantReader struct{ fileReader }

func (r distantReader) ReadAt(p []byte, offset int64) (int, error) {
	<-time.After(distance)
	return r.fileReader.ReadAt(p, offset)
}

func (d distant) list(dir string) ([]fileInfo, error) {
	<-time.After(distance)
	return d.storage.list(dir)
}

func (d distant) publish(name string, data []byte) error {
	<-time.After(distance)
	return d.storage.publish(name, data)
}

func (d distant) remove(names ...string) error {
	return atOnce(names, func(name string) error {
		<-time.After(distance)
		return d.storage.remove(name)
	})
}

// TestManySegmentsFarAway: with many segments and a store that is far away, nothing waits for
// one segment after the other.
func TestManySegmentsFarAway(t *testing.T) {
	const segments = 200
	synctest.Test(t, func(t *testing.T) {
		s := openOn(t, distant{openMem(fmt.Sprint(t.Name(), rand.Uint64()), "")})
		timed := func(what string, limit time.Duration, f func() error) {
			started := time.Now()
			if err := f(); err != nil {
				t.Fatal(what, err)
			}
			if d := time.Since(started); d > limit {
				t.Errorf("%s took %v, more than %v", what, d, limit)
			} else {
				t.Log(what, d)
			}
		}
		for id := range int64(3) {
			timed("taking a checkpoint", 10*distance, func() error { return takeMany(s, id, segments) })
		}
		timed("retaining 2 of 3", 200*distance, func() error { return s.Retain(2) })
		timed("finding the latest", 150*distance, func() error {
			c, skipped, err := s.Latest(0)
			if c == nil || len(skipped) > 0 {
				return fmt.Errorf("got %v, %v, %v", c, skipped, err)
			}
			return c.Close()
		})
	})
}

// takeMany takes a checkpoint of many small segments, written at once.
func takeMany(s *Store, id int64, segments int) error {
	p, err := s.Begin(id, KindCheckpoint, "")
	if err != nil {
		return err
	}
	op := Operator{ID: "many", Parallelism: segments, MaxParallelism: segments}
	errs := make(chan error, segments)
	for i := range segments {
		go func() {
			segment, err := p.Segment("1", i)
			if err == nil {
				w := segment.Operator(OperatorInfo{ID: op.ID, Subtask: i, Parallelism: segments, MaxParallelism: segments}, nil)
				err = writeParts(w, []written{{part: snapshot.Part{Name: "n", Kind: snapshot.List}, entries: texts("x")}})
			}
			if err == nil {
				_, err = segment.Finish()
			}
			errs <- err
		}()
	}
	for range segments {
		if err := <-errs; err != nil {
			return err
		}
	}
	_, err = p.Complete(Manifest{Job: "many", Operators: []Operator{op}})
	return err
}
