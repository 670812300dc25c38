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

type benchmark struct {
	name           string
	assigner       window.Assigner
	keys           int
	step, disorder int64
}

func (c benchmark) run(b *testing.B, fire bool) {
	b.Run(c.name, func(b *testing.B) {
		op := Aggregate[string](Options{Assigner: c.assigner}, window.Count[int64]())
		h := openHarness(b, op)
		out := &discard{}
		if err := op.Open(h.runtime(), out); err != nil {
			b.Fatal(err)
		}
		f := newFeed(b, c.keys, c.step, c.disorder)
		round := func() {
			batch := f.next()
			b.StartTimer()
			if err := op.Process(0, batch); err != nil {
				b.Fatal(err)
			}
			if !fire {
				b.StopTimer()
			}
			if err := op.Watermark(f.time - c.disorder - 1); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
		}
		// Two windows' worth, so that all memory is there.
		for range 2000 {
			batch := f.next()
			if err := op.Process(0, batch); err != nil {
				b.Fatal(err)
			}
			if err := op.Watermark(f.time - c.disorder - 1); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		b.ResetTimer()
		b.StopTimer()
		for range b.N {
			round()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/connector.BatchSize, "ns/record")
	})
}

func BenchmarkWindows(b *testing.B) {
	for _, c := range []benchmark{
		{"tumbling-1s", window.Tumbling(time.Second), 10_000, 5, 0},
		{"tumbling-1s/disorder-3s", window.Tumbling(time.Second), 10_000, 5, 3000},
		{"tumbling-1m", window.Tumbling(time.Minute), 10_000, 5, 0},
		{"session-1s", window.Session(time.Second), 10_000, 5, 500},
		{"session-30s", window.Session(30 * time.Second), 10_000, 5, 500},
	} {
		c.run(b, true)
	}
}
