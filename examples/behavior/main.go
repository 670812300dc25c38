// Command behavior shows the one second windows of a Kafka topic as they fire,
// each with the watermark that fired it. It is an example for looking at
// watermarks, not for measuring behavior.
//
// A record is JSON such as
//
//	{"eventType": "click", "eventTimeEpoch": 1767225600000}
//
// On a topic with three partitions it prints nothing with -parallelism 8: the
// five subtasks without a partition never send a watermark. It prints with
// -parallelism 3, with -idleness 10s, and with -processing-time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/window"
)

// Behavior is the value of a record; its other fields are not decoded.
type Behavior struct {
	EventType string `json:"eventType"`
	// EventTimeEpoch is in milliseconds.
	EventTimeEpoch int64 `json:"eventTimeEpoch"`
}

var (
	brokers        = flag.String("brokers", "localhost:9092", "`addresses` of Kafka brokers, separated by commas")
	topic          = flag.String("topic", "behavior", "`name` of the topic")
	parallelism    = flag.Int("parallelism", 8, "`number` of subtasks of the source and of the windows")
	idleness       = flag.Duration("idleness", 0, "`time` after which a silent partition or subtask no longer counts (default never)")
	processingTime = flag.Bool("processing-time", false, "windows by the wall clock")
	group          = flag.String("group", "behavior-example", "`name` of the consumer group that shows how far the job has read")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "behavior: unexpected argument %q: there are only flags, see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		hint := ""
		if _, ok := errors.AsType[*lowwater.Panic](err); ok {
			hint = " (printed with %+v, this error has the stack)"
		}
		fmt.Fprintf(os.Stderr, "behavior: %v%s\n", err, hint)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	source := kafka.NewSource(json.Value[Behavior](),
		kafka.Brokers(strings.Split(*brokers, ",")...), kafka.Topics(*topic), kafka.GroupID(*group))
	strategy := eventtime.ForMonotonousTimestamps[Behavior]().
		WithTimestampAssigner(func(b Behavior, _ int64) int64 { return b.EventTimeEpoch })
	if *idleness != 0 {
		strategy = strategy.WithIdleness(*idleness)
	}
	windows := window.Sliding(time.Second, time.Second)
	if *processingTime {
		windows = windows.ProcessingTime()
	}

	env := lowwater.NewEnvironment(lowwater.WithParallelism(*parallelism))
	lowwater.FromSource(env, source, strategy, "behavior").
		Parallelism(*parallelism). // asked for, so kept, also if there are fewer partitions
		KeyBy(func(b Behavior) string { return b.EventType }).
		Window(windows).
		Process(describe).
		Print()
	return env.Execute(ctx, "behavior per second")
}

// describe is called for every window that fires.
func describe(ctx *lowwater.WindowContext[string], behaviors iter.Seq[Behavior], out *lowwater.Collector[string]) error {
	count := 0
	for range behaviors {
		count++
	}
	watermark := "none"
	if w := ctx.CurrentWatermark(); w != eventtime.MinTimestamp {
		watermark = time.UnixMilli(w).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	out.Emit(fmt.Sprintf("%s %v count %d watermark %s", ctx.Key(), ctx.Window(), count, watermark))
	return nil
}
