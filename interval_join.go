package lowwater

import (
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
)

// IntervalJoin pairs the records of two keyed streams that have the same key and
// timestamps at most so far apart (spec windows 6.1). Say how far with Between:
//
//	orders.IntervalJoin(payments).Between(0, 15*time.Minute).Process(match)
//
// A record is paired when it arrives with what has arrived before, without waiting for a
// watermark; the watermark, the smaller one of both streams, decides how long it is
// kept. A record without a timestamp fails the job.
func (s *KeyedStream[K, T]) IntervalJoin[U any](other *KeyedStream[K, U]) *IntervalJoinedStreams[K, T, U] {
	return &IntervalJoinedStreams[K, T, U]{pair: pairing(s, other, "IntervalJoin")}
}

// IntervalJoinedStreams is two keyed streams to be joined by the distance of their
// timestamps. Its settings return a changed copy.
type IntervalJoinedStreams[K comparable, T, U any] struct {
	pair         pair[K, T, U]
	bounded      bool
	lower, upper time.Duration
	exclusive    struct{ lower, upper bool }
	late         struct{ left, right string }
}

// Between pairs records with left + lower <= right <= left + upper. Both bounds are whole
// milliseconds, belong to the interval unless LowerExclusive or UpperExclusive is set,
// and may be negative or equal. A lower bound above the upper is a build error.
func (j IntervalJoinedStreams[K, T, U]) Between(lower, upper time.Duration) *IntervalJoinedStreams[K, T, U] {
	switch {
	case lower > upper:
		j.pair.env.fail("IntervalJoin.Between(%v, %v): the lower bound is above the upper", lower, upper)
	case lower != lower.Truncate(time.Millisecond) || upper != upper.Truncate(time.Millisecond):
		j.pair.env.fail("IntervalJoin.Between(%v, %v): both must be whole milliseconds", lower, upper)
	}
	j.bounded, j.lower, j.upper = true, lower, upper
	return &j
}

// LowerExclusive leaves the lower bound out of the interval, which then begins 1 ms later.
func (j IntervalJoinedStreams[K, T, U]) LowerExclusive() *IntervalJoinedStreams[K, T, U] {
	j.exclusive.lower = true
	return &j
}

// UpperExclusive leaves the upper bound out of the interval, which then ends 1 ms earlier.
func (j IntervalJoinedStreams[K, T, U]) UpperExclusive() *IntervalJoinedStreams[K, T, U] {
	j.exclusive.upper = true
	return &j
}

// SideOutputLate sends late records, which have a timestamp below the watermark, to side
// outputs of the join, with their own timestamps. Without it they are dropped and counted
// in numLateRecordsDropped, where Flink counts none. A late record is never paired, also if
// its partner is still there; one at the watermark is not late (spec windows 6.1).
func (j IntervalJoinedStreams[K, T, U]) SideOutputLate(left OutputTag[T], right OutputTag[U]) *IntervalJoinedStreams[K, T, U] {
	for _, err := range []error{left.validate(), right.validate()} {
		if err != nil {
			j.pair.env.fail("IntervalJoin.SideOutputLate: %w", err)
		}
	}
	j.late.left, j.late.right = left.key(), right.key()
	return &j
}

// IntervalJoinFunction handles one pair. Results have the later of the two timestamps, so
// they are never late. ctx and out are valid during the call only. An error ends the
// job.
type IntervalJoinFunction[T, U, R any] func(ctx *IntervalJoinContext, left T, right U, out *Collector[R]) error

// IntervalJoinContext is what an IntervalJoinFunction may ask and do besides emitting.
// Times are in milliseconds.
type IntervalJoinContext struct{ pair *keyedop.Pair }

// Timestamp returns the later of the two timestamps.
func (c *IntervalJoinContext) Timestamp() int64 { return c.pair.Timestamp }

// LeftTimestamp returns the event time of the record of the first stream.
func (c *IntervalJoinContext) LeftTimestamp() int64 { return c.pair.LeftTimestamp }

// RightTimestamp returns the event time of the record of the second stream.
func (c *IntervalJoinContext) RightTimestamp() int64 { return c.pair.RightTimestamp }

// CurrentWatermark returns the operator's watermark, eventtime.MinTimestamp if there was
// none yet.
func (c *IntervalJoinContext) CurrentWatermark() int64 { return c.pair.Watermark }

// Output emits v to a side output, with the later of the two timestamps.
func (c *IntervalJoinContext) Output[X any](tag OutputTag[X], v X) {
	operator.Side[X](c.pair.Element, tag.key()).Append(v, c.pair.Timestamp, c.pair.Origin)
}

// Process calls f for every pair, of which there may be several for a record. Between is
// required.
func (j *IntervalJoinedStreams[K, T, U]) Process[R any](f IntervalJoinFunction[T, U, R]) *DataStream[R] {
	switch {
	case f == nil:
		j.pair.env.fail("IntervalJoin.Process: the function is nil")
	case !j.bounded:
		j.pair.env.fail("IntervalJoin.Process: the interval is missing: call Between first")
	}
	interval := keyedop.Interval{
		Lower: j.lower.Milliseconds(), Upper: j.upper.Milliseconds(),
		LateLeft: j.late.left, LateRight: j.late.right,
	}
	if j.exclusive.lower {
		interval.Lower++
	}
	if j.exclusive.upper {
		interval.Upper--
	}
	s := addKeyedPair[K, T, U, R](j.pair, "Interval Join", func() operator.Operator {
		return keyedop.NewIntervalJoin[K](interval, func(p *keyedop.Pair, emitter *operator.Emitter[R]) func(T, U) error {
			ctx, out := &IntervalJoinContext{p}, &Collector[R]{element: p.Element, emitter: emitter}
			return func(left T, right U) error { return f(ctx, left, right, out) }
		})
	})
	if s.node != nil {
		s.node.InMemory, s.node.EventTime, s.node.Interval = "interval join", true, true
	}
	return s
}
