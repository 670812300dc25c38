package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/state"
)

// A job whose state is ten times larger than its memory budget, and whose checkpoints refer to
// files of earlier ones, gives what it must, whatever happens to it.
func TestInterruptionsDoNotShowWithSpilledState(t *testing.T) {
	var incremental, restores, behind int64
	for i := range uint64(max(*seeds/30, 1)) {
		seed := *first + i + 1<<20 // stores of their own
		dir := t.TempDir()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := newTrial(seed)
				trial.splits, trial.keys, trial.events, trial.batch, trial.slow = 4, 4000, 2500, 50, 0
				trial.spread(10_000)
				trial.slowImages(t, dir)
				l, warned := newLedger(trial), &spillWarnings{}
				if err := trial.run(t, func(env *lowwater.Environment) {
					lowwater.WithLogger(slog.New(warned))(env)
					lowwater.WithStateMemory(stateMemory, dir)(env)
					trial.totals(env, l)
				}); err != nil {
					t.Fatal(err)
				}
				if warned.n.Load() == 0 {
					t.Error("no state was spilled")
				}
				incremental += trial.seen.incremental.Load()
				restores += trial.seen.restores.Load()
				behind += trial.behindImages.Load()
				want, cells := trial.allTotals()
				if cells*cellBytes < 10*stateMemory {
					t.Errorf("%d cells are not ten times more than the budget", cells)
				}
				slices.Sort(l.visible)
				if diff := cmp.Diff(want, l.visible); diff != "" {
					t.Errorf("seed %d (run with -seed %d), -want +got:\n%s", seed, seed-1<<20, diff)
				}
			})
		})
	}
	t.Logf("%d checkpoints referred to files of earlier ones, %d restores, %d records came while images were taken", incremental, restores, behind)
	if *seeds >= 120 && (incremental == 0 || restores == 0 || behind == 0) {
		t.Error("that is too few")
	}
}

// spread has checkpoints often and faults in all of a trial that rolls about so many times.
func (t *trial) spread(rolls int) {
	t.interval = 4 * t.pace
	t.odds = rolls/8 + t.random.IntN(rolls/4)
	t.faults.Store(int64(4 + t.random.IntN(5)))
}

// slowImages has most images of state on disk take their time, in which there are more records.
func (t *trial) slowImages(tb testing.TB, dir string) {
	spill.DisturbImages(dir, func() {
		roll := rand.New(rand.NewPCG(t.seed, t.rolls.Add(1)+1<<61))
		t.images.Add(1)
		<-time.After(time.Duration(roll.Int64N(int64(3 * t.pace))))
		t.images.Add(-1)
	})
	tb.Cleanup(func() { spill.DisturbImages(dir, nil) })
}

// spillWarnings is a log that counts the states that began to spill.
type spillWarnings struct {
	slog.Handler
	n atomic.Int64
}

func (*spillWarnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *spillWarnings) WithAttrs([]slog.Attr) slog.Handler     { return w }
func (w *spillWarnings) WithGroup(string) slog.Handler          { return w }
func (w *spillWarnings) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "larger than its memory budget") {
		w.n.Add(1)
	}
	return nil
}

const (
	stateMemory = 16 << 10
	// cellBytes is the least that a cell takes in memory.
	cellBytes = 40
)

// totals builds a job that keeps something of every key for ever.
func (t *trial) totals(env *lowwater.Environment, l *ledger) {
	strategy := eventtime.ForBoundedOutOfOrderness[event](jitter * time.Millisecond)
	lowwater.FromSource(env, &tickerSource{t}, strategy, "events").UID("events").KeyBy(func(e event) int { return e.Key }).
		Process(func() *total { return &total{trial: t} }).UID("totals").SinkTo(l).UID("ledger")
}

// total emits how many events of a key there have been, and whether it remembers their times.
type total struct {
	trial *trial
	count state.ValueState[int]
	times state.ListState[int64]
}

func (f *total) Open(ctx *lowwater.OpenContext[int]) error {
	f.count = ctx.Value(state.Value[int]("count"))
	f.times = ctx.List(state.List[int64]("times"))
	return nil
}

func (f *total) ProcessElement(ctx *lowwater.KeyedContext[int], e event, out *lowwater.Collector[string]) error {
	if f.trial.images.Load() > 0 {
		f.trial.behindImages.Add(1)
	}
	n, _ := f.count.Get()
	f.count.Set(n + 1)
	f.times.Add(e.At)
	out.Emit(totalLine(ctx.Key(), n+1, len(f.times.Get())))
	return f.trial.chance("a process function")
}

func (f *total) OnTimer(*lowwater.TimerContext[int], int64, *lowwater.Collector[string]) error {
	return nil
}

func totalLine(key, n, times int) string { return fmt.Sprintf("key %d: %d, %d times", key, n, times) }

// allTotals is what the job must make visible, and how many cells it keeps.
func (t *trial) allTotals() (all []string, cells int) {
	counts := map[int]int{}
	for split := range t.splits {
		for n := range t.events {
			key := t.event(split, n).Key
			counts[key]++
			all = append(all, totalLine(key, counts[key], counts[key]))
		}
	}
	slices.Sort(all)
	return all, 2 * len(counts)
}
