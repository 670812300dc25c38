package datagen_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/datagen"
)

// snapshot is what a checkpoint keeps of a source.
type snapshot struct {
	enumerator []byte
	splits     [][]byte
}

// take takes the snapshot of a source's readers.
func take(t *testing.T, source connector.Source[int64], readers []connector.Reader[int64]) (s snapshot) {
	t.Helper()
	e, err := source.NewEnumerator(t.Context(), connector.SourceRuntime{})
	if err != nil {
		t.Fatal(err)
	}
	if s.enumerator, err = e.(connector.RestorableEnumerator).SnapshotEnumerator(); err != nil {
		t.Fatal(err)
	}
	for _, r := range readers {
		splits, err := r.(connector.SplitSnapshotter).SnapshotSplits()
		if err != nil {
			t.Fatal(err)
		}
		for _, split := range splits {
			data, err := source.(connector.SplitCodec).EncodeSplit(split)
			if err != nil {
				t.Fatal(err)
			}
			s.splits = append(s.splits, data)
		}
	}
	return s
}

// restore opens readers that go on from a snapshot.
func restore(t *testing.T, source connector.Source[int64], from snapshot, parallelism int) []connector.Reader[int64] {
	t.Helper()
	e, err := source.NewEnumerator(t.Context(), connector.SourceRuntime{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.(connector.RestorableEnumerator).RestoreEnumerator(from.enumerator); err != nil {
		t.Fatal(err)
	}
	if found, err := e.Discover(t.Context()); err != nil || len(found) > 0 {
		t.Fatalf("a restored enumerator finds %v, %v", found, err)
	}
	owned := make([][]connector.Split, parallelism)
	for _, data := range from.splits {
		split, err := source.(connector.SplitCodec).DecodeSplit(data)
		if err != nil {
			t.Fatal(err)
		}
		owner := e.Owner(split, parallelism)
		owned[owner] = append(owned[owner], split)
	}
	readers := make([]connector.Reader[int64], parallelism)
	for i := range readers {
		if readers[i], err = source.NewReader(t.Context(), connector.ReaderRuntime{Subtask: i, Parallelism: parallelism}); err != nil {
			t.Fatal(err)
		}
		if err := readers[i].AddSplits(owned[i]); err != nil {
			t.Fatal(err)
		}
		readers[i].NoMoreSplits()
	}
	return readers
}

// TestRestore stops sources at random places, some of them while splits are paused, and
// goes on with another number of subtasks.
func TestRestore(t *testing.T) {
	sources := map[string]func(n int64) connector.Source[int64]{
		"generator": func(n int64) connector.Source[int64] {
			return datagen.NewSource(identity, datagen.Splits(3), datagen.Count(n))
		},
		"slice": func(n int64) connector.Source[int64] {
			values := make([]int64, n)
			for i := range values {
				values[i] = int64(i)
			}
			return datagen.Slice(values)
		},
	}
	for name, make := range sources {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			for range 30 {
				source := make(rnd.Int64N(10_000))
				whole := newCollected()
				for _, r := range start(t, source, 1) {
					readAll(t, r, whole)
				}
				got := newCollected()
				readers := start(t, source, 1+rnd.IntN(3))
				for range 1 + rnd.IntN(3) {
					for range rnd.IntN(8) {
						r := readers[rnd.IntN(len(readers))]
						if p, ok := r.(connector.SplitPauser); ok && rnd.IntN(3) == 0 {
							p.PauseSplits([]string{fmt.Sprint("split-", rnd.IntN(3))})
						}
						if _, err := r.Poll(got); err != nil {
							t.Fatal(err)
						}
					}
					readers = restore(t, source, take(t, source, readers), 1+rnd.IntN(3))
				}
				for _, r := range readers {
					readAll(t, r, got)
				}
				if diff := cmp.Diff(whole.values, got.values); diff != "" {
					t.Fatalf("values with restarts (-without +with):\n%.2000s", diff)
				}
				if diff := cmp.Diff(whole.offsets, got.offsets); diff != "" {
					t.Fatalf("offsets with restarts (-without +with):\n%.2000s", diff)
				}
			}
		})
	}
}

// TestRestoredRate: a restored generator neither waits for the records it has made nor
// hurries.
func TestRestoredRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := datagen.NewSource(identity, datagen.Splits(2), datagen.RatePerSecond(10), datagen.Count(60))
		out := newCollected()
		readers := start(t, source, 1)
		for len(out.values["split-0"]) < 20 {
			if status, err := readers[0].Poll(out); err != nil {
				t.Fatal(err)
			} else if status == connector.NothingAvailable {
				<-readers[0].Available()
			}
		}
		from := take(t, source, readers)
		if err := readers[0].Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, r := range restore(t, source, from, 1) {
			readAll(t, r, out)
		}
		if n := len(out.values["split-0"]) + len(out.values["split-1"]); n != 60 {
			t.Errorf("%d records, want 60", n)
		}
		if took := time.Since(began); took < 1800*time.Millisecond || took > 2200*time.Millisecond {
			t.Errorf("the remaining 20 records took %v, want 2 s", took)
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	three := datagen.NewSource(identity, datagen.Splits(3))
	slice := datagen.Slice([]int64{1, 2})
	tests := []struct {
		name   string
		source connector.Source[int64]
		data   string
		want   string
	}{
		{"other number of splits", three, `{"split":0,"of":2,"made":5}`, "2 splits, which now has 3"},
		{"no such split", three, `{"split":3,"of":3,"made":5}`, "no such split"},
		{"negative", three, `{"split":0,"of":3,"made":-1}`, "no such split"},
		{"not JSON", three, `x`, "invalid character"},
		{"shorter slice", slice, `{"split":0,"of":1,"made":3}`, "only 2 now"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.source.(connector.SplitCodec).DecodeSplit([]byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	e, err := three.NewEnumerator(t.Context(), connector.SourceRuntime{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.(connector.RestorableEnumerator).RestoreEnumerator([]byte(`{"splits":2}`)); err == nil || !strings.Contains(err.Error(), "Splits") {
		t.Errorf("another number of splits: %v", err)
	}
}
