package lowwater_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

func bySensor(r reading) string { return r.Sensor }

func value(r reading) float64 { return r.Value }

// mustRun runs a job whose input ends.
func mustRun(env *lowwater.Environment) {
	if err := env.Execute(context.Background(), "example"); err != nil {
		panic(err)
	}
}

// Tumbling windows follow each other. A pane says of which key and window a value is.
func ExampleKeyedStream_Window() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 1000, 20}, reading{"roof", 59_999, 22}, reading{"roof", 60_000, 30}).
		KeyBy(bySensor).
		Window(window.Tumbling(time.Minute)).
		Aggregate(window.Average(value)).
		Print()
	mustRun(env)
	// Output:
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z) 21
	// roof [1970-01-01T00:01:00Z, 1970-01-01T00:02:00Z) 30
}

// Sliding windows overlap: a record is in each that holds its timestamp.
func ExampleKeyedStream_Window_sliding() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 10_000, 20}, reading{"roof", 40_000, 22}).
		KeyBy(bySensor).
		Window(window.Sliding(time.Minute, 30*time.Second)).
		Aggregate(lowwater.Count[reading]()).
		Print()
	mustRun(env)
	// Output:
	// roof [1969-12-31T23:59:30Z, 1970-01-01T00:00:30Z) 1
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z) 2
	// roof [1970-01-01T00:00:30Z, 1970-01-01T00:01:30Z) 1
}

// A session ends when nothing has come for the gap.
func ExampleKeyedStream_Window_session() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 0, 20}, reading{"roof", 20_000, 22}, reading{"roof", 60_000, 30}).
		KeyBy(bySensor).
		Window(window.Session(30 * time.Second)).
		Aggregate(lowwater.Count[reading]()).
		Print()
	mustRun(env)
	// Output:
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:00:50Z) 2
	// roof [1970-01-01T00:01:00Z, 1970-01-01T00:01:30Z) 1
}

// Every second record of a key makes a window; the last one never gets full.
func ExampleKeyedStream_CountWindow() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 1000, 20}, reading{"roof", 2000, 22}, reading{"roof", 3000, 30}).
		KeyBy(bySensor).
		CountWindow(2).
		Aggregate(window.Sum(value)).
		Print()
	mustRun(env)
	// Output:
	// roof [global] 42
}

// The window keeps one accumulator for each key; the function sees its result, and the window.
func ExampleWindowedStream_AggregateProcess() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	report := func(ctx *lowwater.WindowContext[string], average iter.Seq[float64], out *lowwater.Collector[string]) error {
		for v := range average {
			end := time.UnixMilli(ctx.Window().End).UTC()
			out.Emit(fmt.Sprintf("until %s: %s %.1f", end.Format(time.TimeOnly), ctx.Key(), v))
		}
		return nil
	}
	readings(env, reading{"roof", 1000, 20}, reading{"roof", 2000, 23}).
		KeyBy(bySensor).
		Window(window.Tumbling(time.Minute)).
		AggregateProcess(window.Average(value), report).
		Print()
	mustRun(env)
	// Output:
	// until 00:01:00: roof 21.5
}

// A late record makes its window fire again while the lateness lasts, and goes to the side
// output after that.
func ExampleWindowedStream_SideOutputLate() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	late := lowwater.NewOutputTag[reading]("late")
	counts := readings(env,
		reading{"roof", 1000, 20},
		reading{"roof", 61_000, 22}, // the watermark passes the end of the first minute
		reading{"roof", 2000, 21},   // within the allowed lateness
		reading{"roof", 95_000, 23},
		reading{"roof", 3000, 19}, // too late
	).
		KeyBy(bySensor).
		Window(window.Tumbling(time.Minute)).
		AllowedLateness(30 * time.Second).
		SideOutputLate(late).
		Aggregate(lowwater.Count[reading]())
	counts.Print()
	counts.SideOutput(late).Print()
	mustRun(env)
	// Unordered output:
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z) 1
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z) 2 (late)
	// {roof 3000 19}
	// roof [1970-01-01T00:01:00Z, 1970-01-01T00:02:00Z) 2
}

// onHigh fires at the window's end, as the trigger that it is built on, and for every high
// reading before that.
type onHigh struct{ window.Trigger }

func (t onHigh) OnElement(c window.TriggerContext, r reading, timestamp int64, w window.TimeWindow) window.TriggerResult {
	result := t.Trigger.OnElement(c, timestamp, w)
	if r.Value > 30 {
		return window.Fire
	}
	return result
}

// A trigger of one's own.
func ExampleWindowedStream_ElementTrigger() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 1000, 20}, reading{"roof", 2000, 35}, reading{"roof", 3000, 22}).
		KeyBy(bySensor).
		Window(window.Tumbling(time.Minute)).
		ElementTrigger(onHigh{window.EventTimeTrigger()}).
		Aggregate(lowwater.Count[reading]()).
		Print()
	mustRun(env)
	// Output:
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z) 2 (early)
	// roof [1970-01-01T00:00:00Z, 1970-01-01T00:01:00Z) 3
}

// Only the last two readings of each minute count.
func ExampleWindowedStream_Evictor() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	readings(env, reading{"roof", 1000, 20}, reading{"roof", 2000, 35}, reading{"roof", 3000, 22}).
		KeyBy(bySensor).
		Window(window.Tumbling(time.Minute)).
		Evictor(window.CountEvictor[reading](2)).
		Process(func(_ *lowwater.WindowContext[string], elements iter.Seq[reading], out *lowwater.Collector[[]reading]) error {
			out.Emit(slices.Collect(elements))
			return nil
		}).
		Print()
	mustRun(env)
	// Output:
	// [{roof 2000 35} {roof 3000 22}]
}

// What comes too late for its window, of either side, goes to a side output.
func ExampleJoinedWindows_SideOutputLate() {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	late := lowwater.NewOutputTag[lowwater.Either[reading, reading]]("late")
	sensor := func(name string) func(reading) bool {
		return func(r reading) bool { return r.Sensor == name }
	}
	all := readings(env,
		reading{"roof", 1000, 20}, reading{"cellar", 2000, 8},
		reading{"roof", 60_000, 22},  // the watermark reaches the end of the first minute
		reading{"cellar", 59_000, 9}, // too late
		reading{"cellar", 61_000, 10},
	)
	oneHouse := func(reading) string { return "house" }
	differences := all.Filter(sensor("roof")).KeyBy(oneHouse).
		Join(all.Filter(sensor("cellar")).KeyBy(oneHouse)).
		Window(window.Tumbling(time.Minute)).
		SideOutputLate(late).
		Apply(func(roof, cellar reading) float64 { return roof.Value - cellar.Value })
	differences.Print()
	differences.SideOutput(late).
		Map(func(e lowwater.Either[reading, reading]) string {
			if e.IsRight {
				return fmt.Sprint("late from the cellar: ", e.Right.Value)
			}
			return fmt.Sprint("late from the roof: ", e.Left.Value)
		}).
		Print()
	mustRun(env)
	// Unordered output:
	// 12
	// late from the cellar: 9
	// 12
}
