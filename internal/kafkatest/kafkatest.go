// Package kafkatest runs a Kafka cluster inside a test.
//
// The cluster is franz-go's kfake behind an in-memory network, so it needs no
// ports, and works in a testing/synctest bubble as well as outside. In a bubble
// franz-go's mutexes must be durably blocking, which the build tag synctests
// makes them: put such tests in files with "//go:build synctests" and run them
// with
//
//	go test -tags synctests ./...
//
// Do not move partitions between brokers in a bubble: the client asks the old
// leader again and again until 10 ms have passed, and there they never do.
//
// It is not a benchmark's broker: the network copies through pipes.
package kafkatest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster is a running cluster. It ends with the test that started it.
type Cluster struct {
	// Fake is for faults, transactions, compaction and the like.
	Fake    *kfake.Cluster
	network *kfake.VirtualNetwork
}

// Start starts a cluster of one broker; kfake's options may change that. In a
// bubble it must be called by the bubble.
func Start(tb testing.TB, opts ...kfake.Opt) *Cluster {
	tb.Helper()
	c := &Cluster{network: &kfake.VirtualNetwork{}}
	fake, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.Ports(9092),
		kfake.ListenFn(c.network.Listen),
	}, opts...)...)
	if err != nil {
		tb.Fatalf("starting kfake: %v", err)
	}
	c.Fake = fake
	tb.Cleanup(fake.Close)
	return c
}

// Brokers returns the addresses. Only clients with Options reach them.
func (c *Cluster) Brokers() []string { return c.Fake.ListenAddrs() }

// Options returns what a client needs to reach the cluster's network.
func (c *Cluster) Options() []kgo.Opt { return []kgo.Opt{kgo.Dialer(c.network.DialContext)} }

// Client returns a client of the cluster, which ends with the test.
func (c *Cluster) Client(tb testing.TB, opts ...kgo.Opt) *kgo.Client {
	tb.Helper()
	client, err := kgo.NewClient(slices.Concat(c.Options(), []kgo.Opt{kgo.SeedBrokers(c.Brokers()...)}, opts)...)
	if err != nil {
		tb.Fatalf("connecting to kfake: %v", err)
	}
	tb.Cleanup(client.Close)
	return client
}

// CreateTopic creates a topic. config is alternating names and values.
func (c *Cluster) CreateTopic(tb testing.TB, topic string, partitions int32, config ...string) {
	tb.Helper()
	values := map[string]string{}
	for i := 0; i+1 < len(config); i += 2 {
		values[config[i]] = config[i+1]
	}
	if err := c.Fake.CreateTopic(topic, partitions, values); err != nil {
		tb.Fatalf("creating topic %s: %v", topic, err)
	}
}

// AddPartitions raises a topic's number of partitions.
func (c *Cluster) AddPartitions(tb testing.TB, topic string, total int32) {
	tb.Helper()
	req := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, total
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(tb.Context(), c.Client(tb))
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		tb.Fatalf("adding partitions to %s: %v, %+v", topic, err, resp)
	}
}

// Record is a record in a topic.
type Record struct {
	Partition int32
	Offset    int64 // set by ReadAll
	// Millis is the timestamp in milliseconds since the epoch. When producing,
	// 0 means now.
	Millis  int64
	Key     []byte
	Value   []byte
	Headers []kgo.RecordHeader
}

// Text returns a record with a value and, unless it is empty, a key.
func Text(partition int32, millis int64, key, value string) Record {
	r := Record{Partition: partition, Millis: millis, Value: []byte(value)}
	if key != "" {
		r.Key = []byte(key)
	}
	return r
}

// Produce appends records, in order, each to its partition, and waits until
// they are written.
func (c *Cluster) Produce(tb testing.TB, topic string, records ...Record) {
	tb.Helper()
	client := c.Client(tb, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ProduceWith(tb, client, topic, records...)
	client.Close()
}

// ProduceWith is Produce by a client of the caller's, which may be in a
// transaction. The client must use kgo.ManualPartitioner.
func ProduceWith(tb testing.TB, client *kgo.Client, topic string, records ...Record) {
	tb.Helper()
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers}
		if r.Millis != 0 {
			out[i].Timestamp = time.UnixMilli(r.Millis)
		}
	}
	if err := client.ProduceSync(tb.Context(), out...).FirstErr(); err != nil {
		tb.Fatalf("producing to %s: %v", topic, err)
	}
}

// ReadAll returns what a topic holds now, by partition and offset. Records of
// aborted transactions are left out.
func (c *Cluster) ReadAll(tb testing.TB, topic string) []Record {
	tb.Helper()
	left := map[int32]int64{}
	start := map[int32]kgo.Offset{}
	for _, p := range c.Fake.PartitionInfos(topic) {
		if p.LastStableOffset > p.LogStartOffset {
			left[p.Partition] = p.LastStableOffset
			start[p.Partition] = kgo.NewOffset().AtStart()
		}
	}
	client := c.Client(tb,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords())
	defer client.Close()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	var records []Record
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			tb.Fatalf("reading %s back: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				records = append(records, Record{r.Partition, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Headers})
			}
		})
	}
	slices.SortStableFunc(records, func(a, b Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return records
}
