package lowwater_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// meterReading is a record of TestWindowsLargerThanMemory.
type meterReading struct {
	Meter int64
	Seq   int64
	Text  string
}

const (
	meters       = 100_000
	manyReadings = 3 * meters
	readingBytes = 200
	// windowMemory is a tenth of what the windows hold, or less.
	windowMemory = manyReadings * readingBytes / 10
)

// TestWindowsLargerThanMemory: a window that holds ten times more than its memory budget gives
// what it does without one, each key's records in their order, and the heap stays small.
func TestWindowsLargerThanMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 100 MB of memory")
	}
	want, whole := countReadings(t)
	got, spilled := countReadings(t, lowwater.WithStateMemory(windowMemory, t.TempDir()))
	if len(want) != meters || !maps.Equal(want, got) {
		t.Errorf("%d meters without a budget and %d with one; or other manyReadings", len(want), len(got))
	}
	t.Logf("live heap when the window fires: %d MiB without a budget, %d MiB with %d MiB", whole>>20, spilled>>20, windowMemory>>20)
	if whole < manyReadings*readingBytes || spilled > whole/2 {
		t.Errorf("live heap of %d MiB with a budget of %d MiB, %d MiB without", spilled>>20, windowMemory>>20, whole>>20)
	}
}

// countReadings returns what a window says of each meter, and the live heap when it begins to
// fire.
func countReadings(t *testing.T, options ...lowwater.Option) (meterReadings map[int64]string, heap uint64) {
	meterReadings = map[int64]string{}
	var mu sync.Mutex
	generate := func(n int64) meterReading {
		return meterReading{n * 7919 % meters, n, fmt.Sprint(n, strings.Repeat("x", readingBytes))[:readingBytes]}
	}
	env := lowwater.NewEnvironment(append(options, lowwater.WithParallelism(2))...)
	lowwater.FromSource(env, datagen.NewSource(generate, datagen.Splits(1), datagen.Count(manyReadings)),
		eventtime.ForMonotonousTimestamps[meterReading]().WithTimestampAssigner(func(r meterReading, _ int64) int64 { return r.Seq }), "readings").
		KeyBy(func(r meterReading) int64 { return r.Meter }).
		Window(window.Tumbling(manyReadings * time.Millisecond)).
		Process(func(ctx *lowwater.WindowContext[int64], all iter.Seq[meterReading], out *lowwater.Collector[meterLine]) error {
			line := meterLine{meter: ctx.Key()}
			for r := range all {
				line.text += fmt.Sprint(r.Seq, r.Text[:6], ";")
			}
			out.Emit(line)
			return nil
		}).
		SinkFunc(func(_ context.Context, line meterLine) error {
			mu.Lock()
			defer mu.Unlock()
			if len(meterReadings) == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				heap = m.HeapAlloc
			}
			meterReadings[line.meter] = line.text
			return nil
		})
	if err := env.Execute(t.Context(), t.Name()); err != nil {
		t.Fatal(err)
	}
	return meterReadings, heap
}

// meterLine is what a window says of a meter.
type meterLine struct {
	meter int64
	text  string
}
