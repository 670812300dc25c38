package lowwater_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
)

// gauge counts the records between a source and a sink.
type gauge struct {
	now, most, total atomic.Int64
	limit            int64
	exceeded         atomic.Bool
}

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	if n > 0 {
		g.total.Add(n)
	}
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	if now > g.limit {
		g.exceeded.Store(true)
	}
}

// TestSlowSinkStopsTheSource: a source that never waits and a sink that takes a second a
// batch. What is between them is bounded by credits, so memory is too; and the source
// goes on at the speed of the sink.
func TestSlowSinkStopsTheSource(t *testing.T) {
	const (
		parallelism = 2
		// Two edges, each from every subtask to every subtask. A channel holds a batch per
		// credit, and its sender keeps one more for it.
		channels = 2 * parallelism * parallelism
		limit    = channels*(exchange.DefaultCredits+1)*connector.BatchSize +
			parallelism*connector.BatchSize // the batch that a source is making
		duration = 10 * time.Minute
	)
	synctest.Test(t, func(t *testing.T) {
		between := gauge{limit: limit}
		ctx, cancel := context.WithTimeout(t.Context(), duration)
		defer cancel()
		env := newEnv(lowwater.WithParallelism(parallelism), lowwater.WithStopTimeout(time.Hour))
		source := datagen.NewSource(func(n int64) event {
			between.add(1)
			if between.exceeded.Load() {
				panic(errors.New("the source runs away"))
			}
			return event{N: int(n)}
		}, datagen.Splits(parallelism))
		var heap []uint64
		var written atomic.Int64
		sink := &recorder{onWrite: func(_ context.Context, b *connector.Batch[event]) error {
			<-time.After(time.Second)
			between.add(-int64(b.Len()))
			if n := written.Add(1); n%200 == 0 {
				heap = append(heap, heapInUse())
			}
			return nil
		}}
		lowwater.FromSource(env, source, eventtime.NoWatermarks[event](), "fast").
			Rebalance().Map(func(e event) event { return e }).Name("between").
			Rebalance().SinkTo(sink).Name("slow")
		job, err := env.Start(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(duration - time.Second)
		wantTimes(t, job, "Source: fast", func(s lowwater.SubtaskStatus) time.Duration { return s.SoftBackPressured + s.HardBackPressured }, duration-time.Second)
		wantTimes(t, job, "between", func(s lowwater.SubtaskStatus) time.Duration { return s.SoftBackPressured + s.HardBackPressured }, duration-time.Second)
		wantTimes(t, job, "slow", func(s lowwater.SubtaskStatus) time.Duration { return s.Busy }, duration-time.Second)
		if err := job.Wait(); err != nil {
			t.Fatal(err)
		}

		if most := between.most.Load(); most > limit || most < limit/2 {
			t.Errorf("up to %d records were under way, want close to but not above %d", most, limit)
		}
		if between.now.Load() != 0 {
			t.Errorf("%d records are missing at the sink", between.now.Load())
		}
		if total, want := between.total.Load(), int64(duration/time.Second)*parallelism*connector.BatchSize; total < want || total > want+limit {
			t.Errorf("the source made %d records, want what the sink took (%d) and what was under way", total, want)
		}
		if most, first := slices.Max(heap[1:]), heap[0]; most > first+1<<20 {
			t.Errorf("the heap grew: %d", heap)
		}
	})
}

// heapInUse returns the bytes that live after a collection. It stops at what is there, so
// it needs no second one.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// wantTimes checks that a vertex' subtasks have spent nearly all of a time in a state, and
// that all states together make up that time.
func wantTimes(t *testing.T, job *lowwater.Job, vertex string, spent func(lowwater.SubtaskStatus) time.Duration, of time.Duration) {
	t.Helper()
	for _, v := range job.Status().Vertices {
		if v.Name != vertex {
			continue
		}
		for i, s := range v.Subtasks {
			if got := spent(s); got < of*98/100 {
				t.Errorf("%s, subtask %d: %v of %v, want nearly all; all times: busy %v, idle %v, back-pressured %v soft and %v hard",
					vertex, i, got, of, s.Busy, s.Idle, s.SoftBackPressured, s.HardBackPressured)
			}
			if sum := s.Busy + s.Idle + s.SoftBackPressured + s.HardBackPressured; sum != of {
				t.Errorf("%s, subtask %d: the times add up to %v, want %v", vertex, i, sum, of)
			}
		}
		return
	}
	t.Errorf("no vertex %q", vertex)
}

// TestTimesWithoutInput: a job that waits is idle, also as long as it waits.
func TestTimesWithoutInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}, unbounded: true}, bounded(0)).Rebalance().SinkTo(&recorder{}).Name("Save")
		ctx, cancel := context.WithCancel(t.Context())
		job, err := env.Start(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		idle := func(s lowwater.SubtaskStatus) time.Duration { return s.Idle }
		wantTimes(t, job, "Source: events", idle, time.Hour)
		wantTimes(t, job, "Save", idle, time.Hour)
		cancel()
		if err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		wantTimes(t, job, "Save", idle, time.Hour) // time stands still after the end
	})
}

// blockedInput is a split far ahead of another one. Each has a record a second, for long
// enough that the sink's blocks fall into it.
func blockedInput() (ahead, behind []step[event]) {
	for i := range 100 {
		after := time.Duration(i) * time.Second
		ahead = append(ahead, step[event]{after, []event{{"ahead", 1_000_000 + int64(i), i}}})
		behind = append(behind, step[event]{after, []event{{"behind", 1000 + int64(i), i}}})
	}
	return ahead, behind
}

// checkLate notes records that come behind the watermark.
func checkLate(s *lowwater.DataStream[event], late *[]string) *lowwater.DataStream[event] {
	return s.Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[event]) error {
		if e.At <= ctx.CurrentWatermark() {
			*late = append(*late, fmt.Sprint(e.Key, e.N, " at ", ctx.CurrentWatermark()))
		}
		out.Emit(e)
		return nil
	})
}

const blockedTimeout = time.Minute

// blockNowAndThen is a sink that blocks for longer than the idle timeout.
func blockNowAndThen() func(context.Context, event) error {
	calls := 0
	return func(context.Context, event) error {
		if calls++; calls%20 == 0 {
			<-time.After(3 * blockedTimeout)
		}
		return nil
	}
}

// TestBlockedSplitIsNotIdle: split 1 has more to say, but nobody can read it, because a
// sink blocks for longer than the idle timeout. When it can be read again its
// records are on time. Read to their ends, the splits go idle all the same.
func TestBlockedSplitIsNotIdle(t *testing.T) {
	for _, channels := range []int{0, 1, 2} { // between the source and the sink; 0: chained
		t.Run(fmt.Sprint("channels=", channels), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ahead, behind := blockedInput()
				env := newEnv(lowwater.WithParallelism(1))
				s := from(env, &script[event]{splits: [][]step[event]{ahead, behind}, endAfter: 2 * time.Hour}, bounded(0).WithIdleness(blockedTimeout))
				var late []string
				s = checkLate(s, &late)
				if channels > 1 {
					s = s.Rebalance().Filter(func(event) bool { return true })
				}
				if channels > 0 {
					s = s.Rebalance()
				}
				s.SinkFunc(blockNowAndThen())
				job, err := env.Start(t.Context(), "test")
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(2 * time.Minute) // in the middle of the first block
				wantSplitStates(t, job, "active", "active")
				<-time.After(30 * time.Minute)
				wantSplitStates(t, job, "idle", "idle")
				if err := job.Wait(); err != nil {
					t.Fatal(err)
				}
				if len(late) > 0 {
					t.Errorf("records of a blocked split are late: %q", late)
				}
			})
		})
	}
}

// TestBlockedSourceIsNotIdle is the same for two sources in a union.
func TestBlockedSourceIsNotIdle(t *testing.T) {
	for _, inSource := range []bool{true, false} {
		t.Run(fmt.Sprint("strategy in the source=", inSource), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv(lowwater.WithParallelism(1))
				strategy := bounded(0).WithIdleness(blockedTimeout)
				source := func(steps []step[event]) *lowwater.DataStream[event] {
					s := &script[event]{splits: [][]step[event]{steps}, endAfter: 2 * time.Hour}
					if inSource {
						return from(env, s, strategy)
					}
					return from(env, s, eventtime.NoWatermarks[event]()).AssignTimestampsAndWatermarks(strategy)
				}
				ahead, behind := blockedInput()
				var late []string
				checkLate(source(ahead).Union(source(behind)), &late).SinkFunc(blockNowAndThen())
				execute(t, env)
				if len(late) > 0 {
					t.Errorf("records of a blocked source are late: %q", late)
				}
			})
		})
	}
}

// wantSplitStates checks the states of the splits of a job's only source.
func wantSplitStates(t *testing.T, job *lowwater.Job, want ...string) {
	t.Helper()
	var got []string
	for _, s := range job.Status().Vertices[0].Subtasks[0].Operators[0].Splits {
		got = append(got, s.State.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the splits are %q, want %q", got, want)
	}
}
