package kafka

import (
	"slices"

	"github.com/lowwater/lowwater/internal/why"
)

// bounds infers the out-of-orderness bounds that nobody tells: how far the watermark of a
// split is behind the largest event time that the job had read of it then. It takes event
// times of payloads, for the records' timestamps may not be what the job goes by.
func (l *look) bounds(profiles map[partition]*profiler) {
	if l.c.o.Payload == nil {
		return
	}
	for i := range l.e.Operators {
		o := &l.e.Operators[i]
		if o.Source == nil || o.Source.Strategy != nil {
			continue
		}
		least := why.Known[int64]{}
		for k := range l.now.Splits {
			sp := &l.now.Splits[k]
			w := l.watermarkOf(sp)
			profile := profiles[partition{sp.Topic, sp.Partition}]
			if sp.Source != o.ID || profile == nil || !profile.read.OK || !w.OK || w.Value == why.MinTime {
				continue
			}
			if d := profile.read.Value - w.Value - 1; d >= 0 && (!least.OK || d < least.Value) {
				least = why.Know(d)
			}
		}
		if least.OK {
			interval := l.e.WatermarkIntervalMillis.Or(200)
			o.Source.Strategy = &why.Strategy{BoundMillis: why.Know(roundest(least.Value-interval-100, least.Value))}
		}
	}
}

// watermarkOf returns the watermark of a split: its own, or that of a subtask that reads
// nothing else.
func (l *look) watermarkOf(sp *why.Split) why.Known[int64] {
	if sp.Watermark.OK || !sp.Subtask.OK {
		return sp.Watermark
	}
	for _, other := range l.now.Splits {
		if other.Source == sp.Source && other.Subtask == sp.Subtask && (other.Topic != sp.Topic || other.Partition != sp.Partition) {
			return why.Known[int64]{}
		}
	}
	i := slices.IndexFunc(l.now.Subtasks, func(s why.Subtask) bool { return s.Operator == sp.Source && s.Index == sp.Subtask.Value })
	if i < 0 {
		return why.Known[int64]{}
	}
	return l.now.Subtasks[i].OutputWatermark
}

// roundest returns the multiple of the largest unit between two numbers of milliseconds:
// bounds are round, and a watermark may be as old as the interval between two.
func roundest(low, high int64) int64 {
	for _, unit := range []int64{3_600_000, 60_000, 10_000, 5_000, 1_000, 500, 100, 10} {
		if n := high / unit * unit; n >= max(low, 0) {
			return n
		}
	}
	return high
}
