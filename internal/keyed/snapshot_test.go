package keyed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

// laterWriter is a snapshot.Writer that keeps what is to be done later.
type laterWriter struct {
	snapshot.Writer
	later []func(context.Context) error
}

func (w *laterWriter) Later(f func(context.Context) error) { w.later = append(w.later, f) }

// run does what is to be done.
func (w *laterWriter) run(ctx context.Context) error {
	var err error
	for _, f := range w.later {
		err = errors.Join(err, f(ctx))
	}
	return err
}

// step writes one block of s and reports whether there may be more.
func step(t testing.TB, s *Snapshot) bool {
	t.Helper()
	more, err := s.writeBlock(nil)
	if err != nil {
		t.Fatal(err)
	}
	return more
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A table is changed at random while snapshots are being written: each has what the
// table held when it began, every entry once.
func TestTableSnapshot(t *testing.T) {
	r := newRand(t)
	h := hasherOf[int](t)
	for range 30 {
		table, model := NewTable[int, []int](), map[int][]int{}
		keys := 1 << r.IntN(11)
		change := func() {
			k := r.IntN(keys)
			switch n := r.IntN(100); {
			case n < 40:
				v, _ := table.Upsert(h(k), k)
				*v = append(*v, n)
				model[k] = append(model[k][:len(model[k]):len(model[k])], n)
			case n < 60:
				if v := table.Get(h(k), k); v != nil {
					(*v)[0] = n
					model[k] = append([]int{n}, model[k][1:]...)
				}
			case n < 65:
				at := [2]int32{}
				table.UpsertBatch([]uint64{h(k), h(k + 1)}, []int{k, k + 1}, at[:])
				for i, n := range at {
					e := table.At(int(n))
					e.Value = append(e.Value, i)
					model[k+i] = append(model[k+i][:len(model[k+i]):len(model[k+i])], i)
				}
			case n < 98:
				table.Delete(h(k), k)
				delete(model, k)
			case n < 99 && r.IntN(keys) == 0:
				table.Reset()
				clear(model)
			case r.IntN(keys) == 0:
				for e := range table.All() {
					e.Value[0]++
					model[e.Key] = append([]int{model[e.Key][0] + 1}, model[e.Key][1:]...)
				}
			}
		}
		for range r.IntN(4 * keys) {
			change()
		}
		for range 3 {
			want, got := maps.Clone(model), map[int][]int{}
			s := NewSnapshot(&laterWriter{})
			s.Table(table, func(_ *Encoder, e *Entry[int, []int]) error {
				if _, again := got[e.Key]; again || e.Hash != h(e.Key) {
					t.Fatalf("key %d was written again, or has hash %x", e.Key, e.Hash)
				}
				got[e.Key] = append([]int(nil), e.Value...)
				return nil
			})
			for more := true; more; {
				for range r.IntN(100) {
					change()
				}
				more = step(t, s)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("snapshot (-want +got):\n%s", diff)
			}
			for range r.IntN(keys) {
				change()
			}
		}
	}
}

// Timers are registered, deleted and fired at random while snapshots are being written.
func TestTimersSnapshot(t *testing.T) {
	r := newRand(t)
	for range 15 {
		q, model := NewTimerQueue[int, int](), map[Timer[int, int]]bool{}
		// Few times make groups, many make leaves. Deletions settle groups.
		times, keys, deletions := int64(1)<<r.IntN(16), 1<<(2+r.IntN(12)), r.IntN(200)
		if r.IntN(2) == 0 {
			times, keys, deletions = 1+r.Int64N(3), 1<<13, 1
		}
		now := int64(0)
		change := func() {
			tm := Timer[int, int]{Namespace: r.IntN(2), At: now + r.Int64N(times) - times/16, Key: r.IntN(keys)}
			tm.Hash = uint64(tm.Key)
			switch n := r.IntN(1000); {
			case n < 980-deletions:
				q.Register(tm)
				model[tm] = true
			case n < 980:
				q.Delete(tm)
				delete(model, tm)
			case n < 981:
				q.Len()
			case n < 990:
				if at, ok := q.Next(); ok {
					now = at
				}
			default:
				now += times / 64
				for range r.IntN(300) {
					tm, ok := q.Pop(now)
					if !ok {
						break
					}
					if !model[tm] {
						t.Fatalf("%v fired", tm)
					}
					delete(model, tm)
				}
			}
		}
		for range r.IntN(20_000) {
			change()
		}
		for range 3 {
			want, got := maps.Clone(model), map[Timer[int, int]]bool{}
			s := NewSnapshot(&laterWriter{})
			s.Timers(q, func(_ *Encoder, tm *Timer[int, int]) error {
				got[*tm] = true
				return nil
			})
			for more := true; more; {
				for range r.IntN(500) {
					change()
				}
				more = step(t, s)
			}
			if !maps.Equal(want, got) {
				t.Fatalf("snapshot (-want +got):\n%s", cmp.Diff(want, got))
			}
		}
		restored := NewTimerQueue[int, int]()
		for tm := range model {
			restored.Register(tm)
		}
		if q.Len() != restored.Len() || q.Len() != len(model) {
			t.Fatalf("%d timers, want %d", q.Len(), len(model))
		}
	}
}

// recorder is a snapshot.Writer that keeps the entries of all parts as text.
type recorder struct {
	laterWriter
	entries []string
	// appending is called before an entry is kept.
	appending func()
}

func (w *recorder) Part(snapshot.Part) (snapshot.PartWriter, error) { return w, nil }
func (w *recorder) Close() error                                    { return nil }

func (w *recorder) Append(_ int, entry []byte) error {
	if w.appending != nil {
		w.appending()
	}
	w.entries = append(w.entries, string(entry))
	return nil
}

// begin begins a snapshot with one part.
func (w *recorder) begin(t testing.TB) (*Snapshot, PartNumber) {
	t.Helper()
	s := NewSnapshot(w)
	part, err := s.Part(snapshot.Part{})
	if err != nil {
		t.Fatal(err)
	}
	return s, part
}

// twice holds a number twice.
type twice struct{ a, b int }

// writeTwice writes the entries of a table.
func writeTwice(part PartNumber) func(*Encoder, *Entry[int, *twice]) error {
	return func(to *Encoder, e *Entry[int, *twice]) error {
		to.Data = fmt.Appendf(to.Data, "%d: %d", e.Key, e.Value.a)
		to.Data = fmt.Appendf(to.Data, " %d", e.Value.b)
		to.End(part, 0)
		return nil
	}
}

// The goroutine writes while the subtask changes: every entry is written once, as a whole,
// as it was. Also for the race detector.
func TestSnapshotInTheBackground(t *testing.T) {
	h := hasherOf[int](t)
	r := newRand(t)
	for range 20 {
		table, q := NewTable[int, *twice](), NewTimerQueue[int, struct{}]()
		// With few keys both often want the same ones.
		keys := 1 << (3 + r.IntN(11))
		for k := range keys {
			v, _ := table.Upsert(h(k), k)
			*v = &twice{k, k}
			q.Register(Timer[int, struct{}]{At: int64(k % 3000 * (k % 2)), Hash: h(k), Key: k})
		}
		var want []string
		for e := range table.All() {
			want = append(want, fmt.Sprintf("%d: %d %[2]d", e.Key, e.Value.a))
		}
		wantTimers := map[string]bool{}
		for tm := range q.All() {
			wantTimers[fmt.Sprintf("timer %d %d", tm.At, tm.Key)] = true
		}
		w := &recorder{}
		s, part := w.begin(t)
		s.Table(table, writeTwice(part))
		s.Timers(q, func(to *Encoder, tm *Timer[int, struct{}]) error {
			to.Data = fmt.Appendf(to.Data, "timer %d %d", tm.At, tm.Key)
			to.End(part, 0)
			return nil
		})
		s.Start()
		done := make(chan error)
		go func() { done <- w.run(t.Context()) }()
		for range 2 * keys {
			k := r.IntN(keys)
			if k%10 == 0 {
				table.Delete(h(k), k)
				q.Pop(100)
				continue
			}
			v, created := table.Upsert(h(k), k)
			if created {
				*v = &twice{}
			}
			(*v).a++
			(*v).b++
			q.Register(Timer[int, struct{}]{At: int64(k % 5000), Hash: h(k), Key: k})
			q.Delete(Timer[int, struct{}]{At: int64(k % 7000), Hash: h(k), Key: k})
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		var got []string
		gotTimers := map[string]bool{}
		for _, e := range w.entries {
			if strings.HasPrefix(e, "timer") {
				gotTimers[e] = true
			} else {
				got = append(got, e)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("table (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(wantTimers, gotTimers); diff != "" {
			t.Fatalf("timers (-want +got):\n%s", diff)
		}
	}
}

// Of two who want an entry at the same time, one gets it.
func TestImageClaims(t *testing.T) {
	const n = 1 << 20
	m := NewSnapshot(nil).Image(0, n, nil)
	var claimed [2]int
	var both sync.WaitGroup
	for side := range claimed {
		both.Go(func() {
			for i := range uint32(n) {
				if m.claim(i) {
					claimed[side]++
				}
			}
		})
	}
	if both.Wait(); claimed[0]+claimed[1] != n {
		t.Errorf("%d and %d of %d entries were claimed", claimed[0], claimed[1], n)
	}
}

// While the goroutine stands still in the middle of an entry, the subtask goes on with
// all others but those around it.
func TestSnapshotStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hasherOf[int](t)
		table := NewTable[int, *twice]()
		const keys = 1000
		for k := range keys {
			v, _ := table.Upsert(h(k), k)
			*v = &twice{k, k}
		}
		w, goOn := &recorder{}, make(chan bool)
		s, part := w.begin(t)
		write := writeTwice(part)
		s.Table(table, func(to *Encoder, e *Entry[int, *twice]) error {
			if e.Key == 200 {
				<-goOn
			}
			return write(to, e)
		})
		s.Start()
		done := make(chan error)
		go func() { done <- w.run(t.Context()) }()
		synctest.Wait()
		for k := range keys {
			if k/64 != 200/64 {
				v := *table.Get(h(k), k)
				v.a, v.b = -1, -1
			}
		}
		changed := false
		go func() {
			v := *table.Get(h(200), 200)
			changed, v.a, v.b = true, -1, -1
		}()
		synctest.Wait()
		if changed {
			t.Error("an entry was changed while it was read")
		}
		goOn <- true
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); !changed {
			t.Error("the entry was never changed")
		}
		want := make([]string, keys)
		for k := range want {
			want[k] = fmt.Sprintf("%d: %d %[1]d", k, k)
		}
		slices.Sort(want)
		slices.Sort(w.entries)
		if diff := cmp.Diff(want, w.entries); diff != "" {
			t.Errorf("snapshot (-want +got):\n%s", diff)
		}
	})
}

// The subtask does not begin the next snapshot, after which it would change what it likes,
// while the goroutine of the last one reads an entry.
func TestSupersedeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hasherOf[int](t)
		table := NewTable[int, int]()
		table.Upsert(h(1), 1)
		w, goOn := &laterWriter{}, make(chan bool)
		s := NewSnapshot(w)
		s.Table(table, func(*Encoder, *Entry[int, int]) error { <-goOn; return nil })
		s.Start()
		done := make(chan error)
		go func() { done <- w.run(t.Context()) }()
		synctest.Wait()
		begun := false
		go func() {
			NewSnapshot(w).Table(table, func(*Encoder, *Entry[int, int]) error { return nil })
			begun = true
		}()
		if synctest.Wait(); begun {
			t.Error("the next snapshot began while an entry was read")
		}
		goOn <- true
		if err := <-done; !errors.Is(err, errSuperseded) {
			t.Errorf("error %v", err)
		}
		if synctest.Wait(); !begun {
			t.Error("the next snapshot did not begin")
		}
	})
}

// A disk that is too slow holds up the subtask, once very much waits for it.
func TestSnapshotIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hasherOf[int](t)
		table := NewTable[int, int]()
		const entry, keys = maxEncoded / 4, 8
		for k := range keys {
			table.Upsert(h(k), k)
		}
		goOn := make(chan bool)
		w := &recorder{appending: func() { <-goOn }}
		s, part := w.begin(t)
		s.Table(table, func(to *Encoder, _ *Entry[int, int]) error {
			to.Data = append(to.Data, make([]byte, entry)...)
			to.End(part, 0)
			return nil
		})
		s.Start()
		table.Get(h(0), 0)
		done := make(chan error)
		go func() { done <- w.run(t.Context()) }()
		synctest.Wait() // the goroutine has all that there is and waits for the disk
		changed := 0
		go func() {
			for k := range keys {
				table.Get(h(k), k)
				changed = k + 1
			}
		}()
		if synctest.Wait(); changed > 5 {
			t.Errorf("%d entries were written ahead of the disk", changed)
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if synctest.Wait(); changed != keys || len(w.entries) != keys {
			t.Errorf("%d of %d entries changed, %d written", changed, keys, len(w.entries))
		}
	})
}

// A snapshot ends with the first error, when it is given up, and when the next one begins;
// the table can be changed as before.
func TestSnapshotEnds(t *testing.T) {
	h := hasherOf[int](t)
	full := errors.New("the disk is full")
	for _, tt := range []struct {
		name string
		end  func(table *Table[int, int], w *laterWriter) error
		want string
	}{
		{"given up", func(_ *Table[int, int], w *laterWriter) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return w.run(ctx)
		}, "canceled"},
		{"superseded", func(table *Table[int, int], w *laterWriter) error {
			NewSnapshot(w).Table(table, func(*Encoder, *Entry[int, int]) error { return nil })
			return w.run(t.Context())
		}, "the next snapshot"},
		{"failed before a change", func(table *Table[int, int], w *laterWriter) error {
			table.Get(h(7), 7)
			return w.run(t.Context())
		}, "the disk is full"},
		{"failed in the background", func(_ *Table[int, int], w *laterWriter) error {
			return w.run(t.Context())
		}, "the disk is full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := NewTable[int, int]()
			for k := range 1000 {
				table.Upsert(h(k), k)
			}
			w := &laterWriter{}
			s := NewSnapshot(w)
			s.Table(table, func(*Encoder, *Entry[int, int]) error { return full })
			s.Start()
			if err := tt.end(table, w); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			for k := range 1000 {
				table.Delete(h(k), k)
			}
			if table.Len() != 0 {
				t.Errorf("%d entries left", table.Len())
			}
		})
	}
}

// A snapshot whose writing panics is over, too: what is changed afterwards is not written
// first, and nobody waits for the goroutine that has ended.
func TestSnapshotPanics(t *testing.T) {
	h := hasherOf[int](t)
	for _, subtask := range []bool{false, true} {
		table := NewTable[int, int]()
		table.Upsert(h(1), 1)
		w := &laterWriter{}
		s := NewSnapshot(w)
		s.Table(table, func(*Encoder, *Entry[int, int]) error { panic("of the author") })
		s.Start()
		func() {
			defer func() { _ = recover() }()
			if subtask {
				table.Get(h(1), 1)
			} else {
				_ = w.run(t.Context()) // it panics
			}
			t.Error("no panic")
		}()
		if !s.Over() {
			t.Error("the snapshot is not over")
		}
		table.Delete(h(1), 1) // would panic again
		if subtask {
			if err := w.run(t.Context()); !errors.Is(err, errPanicked) {
				t.Errorf("the snapshot without the entry ended with %v", err)
			}
		}
	}
}

// storeIn makes a backend's states storable.
func storeIn[K comparable](t testing.TB, b *Backend[K], restored snapshot.Reader) {
	t.Helper()
	if err := b.Store(Storage{Prefix: "state/", MaxParallelism: 128, Groups: GroupRange{0, 127}, Restored: restored}); err != nil {
		t.Fatal(err)
	}
}

// takeSnapshot begins a snapshot of a backend.
func takeSnapshot[K comparable](t testing.TB, b *Backend[K]) *snapshottest.Snapshot {
	t.Helper()
	taken, err := snapshottest.Take(1, func(w snapshot.Writer) error {
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

// readerOf returns what one subtask is restored from.
func readerOf(t testing.TB, taken ...*snapshottest.Snapshot) snapshot.Reader {
	t.Helper()
	readers, err := snapshottest.Readers(taken, 1, 128)
	if err != nil {
		t.Fatal(err)
	}
	return readers[0]
}
