package gaps

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQuantiles: a quantile is at least the true one, and too large by 1/32 at most; the
// largest value is exact.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 200), rapid.Int64Range(0, 1<<40)), 1, 200).Draw(t, "values")
		var h, half Histogram
		for i, v := range values {
			if i%2 == 0 {
				h.Add(v)
			} else {
				half.Add(v)
			}
		}
		h.merge(&half)
		slices.Sort(values)
		if h.Count() != int64(len(values)) || h.Max() != values[len(values)-1] {
			t.Fatalf("count %d, max %d, want %d, %d", h.Count(), h.Max(), len(values), values[len(values)-1])
		}
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.999, 1} {
			rank := max(int(q*float64(len(values))+0.999999), 1)
			exact := values[rank-1]
			if got := h.Quantile(q); got < exact || got-exact > exact/32 {
				t.Fatalf("quantile %v of %v is %d, want %d to %d", q, values, got, exact, exact+exact/32)
			}
		}
	})
}

func TestBuckets(t *testing.T) {
	for i := range bucketOf(math.MaxInt64) {
		if first := bucketEnd(i) + 1; bucketOf(first) != i+1 {
			t.Errorf("%d is in bucket %d, want %d", first, bucketOf(first), i+1)
		}
		if bucketOf(bucketEnd(i)) != i {
			t.Errorf("%d is in bucket %d, want %d", bucketEnd(i), bucketOf(bucketEnd(i)), i)
		}
	}
}

func TestEmptyHistogram(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Count() != 0 {
		t.Errorf("an empty histogram has %+v", h.Quantiles())
	}
	h.Add(-5)
	if h.Quantile(1) != 0 || h.Count() != 1 {
		t.Errorf("a negative duration counts as %+v, want 0", h.Quantiles())
	}
}
