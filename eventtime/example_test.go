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

// printed prints watermarks. In a job the engine takes them.
type printed struct{}

func (printed) EmitWatermark(t int64) { fmt.Println("watermark", t) }
func (printed) MarkIdle()             { fmt.Println("idle") }
func (printed) MarkActive()           { fmt.Println("active") }

// Orders may come up to 20 seconds after others that were placed later.
func ExampleForBoundedOutOfOrderness() {
	strategy := eventtime.ForBoundedOutOfOrderness[order](20 * time.Second).
		WithTimestampAssigner(func(o order, _ int64) int64 { return o.PlacedAtMillis }).
		WithIdleness(time.Minute)
	fmt.Println(strategy)

	// What the engine does with it.
	g := strategy.NewGenerator()
	g.OnEvent(order{}, 60_000, printed{})
	g.OnEvent(order{}, 50_000, printed{})
	g.OnPeriodicEmit(printed{})
	// Output:
	// bounded-out-of-orderness 20s, timestamp assigner, idleness 1m
	// watermark 39999
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

	g := strategy.NewGenerator()
	g.OnEvent(order{}, 1000, printed{})
	g.OnEvent(order{Last: true}, 2000, printed{})
	// Output:
	// watermark 1999
}

func ExampleWatermarkStrategy_Validate() {
	fmt.Println(eventtime.ForMonotonousTimestamps[order]().WithIdleness(0).Validate())
	// Output:
	// eventtime.WithIdleness(0s): the timeout must be more than 0
}
