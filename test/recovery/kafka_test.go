//go:build synctests

package recovery

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	formatjson "github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/kafka"
)

var kafkaSeeds = flag.Int("kafkaseeds", 40, "how many trials with Kafka")

// kafkaJob builds the trial's job from topic "in" to topic "out".
func (t *trial) kafkaJob(env *lowwater.Environment, c *kafkatest.Cluster) {
	connection := []kafka.Option{kafka.Brokers(c.Brokers()...), kafka.ClientOptions(c.Options()...)}
	source := kafka.NewSource(formatjson.Value[event](), connection[0], connection[1], kafka.Topics("in"), kafka.Bounded())
	strategy := eventtime.ForBoundedOutOfOrderness[event](jitter * time.Millisecond).
		WithTimestampAssigner(func(e event, _ int64) int64 { return e.At })
	sink := kafka.NewSink(raw.String{}, connection[0], connection[1], kafka.Topic("out"),
		kafka.Delivery(kafka.ExactlyOnce), kafka.TransactionalIDPrefix("trial")).
		WithTimestamp(func(string) int64 { return time.Now().UnixMilli() })
	t.results(lowwater.FromSource(env, source, strategy, "events").UID("events")).SinkTo(sink).UID("ledger")
}

// disturb breaks connections in the middle of requests, before or after they are served.
func (t *trial) disturb(c *kafkatest.Cluster) {
	c.Fake.Control(func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.Fake.KeepControl()
		switch request.(type) {
		case *kmsg.ProduceRequest, *kmsg.EndTxnRequest, *kmsg.AddPartitionsToTxnRequest, *kmsg.InitProducerIDRequest,
			*kmsg.FetchRequest, *kmsg.FindCoordinatorRequest, *kmsg.MetadataRequest:
			if t.chance("the network") != nil {
				return nil, errors.New("connection lost"), true
			}
		}
		return nil, nil, false
	})
}

// The same as TestInterruptionsDoNotShow, from Kafka to Kafka.
func TestInterruptionsDoNotShowInKafka(t *testing.T) {
	var all seen
	t.Cleanup(func() { all.check(t, *kafkaSeeds) })
	for i := range uint64(*kafkaSeeds) {
		seed := *first + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				trial := newTrial(seed)
				// The input is there from the start, so what takes time is the work.
				trial.events *= 5
				trial.slow = time.Duration(1+trial.random.IntN(4)) * time.Millisecond
				trial.interval = 200 * time.Millisecond
				trial.odds = 100 + trial.random.IntN(1000)
				trial.faults.Store(int64(trial.random.IntN(25)))
				c := kafkatest.Start(t)
				c.CreateTopic(t, "in", int32(trial.splits))
				c.CreateTopic(t, "out", 2)
				trial.produce(t, c)
				trial.disturb(c)
				if err := trial.run(t, func(env *lowwater.Environment) { trial.kafkaJob(env, c) }); err != nil {
					t.Fatalf("seed %d (run with -kafkaseeds 1 -seed %d): %v", seed, seed, err)
				}
				trial.faults.Store(0)
				all.add(&trial.seen)
				var got []string
				for _, r := range c.ReadAll(t, "out") {
					got = append(got, string(r.Value))
				}
				slices.Sort(got)
				if diff := cmp.Diff(trial.reference(), got); diff != "" {
					t.Errorf("seed %d (run with -kafkaseeds 1 -seed %d), -want +got:\n%s", seed, seed, diff)
				}
			})
		})
	}
}

// A transaction that a savepoint has prepared is committed with the next checkpoint, or given
// up by a restart from the one before.
func TestSavepointBeforeAFailureInKafka(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(1)
		trial.slow, trial.odds, trial.events = 2*time.Millisecond, 1, 20000
		c := kafkatest.Start(t)
		c.CreateTopic(t, "in", int32(trial.splits))
		c.CreateTopic(t, "out", 2)
		trial.produce(t, c)
		env := lowwater.NewEnvironment(
			lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2), lowwater.WithMaxParallelism(16),
			lowwater.WithCheckpoints("mem://"+t.Name(), 5*time.Second),
			lowwater.WithRestart(lowwater.FixedDelay{Attempts: 3, Delay: time.Second}))
		trial.kafkaJob(env, c)
		j, err := env.Start(t.Context(), "case")
		if err != nil {
			t.Fatal(err)
		}
		for records, _ := j.Checkpoints(); records.Completed == 0; records, _ = j.Checkpoints() {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(4 * time.Second)
		if _, err := j.Savepoint(t.Context(), "mem://"+t.Name()+"-elsewhere"); err != nil {
			t.Fatal(err)
		}
		trial.faults.Store(1)
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
		if n := j.Status().Restarts; n != 1 {
			t.Errorf("%d restarts, want 1", n)
		}
		var got []string
		for _, r := range c.ReadAll(t, "out") {
			got = append(got, string(r.Value))
		}
		slices.Sort(got)
		if diff := cmp.Diff(trial.reference(), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func (t *trial) produce(tb testing.TB, c *kafkatest.Cluster) {
	var records []kafkatest.Record
	for split := range t.splits {
		for n := range t.events {
			e := t.event(split, n)
			value, err := json.Marshal(e)
			if err != nil {
				tb.Fatal(err)
			}
			records = append(records, kafkatest.Record{Partition: int32(split), Value: value})
		}
	}
	c.Produce(tb, "in", records...)
}
