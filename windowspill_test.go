package lowwater_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
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
	const size = manyReadings * time.Millisecond
	for name, assigner := range map[string]window.Assigner{
		"tumbling": window.Tumbling(size), "sliding": window.Sliding(size, size/2),
	} {
		t.Run(name, func(t *testing.T) {
			want := countReadings(t, assigner)
			got := countReadings(t, assigner, lowwater.WithStateMemory(windowMemory, t.TempDir()))
			if want.lines < meters || want.lines != got.lines || want.sum != got.sum {
				t.Errorf("%d lines without a budget and %d with one; or others", want.lines, got.lines)
			}
			t.Logf("live heap when the window fires: %d MiB without a budget, %d MiB with %d MiB", want.heap>>20, got.heap>>20, windowMemory>>20)
			if want.heap < manyReadings*readingBytes || got.heap > want.heap/2 {
				t.Errorf("live heap of %d MiB with a budget of %d MiB, %d MiB without", got.heap>>20, windowMemory>>20, want.heap>>20)
			}
		})
	}
}

// readingLines is what windows say: how many lines, a sum of their hashes, and the live heap when
// the first window with all readings begins to fire.
type readingLines struct {
	lines     int
	sum, heap uint64
}

var lineSeed = maphash.MakeSeed()

func countReadings(t *testing.T, assigner window.Assigner, options ...lowwater.Option) (seen readingLines) {
	var mu sync.Mutex
	generate := func(n int64) meterReading {
		return meterReading{n * 7919 % meters, n, fmt.Sprint(n, strings.Repeat("x", readingBytes))[:readingBytes]}
	}
	env := lowwater.NewEnvironment(append(options, lowwater.WithParallelism(2))...)
	lowwater.FromSource(env, datagen.NewSource(generate, datagen.Splits(1), datagen.Count(manyReadings)),
		eventtime.ForMonotonousTimestamps[meterReading]().WithTimestampAssigner(func(r meterReading, _ int64) int64 { return r.Seq }), "readings").
		KeyBy(func(r meterReading) int64 { return r.Meter }).
		Window(assigner).
		Process(func(ctx *lowwater.WindowContext[int64], all iter.Seq[meterReading], out *lowwater.Collector[meterLine]) error {
			line := meterLine{window: ctx.Window(), text: fmt.Sprint(ctx.Key(), ctx.Window())}
			for r := range all {
				line.text += fmt.Sprint(r.Seq, r.Text[:6], ";")
			}
			out.Emit(line)
			return nil
		}).
		SinkFunc(func(_ context.Context, line meterLine) error {
			mu.Lock()
			defer mu.Unlock()
			if seen.heap == 0 && line.window.End >= manyReadings {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC() // what lies in a sync.Pool lives for one more
				runtime.ReadMemStats(&m)
				seen.heap = m.HeapAlloc
			}
			seen.lines++
			seen.sum += maphash.String(lineSeed, line.text)
			return nil
		})
	if err := env.Execute(t.Context(), t.Name()); err != nil {
		t.Fatal(err)
	}
	return seen
}

// meterLine is what a window says of a meter.
type meterLine struct {
	window window.TimeWindow
	text   string
}
