//go:build unix

package windowed

import (
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// BenchmarkSpilled tells what records and results of large windows cost: a million keys in
// each, two records a key, all in memory and with memory for a tenth of them.
func BenchmarkSpilled(b *testing.B) {
	// An entry of a text key and a count, with its key.
	benchmarkSpilled(b, window.Tumbling(time.Second), keyed.EntryBytes[string, int64]()+17)
}

// BenchmarkSpilledSessions is BenchmarkSpilled with sessions of which each key has one. Times of
// sessions, which are not in the budget, take memory besides.
func BenchmarkSpilledSessions(b *testing.B) {
	benchmarkSpilled(b, window.Session(time.Second),
		keyed.EntryBytes[string, *session[string, int64]]()+int(unsafe.Sizeof(session[string, int64]{}))+17)
}

func benchmarkSpilled(b *testing.B, assigner window.Assigner, bytesPerKey int) {
	const keys, batches = 1_000_000, 2_000_000 / connector.BatchSize
	for _, c := range []struct {
		name   string
		memory int64
	}{{"all-in-memory", 0}, {"a-tenth-in-memory", int64(keys * bytesPerKey / 10)}} {
		b.Run(c.name, func(b *testing.B) {
			op := Aggregate[string](specOf[int64](Options{Assigner: assigner}), window.Count[int64]())
			h := openHarness(b, op)
			b.Cleanup(func() { must(b, op.Close()) })
			h.op = Process(specOf[element](Options{Assigner: window.Global()}), listFunction)
			must(b, h.op.Open(h.runtime(), h.out))
			h.adjust = func(rt *operator.Runtime) { rt.StateMemory, rt.StateDir = c.memory, b.TempDir() }
			out := &discard{}
			must(b, op.Open(h.runtime(), out))
			f := newFeed(b, keys, 0, 0)
			var adding, firing time.Duration
			var largest int64
			cpu := cpuTime(b)
			for b.Loop() {
				for range batches {
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
			const perWindow = batches * connector.BatchSize
			b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N)/perWindow, "CPU-ns/record") // with the making of batches, and of results
			b.ReportMetric(0, "ns/op")                                                                      // holds the making of batches, too
			b.ReportMetric(float64(adding.Nanoseconds())/float64(b.N)/perWindow, "ns/record")
			b.ReportMetric(float64(firing.Nanoseconds())/float64(out.records), "ns/result")
			b.ReportMetric(float64(h.metrics.State.SpillWrites.Value())/float64(b.N), "writes/window")
			b.ReportMetric(float64(largest)/(1<<20), "MiB-in-memory")
		})
	}
}

// cpuTime returns what the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
