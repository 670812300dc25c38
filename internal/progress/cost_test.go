package progress_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/progress"
)

// discard is an output that costs nothing.
type discard struct{}

func (discard) Watermark(int64) error { return nil }
func (discard) Status(bool) error     { return nil }
func (discard) EmitWatermark(int64)   {}
func (discard) MarkIdle()             {}
func (discard) MarkActive()           {}

func TestNoAllocationsInSteadyState(t *testing.T) {
	now := int64(0)
	valve := progress.NewValve(8, progress.Current, discard{})
	combination := progress.NewCombination(3, discard{})
	mux := progress.NewMultiplexer(discard{})
	output := mux.Add(nil)
	periodic := newTestSource(t, bounded(), progress.SourceConfig{}, discard{})
	batched := addSplit(t, periodic, "a")
	values, timestamps := make([]int, 100), make([]int64, 100)
	perEvent := newTestSource(t, eventtime.ForGenerator(func() eventtime.WatermarkGenerator[int] { return punctuated{} }).
		WithWatermarkAlignment("g", 0, 1e9), progress.SourceConfig{Pauser: &quietPauser{}}, discard{})
	split := addSplit(t, perEvent, "a")

	tests := []struct {
		name string
		run  func()
	}{
		{"valve", func() {
			for c := range valve.Channels() {
				_ = valve.Watermark(c, now)
			}
			_ = valve.Status(int(now%8), true)
			_ = valve.Status(int(now%8), false)
		}},
		{"combination", func() { _ = combination.Input(int(now % 3)).Watermark(now) }},
		{"multiplexer", func() { output.EmitWatermark(now); output.Deferred().EmitWatermark(now + 1) }},
		{"source OnBatch", func() { batched.OnBatch(values, timestamps) }},
		{"source Periodic", func() { _ = periodic.Periodic(now) }},
		{"source OnEvent", func() { _ = split.OnEvent(0, now) }},
		{"source alignment", func() {
			_ = perEvent.Sample(now)
			_ = perEvent.MaxAllowed(now-1, now)
			_ = perEvent.MaxAllowed(now+1, now)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(200, func() {
				now++
				tt.run()
			})
			if allocs > 0 {
				t.Errorf("%v allocations a call", allocs)
			}
		})
	}
}

type quietPauser struct{}

func (*quietPauser) PauseSplits([]string)  {}
func (*quietPauser) ResumeSplits([]string) {}

var sizes = []int{10, 10_000}

// BenchmarkValve is the cost of a watermark on one of n channels: all in turn,
// in random order, and one channel that alone holds the others back.
func BenchmarkValve(b *testing.B) {
	for _, n := range sizes {
		order := rand.New(rand.NewPCG(1, 2)).Perm(n)
		patterns := []struct {
			name string
			next func(i int) (channel int, t int64)
		}{
			{"turn", func(i int) (int, int64) { return i % n, int64(i/n + 1) }},
			{"random", func(i int) (int, int64) { return order[i%n], int64(i) }},
			{"slowest", func(i int) (int, int64) { return 0, int64(i + 1) }},
		}
		for _, p := range patterns {
			b.Run(fmt.Sprintf("%s/%d", p.name, n), func(b *testing.B) {
				valve := progress.NewValve(n, progress.Current, discard{})
				if p.name == "slowest" {
					for c := 1; c < n; c++ {
						_ = valve.Watermark(c, 1<<40)
					}
				}
				for i := 0; b.Loop(); i++ {
					_ = valve.Watermark(p.next(i))
				}
			})
		}
	}
}

// BenchmarkMultiplexer is the cost of an immediate watermark of one of n splits.
func BenchmarkMultiplexer(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			mux := progress.NewMultiplexer(discard{})
			outputs := make([]*progress.SplitOutput, n)
			for i := range outputs {
				outputs[i] = mux.Add(nil)
			}
			for i := 0; b.Loop(); i++ {
				outputs[i%n].EmitWatermark(int64(i))
			}
		})
	}
}

// BenchmarkSourcePeriodic is the cost of one periodic call over n splits that
// each had a record.
func BenchmarkSourcePeriodic(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			source := newTestSource(b, bounded(), progress.SourceConfig{}, discard{})
			for i := range n {
				addSplit(b, source, fmt.Sprint(i))
			}
			now := int64(0)
			for b.Loop() {
				now += 200
				for i, split := range source.Splits() {
					_ = split.OnEvent(0, now+int64(i&15))
				}
				if err := source.Periodic(now); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/split")
		})
	}
}

// BenchmarkSourceOnBatch is the cost of 1024 records.
func BenchmarkSourceOnBatch(b *testing.B) {
	source := newTestSource(b, bounded(), progress.SourceConfig{}, discard{})
	split := addSplit(b, source, "a")
	values, timestamps := make([]int, 1024), make([]int64, 1024)
	for i := range timestamps {
		timestamps[i] = int64(i)
	}
	for b.Loop() {
		split.OnBatch(values, timestamps)
	}
}

// BenchmarkBackPressure is the cost of one change with n splits.
func BenchmarkBackPressure(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			source := newTestSource(b, bounded(), progress.SourceConfig{}, discard{})
			for i := range n {
				addSplit(b, source, fmt.Sprint(i))
			}
			for i := int64(0); b.Loop(); i++ {
				source.BackPressure(i, i&1 == 0, false)
			}
		})
	}
}
