package gaps

import "math/bits"

// subBits says how fine a Histogram is: 32 buckets for each power of two.
const subBits = 5

// Histogram counts durations in milliseconds. Buckets are 1 ms wide below 64 ms and grow
// with the value above, so that a quantile is never too small and at most 1/32 (about 3 %)
// too large. The largest value is exact. The zero Histogram is empty.
type Histogram struct {
	// buckets is as long as the largest value needs.
	buckets []int64
	count   int64
	max     int64
}

// Add counts a duration; a negative one counts as 0.
func (h *Histogram) Add(millis int64) { h.addMany(millis, 1) }

func (h *Histogram) addMany(millis, n int64) {
	millis = max(millis, 0)
	i := bucketOf(millis)
	if i >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]int64, i+1-len(h.buckets))...)
	}
	h.buckets[i] += n
	h.count += n
	h.max = max(h.max, millis)
}

// merge adds what o has counted.
func (h *Histogram) merge(o *Histogram) {
	for i, n := range o.buckets {
		if n > 0 {
			h.addMany(min(bucketEnd(i), o.max), n)
		}
	}
}

// Count returns how many durations were added.
func (h *Histogram) Count() int64 { return h.count }

// Max returns the largest duration, 0 if there is none.
func (h *Histogram) Max() int64 { return h.max }

// Quantile returns the smallest value known to be at least as large as the share q (0 to
// 1) of the durations, 0 if there is none.
func (h *Histogram) Quantile(q float64) int64 {
	rank := int64(q*float64(h.count) + 0.999999)
	var seen int64
	for i, n := range h.buckets {
		seen += n
		if n > 0 && seen >= rank {
			return min(bucketEnd(i), h.max)
		}
	}
	return h.max
}

// bucketOf returns the index of the bucket that holds v, which is not negative.
func bucketOf(v int64) int {
	if v < 2<<subBits {
		return int(v)
	}
	e := bits.Len64(uint64(v)) - 1 - subBits
	return e<<subBits + int(v>>e)
}

// bucketEnd returns the largest value of a bucket.
func bucketEnd(i int) int64 {
	if i < 2<<subBits {
		return int64(i)
	}
	e := i>>subBits - 1
	return int64(i-e<<subBits+1)<<e - 1
}

// Quantiles is a distribution of durations in milliseconds.
type Quantiles struct {
	Count     int64 `json:"count"`
	P50Millis int64 `json:"p50_ms"`
	P90Millis int64 `json:"p90_ms"`
	P99Millis int64 `json:"p99_ms"`
	P999      int64 `json:"p999_ms"`
	MaxMillis int64 `json:"max_ms"`
}

// Quantiles returns the usual ones.
func (h *Histogram) Quantiles() Quantiles {
	return Quantiles{h.count, h.Quantile(0.5), h.Quantile(0.9), h.Quantile(0.99), h.Quantile(0.999), h.max}
}
