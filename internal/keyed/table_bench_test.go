package keyed

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// upsertInput is records as they reach a keyed operator: batches with keys and
// hashes side by side.
type upsertInput[K comparable] struct {
	keys   []K
	hashes []uint64
}

func newUpsertInput[K comparable](b *testing.B, distinct, records int, key func(n int) K) upsertInput[K] {
	b.Helper()
	h := hasherOf[K](b)
	r := rand.New(rand.NewPCG(1, uint64(distinct)))
	var in upsertInput[K]
	for range records {
		k := key(r.IntN(distinct))
		in.keys = append(in.keys, k)
		in.hashes = append(in.hashes, h(k))
	}
	return in
}

const benchBatch = 1024

// BenchmarkUpsert counts records by key in a warm table: the same records into
// Go maps, key by key into a Table, and by batch into a Table. Hashing is part of
// the maps' work and not of the tables', which get hashes with their batches. All
// take turns in one run, so that what else the machine does meets all of them.
//
// Every text is a string of its own.
func BenchmarkUpsert(b *testing.B) {
	for _, distinct := range []int{100, 10_000, 1_000_000, 10_000_000} {
		benchmarkUpsert(b, "text", distinct, userKey)
		benchmarkUpsert(b, "int64", distinct, func(n int) int64 { return int64(n) * 1_000_003 })
		benchmarkUpsert(b, "long-text", distinct, func(n int) string { return fmt.Sprintf("user%07d@mail.example.org", n) })
	}
}

func userKey(n int) string { return fmt.Sprintf("user%07d", n) }

func benchmarkUpsert[K comparable](b *testing.B, kind string, distinct int, key func(n int) K) {
	b.Run(fmt.Sprintf("%s/keys=%d", kind, distinct), func(b *testing.B) {
		in := newUpsertInput(b, distinct, max(2*distinct, 1<<17)/benchBatch*benchBatch, key)
		boxed, flat := map[K]*int64{}, map[K]int64{}
		one, many := NewTable[K, int64](), NewTable[K, int64]()
		var at [benchBatch]int32
		ns := in.takeTurns(b, []turn[K]{
			{"map-pointer", func(_ []uint64, keys []K) {
				for _, k := range keys {
					v := boxed[k]
					if v == nil {
						v = new(int64)
						boxed[k] = v
					}
					*v++
				}
			}},
			{"map-value", func(_ []uint64, keys []K) {
				for _, k := range keys {
					flat[k]++
				}
			}},
			{"table-one", func(hashes []uint64, keys []K) {
				for i, k := range keys {
					v, _ := one.Upsert(hashes[i], k)
					*v++
				}
			}},
			{"table-batch", func(hashes []uint64, keys []K) {
				many.UpsertBatch(hashes, keys, at[:len(keys)])
				for _, n := range at[:len(keys)] {
					many.At(int(n)).Value++
				}
			}},
		})
		b.ReportMetric(ns[0]/ns[3], "batch:map-pointer")
		b.ReportMetric(ns[1]/ns[3], "batch:map-value")
	})
}

// turn is one of several ways to do the same work.
type turn[K comparable] struct {
	name  string
	batch func(hashes []uint64, keys []K)
}

// takeTurns lets each way do its part of the records in turn, after all of them
// once for warming up, and returns and reports the nanoseconds of CPU a record of each.
func (in *upsertInput[K]) takeTurns(b *testing.B, turns []turn[K]) []float64 {
	const part = 64 * benchBatch
	for _, t := range turns {
		in.each(0, len(in.keys), t.batch)
	}
	ns := make([]float64, len(turns))
	from, records := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		for i, t := range turns {
			start := cpuTime()
			in.each(from, part, t.batch)
			ns[i] += float64(cpuTime() - start)
		}
		from = (from + part) % len(in.keys)
		records += part
	}
	for i, t := range turns {
		ns[i] /= float64(records)
		b.ReportMetric(ns[i], t.name+"-ns")
	}
	b.ReportMetric(0, "ns/op")
	return ns
}

// each passes n records on in batches, starting at number from and again from
// the first when they run out.
func (in *upsertInput[K]) each(from, n int, batch func(hashes []uint64, keys []K)) {
	for ; n > 0; n -= benchBatch {
		batch(in.hashes[from:from+benchBatch], in.keys[from:from+benchBatch])
		if from += benchBatch; from == len(in.keys) {
			from = 0
		}
	}
}

// BenchmarkInsert fills a table and a map with new keys and reports, beside the
// mean, the slowest batch: what growth costs the records that meet it.
func BenchmarkInsert(b *testing.B) {
	const distinct = 4 << 20
	h := hasherOf[uint64](b)
	keys, hashes := make([]uint64, distinct), make([]uint64, distinct)
	for i := range keys {
		keys[i] = uint64(i) * 0x9e3779b97f4a7c15
		hashes[i] = h(keys[i])
	}
	run := func(name string, start func() (batch func(from, to int))) {
		b.Run(name, func(b *testing.B) {
			var worst time.Duration
			n := 0
			for b.Loop() {
				batch := start()
				for from := 0; from < distinct; from += benchBatch {
					began := time.Now()
					batch(from, from+benchBatch)
					worst = max(worst, time.Since(began))
				}
				n += distinct
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
			b.ReportMetric(float64(worst.Microseconds()), "worst-batch-µs")
		})
	}
	run("map", func() func(from, to int) {
		m := map[uint64]int64{}
		return func(from, to int) {
			for _, k := range keys[from:to] {
				m[k]++
			}
		}
	})
	run("table=one", func() func(from, to int) {
		t := NewTable[uint64, int64]()
		return func(from, to int) {
			for i, k := range keys[from:to] {
				v, _ := t.Upsert(hashes[from+i], k)
				*v++
			}
		}
	})
	run("table=batch", func() func(from, to int) {
		t := NewTable[uint64, int64]()
		var at [benchBatch]int32
		return func(from, to int) {
			t.UpsertBatch(hashes[from:to], keys[from:to], at[:])
			for _, n := range at {
				t.At(int(n)).Value++
			}
		}
	})
}

// BenchmarkTableMemory reports heap bytes an entry, keys' text not counted.
func BenchmarkTableMemory(b *testing.B) {
	h := hasherOf[string](b)
	for _, distinct := range []int{1_000_000, 1_500_000} {
		keys := make([]string, distinct)
		for i := range keys {
			keys[i] = fmt.Sprintf("user%07d", i)
		}
		measure := func(name string, fill func() any) {
			b.Run(fmt.Sprintf("keys=%d/%s", distinct, name), func(b *testing.B) {
				for b.Loop() {
					before := heapBytes()
					kept := fill()
					b.ReportMetric(float64(heapBytes()-before)/float64(distinct), "B/key")
					runtime.KeepAlive(kept)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
		measure("map", func() any {
			m := map[string]int64{}
			for _, k := range keys {
				m[k]++
			}
			return m
		})
		measure("table", func() any {
			t := NewTable[string, int64]()
			for _, k := range keys {
				t.Upsert(h(k), k)
			}
			return t
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
