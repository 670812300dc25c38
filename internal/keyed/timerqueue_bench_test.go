package keyed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// BenchmarkTimers registers ten million timers with string keys, then fires
// them all. register-ns and fire-ns are per timer, B/timer is heap in use
// between the two, the keys' text not counted.
func BenchmarkTimers(b *testing.B) {
	const n = 10_000_000
	shapes := []struct {
		name string
		at   func(r *rand.Rand, i int) int64
	}{
		{"rising", func(_ *rand.Rand, i int) int64 { return int64(i) }},
		{"hour-ahead", func(r *rand.Rand, i int) int64 { return int64(i/100) + r.Int64N(3_600_000) }},
		{"full-minutes", func(r *rand.Rand, _ int) int64 { return r.Int64N(60) * 60_000 }},
		{"one-time", func(*rand.Rand, int) int64 { return 42 }},
	}
	h := hasherOf[string](b)
	timers := make([]Timer[string, struct{}], n)
	for i := range timers {
		timers[i].Key = fmt.Sprintf("user%07d", i)
		timers[i].Hash = h(timers[i].Key)
	}
	for _, shape := range shapes {
		b.Run(shape.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			for i := range timers {
				timers[i].At = shape.at(r, i)
			}
			var register, fire, bytes float64
			for b.Loop() {
				before := heapBytes()
				s := NewTimerService[string, struct{}]()
				start := b.Elapsed()
				for _, t := range timers {
					s.Event.Register(t)
				}
				register += (b.Elapsed() - start).Seconds()
				bytes += float64(heapBytes() - before)

				fired := 0
				start = b.Elapsed()
				_ = s.AdvanceWatermark(math.MaxInt64, func(Timer[string, struct{}]) error { fired++; return nil })
				fire += (b.Elapsed() - start).Seconds()
				if fired != n {
					b.Fatalf("%d of %d timers fired", fired, n)
				}
				runtime.KeepAlive(s)
			}
			perTimer := 1 / float64(b.N) / n
			b.ReportMetric(register*1e9*perTimer, "register-ns")
			b.ReportMetric(fire*1e9*perTimer, "fire-ns")
			b.ReportMetric(bytes*perTimer, "B/timer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTimerPeriodic fires timers that register themselves again: some soon,
// so that they stay in the front, some later, and each deletes one that is not
// there.
func BenchmarkTimerPeriodic(b *testing.B) {
	for _, keys := range []int32{100, 100_000} {
		for _, period := range []int64{1, 1000, 60_000} {
			b.Run(fmt.Sprintf("keys=%d/period=%d", keys, period), func(b *testing.B) {
				s := NewTimerService[int32, int8]()
				for key := range keys {
					s.Event.Register(makeTimer(int64(key)%period, key, 0))
				}
				b.ReportAllocs()
				b.ResetTimer()
				fired := 0
				for watermark := period; fired < b.N; watermark += period {
					_ = s.AdvanceWatermark(watermark, func(t testTimer) error {
						fired++
						s.Event.Delete(makeTimer(t.At, t.Key, 0))
						t.At += period
						s.Event.Register(t)
						return nil
					})
				}
			})
		}
	}
}

// BenchmarkTimerRepeated registers the same timers again and again, as a
// function does that sets a timer for every record.
func BenchmarkTimerRepeated(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			s := NewTimerService[int32, int8]()
			b.ReportAllocs()
			for range b.N {
				s.Event.Register(makeTimer(r.Int64N(4)*1000, r.Int32N(int32(keys)), 0))
			}
		})
	}
}
