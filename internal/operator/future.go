package operator

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/metric"
)

// futureLimit keeps records that are too far ahead of the wall clock from a watermark
// generator.
type futureLimit[T any] struct {
	skew    int64
	limited bool
	values  []T
	times   []int64
}

func newFutureLimit[T any](s eventtime.WatermarkStrategy[T]) futureLimit[T] {
	skew, limited := s.MaxFutureSkew()
	return futureLimit[T]{skew: skew.Milliseconds(), limited: limited}
}

// at returns the largest timestamp that may move the watermark now.
func (f *futureLimit[T]) at(now int64) int64 {
	if !f.limited {
		return math.MaxInt64
	}
	return now + f.skew
}

func (f *futureLimit[T]) exceeded(b *connector.Batch[T], limit int64) bool {
	return f.limited && b.Len() > 0 && slices.Max(b.Timestamps) > limit
}

// futureSamples bounds what a flood of wrong timestamps costs: only so many of a batch are
// described.
const futureSamples = 4

// within returns the records of b that are not beyond limit, valid until the next call,
// and counts the others.
func (f *futureLimit[T]) within(b *connector.Batch[T], limit int64, rt *Runtime, counted *metric.Sampled) ([]T, []int64) {
	f.values, f.times = f.values[:0], f.times[:0]
	var beyond int64
	var samples []string
	for i, t := range b.Timestamps {
		if t <= limit {
			f.values, f.times = append(f.values, b.Values[i]), append(f.times, t)
			continue
		}
		beyond++
		if beyond <= futureSamples {
			samples = append(samples, fmt.Sprintf("%s with timestamp %d, %s ahead of the clock",
				rt.Describe(b.Origins[i]), t, ahead(t, limit-f.skew)))
		}
	}
	counted.Add(beyond, samples...)
	return f.values, f.times
}

// ahead says how far t is ahead of now, both in milliseconds, however far that is.
func ahead(t, now int64) string {
	const day = 24 * 60 * 60 * 1000
	if days := (uint64(t) - uint64(now)) / day; days > 10_000 {
		return fmt.Sprintf("%d days", days)
	}
	return (time.Duration(t-now) * time.Millisecond).String()
}

// Describe names a record by its place in its source, for messages.
func (rt *Runtime) Describe(o connector.Origin) string {
	if rt.Splits != nil {
		if name, ok := rt.Splits.Name(o.Split()); ok {
			return fmt.Sprintf("record %d of %s %s", o.Offset(), name.Source, name.Split)
		}
	}
	return "record " + o.String()
}
