package window

import (
	"cmp"
	"slices"
)

// Touches reports whether w and o share a point or a boundary, which makes
// windows of a merging assigner one (spec windows 1.7).
func (w TimeWindow) Touches(o TimeWindow) bool { return w.Start <= o.End && w.End >= o.Start }

// Cover returns the smallest window that holds both w and o, and what is between them.
func (w TimeWindow) Cover(o TimeWindow) TimeWindow {
	return TimeWindow{min(w.Start, o.Start), max(w.End, o.End)}
}

// Merged is a group of windows that become one.
type Merged struct {
	// Into covers them all.
	Into TimeWindow
	// From is the group's distinct windows, at least two, by start.
	From []TimeWindow
}

// Merge groups windows that touch, directly or through others (spec windows
// 1.7). Groups of one distinct window are left out. The groups are ordered by
// start. The slice is not changed.
func Merge(windows []TimeWindow) []Merged {
	sorted := slices.Clone(windows)
	slices.SortStableFunc(sorted, func(a, b TimeWindow) int { return cmp.Compare(a.Start, b.Start) })
	var merges []Merged
	for len(sorted) > 0 {
		into, n := sorted[0], 1
		for n < len(sorted) && into.Touches(sorted[n]) {
			into = into.Cover(sorted[n])
			n++
		}
		var from []TimeWindow
		for _, w := range sorted[:n] {
			if !slices.Contains(from, w) {
				from = append(from, w)
			}
		}
		if len(from) > 1 {
			merges = append(merges, Merged{into, from})
		}
		sorted = sorted[n:]
	}
	return merges
}
