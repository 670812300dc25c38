package files_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/files"
	"github.com/lowwater/lowwater/format"
	"github.com/lowwater/lowwater/format/csv"
	"github.com/lowwater/lowwater/format/raw"
)

// output is what readers passed on.
type output[T any] struct {
	values   []T
	bySplit  map[string][]T
	offsets  []int64
	letters  []connector.DeadLetter
	finished []string
	turns    []string // ends of files, and which are marked active
	largest  int
}

func newOutput[T any]() *output[T] {
	return &output[T]{bySplit: map[string][]T{}}
}

func (o *output[T]) Batch() *connector.Batch[T] { return &connector.Batch[T]{} }

func (o *output[T]) Emit(split string, b *connector.Batch[T], offsets []int64, _ connector.TimestampType) error {
	if len(offsets) != b.Len() || len(b.Timestamps) != b.Len() || len(b.Origins) != b.Len() || slices.Contains(o.finished, split) {
		return fmt.Errorf("%d records of %s with %d offsets; finished are %v", b.Len(), split, len(offsets), o.finished)
	}
	o.values = append(o.values, b.Values...)
	o.bySplit[split] = append(o.bySplit[split], b.Values...)
	o.offsets = append(o.offsets, offsets...)
	o.largest = max(o.largest, b.Len())
	return nil
}

func (o *output[T]) EmitSide(l connector.DeadLetter) error {
	o.letters = append(o.letters, l)
	return nil
}
func (o *output[T]) FinishSplit(id string) error {
	o.finished = append(o.finished, id)
	o.turns = append(o.turns, "end "+filepath.Base(id))
	return nil
}
func (o *output[T]) EmitWatermark(string, int64) error { return errors.New("no") }
func (o *output[T]) MarkIdle(string) error             { return errors.New("no") }
func (o *output[T]) MarkActive(id string) error {
	o.turns = append(o.turns, "active "+filepath.Base(id))
	return nil
}

// snapshot is what a checkpoint keeps of a source.
type snapshot struct {
	enumerator []byte
	splits     [][]byte
}

// opened is a source that runs.
type opened[T any] struct {
	t          *testing.T
	source     *files.Source[T]
	enumerator connector.Enumerator
	readers    []connector.Reader[T]
	dropped    []string
	found      []string // by the first Discover
}

func open[T any](t *testing.T, source *files.Source[T], parallelism int, from *snapshot) *opened[T] {
	t.Helper()
	check(t, source.Validate())
	e, err := source.NewEnumerator(t.Context(), connector.SourceRuntime{})
	check(t, err)
	o := &opened[T]{t: t, source: source, enumerator: e}
	for i := range parallelism {
		r, err := source.NewReader(t.Context(), connector.ReaderRuntime{
			Subtask: i, Parallelism: parallelism, Logger: slog.New(slog.DiscardHandler),
			CountDropped: func(reason, sample string) { o.dropped = append(o.dropped, reason+": "+sample) },
		})
		check(t, err)
		o.readers = append(o.readers, r)
	}
	if from != nil {
		check(t, e.(connector.RestorableEnumerator).RestoreEnumerator(from.enumerator))
		for _, data := range from.splits {
			split, err := source.DecodeSplit(data)
			check(t, err)
			o.assign([]connector.Split{split})
		}
	}
	o.found = o.discover()
	if source.Boundedness() == connector.Bounded {
		for _, r := range o.readers {
			r.NoMoreSplits()
		}
	}
	return o
}

func (o *opened[T]) discover() (ids []string) {
	o.t.Helper()
	splits, err := o.enumerator.Discover(o.t.Context())
	check(o.t, err)
	o.assign(splits)
	for _, s := range splits {
		ids = append(ids, filepath.Base(s.ID()))
	}
	return ids
}

func (o *opened[T]) assign(splits []connector.Split) {
	o.t.Helper()
	for i, r := range o.readers {
		var own []connector.Split
		for _, s := range splits {
			if o.enumerator.Owner(s, len(o.readers)) == i {
				own = append(own, s)
			}
		}
		check(o.t, r.AddSplits(own))
	}
}

func (o *opened[T]) snapshot() *snapshot {
	o.t.Helper()
	var s snapshot
	var err error
	s.enumerator, err = o.enumerator.(connector.RestorableEnumerator).SnapshotEnumerator()
	check(o.t, err)
	for _, r := range o.readers {
		splits, err := r.(connector.SplitSnapshotter).SnapshotSplits()
		check(o.t, err)
		for _, split := range splits {
			data, err := o.source.EncodeSplit(split)
			check(o.t, err)
			s.splits = append(s.splits, data)
		}
	}
	return &s
}

func (o *opened[T]) close() {
	o.t.Helper()
	for _, r := range o.readers {
		check(o.t, r.Close())
	}
	check(o.t, o.enumerator.Close())
}

// poll polls until something was there, or the end.
func poll[T any](r connector.Reader[T], out *output[T]) (ended bool, err error) {
	for {
		status, err := r.Poll(out)
		switch {
		case err != nil || status == connector.EndOfInput:
			return true, err
		case status == connector.MoreAvailable:
			return false, nil
		}
		<-r.Available()
	}
}

func drain[T any](t *testing.T, o *opened[T], out *output[T]) error {
	t.Helper()
	defer o.close()
	for _, r := range o.readers {
		for ended := false; !ended; {
			var err error
			if ended, err = poll(r, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// readAll reads a bounded source.
func readAll[T any](t *testing.T, source *files.Source[T]) []T {
	t.Helper()
	out := newOutput[T]()
	check(t, drain(t, open(t, source, 1, nil), out))
	return out.values
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o777))
	check(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

func gzipped(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	check(t, err)
	check(t, w.Close())
	return b.String()
}

// TestFiles: which files are read, and in which order.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.txt", "a.txt", "c/x.txt", "c/d/y.log", ".hidden", "_meta", "z.inprogress", "z.tmp", ".git/q.txt", "_c/q.txt"} {
		writeFile(t, filepath.Join(dir, name), name)
	}
	writeFile(t, filepath.Join(dir, "e.txt.gz"), gzipped(t, "e"))
	for pattern, want := range map[string][]string{
		"":        {"a.txt", "b.txt", "c/d/y.log", "c/x.txt", "e"},
		"*.txt":   {"a.txt", "b.txt"},
		"*/*.txt": {"c/x.txt", "_c/q.txt", ".git/q.txt"},
		"a.txt":   {"a.txt"},
	} {
		got := readAll(t, files.NewSource(filepath.Join(dir, pattern), files.Lines(raw.String{}, nil, ".txt")))
		slices.Sort(want)
		if pattern != "*/*.txt" {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", pattern, diff)
			}
		} else if slices.Sort(got); !cmp.Equal(want, got) {
			t.Errorf("%q: %q", pattern, got)
		}
	}
	e, err := files.NewSource(dir+"/*.none", files.JSONLines[rec]()).NewEnumerator(t.Context(), connector.SourceRuntime{})
	check(t, err)
	if _, err := e.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "no file matches") {
		t.Errorf("no files: %v", err)
	}
}

// TestLines: ends of lines and lengths around that of buffers.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, n := range []int{0, 1, 32<<10 - 1, 32 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200_000} {
		want := []string{"first", strings.Repeat("x", n), "", "y\r", strings.Repeat("z", n)}
		for _, end := range []string{"", "\n"} {
			if n == 0 && end == "" {
				continue // a last line without bytes or newline is none
			}
			writeFile(t, path, strings.Join(want, "\n")+end)
			if got := readAll(t, files.NewSource(path, files.Lines(raw.String{}, nil, ".txt"))); !slices.Equal(want, got) {
				t.Errorf("lines of %d bytes, end %q: %d lines, %.20q", n, end, len(got), got)
			}
		}
	}
}

// TestRestore takes snapshots at random places, some while splits are paused, and goes on
// with another number of subtasks.
func TestRestore(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for name, f := range formats() {
		for _, codec := range []files.Codec{files.NoCompression, files.Gzip, files.Zstd} {
			if codec != files.NoCompression && !f.Compressible() {
				continue
			}
			t.Run(fmt.Sprint(name, codec), func(t *testing.T) {
				dir := t.TempDir()
				sink := files.NewSink(dir, f, files.Compression(codec))
				for range 5 {
					w := mustWriter(t, sink)
					check(t, w.Write(t.Context(), batchOf(recs(0, rnd.Int64N(6000)))))
					check(t, w.Flush(t.Context()))
					check(t, w.Close())
				}
				source := files.NewSource(dir, f)
				whole := newOutput[rec]()
				check(t, drain(t, open(t, source, 1, nil), whole))
				if whole.largest > connector.BatchSize {
					t.Errorf("a batch has %d records", whole.largest)
				}
				for range 10 {
					got := newOutput[rec]()
					o := open(t, source, 1+rnd.IntN(3), nil)
					for range 1 + rnd.IntN(3) {
						for range rnd.IntN(8) {
							r := o.readers[rnd.IntN(len(o.readers))]
							visible, _ := tree(t, dir)
							id := filepath.Join(dir, visible[rnd.IntN(len(visible))])
							if rnd.IntN(3) == 0 {
								r.(connector.SplitPauser).PauseSplits([]string{id})
							}
							_, err := r.Poll(got)
							check(t, err)
							if rnd.IntN(3) == 0 {
								r.(connector.SplitPauser).ResumeSplits([]string{id})
							}
						}
						from := o.snapshot()
						o.close()
						o = open(t, source, 1+rnd.IntN(3), from)
					}
					check(t, drain(t, o, got))
					for id, want := range whole.bySplit {
						if diff := cmp.Diff(want, got.bySplit[id]); diff != "" {
							t.Fatalf("%s with restarts (-without +with):\n%.1000s", id, diff)
						}
					}
					if len(got.values) != len(whole.values) {
						t.Fatalf("%d records, want %d", len(got.values), len(whole.values))
					}
				}
			})
		}
	}
}

// TestRestoreAtEveryBatch: one also ends where it does because records before were wrong.
func TestRestoreAtEveryBatch(t *testing.T) {
	var b strings.Builder
	for range connector.BatchSize / 2 {
		b.WriteString("{\"n\":1}\n\nwrong\n")
	}
	for n := range 3000 {
		fmt.Fprintf(&b, `{"n":%d,"text":"%s"}`+"\n", n, strings.Repeat("é", n%7))
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "f.jsonl"), b.String())
	source := files.NewSource(path, files.JSONLines[rec](), files.OnDecodeError(files.ToDeadLetters))
	whole := newOutput[rec]()
	check(t, drain(t, open(t, source, 1, nil), whole))
	if len(whole.letters) != connector.BatchSize/2 || whole.letters[0].Offset != 9 || string(whole.letters[0].Value) != "wrong" {
		t.Fatalf("%d dead letters, the first is %+v", len(whole.letters), whole.letters[0])
	}
	for i, offset := range whole.offsets {
		if !strings.HasPrefix(b.String()[offset:], fmt.Sprintf(`{"n":%d`, whole.values[i].N)) {
			t.Fatalf("record %d is not at byte %d", i, offset)
		}
	}
	var from *snapshot
	got := newOutput[rec]()
	for ended := false; !ended; {
		o := open(t, source, 1, from)
		var err error
		ended, err = poll(o.readers[0], got)
		check(t, err)
		from = o.snapshot()
		o.close()
	}
	if diff := cmp.Diff(whole.values, got.values); diff != "" {
		t.Errorf("one batch at a time (-want +got):\n%.1000s", diff)
	}
	if len(got.letters) != len(whole.letters) {
		t.Errorf("%d dead letters, want %d", len(got.letters), len(whole.letters))
	}
}

// TestTurns: files are read one after the other, and the next one is active before one ends.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"1", "2", "3"} {
		writeFile(t, filepath.Join(dir, name), "{}\n")
	}
	out := newOutput[rec]()
	check(t, drain(t, open(t, files.NewSource(dir, files.JSONLines[rec]()), 1, nil), out))
	if diff := cmp.Diff([]string{"active 2", "end 1", "active 3", "end 2", "end 3"}, out.turns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChangedFiles: what is not what it was is named.
func TestChangedFiles(t *testing.T) {
	changes := map[string]func(t *testing.T, path string){
		"shrunk":   func(t *testing.T, path string) { check(t, os.Truncate(path, 100)) },
		"grown":    func(t *testing.T, path string) { writeFile(t, path, strings.Repeat("{\"n\":1}\n", 3001)) },
		"replaced": func(t *testing.T, path string) { check(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0))) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "f.jsonl"), strings.Repeat("{\"n\":1}\n", 3000))
			source := files.NewSource(path, files.JSONLines[rec]())
			o := open(t, source, 1, nil)
			_, err := poll(o.readers[0], newOutput[rec]())
			check(t, err)
			from := o.snapshot()
			o.close()
			change(t, path)
			if err := drain(t, open(t, source, 1, from), newOutput[rec]()); err == nil ||
				!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "changed since the checkpoint") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("removed", func(t *testing.T) {
		path := writeFile(t, filepath.Join(t.TempDir(), "f.jsonl"), "{}\n")
		source := files.NewSource(path, files.JSONLines[rec]())
		o := open(t, source, 1, nil)
		o.close()
		from := o.snapshot()
		check(t, os.Remove(path))
		if err := drain(t, open(t, source, 1, from), newOutput[rec]()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	})
}

func TestDecodeErrors(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "f.csv"), "n,text\n1,a\nmany,b\n3,c\n")
	f := csv.File[rec]()
	err := drain(t, open(t, files.NewSource(path, f), 1, nil), newOutput[rec]())
	if err == nil || !strings.Contains(err.Error(), "byte 11 of "+path) || !strings.Contains(err.Error(), `column "n"`) {
		t.Errorf("FailJob: %v", err)
	}
	out := newOutput[rec]()
	o := open(t, files.NewSource(path, f, files.OnDecodeError(files.SkipRecord)), 1, nil)
	check(t, drain(t, o, out))
	if diff := cmp.Diff([]rec{{1, "a"}, {3, "c"}}, out.values); diff != "" {
		t.Errorf("SkipRecord (-want +got):\n%s", diff)
	}
	if len(o.dropped) != 1 || !strings.HasPrefix(o.dropped[0], "malformed: "+path+`, byte 11: "many,b\n"`) {
		t.Errorf("dropped %q", o.dropped)
	}
	out = newOutput[rec]()
	check(t, drain(t, open(t, files.NewSource(path, f, files.OnDecodeError(files.ToDeadLetters)), 1, nil), out))
	if l := out.letters[0]; l.SplitID != path || l.Offset != 11 || string(l.Value) != "many,b\n" || l.Err == nil || l.Timestamp != eventtime.MinTimestamp {
		t.Errorf("dead letter %+v", l)
	}
}

// halfDecoder fails like one that reads from the record's bytes and finds too few.
type halfDecoder struct{}

func (halfDecoder) Decode([]byte, *string) error { return fmt.Errorf("half: %w", io.EOF) }

// TestDecoderEOF: it is the record's end that a decoder has met, not the file's.
func TestDecoderEOF(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "f.txt"), "a\nb\n")
	out := newOutput[string]()
	source := files.NewSource(path, files.Lines(halfDecoder{}, nil, ".txt"), files.OnDecodeError(files.ToDeadLetters))
	check(t, drain(t, open(t, source, 1, nil), out))
	if len(out.letters) != 2 {
		t.Errorf("%d dead letters, want 2", len(out.letters))
	}
}

func TestBrokenFiles(t *testing.T) {
	half := gzipped(t, strings.Repeat("{\"n\":1}\n", 3000))
	for name, text := range map[string]string{"a.jsonl.gz": half[:len(half)/2], "b.jsonl.gz": "no gzip", "c.jsonl.zst": "no zstd"} {
		path := writeFile(t, filepath.Join(t.TempDir(), name), text)
		source := files.NewSource(path, files.JSONLines[rec](), files.OnDecodeError(files.SkipRecord))
		if err := drain(t, open(t, source, 1, nil), newOutput[rec]()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestWatch: new files come in order of modification, once, also over restarts.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, age time.Duration) {
		path := writeFile(t, filepath.Join(dir, name), "{}\n")
		at := time.Now().Add(-age)
		check(t, os.Chtimes(path, at, at))
	}
	source := files.NewSource(dir, files.JSONLines[rec](), files.Watch(time.Second), files.MinAge(time.Minute))
	if source.Boundedness() != connector.Unbounded {
		t.Error("a source that watches is bounded")
	}
	o := open(t, source, 1, nil)
	if d := o.enumerator.(connector.Discoverer).DiscoveryInterval(); d != time.Second {
		t.Errorf("it looks every %v", d)
	}
	steps := []struct {
		change func()
		want   []string
	}{
		{func() {
			put("c", 3*time.Hour)
			put("a", 2*time.Hour)
			put("b", 2*time.Hour)
			put("young", time.Second)
			put(".hidden", time.Hour)
		}, []string{"c", "a", "b"}},
		{func() {}, nil},
		{func() { put("a", time.Hour) }, nil},
		{func() { put("young", time.Hour); check(t, os.Remove(filepath.Join(dir, "b"))) }, []string{"young"}},
		{func() { put("b", time.Hour) }, []string{"b"}},
	}
	for i, step := range steps {
		step.change()
		if diff := cmp.Diff(step.want, o.discover()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		from := o.snapshot()
		o.close()
		from.splits = nil // b is removed before it is read
		if o = open(t, source, 1, from); len(o.found) > 0 {
			t.Errorf("step %d, restored: found %q again", i, o.found)
		}
	}
	o.close()
}

func TestSourceRefuses(t *testing.T) {
	js := files.JSONLines[rec]()
	for want, source := range map[string]*files.Source[rec]{
		"pattern":       files.NewSource("", js),
		"syntax error":  files.NewSource("a[", js),
		"format":        files.NewSource[rec]("d", nil),
		"struct":        files.NewSource("d", format.File[rec](files.Lines[rec](nil, nil, ""))),
		"Watch":         files.NewSource("d", js, files.Watch(0)),
		"MinAge":        files.NewSource("d", js, files.MinAge(-1)),
		"OnDecodeError": files.NewSource("d", js, files.OnDecodeError(7)),
	} {
		if want == "struct" {
			want = "neither a decoder"
		}
		if err := source.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for data, want := range map[string]string{"x": "invalid", `{}`: "path", `{"path":"a","position":-1}`: "negative"} {
		if _, err := files.NewSource("d", js).DecodeSplit([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", data, err)
		}
	}
}
