package lowwater_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/state"
)

// ruling shows the rules that each event sees, and tells each rule how many events came
// before it.
type ruling struct {
	lowwater.KeyedBase[string, string]
	rules state.MapState[string, int]
	count state.ReducingState[int]
}

var countsPerRule = lowwater.NewOutputTag[string]("counts")

func (r *ruling) Open(ctx *lowwater.KeyedBroadcastOpenContext[string]) error {
	r.rules = ctx.Broadcast(state.Map[string, int]("rules"))
	r.count = ctx.Reducing(state.Reducing("count", func(a, b int) int { return a + b }))
	return nil
}

func (r *ruling) ProcessElement(ctx *lowwater.KeyedContext[string], e event, out *lowwater.Collector[string]) error {
	r.count.Add(1)
	limit, ok := r.rules.Get("limit")
	out.Emit(fmt.Sprint(ctx.Key(), " ", limit, " ", ok))
	return nil
}

func (r *ruling) ProcessBroadcast(ctx *lowwater.KeyedBroadcastContext[string], limit int, out *lowwater.Collector[string]) error {
	r.rules.Put("limit", limit)
	return ctx.EachKey(r.count, func(key string, count state.ReducingState[int]) error {
		n, _ := count.Get()
		ctx.Output(countsPerRule, fmt.Sprint(limit, " ", key, " ", n))
		return nil
	})
}

func TestKeyedBroadcast(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			env := newEnv(lowwater.WithParallelism(parallelism))
			events := from(env, &script[event]{splits: [][]step[event]{{
				{1 * time.Second, []event{{"a", 1, 0}, {"b", 1, 0}}}, {3 * time.Second, []event{{"a", 2, 0}, {"c", 2, 0}}},
			}}}, bounded(0))
			rules := lowwater.FromSource(env, &script[int]{splits: [][]step[int]{{
				{2 * time.Second, []int{10}}, {4 * time.Second, []int{20}},
			}}}, eventtime.NoWatermarks[int](), "rules")
			out := events.KeyBy(keyOf).ConnectBroadcast(rules).Process(func() *ruling { return &ruling{} })
			seen, counts := out.Collect(), out.SideOutput(countsPerRule).Collect()
			execute(t, env)
			expect(t, "rules seen", seen.Values(), "a 0 false", "b 0 false", "a 10 true", "c 10 true")
			expect(t, "keys seen by rules", counts.Values(), "10 a 1", "10 b 1", "20 a 2", "20 b 1", "20 c 1")
		})
	}
}

// scaling multiplies numbers by the latest factor.
type scaling struct{ factors state.MapState[string, int] }

func (s *scaling) Open(ctx *lowwater.BroadcastOpenContext) error {
	s.factors = ctx.Broadcast(state.Map[string, int]("factors"))
	return nil
}

func (s *scaling) ProcessElement(_ *lowwater.ProcessContext, n int, out *lowwater.Collector[int]) error {
	factor, _ := s.factors.Get("all")
	out.Emit(n * factor)
	return nil
}

func (s *scaling) ProcessBroadcast(_ *lowwater.ProcessContext, factor int, _ *lowwater.Collector[int]) error {
	s.factors.Put("all", factor)
	return nil
}

func TestBroadcastWithoutKeys(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			env := newEnv(lowwater.WithParallelism(parallelism))
			numbers := lowwater.FromSource(env, &script[int]{splits: [][]step[int]{{{time.Second, []int{1, 2, 3, 4}}}}}, eventtime.NoWatermarks[int](), "numbers")
			factors := lowwater.FromSlice(env, []int{3, 7})
			got := numbers.ConnectBroadcast(factors).Process(func() *scaling { return &scaling{} }).Collect()
			execute(t, env)
			expect(t, "numbers", got.Values(), 7, 14, 21, 28)
		})
	}
}

func TestConnectBroadcastBuildErrors(t *testing.T) {
	tests := []struct {
		want    string
		mistake func(*stream)
	}{
		{"ConnectBroadcast: the other stream is nil", func(s *stream) {
			s.KeyBy(keyOf).ConnectBroadcast[int](nil).Process(func() *ruling { return nil }).Collect()
		}},
		{"ConnectBroadcast: REBALANCE has no effect", func(s *stream) { s.ConnectBroadcast(s.Rebalance()) }},
		{"ConnectBroadcast.Process: the factory is nil", func(s *stream) {
			s.KeyBy(keyOf).ConnectBroadcast(s.Map(func(event) int { return 0 })).Process[string, *ruling](nil).Collect()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			env := newEnv()
			tt.mistake(timed(env, event{}))
			wantBuildError(t, env, tt.want)
		})
	}
}
