package lowwater_test

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// A function may send records to any number of outputs, each of a type of its own.
func ExampleDataStream_SideOutput() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	broken := lowwater.NewOutputTag[string]("broken")
	values := readings(env, reading{"roof", 1000, 20}, reading{"cellar", 2000, -300}).
		Process(func(ctx *lowwater.ProcessContext, r reading, out *lowwater.Collector[float64]) error {
			if r.Value < -273.15 {
				ctx.Output(broken, r.Sensor)
				return nil
			}
			out.Emit(r.Value)
			return nil
		})
	values.Print()
	values.SideOutput(broken).Map(func(sensor string) string { return "check " + sensor }).Print()
	mustRun(env)
	// Unordered output:
	// 20
	// check cellar
}

// Two streams of different types become one.
func ExampleDataStream_Connect() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	words := lowwater.FromSlice(env, []string{"one", "two"})
	numbers := lowwater.FromSlice(env, []int{3})
	words.Connect(numbers).
		Map(func(w string) string { return "word " + w }, func(n int) string { return fmt.Sprint("number ", n) }).
		Print()
	mustRun(env)
	// Unordered output:
	// word one
	// word two
	// number 3
}

// locating waits for the place of a sensor, or for the sensor's reading, whichever comes
// second.
type locating struct {
	lowwater.KeyedBase[string, string]
	value state.ValueState[float64]
	place state.ValueState[string]
}

func (f *locating) Open(ctx *lowwater.OpenContext[string]) error {
	f.value = ctx.Value(state.Value[float64]("value"))
	f.place = ctx.Value(state.Value[string]("place"))
	return nil
}

func (f *locating) ProcessFirst(_ *lowwater.KeyedContext[string], r reading, out *lowwater.Collector[string]) error {
	f.value.Set(r.Value)
	return f.emit(out)
}

func (f *locating) ProcessSecond(_ *lowwater.KeyedContext[string], place [2]string, out *lowwater.Collector[string]) error {
	f.place.Set(place[1])
	return f.emit(out)
}

func (f *locating) emit(out *lowwater.Collector[string]) error {
	value, measured := f.value.Get()
	place, known := f.place.Get()
	if measured && known {
		out.Emit(fmt.Sprintf("%v in %s", value, place))
	}
	return nil
}

// Two keyed streams share the state of their keys.
func ExampleKeyedStream_Connect() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	measured := readings(env, reading{"roof", 1000, 20})
	places := lowwater.FromSlice(env, [][2]string{{"roof", "Building 7"}})
	measured.KeyBy(bySensor).
		Connect(places.KeyBy(func(p [2]string) string { return p[0] })).
		Process(func() *locating { return &locating{} }).
		Print()
	mustRun(env)
	// Output:
	// 20 in Building 7
}

// Readings of the same minute and place, in and out of doors.
func ExampleKeyedStream_Join() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	inside := readings(env, reading{"hall", 1000, 20}, reading{"hall", 61_000, 21})
	outside := readings(env, reading{"hall", 2000, 5}, reading{"hall", 130_000, 7})
	inside.KeyBy(bySensor).Join(outside.KeyBy(bySensor)).
		Window(window.Tumbling(time.Minute)).
		Apply(func(in, out reading) string { return fmt.Sprint(in.Value, " inside, ", out.Value, " outside") }).
		Print()
	mustRun(env)
	// Output:
	// 20 inside, 5 outside
}

// CoGroup also tells of windows in which one side had nothing.
func ExampleKeyedStream_CoGroup() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	inside := readings(env, reading{"hall", 1000, 20}, reading{"hall", 61_000, 21})
	outside := readings(env, reading{"hall", 2000, 5})
	inside.KeyBy(bySensor).CoGroup(outside.KeyBy(bySensor)).
		Window(window.Tumbling(time.Minute)).
		Apply(func(_ *lowwater.WindowContext[string], in, out []reading, c *lowwater.Collector[string]) error {
			c.Emit(fmt.Sprint(len(in), " inside, ", len(out), " outside"))
			return nil
		}).
		Print()
	mustRun(env)
	// Output:
	// 1 inside, 1 outside
	// 1 inside, 0 outside
}

// firstOfHour passes on the first record of a key and forgets the key after an hour.
type firstOfHour struct {
	lowwater.KeyedBase[string, reading]
	seen state.ValueState[bool]
}

func (f *firstOfHour) Open(ctx *lowwater.OpenContext[string]) error {
	f.seen = ctx.Value(state.Value[bool]("seen", state.WithTTL(state.TTL{After: time.Hour})))
	return nil
}

func (f *firstOfHour) ProcessElement(_ *lowwater.KeyedContext[string], r reading, out *lowwater.Collector[reading]) error {
	if _, seen := f.seen.Get(); !seen {
		f.seen.Set(true)
		out.Emit(r)
	}
	return nil
}

// State that expires. Time-to-live counts processing time.
func ExampleKeyedStream_Process_timeToLive() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 1000, 20}, reading{"roof", 2000, 21}, reading{"cellar", 3000, 7}).
		KeyBy(bySensor).
		Process(func() *firstOfHour { return &firstOfHour{} }).
		Print()
	mustRun(env)
	// Output:
	// {roof 1000 20}
	// {cellar 3000 7}
}
