package lowwater_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
)

func joined(_ *lowwater.IntervalJoinContext, l, r event, out *lowwater.Collector[string]) error {
	out.Emit(fmt.Sprint(l.Key, l.N, r.N))
	return nil
}

func TestIntervalJoin(t *testing.T) {
	lefts := []event{{"a", 1000, 1}, {"b", 1000, 2}, {"a", 2000, 3}}
	rights := []event{{"a", 1000, 7}, {"a", 1500, 8}, {"b", 2000, 9}, {"c", 1000, 0}}
	type streams = *lowwater.IntervalJoinedStreams[string, event, event]
	second := time.Second
	tests := []struct {
		name     string
		interval func(streams) streams
		want     []string
	}{
		{"inclusive", func(s streams) streams { return s.Between(0, second) }, []string{"a1 7", "a1 8", "b2 9"}},
		{"lower exclusive", func(s streams) streams { return s.Between(0, second).LowerExclusive() }, []string{"a1 8", "b2 9"}},
		{"upper exclusive", func(s streams) streams { return s.Between(0, second).UpperExclusive() }, []string{"a1 7", "a1 8"}},
		{"backwards", func(s streams) streams { return s.Between(-second, -500*time.Millisecond) }, []string{"a3 7", "a3 8"}},
		{"nothing", func(s streams) streams { return s.Between(0, 0).LowerExclusive().UpperExclusive() }, nil},
	}
	for _, tt := range tests {
		for _, parallelism := range []int{1, 3} {
			t.Run(fmt.Sprint(tt.name, " ", parallelism), func(t *testing.T) {
				env := newEnv(lowwater.WithParallelism(parallelism))
				left := from(env, splitsOf(1, lefts), bounded(time.Hour)).KeyBy(keyOf)
				right := from(env, splitsOf(1, rights), bounded(time.Hour)).KeyBy(keyOf)
				got := tt.interval(left.IntervalJoin(right)).Process(joined).Collect()
				execute(t, env)
				expect(t, "pairs", got.Values(), tt.want...)
			})
		}
	}
}

func TestIntervalJoinTimestampsAndSides(t *testing.T) {
	tag := lowwater.NewOutputTag[int64]("distance")
	lateLeft, lateRight := lowwater.NewOutputTag[event]("late left"), lowwater.NewOutputTag[event]("late right")
	env := newEnv()
	// One stream on both sides, so that watermarks come in a known order.
	s := timed(env, event{"a", 1000, 1}, event{"a", 3000, 2}, event{"a", 500, 3}).KeyBy(keyOf)
	out := s.IntervalJoin(s).Between(0, 2*time.Second).SideOutputLate(lateLeft, lateRight).
		Process(func(ctx *lowwater.IntervalJoinContext, l, r event, out *lowwater.Collector[string]) error {
			ctx.Output(tag, ctx.RightTimestamp()-ctx.LeftTimestamp())
			return joined(ctx, l, r, out)
		}).Parallelism(1)
	pairs, distances := out.Collect(), out.SideOutput(tag).Collect()
	left, right := out.SideOutput(lateLeft).Collect(), out.SideOutput(lateRight).Collect()
	execute(t, env)
	expect(t, "pairs", pairs.Values(), "a1 1", "a1 2", "a2 2")
	expect(t, "timestamps", pairs.Timestamps(), 1000, 3000, 3000)
	expect(t, "distances", distances.Values(), 0, 0, 2000)
	inOrder(t, "late on the left", left.Values(), event{"a", 500, 3})
	inOrder(t, "late on the right", right.Values(), event{"a", 500, 3})
}

func TestIntervalJoinBuildErrors(t *testing.T) {
	type streams = *lowwater.IntervalJoinedStreams[string, event, event]
	none := lowwater.OutputTag[event]{}
	tests := []struct {
		want    string
		mistake func(streams)
	}{
		{"Between(1s, -1s): the lower bound is above the upper", func(s streams) { s.Between(time.Second, -time.Second) }},
		{"Between(0s, 1µs): both must be whole milliseconds", func(s streams) { s.Between(0, time.Microsecond) }},
		{"IntervalJoin.SideOutputLate: the output tag has no id", func(s streams) { s.SideOutputLate(none, lowwater.NewOutputTag[event]("late")) }},
		{"the interval is missing: call Between first", func(s streams) { s.Process(joined).Collect() }},
		{"IntervalJoin.Process: the function is nil", func(s streams) { s.Between(0, 0).Process[int](nil).Collect() }},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			env := newEnv()
			s := timed(env, event{}).KeyBy(keyOf)
			tt.mistake(s.IntervalJoin(s))
			wantBuildError(t, env, tt.want)
		})
	}
}
