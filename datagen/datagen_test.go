package datagen_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
)

// collected is what readers emitted, by split.
type collected struct {
	connector.ReaderOutput[int64] // for what these sources do not use

	values     map[string][]int64
	offsets    map[string][]int64
	timestamps map[string][]int64
	types      map[string]connector.TimestampType
	finished   []string
	largest    int
}

func newCollected() *collected {
	return &collected{
		values: map[string][]int64{}, offsets: map[string][]int64{}, timestamps: map[string][]int64{},
		types: map[string]connector.TimestampType{},
	}
}

func (c *collected) Batch() *connector.Batch[int64] { return &connector.Batch[int64]{} }

func (c *collected) Emit(split string, b *connector.Batch[int64], offsets []int64, types connector.TimestampType) error {
	if len(offsets) != b.Len() || slices.Contains(c.finished, split) {
		return fmt.Errorf("%d records of %s with %d offsets; finished are %v", b.Len(), split, len(offsets), c.finished)
	}
	c.values[split] = append(c.values[split], b.Values...)
	c.timestamps[split] = append(c.timestamps[split], b.Timestamps...)
	c.offsets[split] = append(c.offsets[split], offsets...)
	c.types[split] = types
	c.largest = max(c.largest, b.Len())
	return nil
}

func (c *collected) FinishSplit(split string) error {
	c.finished = append(c.finished, split)
	return nil
}

// start opens a source's readers and gives them their splits.
func start(t *testing.T, source connector.Source[int64], parallelism int) []connector.Reader[int64] {
	t.Helper()
	if err := source.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := source.NewEnumerator(t.Context(), connector.SourceRuntime{})
	if err != nil {
		t.Fatal(err)
	}
	splits, err := e.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	readers := make([]connector.Reader[int64], parallelism)
	for i := range readers {
		if readers[i], err = source.NewReader(t.Context(), connector.ReaderRuntime{Subtask: i, Parallelism: parallelism}); err != nil {
			t.Fatal(err)
		}
		var own []connector.Split
		for _, s := range splits {
			if e.Owner(s, parallelism) == i {
				own = append(own, s)
			}
		}
		if err := readers[i].AddSplits(own); err != nil {
			t.Fatal(err)
		}
		if source.Boundedness() == connector.Bounded {
			readers[i].NoMoreSplits()
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return readers
}

// readAll polls a bounded reader to its end, waiting where it says so.
func readAll(t *testing.T, r connector.Reader[int64], out *collected) {
	t.Helper()
	for {
		status, err := r.Poll(out)
		switch {
		case err != nil:
			t.Fatal(err)
		case status == connector.EndOfInput:
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return
		case status == connector.NothingAvailable:
			<-r.Available()
		}
	}
}

func identity(n int64) int64 { return n }

func TestSplitsShareTheNumbers(t *testing.T) {
	tests := []struct {
		splits, parallelism int
		count               int64
	}{
		{1, 1, 0}, {1, 1, 1}, {1, 1, 5000}, {3, 1, 10}, {3, 2, 10_000}, {4, 4, 2}, {7, 3, 7000}, {2, 5, 9},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("splits=%d,parallelism=%d,count=%d", tt.splits, tt.parallelism, tt.count), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := newCollected()
				source := datagen.NewSource(identity, datagen.Splits(tt.splits), datagen.Count(tt.count))
				for _, r := range start(t, source, tt.parallelism) {
					readAll(t, r, out)
				}
				for s := range tt.splits {
					id := fmt.Sprintf("split-%d", s)
					var numbers, offsets []int64
					for n := int64(s); n < tt.count; n += int64(tt.splits) {
						numbers, offsets = append(numbers, n), append(offsets, int64(len(offsets)))
					}
					if diff := cmp.Diff(numbers, out.values[id]); diff != "" {
						t.Errorf("%s (-want +got):\n%s", id, diff)
					}
					if diff := cmp.Diff(offsets, out.offsets[id]); diff != "" {
						t.Errorf("offsets of %s (-want +got):\n%s", id, diff)
					}
				}
				if len(out.finished) != tt.splits || out.largest > connector.BatchSize {
					t.Errorf("finished %v; the largest batch is %d", out.finished, out.largest)
				}
			})
		})
	}
}

// TestRate: record n comes n/rate seconds after the start, whatever split makes it.
func TestRate(t *testing.T) {
	tests := []struct {
		rate   float64
		splits int
		count  int64
	}{
		{10, 1, 50}, {10, 3, 50}, {0.25, 2, 5}, {3, 1, 20}, {100_000, 1, 300_000}, {7, 4, 3},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("rate=%v,splits=%d", tt.rate, tt.splits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				out := newCollected()
				source := datagen.NewSource(func(n int64) int64 {
					due := time.Duration(float64(n) / tt.rate * float64(time.Second))
					if late := time.Since(started) - due; late < -time.Millisecond || late > 2*time.Millisecond {
						t.Errorf("record %d is %v late", n, late)
					}
					return n
				}, datagen.Splits(tt.splits), datagen.Count(tt.count), datagen.RatePerSecond(tt.rate))
				readAll(t, start(t, source, 1)[0], out)
				total := 0
				for id, values := range out.values {
					total += len(values)
					if out.types[id] != eventtime.CreateTime {
						t.Errorf("the timestamps are of type %v", out.types[id])
					}
				}
				if total != int(tt.count) {
					t.Errorf("%d records, want %d", total, tt.count)
				}
				if first := out.timestamps["split-0"][0]; first != started.UnixMilli() {
					t.Errorf("the first record's timestamp is %d, want the clock, %d", first, started.UnixMilli())
				}
			})
		})
	}
}

// TestLargestCount: the arithmetic does not overflow.
func TestLargestCount(t *testing.T) {
	out := newCollected()
	r := start(t, datagen.NewSource(identity, datagen.Splits(3), datagen.Count(math.MaxInt64)), 1)[0]
	for range 3 {
		if status, err := r.Poll(out); err != nil || status != connector.MoreAvailable {
			t.Fatalf("poll: %v, %v", status, err)
		}
	}
	if len(out.values) != 3 || len(out.values["split-2"]) != connector.BatchSize {
		t.Errorf("%d splits have records", len(out.values))
	}
}

func TestUnboundedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newCollected()
		source := datagen.NewSource(identity)
		if source.Boundedness() != connector.Unbounded {
			t.Error("a source without Count is bounded")
		}
		r := start(t, source, 1)[0]
		for range 100 {
			if status, err := r.Poll(out); err != nil || status != connector.MoreAvailable {
				t.Fatalf("poll: %v, %v", status, err)
			}
		}
		if n := len(out.values["split-0"]); n != 100*connector.BatchSize {
			t.Errorf("%d records after 100 polls", n)
		}
	})
}

// TestReaderWithoutSplits: it ends if no splits will come, and else waits without a
// timer.
func TestReaderWithoutSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range [][]datagen.Option{nil, {datagen.RatePerSecond(1)}} {
			r := start(t, datagen.NewSource(identity, rate...), 2)[1]
			for range 2 {
				if status, err := r.Poll(newCollected()); err != nil || status != connector.NothingAvailable {
					t.Fatalf("poll: %v, %v", status, err)
				}
			}
			select {
			case <-r.Available():
				t.Error("the reader woke up")
			case <-time.After(time.Hour):
			}
			r.NoMoreSplits()
			if status, err := r.Poll(newCollected()); err != nil || status != connector.EndOfInput {
				t.Errorf("poll: %v, %v", status, err)
			}
		}
	})
}

// TestCloseEndsTheTimer: nothing wakes up behind it.
func TestCloseEndsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, datagen.NewSource(identity, datagen.RatePerSecond(1)), 1)[0]
		for status := connector.MoreAvailable; status == connector.MoreAvailable; {
			var err error
			if status, err = r.Poll(newCollected()); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.Available():
			t.Error("a closed reader woke up")
		case <-time.After(time.Hour):
		}
	})
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		source *datagen.Source[int64]
		want   []string
	}{
		{"defaults", datagen.NewSource(identity), nil},
		{"limits", datagen.NewSource(identity, datagen.Splits(32768), datagen.Count(0), datagen.RatePerSecond(0.001)), nil},
		{"function", datagen.NewSource[int64](nil), []string{"the function is nil"}},
		{"no splits", datagen.NewSource(identity, datagen.Splits(0)), []string{"Splits(0): must be from 1 to 32768"}},
		{"too many splits", datagen.NewSource(identity, datagen.Splits(32769)), []string{"Splits(32769): must be from 1 to 32768"}},
		{"negative count", datagen.NewSource(identity, datagen.Count(-1)), []string{"Count(-1): must not be negative"}},
		{"no rate", datagen.NewSource(identity, datagen.RatePerSecond(0)), []string{"RatePerSecond(0): must be above 0"}},
		{"negative rate", datagen.NewSource(identity, datagen.RatePerSecond(-1)), []string{"RatePerSecond(-1): must be above 0"}},
		{"rate that is no number", datagen.NewSource(identity, datagen.RatePerSecond(math.NaN())), []string{"RatePerSecond(NaN): must be above 0"}},
		{"endless rate", datagen.NewSource(identity, datagen.RatePerSecond(math.Inf(1))), []string{"RatePerSecond(+Inf): must be above 0 and not above 1e+09"}},
		{"all at once", datagen.NewSource[int64](nil, datagen.Splits(0), datagen.Count(-5)), []string{"nil", "Splits(0)", "Count(-5)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.source.Validate()
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
}

// TestSlowestRate: the time to the next record does not overflow.
func TestSlowestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newCollected()
		r := start(t, datagen.NewSource(identity, datagen.RatePerSecond(1e-300)), 1)[0]
		wakes := 0
		for end := time.After(24 * time.Hour); ; {
			status, err := r.Poll(out)
			if err != nil {
				t.Fatal(err)
			}
			if status == connector.MoreAvailable {
				continue
			}
			select {
			case <-r.Available():
				wakes++
				continue
			case <-end:
			}
			break
		}
		if len(out.values["split-0"]) != 1 || wakes > 24 {
			t.Errorf("%d records and %d wake-ups in a day, want 1 and at most one an hour", len(out.values["split-0"]), wakes)
		}
	})
}

func TestSlice(t *testing.T) {
	for _, n := range []int64{0, 1, connector.BatchSize, connector.BatchSize + 1, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var values []int64
				for i := range n {
					values = append(values, 7*i)
				}
				out := newCollected()
				source := datagen.Slice(values)
				if source.Boundedness() != connector.Bounded {
					t.Error("a slice is not bounded")
				}
				for _, r := range start(t, source, 2) { // the second reader has no split
					readAll(t, r, out)
				}
				if diff := cmp.Diff(values, out.values["split-0"]); diff != "" {
					t.Errorf("values (-want +got):\n%s", diff)
				}
				for i, offset := range out.offsets["split-0"] {
					if offset != int64(i) || out.timestamps["split-0"][i] != eventtime.MinTimestamp {
						t.Fatalf("record %d has offset %d and timestamp %d", i, offset, out.timestamps["split-0"][i])
					}
				}
				if out.largest > connector.BatchSize || out.types["split-0"] != eventtime.NoTimestamp {
					t.Errorf("the largest batch is %d, the timestamps' type %v", out.largest, out.types["split-0"])
				}
			})
		})
	}
}
