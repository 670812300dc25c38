package windowed

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/window"
)

// discard is an Output that only counts.
type discard struct{ records int }

func (d *discard) Emit(p exchange.Payload) error {
	d.records += p.Len()
	p.Release()
	return nil
}
func (d *discard) EmitSide(_ string, p exchange.Payload) error { return d.Emit(p) }
func (d *discard) Watermark(int64) error                       { return nil }
func (d *discard) Status(bool) error                           { return nil }

// feed is a stream of keyed batches for benchmarks: keys in random order, time
// moving on by step milliseconds per batch, timestamps up to disorder behind it.
type feed struct {
	pool           *exchange.KeyedPool[string, int64]
	keys           []string
	hashes         []uint64
	random         *rand.Rand
	time           int64
	step, disorder int64
}

func newFeed(b *testing.B, keys int, step, disorder int64) *feed {
	f := &feed{
		pool: exchange.NewKeyedPool[string, int64](), random: rand.New(rand.NewPCG(1, 2)),
		time: 1_700_000_000_000, step: step, disorder: disorder,
	}
	hash := hasher(b)
	for i := range keys {
		key := fmt.Sprintf("customer-%07d", i)
		f.keys = append(f.keys, key)
		f.hashes = append(f.hashes, hash(key))
	}
	return f
}

// next returns a full batch.
func (f *feed) next() *exchange.KeyedBatch[string, int64] {
	f.time += f.step
	b := f.pool.Get()
	for range connector.BatchSize {
		k := f.random.IntN(len(f.keys))
		t := f.time
		if f.disorder > 0 {
			t -= f.random.Int64N(f.disorder)
		}
		b.Append(int64(k), t, 0)
		b.Keys = append(b.Keys, f.keys[k])
		b.Hashes = append(b.Hashes, f.hashes[k])
	}
	return b
}

// benchmark is a count per key and window over a feed. A watermark follows every
// batch.
type benchmark struct {
	name           string
	assigner       window.Assigner
	keys           int
	step, disorder int64
	// warm is how many batches bring the operator into its steady state.
	warm int
}

func (c benchmark) run(b *testing.B) {
	b.Run(c.name, func(b *testing.B) {
		op := Aggregate[string](specOf[int64](Options{Assigner: c.assigner}), window.Count[int64]())
		out := &discard{}
		if err := op.Open(openHarness(b, op).runtime(), out); err != nil {
			b.Fatal(err)
		}
		f := newFeed(b, c.keys, c.step, c.disorder)
		var adding, firing time.Duration
		round := func() {
			batch := f.next()
			start := time.Now()
			err := op.Process(0, batch)
			added := time.Now()
			if err == nil {
				err = op.Watermark(f.time - c.disorder - 1)
			}
			adding += added.Sub(start)
			firing += time.Since(added)
			if err != nil {
				b.Fatal(err)
			}
		}
		for range c.warm {
			round()
		}
		adding, firing, out.records = 0, 0, 0
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			round()
		}
		b.ReportMetric(0, "ns/op") // holds the making of batches, too
		b.ReportMetric(float64(adding.Nanoseconds())/float64(b.N)/connector.BatchSize, "ns/record")
		b.ReportMetric(float64(firing.Nanoseconds())/float64(max(out.records, 1)), "ns/result")
	})
}

// BenchmarkWindows tells what a record costs, and what a result does: with
// connector.BatchSize records every step milliseconds.
func BenchmarkWindows(b *testing.B) {
	for _, c := range []benchmark{
		{"tumbling-1s", window.Tumbling(time.Second), 10_000, 5, 0, 1000},
		{"tumbling-1s-disorder-3s", window.Tumbling(time.Second), 10_000, 5, 3000, 2000},
		{"tumbling-1s-slow", window.Tumbling(time.Second), 10_000, 50, 0, 1000},
		{"tumbling-1m", window.Tumbling(time.Minute), 10_000, 50, 0, 4000},
		{"sliding-1m-1s", window.Sliding(time.Minute, time.Second), 10_000, 50, 0, 4000},
		{"sliding-10m-1s", window.Sliding(10*time.Minute, time.Second), 10_000, 50, 0, 25_000},
		{"sliding-10m-1s-disorder-3s", window.Sliding(10*time.Minute, time.Second), 10_000, 50, 3000, 25_000},
		{"cumulating-1h-1m", window.Cumulating(time.Hour, time.Minute), 10_000, 500, 0, 8000},
		{"session-1s", window.Session(time.Second), 10_000, 5, 500, 2000},
		{"session-1s-short", window.Session(time.Second), 10_000, 500, 500, 2000},
		{"session-30s", window.Session(30 * time.Second), 10_000, 5, 500, 8000},
	} {
		c.run(b)
	}
}
