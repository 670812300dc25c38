package lowwater_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/state"
)

// reading is what a sensor measures.
type reading struct {
	Sensor string
	Millis int64
	Value  float64
}

// readings makes a stream in which each reading is followed by a watermark just before its
// time.
func readings(env *lowwater.Environment, values ...reading) *lowwater.DataStream[reading] {
	strategy := eventtime.ForGenerator(func() eventtime.WatermarkGenerator[reading] { return eachReading{} })
	return lowwater.FromSlice(env, values).AssignTimestampsAndWatermarks(
		strategy.WithTimestampAssigner(func(r reading, _ int64) int64 { return r.Millis }))
}

type eachReading struct{}

func (eachReading) OnEvent(_ reading, timestamp int64, out eventtime.WatermarkOutput) {
	out.EmitWatermark(timestamp - 1)
}

func (eachReading) OnPeriodicEmit(eventtime.WatermarkOutput) {}

// silence tells of sensors that have not reported for ten seconds of event time.
type silence struct {
	last state.ValueState[int64]
}

func (f *silence) Open(ctx *lowwater.OpenContext[string]) error {
	f.last = ctx.Value(state.Value[int64]("last"))
	return nil
}

func (f *silence) ProcessElement(ctx *lowwater.KeyedContext[string], r reading, out *lowwater.Collector[string]) error {
	if last, ok := f.last.Get(); ok {
		ctx.DeleteEventTimeTimer(last + 10_000)
	}
	f.last.Set(r.Millis)
	ctx.RegisterEventTimeTimer(r.Millis + 10_000)
	return nil
}

func (f *silence) OnTimer(ctx *lowwater.TimerContext[string], at int64, out *lowwater.Collector[string]) error {
	last, _ := f.last.Get()
	out.Emit(fmt.Sprintf("%s is silent since %v", ctx.Key(), time.UnixMilli(last).UTC().Format(time.TimeOnly)))
	return nil
}

func ExampleKeyedStream_Process() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"cellar", 1000, 7}, reading{"roof", 2000, 21}, reading{"roof", 9000, 22}, reading{"roof", 18_000, 20}).
		KeyBy(func(r reading) string { return r.Sensor }).
		Process(func() *silence { return &silence{} }).
		Print()
	if err := env.Execute(context.Background(), "silence"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// cellar is silent since 00:00:01
	// roof is silent since 00:00:18
}

func ExampleKeyedStream_IntervalJoin() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	room := func(r reading) string { return r.Sensor }
	// Which readings came at most two seconds after a high one?
	all := readings(env, reading{"roof", 1000, 35}, reading{"roof", 2000, 21}, reading{"roof", 4000, 22})
	high := all.Filter(func(r reading) bool { return r.Value > 30 })
	high.KeyBy(room).IntervalJoin(all.KeyBy(room)).Between(0, 2*time.Second).LowerExclusive().
		Process(func(ctx *lowwater.IntervalJoinContext, high, next reading, out *lowwater.Collector[string]) error {
			out.Emit(fmt.Sprintf("%s: %v after %v", high.Sensor, next.Value, high.Value))
			return nil
		}).
		Print()
	if err := env.Execute(context.Background(), "after high"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// roof: 21 after 35
}

func ExampleKeyedStream_SortByEventTime() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	strategy := eventtime.ForBoundedOutOfOrderness[reading](5 * time.Second).
		WithTimestampAssigner(func(r reading, _ int64) int64 { return r.Millis })
	lowwater.FromSlice(env, []reading{{"roof", 3000, 22}, {"roof", 1000, 20}, {"roof", 2000, 21}}).
		AssignTimestampsAndWatermarks(strategy).
		KeyBy(func(r reading) string { return r.Sensor }).
		SortByEventTime().
		Print()
	if err := env.Execute(context.Background(), "sorted"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {roof 1000 20}
	// {roof 2000 21}
	// {roof 3000 22}
}

// limits keeps the latest limit of each sensor and passes on what is above it. Readings
// that come before the first limit of their sensor wait for it.
type limits struct {
	lowwater.KeyedBase[string, string]
	byName  state.MapState[string, float64]
	waiting state.ListState[float64]
}

func (f *limits) Open(ctx *lowwater.KeyedBroadcastOpenContext[string]) error {
	f.byName = ctx.Broadcast(state.Map[string, float64]("limits"))
	f.waiting = ctx.List(state.List[float64]("waiting"))
	return nil
}

func (f *limits) ProcessElement(ctx *lowwater.KeyedContext[string], r reading, out *lowwater.Collector[string]) error {
	if limit, ok := f.byName.Get(ctx.Key()); ok {
		check(r.Sensor, r.Value, limit, out)
	} else {
		f.waiting.Add(r.Value)
	}
	return nil
}

func (f *limits) ProcessBroadcast(ctx *lowwater.KeyedBroadcastContext[string], limit reading, out *lowwater.Collector[string]) error {
	f.byName.Put(limit.Sensor, limit.Value)
	return ctx.EachKey(f.waiting, func(sensor string, waiting state.ListState[float64]) error {
		if sensor == limit.Sensor {
			for _, v := range waiting.Get() {
				check(sensor, v, limit.Value, out)
			}
			waiting.Clear()
		}
		return nil
	})
}

func check(sensor string, value, limit float64, out *lowwater.Collector[string]) {
	if value > limit {
		out.Emit(fmt.Sprintf("%s: %v is above %v", sensor, value, limit))
	}
}

func ExampleKeyedStream_ConnectBroadcast() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	measured := readings(env, reading{"roof", 1000, 35}, reading{"roof", 2000, 25}, reading{"cellar", 2000, 7})
	changes := readings(env, reading{"roof", 0, 30})
	measured.KeyBy(func(r reading) string { return r.Sensor }).
		ConnectBroadcast(changes).
		Process(func() *limits { return &limits{} }).
		Print()
	if err := env.Execute(context.Background(), "limits"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// roof: 35 is above 30
}

func ExampleDataStream_AsyncMap() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	// In a job this asks a service, with ctx in the request.
	locate := func(ctx context.Context, r reading) (string, error) {
		return r.Sensor + " in Building 7", ctx.Err()
	}
	readings(env, reading{"roof", 1000, 35}, reading{"cellar", 2000, 7}).
		AsyncMap(locate, lowwater.Async{
			Capacity: 20,
			Timeout:  5 * time.Second,
			Retry:    lowwater.AsyncRetry{Attempts: 3, Pause: func(int) time.Duration { return 100 * time.Millisecond }},
		}).
		Print()
	if err := env.Execute(context.Background(), "locate"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// roof in Building 7
	// cellar in Building 7
}
