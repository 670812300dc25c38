// Command orders counts the orders in a Kafka topic per event type and five
// minutes of event time. It is an example of a whole job and no more: what it
// counts is printed.
//
// A record is JSON such as
//
//	{"id": "o-17", "eventType": "placed", "placedAtMillis": 1767225600000}
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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

// Order is the value of a record.
type Order struct {
	ID             string `json:"id"`
	EventType      string `json:"eventType"`
	PlacedAtMillis int64  `json:"placedAtMillis"`
}

var (
	brokers     = flag.String("brokers", "localhost:9092", "`addresses` of Kafka brokers, separated by commas")
	topic       = flag.String("topic", "orders", "`name` of the topic")
	parallelism = flag.Int("parallelism", 3, "`number` of subtasks")
	idleness    = flag.Duration("idleness", time.Minute, "`time` after which a silent partition no longer holds the windows up")
	bounded     = flag.Bool("bounded", false, "end at what are the ends of the partitions now")
	group       = flag.String("group", "orders-example", "`name` of the consumer group that shows how far the job has read")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "orders: unexpected argument %q: there are only flags, see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		hint := ""
		if _, ok := errors.AsType[*lowwater.Panic](err); ok {
			hint = " (printed with %+v, this error has the stack)"
		}
		fmt.Fprintf(os.Stderr, "orders: %v%s\n", err, hint)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	source := []kafka.SourceOption{
		kafka.Brokers(strings.Split(*brokers, ",")...), kafka.Topics(*topic), kafka.GroupID(*group),
	}
	if *bounded {
		source = append(source, kafka.Bounded())
	}

	env := lowwater.NewEnvironment(lowwater.WithParallelism(*parallelism))
	orders := lowwater.FromSource(env, kafka.NewSource(json.Value[Order](), source...),
		eventtime.ForBoundedOutOfOrderness[Order](20*time.Second).
			WithTimestampAssigner(func(o Order, _ int64) int64 { return o.PlacedAtMillis }).
			WithIdleness(*idleness), "orders")

	late := lowwater.NewOutputTag[Order]("late")
	counts := orders.
		KeyBy(func(o Order) string { return o.EventType }).
		Window(window.Tumbling(5 * time.Minute)).
		AllowedLateness(time.Minute).
		SideOutputLate(late).
		Aggregate(lowwater.Count[Order]())

	counts.Print() // type, window and count of every pane
	counts.SideOutput(late).
		Map(func(o Order) string { return fmt.Sprintf("too late: %s %s", o.EventType, o.ID) }).
		Print()

	// SIGINT and SIGTERM end ctx, and so the job: gracefully and without an error.
	return env.Execute(ctx, "orders per type")
}
