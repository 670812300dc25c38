package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
)

func ranges(subtask, parallelism, maxParallelism int) (first, last int) {
	r := keyed.RangeOf(subtask, parallelism, maxParallelism)
	return r.First, r.Last
}

// written is what a test writes as one part.
type written struct {
	part    snapshot.Part
	entries []snapshot.Entry
}

func texts(all ...string) (entries []snapshot.Entry) {
	for _, text := range all {
		entries = append(entries, snapshot.Entry{Data: []byte(text)})
	}
	return entries
}

func writeParts(w snapshot.Writer, parts []written) error {
	for _, part := range parts {
		p, err := w.Part(part.part)
		if err != nil {
			return err
		}
		for _, e := range part.entries {
			if err := p.Append(e.Group, e.Data); err != nil {
				return err
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}

// counting is an operator of the tests: subtask i of two has a keyed part with its
// groups of 16, and a list of splits.
var counting = Operator{ID: "count-id", UID: "count", Name: "Count", Parallelism: 2, MaxParallelism: 16}

func countingParts(subtask, id int) []written {
	first, last := ranges(subtask, counting.Parallelism, counting.MaxParallelism)
	keys := written{part: snapshot.Part{Name: "state/sum", Kind: snapshot.Keyed, Version: 1, Schemas: map[string]string{"key": `"string"`, "value": `"long"`}}}
	for i := range 20 {
		group := first + i*7%(last-first+1)
		keys.entries = append(keys.entries, snapshot.Entry{Group: group, Data: fmt.Appendf(nil, "key %d of group %d at %d", i, group, id)})
	}
	return []written{
		keys,
		{part: snapshot.Part{Name: "splits", Kind: snapshot.List}, entries: texts(fmt.Sprintf("orders/%d@%d", subtask, id))},
		{part: snapshot.Part{Name: "empty", Kind: snapshot.Union}},
	}
}

// take writes a checkpoint of counting, with two shared files, and completes it.
func take(s *Store, id int64, kind Kind, target string) (path string, err error) {
	p, err := s.Begin(id, kind, target)
	if err != nil {
		return "", err
	}
	for subtask := range counting.Parallelism {
		if err := writeSegment(p, subtask); err != nil {
			return "", errors.Join(err, p.Abort())
		}
	}
	source := Operator{ID: "source-id", Name: "Source", Parallelism: 1, MaxParallelism: 16, Finished: []int{0}, Enumerator: []byte("seen")}
	return p.Complete(Manifest{
		Job: "test", Version: "v1", Triggered: time.Unix(100, 0).UTC(), Completed: time.Unix(101, 5e6).UTC(),
		Operators: []Operator{source, counting},
	})
}

func writeSegment(p *Pending, subtask int) error {
	segment, err := p.Segment("2", subtask)
	if err != nil {
		return err
	}
	info := OperatorInfo{ID: counting.ID, UID: counting.UID, Name: counting.Name, Subtask: subtask, Parallelism: 2, MaxParallelism: 16}
	w := segment.Operator(info, nil)
	if err := writeParts(w, countingParts(subtask, int(p.id))); err != nil {
		return err
	}
	for _, name := range []string{"sst-old", fmt.Sprintf("sst-%d", p.id)} {
		content := "content of " + name
		if _, err := segment.Shared(name, int64(len(content)), func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		}); err != nil {
			return err
		}
	}
	_, err = segment.Finish()
	return err
}

// readAll returns all that a checkpoint gives two subtasks back.
func readAll(c *Checkpoint) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %d %v\n", c.Manifest().Job, c.Manifest().ID, c.Manifest().Kind)
	state, ok := c.Operator(counting.ID)
	if !ok {
		return "", errors.New("the operator is not there")
	}
	for subtask := range 2 {
		r, err := state.Reader(subtask, 2, ranges)
		if err != nil {
			return "", err
		}
		for p := range r.Parts("") {
			for e, err := range p.Entries() {
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&out, "%s %d %s\n", p.Part().Name, e.Group, e.Data)
			}
		}
	}
	for _, name := range []string{"sst-old", fmt.Sprintf("sst-%d", c.Manifest().ID)} {
		shared, err := c.Shared(name)
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(shared)
		if err = errors.Join(err, shared.Close()); err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s\n", content)
	}
	return out.String(), nil
}

// wholeText is what readAll returns for a whole checkpoint.
func wholeText(id int64, kind Kind) string {
	var out strings.Builder
	fmt.Fprintf(&out, "test %d %v\n", id, kind)
	for subtask := range 2 {
		parts := countingParts(subtask, int(id))
		first, last := ranges(subtask, 2, 16)
		for _, e := range parts[1].entries {
			fmt.Fprintf(&out, "splits 0 %s\n", e.Data)
		}
		for g := first; g <= last; g++ {
			for _, e := range parts[0].entries {
				if e.Group == g {
					fmt.Fprintf(&out, "state/sum %d %s\n", g, e.Data)
				}
			}
		}
	}
	return fmt.Sprintf("%scontent of sst-old\ncontent of sst-%d\n", out.String(), id)
}

func openTest(t testing.TB, address string) *Store {
	t.Helper()
	s, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if rest, ok := strings.CutPrefix(address, "mem://"); ok { // which would be there when the test runs again
			name, _, _ := strings.Cut(rest, "/")
			memories.Delete(name)
		}
	})
	return s
}

func TestStoreAndRestore(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, address)
			if c, skipped, err := s.Latest(0); c != nil || skipped != nil || err != nil {
				t.Fatalf("an empty directory has %v, %v, %v", c, skipped, err)
			}
			path, err := take(s, 1, KindCheckpoint, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = take(s, 2, KindCheckpoint, ""); err != nil {
				t.Fatal(err)
			}
			saved, err := take(s, 3, KindSavepoint, below(address, "elsewhere"))
			if err != nil {
				t.Fatal(err)
			}
			checkWhole(t, 1, KindCheckpoint)(s.Load(path))
			checkWhole(t, 1, KindCheckpoint)(s.Load("chk-1"))
			checkWhole(t, 1, KindCheckpoint)(Load(t.Context(), within(address, path+"/manifest")))
			checkWhole(t, 3, KindSavepoint)(s.Load(within(address, saved)))
			latest, skipped, err := s.Latest(0)
			if len(skipped) > 0 {
				t.Error("skipped", skipped)
			}
			checkWhole(t, 2, KindCheckpoint)(latest, err)
			if next, err := s.NextID(); next != 3 || err != nil {
				t.Errorf("next number %d, %v", next, err)
			}
		})
	}
}

func checkWhole(t *testing.T, id int64, kind Kind) func(*Checkpoint, error) {
	t.Helper()
	return func(c *Checkpoint, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		got, err := readAll(c)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wholeText(id, kind), got); diff != "" {
			t.Error(diff)
		}
		if err := c.Verify(); err != nil {
			t.Error(err)
		}
	}
}

// TestVirtualTime: nothing is carried from one bubble to the next.
func TestVirtualTime(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := openTest(t, "mem://"+t.Name())
			next, err := s.NextID()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := take(s, next, KindCheckpoint, ""); err != nil {
				t.Fatal(err)
			}
			c, _, err := s.Latest(0)
			checkWhole(t, next, KindCheckpoint)(c, err)
		})
	}
}

func TestManifestContent(t *testing.T) {
	s := openTest(t, t.TempDir())
	if _, err := take(s, 7, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	infos, err := s.List()
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	m := infos[0].Manifest
	if m.ID != 7 || m.Job != "test" || m.Version != "v1" || m.Completed.Sub(m.Triggered) != 1005*time.Millisecond {
		t.Errorf("got %+v", m)
	}
	size := int64(0)
	for subtask := range 2 {
		for _, part := range countingParts(subtask, 7) {
			for _, e := range part.entries {
				size += int64(len(e.Data))
			}
		}
	}
	want := []Operator{
		{ID: "source-id", Name: "Source", Parallelism: 1, MaxParallelism: 16, Finished: []int{0}, Enumerator: []byte("seen")},
		{ID: "count-id", UID: "count", Name: "Count", Parallelism: 2, MaxParallelism: 16, Size: size},
	}
	if diff := cmp.Diff(want, m.Operators); diff != "" {
		t.Error(diff)
	}
	c, err := s.Load("chk-7")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	state, _ := c.Operator("count-id")
	parts, err := state.Parts()
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) != 3 || parts[2].Name != "state/sum" || parts[2].Entries != 40 || parts[2].FirstGroup != 0 || parts[2].LastGroup != 15 || parts[2].Schemas["value"] != `"long"` {
		t.Errorf("got %+v", parts)
	}
}

// TestRescale restores with every parallelism what a larger part was written from, so
// large that it has several runs of several blocks.
func TestRescale(t *testing.T) {
	const before, maxParallelism, perSubtask = 3, 32, 50_000
	s := openTest(t, "mem://rescale")
	p, err := s.Begin(1, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]string{}
	var sequence []string
	random := rand.New(rand.NewPCG(1, 2))
	for subtask := range before {
		segment, err := p.Segment("v", subtask)
		if err != nil {
			t.Fatal(err)
		}
		first, last := ranges(subtask, before, maxParallelism)
		keys := written{part: snapshot.Part{Name: "keyed", Kind: snapshot.Keyed}}
		list := written{part: snapshot.Part{Name: "list", Kind: snapshot.List}}
		for i := range perSubtask {
			g := first + random.IntN(last-first+1)
			text := fmt.Sprintf("%d/%d %0*d", subtask, i, random.IntN(60), i)
			keys.entries = append(keys.entries, snapshot.Entry{Group: g, Data: []byte(text)})
			want[g] = append(want[g], text)
			list.entries = append(list.entries, snapshot.Entry{Data: []byte(text)})
			sequence = append(sequence, text)
		}
		w := segment.Operator(OperatorInfo{ID: "op", Subtask: subtask, Parallelism: before, MaxParallelism: maxParallelism}, nil)
		if err := writeParts(w, []written{keys, list}); err != nil {
			t.Fatal(err)
		}
		if _, err := segment.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	path, err := p.Complete(Manifest{Operators: []Operator{{ID: "op", Parallelism: before, MaxParallelism: maxParallelism}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	state, _ := c.Operator("op")
	for _, after := range []int{1, 2, 3, 4, 7, 32} {
		got := map[int][]string{}
		var list []string
		for subtask := range after {
			r, err := state.Reader(subtask, after, ranges)
			if err != nil {
				t.Fatal(err)
			}
			first, last := ranges(subtask, after, maxParallelism)
			group := first
			for e, err := range part(t, r, "keyed").Entries() {
				if err != nil {
					t.Fatal(err)
				}
				if e.Group < group || e.Group > last {
					t.Fatalf("group %d comes after %d in subtask %d of %d", e.Group, group, subtask, after)
				}
				group = e.Group
				got[e.Group] = append(got[e.Group], string(e.Data))
			}
			for e, err := range part(t, r, "list").Entries() {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, string(e.Data))
			}
		}
		if !maps.EqualFunc(want, got, slices.Equal) {
			t.Errorf("keyed entries differ with parallelism %d", after)
		}
		if !slices.Equal(sequence, list) {
			t.Errorf("list elements differ with parallelism %d", after)
		}
	}
}

func part(t *testing.T, r snapshot.Reader, name string) snapshot.PartReader {
	t.Helper()
	p, ok := r.Part(name)
	if !ok {
		t.Fatalf("there is no part %q", name)
	}
	return p
}

// TestConcurrentWriters: the parts of a segment are written by background goroutines and
// the subtask's at the same time.
func TestConcurrentWriters(t *testing.T) {
	s := openTest(t, t.TempDir())
	p, err := s.Begin(1, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	const segments, parts, entries = 3, 4, 30_000
	var all sync.WaitGroup
	data := bytes.Repeat([]byte("0123456789"), 20)
	for subtask := range segments {
		segment, err := p.Segment("v", subtask)
		if err != nil {
			t.Fatal(err)
		}
		w := segment.Operator(OperatorInfo{ID: "op", Subtask: subtask, Parallelism: segments, MaxParallelism: 8}, nil)
		var writers sync.WaitGroup
		for i := range parts {
			writers.Go(func() {
				part := written{part: snapshot.Part{Name: fmt.Sprint(i), Kind: snapshot.Keyed}}
				for n := range entries {
					part.entries = append(part.entries, snapshot.Entry{Group: n % 8, Data: data[:n%200]})
				}
				if err := writeParts(w, []written{part}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			writers.Wait()
			if _, err := segment.Finish(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	path, err := p.Complete(Manifest{Operators: []Operator{{ID: "op", Parallelism: segments, MaxParallelism: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	state, _ := c.Operator("op")
	infos, err := state.Parts()
	if err != nil || len(infos) != parts || infos[0].Entries != segments*entries {
		t.Errorf("got %+v, %v", infos, err)
	}
}

func TestAbortWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	p, err := s.Begin(1, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	segment, err := p.Segment("v", 0)
	if err != nil {
		t.Fatal(err)
	}
	w := segment.Operator(OperatorInfo{ID: "op", Parallelism: 1, MaxParallelism: 1}, nil)
	part, err := w.Part(snapshot.Part{Name: "p", Kind: snapshot.List})
	if err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan struct{}), make(chan error)
	go func() {
		data := make([]byte, 1000)
		for n := 0; ; n++ {
			if err := part.Append(0, data); err != nil {
				ended <- err
				return
			}
			if n == 10_000 {
				close(started)
			}
		}
	}()
	<-started
	if err := p.Abort(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, errAborted) {
		t.Errorf("the writer gets %v", err)
	}
	if _, err := segment.Finish(); !errors.Is(err, errAborted) {
		t.Errorf("Finish gets %v", err)
	}
	if _, err := p.Complete(Manifest{}); !errors.Is(err, errAborted) {
		t.Errorf("Complete gets %v", err)
	}
	if files, err := s.storage.list("chk-1"); len(files) > 0 || err != nil {
		t.Errorf("left: %v, %v", files, err)
	}
}

func TestWriterErrors(t *testing.T) {
	s := openTest(t, "mem://writer errors")
	fails := func(err error, want ...string) {
		t.Helper()
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("got %v, want %q", err, w)
			}
		}
	}
	p, err := s.Begin(5, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(5, KindCheckpoint, "")
	fails(err, "checkpoint 5", "begun already")
	segment, err := p.Segment("v", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Segment("v", 0)
	fails(err, "subtask 0 of vertex v has begun its segment twice")
	info := OperatorInfo{ID: "op", UID: "u", Name: "Op", Parallelism: 1, MaxParallelism: 4}
	w := segment.Operator(info, nil)
	keyedPart, err := w.Part(snapshot.Part{Name: "k", Kind: snapshot.Keyed})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Part(snapshot.Part{Name: "k"})
	fails(err, `operator "Op" (uid u) has two parts "k"`)
	fails(keyedPart.Append(4, nil), `part "k"`, "key group 4, of 4")
	fails(keyedPart.Append(-1, nil), "key group -1")
	list, err := w.Part(snapshot.Part{Name: "l", Kind: snapshot.List})
	if err != nil {
		t.Fatal(err)
	}
	fails(list.Append(1, nil), "is list and gets an entry for key group 1")
	if err := keyedPart.Close(); err != nil {
		t.Fatal(err)
	}
	fails(keyedPart.Close(), "closed twice")
	fails(keyedPart.Append(0, nil), "is closed")
	_, err = segment.Finish()
	fails(err, `operator "Op" (uid u) did not close its part "l"`)
	_, err = p.Complete(Manifest{})
	fails(err, "subtask 0 of vertex v has not finished its segment")
	_, err = s.Begin(6, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(s, 7, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(7, KindCheckpoint, "")
	fails(err, "chk-7 is there already")
	view, err := View(context.Background(), "mem://writer errors")
	if err != nil {
		t.Fatal(err)
	}
	_, err = view.Begin(8, KindCheckpoint, "")
	fails(err, "only open to be looked at")
}

func TestOperatorNotInManifest(t *testing.T) {
	s := openTest(t, "mem://not in manifest")
	p, err := s.Begin(1, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSegment(p, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Complete(Manifest{}); err == nil || !strings.Contains(err.Error(), "state of operator count-id, which the manifest does not name") {
		t.Errorf("got %v", err)
	}
	if files, err := s.storage.list("chk-1"); len(files) > 0 || err != nil {
		t.Errorf("left: %v, %v", files, err)
	}
}
