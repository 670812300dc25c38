//go:build unix

package lowwater_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// BenchmarkSplits counts all records of a source of 10 and of 10,000 splits, each with a
// watermark generator and an idle clock of its own. The last metric is the cost of a
// record with many splits over that with few, in the same run.
func BenchmarkSplits(b *testing.B) {
	var few float64
	for _, splits := range []int{10, 10_000} {
		b.Run(fmt.Sprint(splits), func(b *testing.B) {
			m := newMeasurement(b, func(n int64) purchase { return purchase{At: n / 100_000, Cents: n} })
			records := benchWarmUp + int64(b.N)
			var total atomic.Int64
			env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
			lowwater.FromSource(env, datagen.NewSource(m.generate, datagen.Splits(splits), datagen.Count(records)),
				eventtime.ForMonotonousTimestamps[purchase]().
					WithTimestampAssigner(func(p purchase, _ int64) int64 { return p.At }).
					WithIdleness(time.Minute), "purchases").
				WindowAll(window.Tumbling(10 * time.Millisecond)).Aggregate(lowwater.Count[purchase]()).
				SinkFunc(func(_ context.Context, p window.Pane[lowwater.All, int64]) error { total.Add(p.Value); return nil })
			if err := env.Execute(b.Context(), b.Name()); err != nil {
				b.Fatal(err)
			}
			if total.Load() != records {
				b.Fatalf("counted %d of %d records", total.Load(), records)
			}
			cpu := m.report()
			if splits == 10 {
				few = cpu
				return
			}
			b.ReportMetric(cpu/few, "x-10-splits")
		})
	}
}
