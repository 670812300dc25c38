// Command kafkacount measures a job that reads JSON from a real Kafka and counts per
// key and window: records per second, CPU per record, and the share of CPU that is
// spent outside fetching and decoding. Decoding is everything that the connector does
// for each record, from a fetched one to a value in a batch.
//
// It fills a topic of its own, removes it afterwards, and is not part of any test: its
// figures depend on the machine.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/window"
)

type order struct {
	EventType string  `json:"eventType"`
	PlacedAt  int64   `json:"placedAt"`
	Amount    float64 `json:"amount"`
}

const (
	partitions = 4
	eventTypes = 10_000
	firstEvent = 1_800_000_000_000
)

func main() {
	brokers := flag.String("brokers", "127.0.0.1:19092", "bootstrap `address`")
	records := flag.Int("records", 4_000_000, "how many records to write and count")
	parallelism := flag.Int("parallelism", 2, "subtasks")
	out := flag.String("profile", "", "also write the CPU profile to this `file`")
	flag.Parse()
	if err := run(context.Background(), *brokers, *records, *parallelism, *out); err != nil {
		fmt.Fprintln(os.Stderr, "kafkacount:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, brokers string, records, parallelism int, out string) error {
	topic := fmt.Sprintf("lowwater-kafkacount-%d", time.Now().UnixNano())
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	defer admin.DeleteTopics(ctx, topic)
	if err := fill(ctx, client, topic, records); err != nil {
		return err
	}

	var cpuProfile bytes.Buffer
	before, started := cpuTime(), time.Now()
	if err := pprof.StartCPUProfile(&cpuProfile); err != nil {
		return err
	}
	counted, err := count(ctx, brokers, topic, parallelism)
	pprof.StopCPUProfile()
	wall, cpu := time.Since(started), cpuTime()-before
	if err != nil {
		return err
	}
	if counted != int64(records) {
		return fmt.Errorf("the windows counted %d records, %d were written", counted, records)
	}
	if out != "" {
		if err := os.WriteFile(out, cpuProfile.Bytes(), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d records of %d bytes: %.0f records/s, %.0f ns CPU per record\n",
		records, len(payload(nil, 1)), float64(records)/wall.Seconds(), float64(cpu)/float64(records))
	return report(&cpuProfile)
}

// fill writes JSON orders, each partition in event time order.
func fill(ctx context.Context, client *kgo.Client, topic string, records int) error {
	var failed atomic.Value
	for i := range records {
		client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: payload(nil, i)},
			func(_ *kgo.Record, err error) {
				if err != nil {
					failed.CompareAndSwap(nil, err)
				}
			})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err, ok := failed.Load().(error); ok {
		return err
	}
	return nil
}

func payload(b []byte, i int) []byte {
	return fmt.Appendf(b, `{"orderId":"o-%09d","eventType":"type-%05d","placedAt":%d,"customer":{"id":%d,"name":"customer %d"},"amount":%d.25,"currency":"EUR","note":"left at the door"}`,
		i, i*7919%eventTypes, firstEvent+int64(i), i%5000, i%5000, i%300)
}

// count runs the job and returns the sum over all windows.
func count(ctx context.Context, brokers, topic string, parallelism int) (int64, error) {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(parallelism))
	var total atomic.Int64
	lowwater.FromSource(env,
		kafka.NewSource(json.Value[order](), kafka.Brokers(brokers), kafka.Topics(topic), kafka.Bounded()),
		eventtime.ForBoundedOutOfOrderness[order](20*time.Second).
			WithTimestampAssigner(func(o order, _ int64) int64 { return o.PlacedAt }),
		"orders").
		KeyBy(func(o order) string { return o.EventType }).
		Window(window.Tumbling(5 * time.Minute)).
		Aggregate(lowwater.Count[order]()).
		SinkFunc(func(_ context.Context, p window.Pane[string, int64]) error {
			total.Add(p.Value)
			return nil
		})
	err := env.Execute(ctx, "kafkacount")
	return total.Load(), err
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report divides the samples: a stack belongs to fetching or decoding if any of its
// functions does, to decoding if to both, and garbage collection in the background to
// nobody in particular.
func report(data *bytes.Buffer) error {
	p, err := profile.Parse(data)
	if err != nil {
		return err
	}
	share := map[string]int64{}
	var total int64
	for _, s := range p.Sample {
		v := s.Value[len(s.Value)-1]
		total += v
		share[classify(s)] += v
	}
	for _, class := range []struct{ name, meaning string }{
		{"fetch", "the Kafka client: network, decompression, splitting batches into records"},
		{"decode", "the connector's work per record, of which JSON is the most"},
		{"garbage collection", "in the background"},
		{"engine", "everything else"},
	} {
		fmt.Printf("%-20s %5.1f %%  %s\n", class.name, 100*float64(share[class.name])/float64(total), class.meaning)
	}
	fmt.Printf("outside fetch and decode: %.1f %% (engine and garbage collection)\n",
		100*float64(share["engine"]+share["garbage collection"])/float64(total))
	return nil
}

// perRecord matches the connector's function in which, and below which, a record is
// decoded. In the brackets is the record's type.
var perRecord = regexp.MustCompile(`lowwater/kafka\.\(\*reader\[.*\]\)\.append$`)

func classify(s *profile.Sample) string {
	class := "engine"
	for _, l := range s.Location {
		for _, line := range l.Line {
			name := line.Function.Name
			switch {
			case strings.Contains(name, "lowwater/format/json"), perRecord.MatchString(name):
				return "decode"
			case strings.Contains(name, "twmb/franz-go"), strings.Contains(name, "klauspost/compress"):
				class = "fetch"
			case class == "engine" && (strings.HasPrefix(name, "runtime.gcBgMarkWorker") || strings.HasPrefix(name, "runtime.bgsweep")):
				class = "garbage collection"
			}
		}
	}
	return class
}
