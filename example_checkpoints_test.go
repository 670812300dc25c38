package lowwater_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// sumAtEnd prints the sum of all numbers when the input has ended. The uids name the
// operators in checkpoints, so that a later version of the job finds their state.
func sumAtEnd(numbers *lowwater.DataStream[int64]) {
	numbers.
		WindowAll(window.GlobalEndOfStream()).
		Aggregate(window.Sum(func(n int64) int64 { return n })).UID("sum").
		Map(func(p window.Pane[lowwater.All, int64]) string { return fmt.Sprint("sum ", p.Value) }).
		Print()
}

func numbersFrom(env *lowwater.Environment, options ...datagen.Option) *lowwater.DataStream[int64] {
	source := datagen.NewSource(func(n int64) int64 { return n }, options...)
	return lowwater.FromSource(env, source, eventtime.NoWatermarks[int64](), "numbers").UID("numbers")
}

// A job that fails goes on from its last checkpoint: what it counts it counts once.
func ExampleWithCheckpoints() {
	env := lowwater.NewEnvironment(
		lowwater.WithParallelism(1),
		lowwater.WithLogger(slog.New(slog.DiscardHandler)),
		// In production a directory or an object store takes the place of the memory.
		lowwater.WithCheckpoints("mem://example-restart", 10*time.Millisecond, lowwater.StartFresh()),
		lowwater.WithRestart(lowwater.FixedDelay{Attempts: 3, Delay: time.Millisecond}),
	)
	var failed atomic.Bool
	flaky := numbersFrom(env, datagen.Count(2000)).
		Process(func(_ *lowwater.ProcessContext, n int64, out *lowwater.Collector[int64]) error {
			if n == 1500 && failed.CompareAndSwap(false, true) {
				return errors.New("the disk is full")
			}
			out.Emit(n)
			return nil
		})
	sumAtEnd(flaky)
	mustRun(env)
	// Output:
	// sum 1999000
}

// A job is stopped with a savepoint, and another process goes on from there.
func ExampleJob_StopWithSavepoint() {
	ctx := context.Background()
	first := lowwater.NewEnvironment(lowwater.WithParallelism(1),
		lowwater.WithCheckpoints("mem://example-first", 0, lowwater.StartFresh()))
	sumAtEnd(numbersFrom(first, datagen.RatePerSecond(10))) // for ever
	job, err := first.Start(ctx, "sum")
	if err != nil {
		log.Fatal(err)
	}
	savepoint, err := job.StopWithSavepoint(ctx, "", false)
	if err != nil {
		log.Fatal(err)
	}

	second := lowwater.NewEnvironment(lowwater.WithParallelism(1),
		lowwater.WithCheckpoints("mem://example-second", 0, lowwater.ResumeFrom(savepoint)))
	sumAtEnd(numbersFrom(second, datagen.Count(1000)))
	if err := second.Execute(ctx, "sum"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// sum 499500
}
