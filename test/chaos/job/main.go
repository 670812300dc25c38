// Command job is what the chaos test disturbs: a Kafka topic counted per key and window,
// once by a window and once by a function with state and timers, into a topic that is
// written exactly once. It knows nothing of the disturbances, and nothing in it is there
// for them.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/test/chaos/input"
	"github.com/lowwater/lowwater/window"
)

var (
	broker      = flag.String("broker", "127.0.0.1:19092", "`address` of the broker")
	in          = flag.String("in", "in", "`topic` to read")
	out         = flag.String("out", "out", "`topic` to write")
	checkpoints = flag.String("checkpoints", "", "`directory` of the checkpoints")
	parallelism = flag.Int("parallelism", 2, "`number` of subtasks")
	interval    = flag.Duration("interval", time.Second, "`time` between checkpoints")
	memory      = flag.Int64("memory", 16<<10, "`bytes` of memory for keyed state; what is more goes to disk, and into checkpoints incrementally")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("the job has failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	env := lowwater.NewEnvironment(
		lowwater.WithParallelism(*parallelism), lowwater.WithMaxParallelism(32), lowwater.WithStateMemory(*memory, ""),
		lowwater.WithCheckpoints(*checkpoints, *interval,
			lowwater.ResumeLatest(), lowwater.CommitOneCheckpointLater(),
			lowwater.AlignedCheckpointTimeout(300*time.Millisecond), lowwater.CheckpointTimeout(20*time.Second),
			lowwater.TolerableCheckpointFailures(1_000_000)),
		lowwater.WithRestart(lowwater.ExponentialDelay{
			Initial: 200 * time.Millisecond, Max: 3 * time.Second, Multiplier: 2, ResetAfter: time.Minute,
		}),
	)
	source := kafka.NewSource(json.Value[input.Event](), kafka.Brokers(*broker), kafka.Topics(*in), kafka.GroupID("chaos"))
	strategy := eventtime.ForBoundedOutOfOrderness[input.Event](input.JitterMillis * time.Millisecond).
		WithTimestampAssigner(func(e input.Event, _ int64) int64 { return e.At })
	events := lowwater.FromSource(env, source, strategy, "events").UID("events").
		KeyBy(func(e input.Event) string { return e.Key })

	windows := events.Window(window.Tumbling(input.WindowMillis * time.Millisecond)).
		Aggregate(lowwater.Count[input.Event]()).UID("windows").
		Map(func(p window.Pane[string, int64]) string {
			return input.Result("window", p.Key, p.Window.Start, p.Value)
		}).UID("lines")
	timers := events.Process(func() *counter { return &counter{} }).UID("timers")

	sink := kafka.NewSink(raw.String{}, kafka.Brokers(*broker), kafka.Topic(*out),
		kafka.Delivery(kafka.ExactlyOnce), kafka.TransactionalIDPrefix("chaos"), kafka.TransactionTimeout(10*time.Minute)).
		WithTimestamp(func(string) int64 { return time.Now().UnixMilli() })
	windows.Union(timers).SinkTo(sink).UID("results")
	return env.Execute(ctx, "chaos")
}

// counter counts per window as the window does, with a map and a timer. Its ballast makes the
// state of all keys larger than its memory.
type counter struct {
	counts  state.MapState[int64, int64]
	ballast state.ValueState[string]
}

func (c *counter) Open(ctx *lowwater.OpenContext[string]) error {
	c.counts = ctx.Map(state.Map[int64, int64]("counts"))
	c.ballast = ctx.Value(state.Value[string]("ballast"))
	return nil
}

func (c *counter) ProcessElement(ctx *lowwater.KeyedContext[string], e input.Event, _ *lowwater.Collector[string]) error {
	ballast := strings.Repeat(e.Key, 200)
	if kept, ok := c.ballast.Get(); ok && kept != ballast {
		return fmt.Errorf("the ballast of key %q is that of another", e.Key)
	}
	c.ballast.Set(ballast)
	start := e.At - e.At%input.WindowMillis
	n, _ := c.counts.Get(start)
	c.counts.Put(start, n+1)
	ctx.RegisterEventTimeTimer(start + input.WindowMillis - 1)
	return nil
}

func (c *counter) OnTimer(ctx *lowwater.TimerContext[string], at int64, out *lowwater.Collector[string]) error {
	start := at + 1 - input.WindowMillis
	n, _ := c.counts.Get(start)
	c.counts.Remove(start)
	out.Emit(input.Result("timer", ctx.Key(), start, n))
	return nil
}
