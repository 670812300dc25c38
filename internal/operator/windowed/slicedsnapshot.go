package windowed

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// Snapshot implements operator.Stateful. Sums of slices are not stored: they are made again
// when a window needs them.
func (o *sliced[K, T, A]) Snapshot(w snapshot.Writer) error {
	s, err := o.beginSnapshot(w, kindSlices, o.clocks()...)
	if err != nil {
		return err
	}
	defer s.Start()
	entries, err := o.windowsWriter(s)
	if err != nil {
		return err
	}
	for _, slice := range o.slices.live {
		span := o.layout.span(slice.number)
		s.Table(slice.pane.keys, func(to *keyed.Encoder, e *keyed.Entry[K, A]) error {
			return entries.window(to, span, 0, e.Hash, &e.Key, &e.Value)
		})
	}
	return o.snapshotRuns(w)
}

func (o *sliced[K, T, A]) restore() error {
	all, err := o.restoreTimes(kindSlices)
	if err != nil {
		return err
	}
	if o.processingTime {
		o.restoreClock(all)
	} else {
		o.done = o.watermark
	}
	err = o.restoreContents(o.restoreEntry)
	if err == nil && o.slices.spilled != nil {
		err = o.settle(0)
	}
	if err == nil && len(o.slices.live) > 0 {
		o.silence.heard()
		o.setAlarm()
	}
	return err
}

// restoreEntry adds an entry of an earlier run to what was restored of its key and slice.
func (o *sliced[K, T, A]) restoreEntry(e *entry[K, A]) error {
	number := o.layout.slice(e.window.Start)
	if o.layout.span(number) != e.window {
		return fmt.Errorf("%v is no slice of %s", e.window, o.description)
	}
	p := o.slices.at(number)
	acc, created := p.keys.Upsert(e.hash, e.key)
	if created {
		*acc = e.acc
	} else {
		*acc = o.fold.Merge(*acc, e.acc)
	}
	if s := o.slices.spilled; s == nil || !s.restored(p, &e.acc) {
		return nil
	}
	return o.settle(entriesPerSettle)
}

// resumedClocks is up to when the subtasks of an earlier run, with another parallelism,
// have fired processing-time windows: some have heard the clock strike and others not.
type resumedClocks struct {
	// byGroup holds the time of each key group, nil if all are alike.
	byGroup []int64
	latest  int64
}

// fired reports whether a window that ends at maxTimestamp has fired for a key.
func (c *resumedClocks) fired(maxTimestamp int64, hash uint64) bool {
	return c.byGroup != nil && maxTimestamp <= c.latest && maxTimestamp <= c.byGroup[keyed.KeyGroup(hash, len(c.byGroup))]
}

// clocks returns up to when windows have fired, by key group.
func (o *sliced[K, T, A]) clocks() (clocks []groupsClock) {
	own := o.groups()
	if !o.processingTime || o.resumed.byGroup == nil {
		return []groupsClock{{int64(own.Last), o.done}}
	}
	for g := own.First; g <= own.Last; g++ {
		c := groupsClock{int64(g), max(o.done, o.resumed.byGroup[g])}
		if n := len(clocks); n > 0 && clocks[n-1].clock == c.clock {
			clocks[n-1] = c
		} else {
			clocks = append(clocks, c)
		}
	}
	return clocks
}

// restoreClock makes the earliest of the clocks of the subtask's key groups the operator's.
func (o *sliced[K, T, A]) restoreClock(all []ended) {
	byGroup := make([]int64, o.rt.MaxParallelism)
	for g := range byGroup {
		byGroup[g] = math.MinInt64
	}
	for _, e := range all {
		g := keyed.RangeOf(int(e.subtask), int(e.parallelism), o.rt.MaxParallelism).First
		for _, c := range e.clocks {
			for ; g <= int(c.last) && g < len(byGroup); g++ {
				byGroup[g] = c.clock
			}
		}
	}
	own := o.groups()
	mine := byGroup[own.First : own.Last+1]
	o.done, o.resumed.latest = slices.Min(mine), slices.Max(mine)
	if o.done < o.resumed.latest {
		o.resumed.byGroup = byGroup
	}
}
