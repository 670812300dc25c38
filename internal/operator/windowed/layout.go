package windowed

import (
	"math"

	"github.com/lowwater/lowwater/window"
)

// layout divides time into slices such that every window of a sliding or
// cumulating assigner is a run of whole slices. Slices and windows are numbered
// in the order of time, windows by their end:
//
//	sliding, size 5, slide 2      |0 |1|2 |3|4 |5|6 |7|
//	                window 0       [0    ... 4]
//	                window 1            [2    ... 6]
//	cumulating, size 6, step 2    |0   |1   |2   |3   |
//	                windows 0..2   [0]  [0..1] [0 .. 2]
//
// A sliding window's slices end where a window starts or ends, so there are two
// of them per slide if slide does not divide size. A cumulating window has one
// per step.
type layout struct {
	cumulating bool
	offset     int64
	// period is the slide or the step, cut the length of the first of two slices
	// in it, 0 if there is only one.
	period, cut int64
	perPeriod   int64
	// size is a sliding window's length, and that of the longest cumulating
	// window; count is the number of slices in it.
	size, count int64
	// lowest and highest bound the times for which no arithmetic here wraps.
	lowest, highest int64
}

// layoutOf returns the layout of an assigner whose windows overlap.
func layoutOf(a window.Assigner) (l layout, ok bool) {
	switch a := a.(type) {
	case window.SlidingAssigner:
		l.size, l.period, l.offset = a.Millis()
		l.cut = l.size % l.period
		l.perPeriod = 1
		l.count = l.size / l.period
		if l.cut != 0 {
			l.perPeriod = 2
			l.count = 2*l.count + 1
		}
	case window.CumulatingAssigner:
		l.cumulating = true
		l.size, l.period, l.offset = a.Millis()
		l.perPeriod = 1
		l.count = l.size / l.period
	default:
		return layout{}, false
	}
	margin := 4 * (l.size + l.period)
	l.lowest, l.highest = math.MinInt64+margin, math.MaxInt64-margin
	return l, l.size > l.period
}

// holds reports whether t is far enough from the ends of time to be sliced.
func (l *layout) holds(t int64) bool { return l.lowest <= t && t <= l.highest }

// slice returns the number of the slice that holds t.
func (l *layout) slice(t int64) int64 {
	p := floorDiv(t-l.offset, l.period)
	i := p * l.perPeriod
	if l.cut != 0 && t-l.offset-p*l.period >= l.cut {
		i++
	}
	return i
}

// span returns the time of slice i.
func (l *layout) span(i int64) window.TimeWindow {
	start := l.offset + floorDiv(i, l.perPeriod)*l.period
	switch {
	case l.cut == 0:
		return window.TimeWindow{Start: start, End: start + l.period}
	case i&1 == 0:
		return window.TimeWindow{Start: start, End: start + l.cut}
	default:
		return window.TimeWindow{Start: start + l.cut, End: start + l.period}
	}
}

// windows returns the numbers of the first and the last window that slice i is
// part of.
func (l *layout) windows(i int64) (first, last int64) {
	if l.cumulating {
		return i, floorDiv(i, l.count)*l.count + l.count - 1
	}
	return floorDiv(i-l.count, l.perPeriod) + 1, floorDiv(i, l.perPeriod)
}

// slices returns the numbers of the slices that window k consists of, from lo up
// to (not including) hi.
func (l *layout) slices(k int64) (lo, hi int64) {
	if l.cumulating {
		return floorDiv(k, l.count) * l.count, k + 1
	}
	lo = k * l.perPeriod
	return lo, lo + l.count
}

// window returns window k.
func (l *layout) window(k int64) window.TimeWindow {
	if l.cumulating {
		return window.TimeWindow{
			Start: l.offset + floorDiv(k, l.count)*l.size,
			End:   l.offset + (k+1)*l.period,
		}
	}
	start := l.offset + k*l.period
	return window.TimeWindow{Start: start, End: start + l.size}
}

// maxTimestamp returns that of window k.
func (l *layout) maxTimestamp(k int64) int64 { return l.window(k).End - 1 }

// after returns the number of the first window with a MaxTimestamp above t.
func (l *layout) after(t int64) int64 {
	t = min(max(t, l.lowest), l.highest)
	length := l.size
	if l.cumulating {
		length = l.period // of the first window in which a slice is the last
	}
	return floorDiv(t-l.offset-length+1, l.period) + 1
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
