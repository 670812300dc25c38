package eventtime_test

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater/eventtime"
)

type order struct {
	PlacedAtMillis int64
	// Last says that the shop sends no earlier order any more.
	Last bool
}

// noted notes watermarks. In a job the engine takes them.
type noted struct{ watermarks []int64 }

func (n *noted) EmitWatermark(t int64) { n.watermarks = append(n.watermarks, t) }
func (n *noted) MarkIdle()             {}
func (n *noted) MarkActive()           {}

// Orders may come up to 20 seconds after others that were placed later.
func ExampleForBoundedOutOfOrderness() {
	strategy := eventtime.ForBoundedOutOfOrderness[order](20 * time.Second).
		WithTimestampAssigner(func(o order, _ int64) int64 { return o.PlacedAtMillis }).
		WithIdleness(time.Minute)
	fmt.Println(strategy)

	// What the engine does with it.
	var out noted
	g := strategy.NewGenerator()
	g.OnEvent(order{}, 60_000, &out)
	g.OnEvent(order{}, 50_000, &out)
	g.OnPeriodicEmit(&out)
	fmt.Println(out.watermarks)
	// Output:
	// bounded-out-of-orderness 20s, timestamp assigner, idleness 1m
	// [39999]
}

// marked emits a watermark for the records that say so.
type marked struct{}

func (marked) OnEvent(o order, timestamp int64, out eventtime.WatermarkOutput) {
	if o.Last {
		out.EmitWatermark(timestamp - 1)
	}
}

func (marked) OnPeriodicEmit(eventtime.WatermarkOutput) {}

// A generator of one's own, which goes by marks in the records.
func ExampleForGenerator() {
	strategy := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[order] { return marked{} })

	var out noted
	g := strategy.NewGenerator()
	g.OnEvent(order{}, 1000, &out)
	g.OnEvent(order{Last: true}, 2000, &out)
	fmt.Println(out.watermarks)
	// Output:
	// [1999]
}

func ExampleWatermarkStrategy_Validate() {
	fmt.Println(eventtime.ForMonotonousTimestamps[order]().WithIdleness(0).Validate())
	// Output:
	// eventtime.WithIdleness(0s): the timeout must be more than 0
}
