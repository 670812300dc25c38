package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/state"
)

// takeIncremental begins an incremental snapshot of a backend.
func takeIncremental[K comparable](t testing.TB, files *snapshottest.Files, b *Backend[K]) *snapshottest.Snapshot {
	t.Helper()
	taken, err := snapshottest.TakeIncremental(1, files, func(w snapshot.Writer) error {
		s := NewSnapshot(w)
		err := b.Snapshot(s)
		s.Start()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// openRestored opens a backend of one of several subtasks, with a budget if it is not 0.
func openRestored(t testing.TB, from snapshot.Reader, subtask, parallelism int, at, budget int64, ttl state.TTL) (*allStates, error) {
	t.Helper()
	b := NewBackend[string]()
	if err := b.Store(Storage{Prefix: "state/", MaxParallelism: 128, Groups: RangeOf(subtask, parallelism, 128), Restored: from}); err != nil {
		t.Fatal(err)
	}
	if budget > 0 {
		b.Limit(Budget{Bytes: budget, Dir: t.TempDir()})
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.SetTime(at)
	s := openAllIn(t, b, ttl)
	return s, b.RestoreSpilled(t.Context())
}

// restoredContents returns what a number of subtasks have of a snapshot, and checks that
// nothing of it is unclaimed.
func restoredContents(t testing.TB, taken *snapshottest.Snapshot, parallelism int, at, budget int64, ttl state.TTL, keys []string) map[string]string {
	t.Helper()
	hash := hasherOf[string](t)
	readers, err := snapshottest.Readers([]*snapshottest.Snapshot{taken}, parallelism, 128)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for subtask, reader := range readers {
		s, err := openRestored(t, reader, subtask, parallelism, at, budget, ttl)
		if err != nil {
			t.Fatal(err)
		}
		var own []string
		for _, k := range keys {
			if SubtaskOf(KeyGroup(hash(k), 128), parallelism, 128) == subtask {
				own = append(own, k)
			}
		}
		maps.Copy(all, s.contents(own, hash))
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		if names := reader.Unclaimed(); len(names) > 0 {
			t.Errorf("unclaimed: %q", names)
		}
	}
	return all
}

// Incremental snapshots, taken at any time while both go on, hold what full ones of a backend
// without a budget do, and are restored in any number of subtasks, with any budget or none.
func TestIncrementalSnapshots(t *testing.T) {
	for _, ttl := range []state.TTL{{}, {After: 40 * time.Millisecond}, {After: 40 * time.Millisecond, Update: state.OnReadAndWrite}} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			r := newRand(t)
			incrementAtRandom(t, r, ttl)
		})
	}
}

func incrementAtRandom(t *testing.T, r *rand.Rand, ttl state.TTL) {
	w := newTwins(t, r, ttl)
	files := &snapshottest.Files{}
	for range 4 {
		for range r.IntN(5000) {
			w.use(t)
		}
		reference, taken, at := takeSnapshot(t, w.free.Backend), takeIncremental(t, files, w.tight.Backend), w.now
		if r.IntN(4) == 0 {
			taken.Abort()
			reference.Abort()
			continue
		}
		for more := true; more; {
			for range r.IntN(500) {
				w.use(t)
			}
			if r.IntN(5) == 0 { // waits for the image
				w.visit(t)
			}
			var err error
			if more, err = taken.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(reference.Finish(), taken.Finish()); err != nil {
			t.Fatal(err)
		}
		want := restoredContents(t, reference, 1, at, 0, ttl, w.keys)
		budget := int64(0)
		if r.IntN(3) > 0 {
			budget = 1 << (9 + r.IntN(7))
		}
		got := restoredContents(t, taken, 1+r.IntN(4), at, budget, ttl, w.keys)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("restored from a full snapshot (-) and an incremental one (+):\n%s", diff)
		}
	}
	if files.Written() == 0 {
		t.Error("nothing was shared")
	}
}

// counters fills a backend with a small budget with keys, so that nearly all are on disk.
func counters(t testing.TB, keys int) (*Backend[string], state.ValueState[int], func(key int)) {
	t.Helper()
	hash := hasherOf[string](t)
	b, _ := limited(t, 1<<10, nil)
	count, err := b.Value(state.Value[int]("count"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(i int) {
		key := fmt.Sprint(i)
		b.SetCurrentKey(hash(key), key)
		n, _ := count.Get()
		count.Set(n + 1)
	}
	for i := range keys {
		add(i)
	}
	b.settle()
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	return b, count, add
}

// The second snapshot stores little if little has changed.
func TestIncrementalSnapshotsAreSmall(t *testing.T) {
	b, _, add := counters(t, 50_000)
	files := &snapshottest.Files{}
	if err := takeIncremental(t, files, b).Finish(); err != nil {
		t.Fatal(err)
	}
	first := files.Written()
	for i := range 100 {
		add(i)
	}
	taken := takeIncremental(t, files, b)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	if second := files.Written() - first; second == 0 || second > first/10 {
		t.Errorf("the first snapshot stored %d bytes, the second %d", first, second)
	}
	if _, ok := taken.Entries("state/count"); !ok {
		t.Error("the state has no part")
	}
}

// A state of which nothing is in memory is restored; one that the program no longer has is
// unclaimed, not an error of the others.
func TestRestoreStateOnDiskOnly(t *testing.T) {
	b, _, _ := counters(t, 1000)
	if err := b.states[0].spillSome(1 << 30); err != nil {
		t.Fatal(err)
	}
	files := &snapshottest.Files{}
	taken := takeIncremental(t, files, b)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	if entries, ok := taken.Entries("state/count"); !ok || len(entries) > 0 {
		t.Fatalf("the part has %d entries", len(entries))
	}
	for name, wantKeys := range map[string]int{"count": 1000, "other": 0} {
		reader := readerOf(t, taken)
		to := NewBackend[string]()
		storeIn(t, to, reader)
		s, err := to.Value(state.Value[int](name))
		if err != nil {
			t.Fatal(err)
		}
		if err := to.RestoreSpilled(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := to.EachKey(s, func(string, state.ValueState[int]) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		unclaimed := reader.(*snapshot.Share).Unclaimed()
		if n != wantKeys || (len(unclaimed) == 0) != (name == "count") {
			t.Errorf("state %q: %d keys, unclaimed: %q", name, n, unclaimed)
		}
	}
}

// Files that are missing or are not what they were are an error that names them, and leave
// nothing behind.
func TestRestoreFromDamagedFiles(t *testing.T) {
	b, _, _ := counters(t, 1000)
	for what, change := range map[string]func(name string, content []byte) []byte{
		"missing": func(string, []byte) []byte { return nil },
		"shorter": func(_ string, content []byte) []byte { return content[1:] },
	} {
		files := &snapshottest.Files{}
		taken := takeIncremental(t, files, b)
		if err := taken.Finish(); err != nil {
			t.Fatal(err)
		}
		files.Damage(change)
		to := NewBackend[string]()
		storeIn(t, to, readerOf(t, taken))
		if _, err := to.Value(state.Value[int]("count")); err != nil {
			t.Fatal(err)
		}
		if err := to.RestoreSpilled(t.Context()); err == nil || !strings.Contains(err.Error(), ".sst") || !strings.Contains(err.Error(), "key groups 0 to 127") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// cancelledBy is a reader with a context that ends when a shared file is opened.
type cancelledBy struct {
	snapshot.Reader
	cancel func()
}

func (c *cancelledBy) Shared(name string) (io.ReadCloser, error) {
	c.cancel()
	return c.Reader.Shared(name)
}

// A restore ends with its context, while it fetches files and while it reads them.
func TestRestoreIsCancelled(t *testing.T) {
	b, _, _ := counters(t, 1000)
	taken := takeIncremental(t, &snapshottest.Files{}, b)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	to := NewBackend[string]()
	storeIn(t, to, &cancelledBy{readerOf(t, taken), cancel})
	if _, err := to.Value(state.Value[int]("count")); err != nil {
		t.Fatal(err)
	}
	if err := to.RestoreSpilled(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("while it fetches: %v", err)
	}

	image, err := b.overflow.store.Image()
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := image.Files()
	if err != nil {
		t.Fatal(err)
	}
	from, err := spill.OpenImage(t.Context(), spill.Options{Dir: t.TempDir()}, files)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	read := 0
	for _, err = range (&diskPart{snapshot.Part{}, diskCells{ctx, from, b.states[0].diskNumber(), b.storage.Groups}}).Entries() {
		if read++; read == 10 {
			cancel()
		}
	}
	if read != 11 || !errors.Is(err, context.Canceled) {
		t.Errorf("while it reads: after %d entries %v", read, err)
	}
	if err := errors.Join(from.Close(), image.Close()); err != nil {
		t.Error(err)
	}
}

// What had expired under the TTL that a state had is not restored, whatever TTL it has now.
func TestRestoreExpiredOnDisk(t *testing.T) {
	hash := hasherOf[string](t)
	b, _ := limited(t, 1<<10, nil)
	declare := func(b *Backend[string], after time.Duration) state.ValueState[int] {
		s, err := b.Value(state.Value[int]("v", state.WithTTL(state.TTL{After: after})))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := declare(b, time.Second)
	set := func(from, to int, at int64) {
		b.SetTime(at)
		for i := from; i < to; i++ {
			key := fmt.Sprint(i)
			b.SetCurrentKey(hash(key), key)
			s.Set(i)
		}
		b.ClearCurrentKey()
	}
	set(0, 500, 0)
	set(500, 1000, 1)
	if err := b.states[0].spillSome(1 << 30); err != nil {
		t.Fatal(err)
	}
	b.SetTime(1000) // the first half is gone
	taken := takeIncremental(t, &snapshottest.Files{}, b)
	if err := taken.Finish(); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{time.Second, time.Hour, 100 * time.Millisecond} {
		to := NewBackend[string]()
		to.SetTime(1000)
		storeIn(t, to, readerOf(t, taken))
		declare(to, after)
		if err := to.RestoreSpilled(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := to.states[0].len(); n != 500 {
			t.Errorf("with a TTL of %v, %d keys are restored", after, n)
		}
	}
}
