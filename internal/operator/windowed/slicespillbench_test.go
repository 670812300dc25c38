//go:build unix

package windowed

import (
	"math"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// slidingBench counts by text key in windows of many slides of a second, of which each brings
// some batches.
type slidingBench struct {
	name          string
	slides        int
	keys, batches int
}

// run measures slides, after those of a window. It returns the most that slices and sums took in
// memory, which is known with a budget.
func (c slidingBench) run(b *testing.B, memory int64, slides int) (largest int64) {
	op := Aggregate[string](specOf[int64](Options{Assigner: window.Sliding(time.Duration(c.slides)*time.Second, time.Second)}), window.Count[int64]())
	h := openHarness(b, Process(specOf[element](Options{Assigner: window.Global()}), listFunction)) // for its runtime
	h.adjust = func(rt *operator.Runtime) { rt.StateMemory, rt.StateDir = memory, b.TempDir() }
	out := &discard{}
	must(b, op.Open(h.runtime(), out))
	f := newFeed(b, c.keys, 0, 0)
	f.time = f.time / 1000 * 1000
	var adding, firing time.Duration
	slide := func() {
		for range c.batches {
			batch := f.next()
			began := time.Now()
			must(b, op.Process(0, batch))
			adding += time.Since(began)
			largest = max(largest, h.metrics.State.MemoryBytes.Value())
		}
		f.time += 1000
		began := time.Now()
		must(b, op.Watermark(f.time-1))
		firing += time.Since(began)
	}
	for range c.slides {
		slide()
	}
	adding, firing, out.records = 0, 0, 0
	written, read := h.metrics.State.SpillWrites.Value(), h.metrics.State.SpillReads.Value()
	cpu := cpuTime(b)
	b.ResetTimer()
	for range slides {
		slide()
	}
	results := float64(out.records)
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/results, "CPU-ns/result") // with all else
	b.ReportMetric(0, "ns/op")                                                       // holds the making of batches, too
	b.ReportMetric(float64(adding.Nanoseconds())/float64(slides*c.batches*connector.BatchSize), "ns/record")
	b.ReportMetric(float64(firing.Nanoseconds())/results, "ns/result")
	b.ReportMetric(results/float64(slides), "results/slide")
	b.ReportMetric(float64(h.metrics.State.SpillWrites.Value()-written)/results, "written/result")
	b.ReportMetric(float64(h.metrics.State.SpillReads.Value()-read)/results, "read/result")
	b.ReportMetric(float64(largest)/(1<<20), "MiB-in-memory")
	b.ReportMetric(float64(h.metrics.State.DiskBytes.Value())/(1<<20), "MiB-on-disk")
	must(b, op.Close())
	return largest
}

// BenchmarkSpilledSlices tells what records and results of large sliding windows cost: all in
// memory, and with memory for a tenth of slices and sums.
func BenchmarkSpilledSlices(b *testing.B) {
	for _, c := range []slidingBench{
		{"10-slides", 10, 100_000, 50_000 / connector.BatchSize},
		{"600-slides", 600, 10_000, 1},
	} {
		all := c.run(b, math.MaxInt64, 1)
		b.Run(c.name+"/all-in-memory", func(b *testing.B) { c.run(b, 0, b.N) })
		b.Run(c.name+"/a-tenth-in-memory", func(b *testing.B) { c.run(b, all/10, b.N) })
	}
}
