package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// The tests of this file need a real broker, since they are about what kfake
// might get wrong:
//
//	LOWWATER_KAFKA=localhost:9092 go test -run RealBroker ./kafka

// broker is a real one, with a topic for the test.
type broker struct {
	addrs []string
	topic string
	admin *kadm.Client
}

func realBroker(t *testing.T, partitions int32, config ...string) *broker {
	addrs := os.Getenv("LOWWATER_KAFKA")
	if addrs == "" {
		t.Skip("LOWWATER_KAFKA is not set")
	}
	b := &broker{addrs: strings.Split(addrs, ","), topic: fmt.Sprintf("lowwater-test-%x", rand.Uint64())}
	b.admin = kadm.NewClient(b.client(t))
	forever := "-1" // the timestamps of tests are old
	values := map[string]*string{"retention.ms": &forever}
	for i := 0; i+1 < len(config); i += 2 {
		values[config[i]] = &config[i+1]
	}
	if _, err := b.admin.CreateTopic(t.Context(), partitions, 1, values, b.topic); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.delete(t) })
	return b
}

func (b *broker) delete(t *testing.T) {
	if _, err := kadm.NewClient(b.client(t)).DeleteTopic(context.Background(), b.topic); err != nil {
		t.Logf("deleting the topic: %v", err)
	}
}

// stable waits until a transaction's markers are written, which is after its
// end was acknowledged.
func (b *broker) stable(t *testing.T, p int32, end int64) {
	t.Helper()
	for range 100 {
		offsets, err := b.admin.ListCommittedOffsets(t.Context(), b.topic)
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := offsets.Lookup(b.topic, p); o.Offset == end {
			return
		}
		wait(t.Context(), 50*time.Millisecond)
	}
	t.Fatalf("the last stable offset of partition %d does not reach %d", p, end)
}

func (b *broker) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (b *broker) produce(t *testing.T, records ...kafkatest.Record) {
	t.Helper()
	kafkatest.ProduceWith(t, b.client(t), b.topic, records...)
}

func (b *broker) transaction(t *testing.T, id string) *kgo.Client {
	t.Helper()
	client := b.client(t, kgo.TransactionalID(b.topic+id))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	return client
}

func (b *broker) source(opts ...SourceOption) *Source[string] {
	return NewSource(raw.String{}, append(opts, Brokers(b.addrs...), Topics(b.topic))...)
}

func TestRealBrokerReadsToTheStop(t *testing.T) {
	b := realBroker(t, 3)
	// Partition 0 ends with an abort marker, 1 with an aborted record whose
	// marker is behind the last stable offset, 2 is empty.
	b.produce(t, numbered(0, 2000)...)
	end := func(client *kgo.Client, how kgo.TransactionEndTry) {
		t.Helper()
		if err := client.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	aborted := b.transaction(t, "a")
	kafkatest.ProduceWith(t, aborted, b.topic, kafkatest.Text(0, 0, "", "no"), kafkatest.Text(1, 0, "", "no"))
	open := b.transaction(t, "b")
	kafkatest.ProduceWith(t, open, b.topic, kafkatest.Text(1, 0, "", "open"))
	end(aborted, kgo.TryAbort)
	b.stable(t, 0, 2002)
	b.stable(t, 1, 1)

	s := start(t, b.source(Bounded(), ReadCommitted()))
	s.toEnd()
	if got := s.out.values(); len(got) != 1 || len(got[b.topic+"-0"]) != 2000 {
		t.Errorf("read %d splits, %d records, want the 2000 of partition 0", len(got), len(s.out.records))
	}
	if len(s.out.finished) != 3 {
		t.Errorf("finished %v, want all", s.out.finished)
	}
	end(open, kgo.TryCommit)
	b.stable(t, 1, 4)
	s = start(t, b.source(Bounded(), ReadCommitted(), StartFrom(Offsets(map[string]map[int32]int64{b.topic: {0: 1990}}))))
	s.toEnd()
	want := []string{"open"}
	if diff := cmp.Diff(want, s.out.values()[b.topic+"-1"]); diff != "" || len(s.out.records) != 11 {
		t.Errorf("read %d records, want 11; partition 1 (-want +got):\n%s", len(s.out.records), diff)
	}
}

func TestRealBrokerStartModes(t *testing.T) {
	b := realBroker(t, 1)
	b.produce(t, numbered(0, 10)...)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: b.topic, Partition: 0, At: 6, LeaderEpoch: -1})
	if err := b.admin.CommitAllOffsets(t.Context(), b.topic, offsets); err != nil {
		t.Fatal(err)
	}
	below := kadm.Offsets{}
	below.Add(kadm.Offset{Topic: b.topic, Partition: 0, At: 3, LeaderEpoch: -1})
	if _, err := b.admin.DeleteRecords(t.Context(), below); err != nil {
		t.Fatal(err)
	}
	tests := map[int64]Start{
		3:  Earliest(),
		10: Latest(),
		5:  Timestamp(time.UnixMilli(1005)),
		6:  GroupOffsets(b.topic, Latest()),
	}
	for want, mode := range tests {
		splits, err := discover(t, b.source(StartFrom(mode)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]connector.Split{Split{Topic: b.topic, Start: want}}, splits); diff != "" {
			t.Errorf("from %v (-want +got):\n%s", mode, diff)
		}
	}
	splits, err := discover(t, b.source(StartFrom(GroupOffsets(b.topic+"-none", Latest()))))
	if err != nil || splits[0].(Split).Start != 10 {
		t.Errorf("from an unknown group: %v, %v, want the fallback", splits, err)
	}
	s := newSubtask(t, b.source())
	if err := s.reader.AddSplits([]connector.Split{Split{Topic: b.topic, Start: 1}}); err != nil {
		t.Fatal(err)
	}
	if missing := mentions(s.fails(), "OFFSET_OUT_OF_RANGE", "offset 1"); missing != "" {
		t.Errorf("the error of a deleted offset does not mention %s", missing)
	}
}

func TestRealBrokerLogAppendTime(t *testing.T) {
	b := realBroker(t, 1, "message.timestamp.type", "LogAppendTime")
	before := time.Now().Add(-time.Minute).UnixMilli()
	b.produce(t, numbered(0, 3)...)
	s := start(t, b.source(Bounded()))
	s.toEnd()
	if s.out.types[0] != connector.LogAppendTime || s.out.records[0].Timestamp < before {
		t.Errorf("timestamp %d of type %v, want the broker's", s.out.records[0].Timestamp, s.out.types[0])
	}
}

func TestRealBrokerDeletesTheTopic(t *testing.T) {
	b := realBroker(t, 1)
	b.produce(t, numbered(0, 3)...)
	s := start(t, b.source(GroupID(b.topic)))
	s.want(3)
	b.delete(t)
	if missing := mentions(s.fails(), b.topic, "offset 3", "deleted"); missing != "" {
		t.Errorf("the error does not mention %s", missing)
	}
}

func TestRealBrokerTakesWhatTheSinkWrites(t *testing.T) {
	b := realBroker(t, 3)
	sink := NewSink(raw.String{}, Brokers(b.addrs...), Topic(b.topic)).WithKey(func(v string) []byte { return []byte(v) })
	batch := &connector.Batch[string]{}
	want := map[string]bool{}
	for i := range connector.BatchSize {
		v := fmt.Sprint("value-", i)
		want[v] = true
		batch.Append(v, int64(1+i), 0)
	}
	write(t, sink, batch, batch)
	s := start(t, b.source(Bounded()))
	s.toEnd()
	if len(s.out.records) != 2*len(want) {
		t.Errorf("%d records, want %d", len(s.out.records), 2*len(want))
	}
	for _, r := range s.out.records {
		if !want[r.Value] || fmt.Sprint("value-", r.Timestamp-1) != r.Value {
			t.Fatalf("read %+v", r)
		}
	}
}
