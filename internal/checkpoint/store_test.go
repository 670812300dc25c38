package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ids(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	infos, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		ids = append(ids, fmt.Sprint(info.Kind, " ", info.ID))
	}
	return ids
}

func TestRetain(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, address)
			for id := range int64(6) {
				kind := KindCheckpoint
				if id == 2 {
					kind = KindSavepoint
				}
				if _, err := take(s, id, kind, ""); err != nil {
					t.Fatal(err)
				}
			}
			open, err := s.Load("chk-1")
			if err != nil {
				t.Fatal(err)
			}
			pending, err := s.Begin(6, KindCheckpoint, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := writeSegment(pending, 0); err != nil {
				t.Fatal(err)
			}
			if err := s.Retain(2); err != nil {
				t.Fatal(err)
			}
			want := []string{"checkpoint 5", "checkpoint 4", "savepoint 2", "checkpoint 1"}
			if diff := cmp.Diff(want, ids(t, s)); diff != "" {
				t.Error(diff)
			}
			files, err := s.storage.list(sharedDir)
			if err != nil {
				t.Fatal(err)
			}
			var shared []string
			for _, f := range files {
				shared = append(shared, f.name)
			}
			// Of checkpoint 1, which is open, of those retained, of the pending one.
			if diff := cmp.Diff([]string{"shared/sst-1", "shared/sst-4", "shared/sst-5", "shared/sst-6", "shared/sst-old"}, shared); diff != "" {
				t.Error(diff)
			}
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
			if err := pending.Abort(); err != nil {
				t.Fatal(err)
			}
			if err := s.Retain(1); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"checkpoint 5", "savepoint 2"}, ids(t, s)); diff != "" {
				t.Error(diff)
			}
			c, err := s.Load(s.Path() + "/chk-5")
			checkWhole(t, 5, KindCheckpoint)(c, err)
			if err := s.Retain(0); err == nil {
				t.Error("nothing is retained")
			}
		})
	}
}

// TestSharedOverRestarts: a new process knows what its checkpoints refer to, and does
// not store it again.
func TestSharedOverRestarts(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(first, 1, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leftOver := filepath.Join(dir, "shared", "sst-2.part")
	if err := os.WriteFile(leftOver, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, dir)
	p, err := s.Begin(2, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	segment, err := p.Segment("v", 0)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := segment.Shared("sst-old", int64(len("content of sst-old")), func() (io.ReadCloser, error) {
		return nil, errors.New("it is there already")
	})
	if err != nil || ref.Checksum == 0 {
		t.Errorf("got %v, %v", ref, err)
	}
	for name, want := range map[string]string{"sst-old": "a shared file never changes", "sst-new": "5 bytes instead of 3", "a/b": "must be of letters", "..": "must be of letters"} {
		_, err := segment.Shared(name, 3, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("12345")), nil })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), fmt.Sprintf("shared file %q", name)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := p.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(leftOver); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the left over file: %v", err)
	}
	checkWhole(t, 1, KindCheckpoint)(s.Load("chk-1"))
}

// TestAbortDuringShared: a savepoint that is given up while a shared file is stored leaves
// nothing.
func TestAbortDuringShared(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	p, err := s.Begin(1, KindSavepoint, dir)
	if err != nil {
		t.Fatal(err)
	}
	segment, err := p.Segment("v", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(t, s); len(got) > 0 {
		t.Errorf("the pending one is listed: %v", got)
	}
	_, err = segment.Shared("sst", 0, func() (io.ReadCloser, error) {
		if err := p.Abort(); err != nil {
			t.Error(err)
		}
		return io.NopCloser(strings.NewReader("")), nil
	})
	if !errors.Is(err, errAborted) {
		t.Errorf("got %v", err)
	}
	if files, err := s.storage.list(""); err != nil || len(files) != 1 || files[0].name != "lock" {
		t.Errorf("left are %v, %v", files, err)
	}
}

// TestLock: the lock of a process that was killed is gone with it.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	if os.Getenv("LOWWATER_TEST_HOLD") != "" {
		if _, err := Open(t.Context(), os.Getenv("LOWWATER_TEST_HOLD")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString("locked"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	other := exec.Command(os.Args[0], "-test.run=^TestLock$")
	other.Env = append(os.Environ(), "LOWWATER_TEST_HOLD="+dir)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("locked"))); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir)
	want := fmt.Sprintf("the checkpoint directory %s is in use by process %d on ", dir, other.Process.Pid)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	view, err := View(t.Context(), dir)
	if err != nil {
		t.Errorf("looking at it: %v", err)
	} else if err := view.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	openTest(t, dir)
	if _, err := Open(t.Context(), dir); err == nil {
		t.Error("opened twice in one process")
	}
}

// The test of a directory that may not be written to runs in a process of its own, as nobody,
// if this one is root's, who may do everything.
func TestPermissions(t *testing.T) {
	const given = "LOWWATER_TEST_DIR"
	dir := os.Getenv(given)
	if dir == "" && os.Geteuid() == 0 {
		asNobody(t, given)
		return
	}
	if dir == "" {
		dir = t.TempDir()
	}
	s := openTest(t, dir)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	_, err := take(s, 1, KindCheckpoint, "")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), filepath.Join(dir, "chk-1")) {
		t.Errorf("got %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"":                 "no directory is given",
		file:               "file",
		"file://host/path": "three slashes",
		"ftp://x":          `unknown scheme "ftp"`,
	} {
		if _, err := Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
	for address, want := range map[string]string{
		filepath.Join(t.TempDir(), "nothing", "chk-1"): "no such file",
		t.TempDir() + "/chk-1":                         "there is no checkpoint in",
		"mem://nothing/chk-1":                          "there is no checkpoint in mem://nothing/chk-1",
	} {
		if _, err := Load(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
	if openBlob == nil {
		for scheme, tag := range blobTags {
			if _, err := Open(t.Context(), scheme+"://bucket"); err == nil || !strings.Contains(err.Error(), "-tags "+tag) {
				t.Errorf("%s: got %v", scheme, err)
			}
		}
	}
}

func TestSplitAddress(t *testing.T) {
	for address, want := range map[string][2]string{
		"/a/b/chk-1":                      {"/a/b", "chk-1"},
		"/a/b/chk-1/":                     {"/a/b", "chk-1"},
		"/a/b/chk-1/manifest":             {"/a/b", "chk-1"},
		"file:///a/chk-1":                 {"file:///a", "chk-1"},
		"file:///chk-1":                   {"file:///", "chk-1"},
		"mem://m/chk-1":                   {"mem://m", "chk-1"},
		"s3://b/dir/chk-1/manifest?r=x":   {"s3://b/dir?r=x", "chk-1"},
		"azblob://b/d/savepoint-1-abcdef": {"azblob://b/d", "savepoint-1-abcdef"},
	} {
		root, dir := splitAddress(address)
		if root != want[0] || dir != want[1] {
			t.Errorf("%s: got %s, %s", address, root, dir)
		}
	}
}

func TestSegmentFile(t *testing.T) {
	seen := map[string]string{}
	for _, vertex := range []string{"1", "a-b", "a b", "a_b", "a/b", "..", "", strings.Repeat("x", 200), strings.Repeat("x", 201), "Größe"} {
		file := segmentFile(vertex, 3, "")
		if other, ok := seen[file]; ok || len(file) > 150 || strings.ContainsAny(file, "/ ") || strings.HasPrefix(file, ".") {
			t.Errorf("vertex %q has the file %q, as %q", vertex, file, other)
		}
		seen[file] = vertex
	}
}

func TestMatch(t *testing.T) {
	s, _ := smallCheckpoint(t, "match")
	c, err := s.Load("chk-1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	info := func(id, uid, name string, maxParallelism int) OperatorInfo {
		return OperatorInfo{ID: id, UID: uid, Name: name, MaxParallelism: maxParallelism}
	}
	count, source := info("count-id", "count", "Count", 16), info("source-id", "", "Source", 16)
	for _, tc := range []struct {
		name      string
		job       string
		operators []OperatorInfo
		allow     bool
		other     string
		missing   int
		fresh     int
		want      []string
	}{
		{name: "same", job: "test", operators: []OperatorInfo{count, source}},
		{name: "renamed job", job: "other", operators: []OperatorInfo{count, source}},
		{name: "other job", job: "other", operators: []OperatorInfo{info("count-id", "", "Count", 16), source}, other: "test"},
		{name: "one more", job: "test", operators: []OperatorInfo{count, source, info("x", "", "X", 128)}, fresh: 1},
		{name: "lost", job: "other", operators: []OperatorInfo{source, info("count-2", "", "Count", 16)}, other: "test", missing: 1, fresh: 1, want: []string{
			`mem://match/chk-1 is of job "test", this is job "other", and it does not fit the job`,
			`state that no operator of the job takes: operator "Count" (uid count) with`,
			`the job has operators that the checkpoint does not: operator "Count" (id count-2)`, "AllowNonRestoredState",
		}},
		{name: "lost and allowed", job: "test", operators: []OperatorInfo{source}, allow: true, missing: 1},
		{name: "max parallelism", job: "test", operators: []OperatorInfo{info("count-id", "count", "Count", 32), source}, want: []string{
			`operator "Count" (uid count) has the max parallelism 32 and was stored with 16`,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := c.Match(tc.job, tc.operators, tc.allow)
			if len(m.Missing) != tc.missing || len(m.New) != tc.fresh || m.OtherJob != tc.other {
				t.Errorf("got %+v", m)
			}
			if (err != nil) != (tc.want != nil) {
				t.Errorf("got %v", err)
			}
			for _, want := range tc.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
