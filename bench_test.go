//go:build unix

package lowwater_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// purchase is 64 bytes.
type purchase struct {
	Customer string
	At       int64
	Cents    int64
	_        [4]int64
}

const (
	benchKeys = 10_000
	// benchParallel is the number of sources and of window subtasks.
	benchParallel = 2
	benchWindow   = time.Minute
	// benchPerMilli is how many records there are in a millisecond of event time,
	// so that a key has 60 records in a window.
	benchPerMilli = 10
	// benchWarmUp is how many records come before the measurement: some windows,
	// so that all memory is there.
	benchWarmUp = 4_000_000
)

// purchases makes record n of the stream.
func purchases() func(n int64) purchase {
	random := rand.New(rand.NewPCG(1, 2))
	var customers [1 << 17]string
	for i := range customers {
		customers[i] = fmt.Sprintf("customer-%07d", random.IntN(benchKeys))
	}
	return func(n int64) purchase {
		return purchase{Customer: customers[n%int64(len(customers))], At: n / benchPerMilli, Cents: n}
	}
}

// paneCount is one result, and where it belongs.
type paneCount struct {
	customer string
	start    int64
}

// BenchmarkKeyedTumblingCount counts records by key and window: once with the
// engine, once with a plain loop over channels of batches, which is what a program
// without an engine would do. The last metric is the engine's share of CPU time over
// the loop's in the same run.
//
// Everything is measured behind a warm-up, so allocs/record is that of the steady
// state: the process's mallocs over the records, in all goroutines. It is 0 up to what
// costs something per window or per second, and more than that fails.
func BenchmarkKeyedTumblingCount(b *testing.B) {
	generate := purchases()
	const records = 2_000_000
	loop, engine := map[paneCount]int64{}, map[paneCount]int64{}
	var mu sync.Mutex
	countLoop(generate, records, func(customer string, start, n int64) {
		mu.Lock()
		defer mu.Unlock()
		loop[paneCount{customer, start}] += n
	})
	countEngine(b, generate, records, func(customer string, start, n int64) {
		mu.Lock()
		defer mu.Unlock()
		engine[paneCount{customer, start}] += n
	})
	if diff := cmp.Diff(loop, engine, cmp.AllowUnexported(paneCount{})); diff != "" || len(loop) < benchKeys {
		b.Fatalf("%d results; the engine's differ from the loop's (-loop +engine):\n%s", len(loop), diff)
	}

	var loopCPU float64
	b.Run("loop", func(b *testing.B) {
		m := newMeasurement(b, generate)
		countLoop(m.generate, benchWarmUp+int64(b.N), func(string, int64, int64) {})
		loopCPU = m.report()
	})
	b.Run("lowwater", func(b *testing.B) {
		m := newMeasurement(b, generate)
		countEngine(b, m.generate, benchWarmUp+int64(b.N), func(string, int64, int64) {})
		cpu := m.report()
		b.ReportMetric(cpu/loopCPU, "x-loop-CPU")
	})
}

// countEngine runs the job.
func countEngine(b *testing.B, generate func(int64) purchase, records int64, result func(customer string, start, n int64)) {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(benchParallel))
	lowwater.FromSource(env, datagen.NewSource(generate, datagen.Splits(benchParallel), datagen.Count(records)),
		eventtime.ForMonotonousTimestamps[purchase]().WithTimestampAssigner(func(p purchase, _ int64) int64 { return p.At }), "purchases").
		KeyBy(func(p purchase) string { return p.Customer }).
		Window(window.Tumbling(benchWindow)).
		Aggregate(lowwater.Count[purchase]()).
		SinkFunc(func(_ context.Context, p window.Pane[string, int64]) error {
			result(p.Key, p.Window.Start, p.Value)
			return nil
		})
	if err := env.Execute(b.Context(), b.Name()); err != nil {
		b.Fatal(err)
	}
}

// loopBatch is what travels in the plain loop: records of one source for one worker, and
// the time that the source has reached.
type loopBatch struct {
	source  int
	records []purchase
	reached int64
}

// countLoop is the same without an engine.
func countLoop(generate func(int64) purchase, records int64, result func(customer string, start, n int64)) {
	seed := maphash.MakeSeed()
	free := sync.Pool{New: func() any { return new(loopBatch) }}
	var queues [benchParallel]chan *loopBatch
	for i := range queues {
		queues[i] = make(chan *loopBatch, 4*benchParallel)
	}
	var sources, workers sync.WaitGroup
	for s := range benchParallel {
		sources.Go(func() {
			var open [benchParallel]*loopBatch
			send := func(w int, reached int64) {
				open[w].source, open[w].reached = s, reached
				queues[w] <- open[w]
				open[w] = free.Get().(*loopBatch)
			}
			for w := range open {
				open[w] = free.Get().(*loopBatch)
			}
			for n := int64(s); n < records; n += benchParallel {
				p := generate(n)
				w := int(maphash.String(seed, p.Customer) % benchParallel)
				open[w].records = append(open[w].records, p)
				if len(open[w].records) == connector.BatchSize {
					send(w, p.At)
				}
			}
			for w := range open {
				send(w, eventtime.MaxTimestamp)
			}
		})
	}
	for _, queue := range queues {
		workers.Go(func() { loopWorker(queue, &free, result) })
	}
	sources.Wait()
	for _, queue := range queues {
		close(queue)
	}
	workers.Wait()
}

// loopWorker counts what arrives, and passes on the windows that all sources have
// left behind.
func loopWorker(queue <-chan *loopBatch, free *sync.Pool, result func(customer string, start, n int64)) {
	const size = int64(benchWindow / time.Millisecond)
	windows := map[int64]map[string]int64{}
	var spare []map[string]int64
	var reached [benchParallel]int64
	var counts map[string]int64
	current := int64(-1)
	for batch := range queue {
		for i := range batch.records {
			p := &batch.records[i]
			if start := p.At - p.At%size; start != current {
				current = start
				if counts = windows[start]; counts == nil {
					if n := len(spare); n > 0 {
						counts, spare = spare[n-1], spare[:n-1]
					} else {
						counts = map[string]int64{}
					}
					windows[start] = counts
				}
			}
			counts[p.Customer]++
		}
		reached[batch.source] = batch.reached
		batch.records = batch.records[:0]
		free.Put(batch)
		for start, done := range windows {
			if start+size > min(reached[0], reached[1]) {
				continue
			}
			for customer, n := range done {
				result(customer, start, n)
			}
			clear(done)
			spare = append(spare, done)
			delete(windows, start)
			current = -1
		}
	}
}

// measurement counts what happens between the end of the warm-up and the end of the
// run.
type measurement struct {
	b      *testing.B
	inner  func(int64) purchase
	cpu    time.Duration
	allocs uint64
}

func newMeasurement(b *testing.B, generate func(int64) purchase) *measurement {
	return &measurement{b: b, inner: generate}
}

// generate makes record n, and begins to measure at the end of the warm-up.
func (m *measurement) generate(n int64) purchase {
	if n == benchWarmUp {
		m.b.ResetTimer()
		m.cpu, m.allocs = m.cpuTime(), mallocs()
	}
	return m.inner(n)
}

// report ends the measurement and returns nanoseconds of CPU time a record.
func (m *measurement) report() float64 {
	m.b.StopTimer()
	n := float64(m.b.N)
	cpu := float64(m.cpuTime()-m.cpu) / n
	m.b.ReportMetric(float64(m.b.Elapsed().Nanoseconds())/n, "ns/record")
	m.b.ReportMetric(cpu, "CPU-ns/record")
	allocs := float64(mallocs()-m.allocs) / n
	m.b.ReportMetric(allocs, "allocs/record")
	if m.b.N >= 1_000_000 && allocs > 0.001 {
		m.b.Errorf("%v allocations a record", allocs)
	}
	m.b.ReportMetric(0, "ns/op") // the same as ns/record
	return cpu
}

// cpuTime returns the process's user and system time.
func (m *measurement) cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		m.b.Error(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
