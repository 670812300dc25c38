package gaps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// steps are the lengths that people write down.
var steps = []time.Duration{
	0, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
}

// longest is the longest bound or timeout worth trying. What takes more is not late but
// broken.
const longest = 365 * 24 * time.Hour

// roundUp returns the smallest step that is at least so long, or the length in whole
// weeks.
func roundUp(millis int64) time.Duration {
	d := time.Duration(min(millis, longestMillis/2)) * time.Millisecond
	for _, s := range steps {
		if s >= d {
			return s
		}
	}
	const week = 7 * 24 * time.Hour
	return (d + week - 1) / week * week
}

// shortestIdle: a timeout of less goes off between the records of one fetch.
const shortestIdle = time.Second

// Bounds returns bounds worth trying: about the quantiles of the disorder.
func Bounds(d *Data) []time.Duration {
	h := d.whole(func(p *Partition) *Histogram { return &p.Disorder })
	bounds := []time.Duration{0}
	for _, q := range []float64{0.9, 0.99, 0.999, 0.9999, 1} {
		bounds = append(bounds, roundUp(h.Quantile(q)))
	}
	return distinct(slices.DeleteFunc(bounds, func(b time.Duration) bool { return b > longest }))
}

// Idles returns idle timeouts worth trying, none (0) first: about the quantiles of the
// gaps of the partitions that have the largest.
func Idles(d *Data) []time.Duration {
	idles := []time.Duration{0}
	for _, q := range []float64{0.5, 0.99, 0.999, 1} {
		var largest int64
		for _, p := range d.Partitions {
			largest = max(largest, p.Gaps.Quantile(q))
		}
		idles = append(idles, max(shortestIdle, roundUp(largest-largest>>subBits))) // a quantile may be too large by that
	}
	return distinct(slices.DeleteFunc(idles, func(i time.Duration) bool { return i > longest }))
}

// Choices combines bounds and idle timeouts.
func Choices(bounds, idles []time.Duration) []Choice {
	var choices []Choice
	for _, b := range distinct(bounds) {
		for _, i := range distinct(idles) {
			choices = append(choices, Choice{b, i})
		}
	}
	return choices
}

func distinct(d []time.Duration) []time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return slices.Compact(d)
}

// Recommend returns the index of the best outcome, -1 if there is none. It drops, as long
// as any are left, those that lose a larger share of the records than asked for (or else
// those that lose more than the best), those without any result, those with partitions that
// come back from idleness late, those that hold windows back at the end, and those whose
// results come a quarter later than the soonest. Of the rest it takes the one that loses
// least, then the smaller bound and the longer timeout.
func Recommend(outcomes []Outcome, lateShare float64) int {
	left := make([]int, len(outcomes))
	for i := range left {
		left[i] = i
	}
	if len(left) == 0 {
		return -1
	}
	left = keep(left, func(i int) bool { return outcomes[i].LateShare() <= lateShare })
	left = keep(left, func(i int) bool { return outcomes[i].Wait.Count() > 0 })
	left = keepLeast(left, func(i int) int64 { return int64(outcomes[i].Held) }, exactly)
	if outcomes[left[0]].LateShare() > lateShare {
		left = keepLeast(left, func(i int) int64 { return outcomes[i].Late }, exactly)
	}
	left = keep(left, func(i int) bool { return outcomes[i].total().ReturnedLate == 0 })
	left = keepLeast(left, func(i int) int64 { return outcomes[i].Wait.Quantile(0.99) }, func(least int64) int64 { return least + least/4 })
	return slices.MinFunc(left, func(i, j int) int {
		a, b := &outcomes[i], &outcomes[j]
		return cmp.Or(cmp.Compare(a.Late, b.Late), cmp.Compare(a.Bound, b.Bound), cmp.Compare(b.Idle, a.Idle))
	})
}

// keep returns those that are good, or all if none is.
func keep(left []int, good func(int) bool) []int {
	some := slices.DeleteFunc(slices.Clone(left), func(i int) bool { return !good(i) })
	if len(some) == 0 {
		return left
	}
	return some
}

// keepLeast returns those whose value is the least, or at most what allowed makes of it.
func keepLeast(left []int, value func(int) int64, allowed func(int64) int64) []int {
	least := value(left[0])
	for _, i := range left {
		least = min(least, value(i))
	}
	return keep(left, func(i int) bool { return value(i) <= allowed(least) })
}

func exactly(least int64) int64 { return least }

// why says what speaks for the outcome that Recommend has chosen.
func (o *Outcome) why(lateShare float64) string {
	var b strings.Builder
	switch share := o.LateShare(); {
	case o.Late == 0:
		b.WriteString("It loses no record")
	case share > lateShare:
		fmt.Fprintf(&b, "All that let results come lose more than %s of the records; this one loses %s", percent(lateShare), percent(share))
	default:
		fmt.Fprintf(&b, "It loses %s of the records", percent(share))
	}
	if o.Wait.Count() > 0 {
		fmt.Fprintf(&b, "; 99%% of the windows have their result within %s of their end", formatMillis(o.Wait.Quantile(0.99)))
	}
	b.WriteString(".")
	switch total := o.total(); {
	case o.Idle > 0 && total.Idled == 0:
		b.WriteString(" No partition went idle in this data: the timeout costs nothing, and ends the wait should one fall silent.")
	case total.Returned > 0 && total.ReturnedLate == 0:
		fmt.Fprintf(&b, " Idle partitions came back %s, and in time.", times(total.Returned))
	case total.ReturnedLate > 0:
		fmt.Fprintf(&b, " Idle partitions came back %s, %s with a late record.", times(total.Returned), times(total.ReturnedLate))
	}
	return b.String()
}
