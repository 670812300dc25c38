package keyed

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// upsertInput is records as they reach a keyed operator: batches with keys and
// hashes side by side, each key a string of its own.
type upsertInput struct {
	keys   []string
	hashes []uint64
}

func newUpsertInput(b *testing.B, distinct, records int) upsertInput {
	b.Helper()
	h := hasherOf[string](b)
	r := rand.New(rand.NewPCG(1, uint64(distinct)))
	var in upsertInput
	for range records {
		k := fmt.Sprintf("user%07d", r.IntN(distinct))
		in.keys = append(in.keys, k)
		in.hashes = append(in.hashes, h(k))
	}
	return in
}

const benchBatch = 1024

// BenchmarkUpsert counts records by key in a warm table: the same records into a
// Go map, key by key into a Table, and by batch into a Table. Hashing is part of
// the map's work and not of the table's, which gets hashes with its batches.
func BenchmarkUpsert(b *testing.B) {
	for _, distinct := range []int{100, 10_000, 1_000_000, 10_000_000} {
		in := newUpsertInput(b, distinct, max(2*distinct, 1<<17)/benchBatch*benchBatch)
		run := func(name string, batch func(hashes []uint64, keys []string)) {
			b.Run(fmt.Sprintf("keys=%d/%s", distinct, name), func(b *testing.B) {
				in.each(len(in.keys), batch)
				b.ReportAllocs()
				b.ResetTimer()
				in.each(b.N, batch)
			})
		}
		boxed := map[string]*int64{}
		run("map=pointer", func(_ []uint64, keys []string) {
			for _, k := range keys {
				v := boxed[k]
				if v == nil {
					v = new(int64)
					boxed[k] = v
				}
				*v++
			}
		})
		boxed = nil
		flat := map[string]int64{}
		run("map=value", func(_ []uint64, keys []string) {
			for _, k := range keys {
				flat[k]++
			}
		})
		flat = nil
		table := NewTable[string, int64]()
		run("table=one", func(hashes []uint64, keys []string) {
			for i, k := range keys {
				v, _ := table.Upsert(hashes[i], k)
				*v++
			}
		})
		var at [benchBatch]int32
		run("table=batch", func(hashes []uint64, keys []string) {
			table.UpsertBatch(hashes, keys, at[:len(keys)])
			for _, n := range at[:len(keys)] {
				table.At(int(n)).Value++
			}
		})
	}
}

// each passes n records on in batches, again from the start when they run out.
func (in *upsertInput) each(n int, batch func(hashes []uint64, keys []string)) {
	for from := 0; n > 0; n -= benchBatch {
		to := from + min(n, benchBatch)
		batch(in.hashes[from:to], in.keys[from:to])
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
