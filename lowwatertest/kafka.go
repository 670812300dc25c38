package lowwatertest

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/kafka"
)

// missingTag is what Run says without the build tag.
const missingTag = "lowwatertest.Run needs the build tag synctests: run\n\n\tgo test -tags synctests ./...\n\n" +
	`and begin the file with "//go:build synctests", so that go test without the tag leaves it out`

// fetchWait is how long the embedded broker may hold a fetch that finds nothing. It
// answers as soon as there is something, so all that a long wait saves is work in
// quiet hours, and all that it delays is a partition that is added or resumed.
const fetchWait = 10 * time.Second

// Run calls f in a bubble of virtual time with a Kafka of one broker. Time stands while
// anything in the bubble is running and jumps when everything waits. Jobs that f
// has started with [Kafka.Start] and that still run at its end are stopped.
//
// Run fails the test, and says what to do, without the build tag synctests.
func Run(t *testing.T, f func(t *testing.T, k *Kafka)) {
	t.Helper()
	if !virtualClient {
		t.Fatal(missingTag)
	}
	synctest.Test(t, func(t *testing.T) {
		f(t, &Kafka{t: t, cluster: kafkatest.Start(t)})
	})
}

// Kafka is the Kafka of a test. It ends with the bubble. Methods fail the test
// where something goes wrong; they are for the goroutine of the test.
type Kafka struct {
	t        *testing.T
	cluster  *kafkatest.Cluster
	producer *kgo.Client
}

// Fake returns the broker itself, for faults, transactions, compaction and the
// like.
func (k *Kafka) Fake() *kfake.Cluster { return k.cluster.Fake }

// CreateTopic creates a topic. config is alternating names and values of Kafka's
// topic settings.
func (k *Kafka) CreateTopic(topic string, partitions int, config ...string) {
	k.t.Helper()
	k.cluster.CreateTopic(k.t, topic, int32(partitions), config...)
}

// AddPartitions raises a topic's number of partitions to total. A job finds them at its
// source's next discovery (kafka.DiscoveryInterval).
func (k *Kafka) AddPartitions(topic string, total int) {
	k.t.Helper()
	k.cluster.AddPartitions(k.t, topic, int32(total))
	if k.producer != nil {
		k.producer.Close() // it would ask for the new number some time later
		k.producer = nil
	}
}

// Produce appends records to a topic, in order, each to its partition, and waits until
// they are written. It takes no virtual time. The job may not have read them yet:
// see [Kafka.Wait].
func (k *Kafka) Produce(topic string, records ...Record) {
	k.t.Helper()
	if k.producer == nil {
		k.producer = k.cluster.Client(k.t,
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.DisableClientMetrics())
	}
	out := make([]kafkatest.Record, len(records))
	for i, r := range records {
		if r.err != nil {
			k.t.Fatalf("record %d for topic %s: %v", i, topic, r.err)
		}
		out[i] = r.stored()
	}
	kafkatest.ProduceWith(k.t, k.producer, topic, out...)
}

// Read returns what a topic holds, by partition and offset, without the records of
// aborted and unfinished transactions.
func (k *Kafka) Read(topic string) []Stored {
	k.t.Helper()
	var out []Stored
	for _, r := range k.cluster.ReadAll(k.t, topic) {
		out = append(out, Stored{
			Partition: int(r.Partition), Offset: r.Offset, Timestamp: time.UnixMilli(r.Millis),
			Key: string(r.Key), Value: string(r.Value),
		})
	}
	return out
}

// SourceOptions returns what kafka.NewSource needs to read from this Kafka, then options,
// which may override it. Unless they do, the broker holds fetches for ten seconds: an
// aligned source wants kafka.FetchMaxWait of about its alignment interval.
func (k *Kafka) SourceOptions(options ...kafka.SourceOption) []kafka.SourceOption {
	return slices.Concat([]kafka.SourceOption{k.brokers(), k.client(), kafka.FetchMaxWait(fetchWait)}, options)
}

// SinkOptions is SourceOptions for kafka.NewSink.
func (k *Kafka) SinkOptions(options ...kafka.SinkOption) []kafka.SinkOption {
	return slices.Concat([]kafka.SinkOption{k.brokers(), k.client()}, options)
}

func (k *Kafka) brokers() kafka.Option { return kafka.Brokers(k.cluster.Brokers()...) }

// client makes a client reach the cluster's network, and leaves out the metrics that it
// would push to the broker for ever.
func (k *Kafka) client() kafka.Option {
	return kafka.ClientOptions(append(k.cluster.Options(), kgo.DisableClientMetrics())...)
}

// Start starts a job and waits until it has nothing to do for the moment. It fails the
// test with the build errors, if there are any. The job is stopped at the end of the
// test at the latest; an error of it fails the test.
func (k *Kafka) Start(env *lowwater.Environment) *lowwater.Job {
	k.t.Helper()
	job, err := env.Start(k.t.Context(), k.t.Name())
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { k.Stop(job) })
	synctest.Wait()
	return job
}

// Stop stops a job gracefully and waits for its end: records under way reach the sinks,
// windows still open do not fire. An error of the job fails the test. Stopping it again
// does nothing.
func (k *Kafka) Stop(job *lowwater.Job) {
	k.t.Helper()
	job.Stop()
	if err := job.Wait(); err != nil {
		k.t.Errorf("the job failed: %v", err)
	}
}

// Wait lets d of virtual time pass, until everything in the bubble waits for something
// later.
func (k *Kafka) Wait(d time.Duration) { synctest.Sleep(d) }

// Splits returns the splits of all sources of a job by id, such as "orders-2".
func Splits(job *lowwater.Job) map[string]lowwater.SplitStatus {
	splits := map[string]lowwater.SplitStatus{}
	for _, v := range job.Status().Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, split := range o.Splits {
					splits[split.ID] = split
				}
			}
		}
	}
	return splits
}

// NewEnvironment returns an environment with a parallelism of 1 that logs warnings and
// errors to the test. options may override both.
func NewEnvironment(t testing.TB, options ...lowwater.Option) *lowwater.Environment {
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	return lowwater.NewEnvironment(append([]lowwater.Option{lowwater.WithParallelism(1), lowwater.WithLogger(log)}, options...)...)
}
