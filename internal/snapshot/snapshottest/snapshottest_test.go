package snapshottest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
)

func write(t testing.TB, p snapshot.Part, entries ...snapshot.Entry) *Snapshot {
	t.Helper()
	s, err := Take(7, func(w snapshot.Writer) error {
		pw, err := w.Part(p)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := pw.Append(e.Group, e.Data); err != nil {
				return err
			}
		}
		return pw.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(texts ...string) (entries []snapshot.Entry) {
	for _, text := range texts {
		entries = append(entries, snapshot.Entry{Data: []byte(text)})
	}
	return entries
}

// read returns the data of a part's entries, with the key group if it is not 0.
func read(t testing.TB, r snapshot.Reader, name string) (texts []string) {
	t.Helper()
	p, ok := r.Part(name)
	if !ok {
		t.Fatalf("there is no part %q", name)
	}
	for e, err := range p.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		text := string(e.Data)
		if e.Group != 0 {
			text = fmt.Sprintf("%d:%s", e.Group, text)
		}
		texts = append(texts, text)
	}
	return texts
}

func readAll(t testing.TB, taken []*Snapshot, parallelism int) (texts [][]string) {
	t.Helper()
	readers, err := Readers(taken, parallelism, 128)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readers {
		texts = append(texts, read(t, r, "p"))
	}
	return texts
}

func TestDealing(t *testing.T) {
	three := [][]snapshot.Entry{list("a0", "a1", "a2", "a3"), list(), list("c0", "c1")}
	for _, tc := range []struct {
		kind        snapshot.Kind
		parallelism int
		want        [][]string
	}{
		{snapshot.List, 1, [][]string{{"a0", "a1", "a2", "a3", "c0", "c1"}}},
		{snapshot.List, 2, [][]string{{"a0", "a1", "a2", "a3"}, {"c0", "c1"}}},
		{snapshot.List, 3, [][]string{{"a0", "a1", "a2", "a3"}, nil, {"c0", "c1"}}},
		{snapshot.List, 4, [][]string{{"a0", "a1"}, {"a2", "a3"}, {"c0"}, {"c1"}}},
		{snapshot.List, 5, [][]string{{"a0", "a1"}, {"a2"}, {"a3"}, {"c0"}, {"c1"}}},
		{snapshot.List, 8, [][]string{{"a0"}, {"a1"}, {"a2"}, {"a3"}, {"c0"}, {"c1"}, nil, nil}},
		{snapshot.Union, 2, [][]string{{"a0", "a1", "a2", "a3", "c0", "c1"}, {"a0", "a1", "a2", "a3", "c0", "c1"}}},
		{snapshot.Broadcast, 4, [][]string{{"a0", "a1", "a2", "a3"}, nil, {"c0", "c1"}, {"a0", "a1", "a2", "a3"}}},
	} {
		t.Run(fmt.Sprintf("%v to %d", tc.kind, tc.parallelism), func(t *testing.T) {
			var taken []*Snapshot
			for _, entries := range three {
				taken = append(taken, write(t, snapshot.Part{Name: "p", Kind: tc.kind}, entries...))
			}
			if diff := cmp.Diff(tc.want, readAll(t, taken, tc.parallelism)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDealingOfFewWriters: a subtask that wrote nothing, such as a finished one, has no
// part to be dealt.
func TestDealingOfFewWriters(t *testing.T) {
	none, err := Take(7, func(snapshot.Writer) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	taken := []*Snapshot{none, write(t, snapshot.Part{Name: "p", Kind: snapshot.Broadcast}, list("x")...), none}
	if diff := cmp.Diff([][]string{{"x"}, {"x"}, {"x"}}, readAll(t, taken, 3)); diff != "" {
		t.Error(diff)
	}
}

// TestEachEntryOnce: whatever the parallelism before and after, each entry goes to the
// subtask that owns its group, or for lists to exactly one, in order.
func TestEachEntryOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		maxParallelism := rapid.IntRange(1, 40).Draw(rt, "max")
		before := rapid.IntRange(1, maxParallelism).Draw(rt, "before")
		after := rapid.IntRange(1, maxParallelism).Draw(rt, "after")
		kind := rapid.SampledFrom([]snapshot.Kind{snapshot.Keyed, snapshot.List}).Draw(rt, "kind")
		var taken []*Snapshot
		var want []string
		for subtask := range before {
			owned := keyed.RangeOf(subtask, before, maxParallelism)
			var entries []snapshot.Entry
			for i := range rapid.IntRange(0, 5).Draw(rt, "entries") {
				group := 0
				if kind == snapshot.Keyed {
					group = rapid.IntRange(owned.First, owned.Last).Draw(rt, "group")
				}
				text := fmt.Sprintf("%04d-%02d-%d", group, subtask, i)
				entries = append(entries, snapshot.Entry{Group: group, Data: []byte(text)})
				want = append(want, text)
			}
			taken = append(taken, write(t, snapshot.Part{Name: "p", Kind: kind}, entries...))
		}
		readers, err := Readers(taken, after, maxParallelism)
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for subtask, r := range readers {
			owned := keyed.RangeOf(subtask, after, maxParallelism)
			p, _ := r.Part("p")
			for e, err := range p.Entries() {
				if err != nil {
					rt.Fatal(err)
				}
				if kind == snapshot.Keyed && !owned.Contains(e.Group) {
					rt.Fatalf("subtask %d gets key group %d", subtask, e.Group)
				}
				got = append(got, string(e.Data))
			}
		}
		slices.Sort(want) // by group, subtask and order of writing
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestClaims(t *testing.T) {
	s, err := Take(3, func(w snapshot.Writer) error {
		for _, name := range []string{"state/b", "timers", "state/a", "other"} {
			p, err := w.Part(snapshot.Part{Name: name, Kind: snapshot.List})
			if err != nil {
				return err
			}
			if err := p.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	readers, err := Readers([]*Snapshot{s}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := readers[0]
	if r.Checkpoint() != 3 {
		t.Errorf("checkpoint %d", r.Checkpoint())
	}
	if _, ok := r.Part("nothing"); ok {
		t.Error("there is a part that nobody wrote")
	}
	var names []string
	for p := range r.Parts("state/") {
		names = append(names, p.Part().Name)
	}
	r.Part("timers")
	if diff := cmp.Diff([]string{"state/a", "state/b"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"other"}, r.Unclaimed()); diff != "" {
		t.Error(diff)
	}
}

func TestDifferentDescriptions(t *testing.T) {
	taken := []*Snapshot{
		write(t, snapshot.Part{Name: "p", Kind: snapshot.List, Version: 1}),
		write(t, snapshot.Part{Name: "p", Kind: snapshot.List, Version: 2}),
	}
	if _, err := Readers(taken, 1, 1); err == nil || !strings.Contains(err.Error(), `part "p" of subtask 1`) {
		t.Errorf("got %v", err)
	}
}

func TestStep(t *testing.T) {
	var order []string
	var mu sync.Mutex
	s, err := Take(1, func(w snapshot.Writer) error {
		for _, name := range []string{"a", "b"} {
			w.Later(func(ctx context.Context) error {
				for i := range 2 {
					if err := ctx.Err(); err != nil {
						return err
					}
					mu.Lock()
					order = append(order, fmt.Sprint(name, i))
					mu.Unlock()
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
		mu.Lock() // free between two steps
		order = append(order, "test")
		mu.Unlock()
	}
	want := []string{"test", "a0", "test", "a1", "test", "test", "b0", "test", "b1", "test"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Error(diff)
	}
}

func TestAbort(t *testing.T) {
	var ends []error
	s, err := Take(1, func(w snapshot.Writer) error {
		for range 2 {
			w.Later(func(ctx context.Context) error {
				for {
					if err := ctx.Err(); err != nil {
						<-ctx.Done()
						ends = append(ends, err)
						return err
					}
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Step(); err != nil {
		t.Fatal(err)
	}
	s.Abort()
	if diff := cmp.Diff([]string{"context canceled", "context canceled"}, []string{fmt.Sprint(ends[0]), fmt.Sprint(ends[1])}); diff != "" {
		t.Error(diff)
	}
}

func TestFinishErrors(t *testing.T) {
	broken := errors.New("broken")
	s, err := Take(1, func(w snapshot.Writer) error {
		w.Later(func(context.Context) error { return broken })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	s, err = Take(1, func(w snapshot.Writer) error {
		_, err := w.Part(snapshot.Part{Name: "left open"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(); err == nil || !strings.Contains(err.Error(), `"left open" is not closed`) {
		t.Errorf("got %v", err)
	}
}

// Snapshots have files in common, which are stored once and never change.
func TestSharedFiles(t *testing.T) {
	files := &Files{}
	share := func(id int64, name, content string, size int) (s *Snapshot, err error) {
		return TakeIncremental(id, files, func(w snapshot.Writer) error {
			if !w.Incremental() {
				t.Error("the snapshot is not incremental")
			}
			return w.Share(name, int64(size), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil })
		})
	}
	var last *Snapshot
	for id := range int64(2) {
		var err error
		if last, err = share(id, "a", "content", 7); err != nil {
			t.Fatal(err)
		}
	}
	if files.Written() != 7 {
		t.Errorf("%d bytes are stored", files.Written())
	}
	readers, err := Readers([]*Snapshot{last}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readers[0].Shared("a")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "content" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readers[0].Shared("b"); err == nil {
		t.Error("a file that nobody has shared is there")
	}
	for content, size := range map[string]int{"changed": 7, "longer": 7} {
		if _, err := share(3, "a", content, size); err == nil {
			t.Errorf("shared again as %q", content)
		}
	}
	if _, err := Take(4, func(w snapshot.Writer) error { return w.Share("c", 0, nil) }); err == nil {
		t.Error("a snapshot that stands alone shares a file")
	}
}
