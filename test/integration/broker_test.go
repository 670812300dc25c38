//go:build integration

package integration

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestBrokerVersion makes sure that the other tests talk to the Kafka they were
// meant for. LOWWATER_TEST_KAFKA_VERSION is the release that was started; a
// broker of one's own may have any.
func TestBrokerVersion(t *testing.T) {
	admin := kadm.NewClient(newClient(t))
	versions, err := admin.ApiVersions(opContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) == 0 {
		t.Fatal("no broker answered")
	}
	release := os.Getenv("LOWWATER_TEST_KAFKA_VERSION")
	for _, broker := range versions.Sorted() {
		if broker.Err != nil {
			t.Fatalf("broker %d: %v", broker.NodeID, broker.Err)
		}
		guess := broker.VersionGuess()
		t.Logf("broker %d is a Kafka %s", broker.NodeID, guess)
		if release != "" && !strings.HasPrefix("v"+release, guess) {
			t.Errorf("broker %d is a Kafka %s, want %s", broker.NodeID, guess, release)
		}
	}
}

// stored is what of a record must survive the way through the broker.
type stored struct {
	Partition       int32
	Offset          int64
	Key, Value      string
	Header          string
	TimestampMillis int64
}

func TestProduceConsume(t *testing.T) {
	const partitions, perPartition = 3, 1000
	topic := newTopic(t, partitions, nil)
	producer := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))

	// Event times run backwards, so that nothing but the stored timestamp can
	// produce them.
	newest := time.Date(2024, 2, 29, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()
	var want []stored
	var records []*kgo.Record
	for i := range int64(perPartition) {
		for p := range int32(partitions) {
			s := stored{p, i, fmt.Sprint("key-", i%7), fmt.Sprintf("value-%d-%d", p, i), fmt.Sprint("trace-", i), newest - i}
			want = append(want, s)
			records = append(records, &kgo.Record{
				Partition: p, Key: []byte(s.Key), Value: []byte(s.Value), Timestamp: time.UnixMilli(s.TimestampMillis),
				Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte(s.Header)}},
			})
		}
	}
	if err := producer.ProduceSync(opContext(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}

	consumer := newClient(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var got []stored
	for _, r := range consumeAll(t, consumer, len(want)) {
		if r.Attrs.TimestampType() != 0 {
			t.Fatalf("partition %d offset %d: timestamp type %d, want 0 (CreateTime)", r.Partition, r.Offset, r.Attrs.TimestampType())
		}
		if len(r.Headers) != 1 || r.Headers[0].Key != "trace" {
			t.Fatalf("partition %d offset %d: headers %v, want one named trace", r.Partition, r.Offset, r.Headers)
		}
		got = append(got, stored{r.Partition, r.Offset, string(r.Key), string(r.Value), string(r.Headers[0].Value), r.Timestamp.UnixMilli()})
	}
	byPlace := func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	}
	slices.SortFunc(want, byPlace)
	slices.SortFunc(got, byPlace)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("records differ (-produced +consumed):\n%s", diff)
	}
}

// TestTransactions checks what exactly-once rests on: a read_committed reader
// sees the committed transaction only, and a second producer with the same
// transactional id fences the first.
func TestTransactions(t *testing.T) {
	topic := newTopic(t, 1, nil)
	id := uniqueName(t)
	newProducer := func() *kgo.Client {
		return newClient(t, kgo.DefaultProduceTopic(topic), kgo.TransactionalID(id))
	}
	transact := func(p *kgo.Client, value string, end kgo.TransactionEndTry) error {
		if err := p.BeginTransaction(); err != nil {
			return err
		}
		if err := p.ProduceSync(opContext(t), kgo.StringRecord(value)).FirstErr(); err != nil {
			return errors.Join(err, p.EndTransaction(opContext(t), kgo.TryAbort))
		}
		return p.EndTransaction(opContext(t), end)
	}

	first := newProducer()
	if err := transact(first, "aborted", kgo.TryAbort); err != nil {
		t.Fatalf("abort: %v", err)
	}
	if err := transact(first, "committed by the first", kgo.TryCommit); err != nil {
		t.Fatalf("commit: %v", err)
	}
	if err := transact(newProducer(), "committed by the second", kgo.TryCommit); err != nil {
		t.Fatalf("commit of the second producer: %v", err)
	}
	if err := transact(first, "fenced", kgo.TryCommit); err == nil {
		t.Error("the first producer committed after a second one took over its transactional id")
	}

	consumer := newClient(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	var got []string
	for _, r := range consumeAll(t, consumer, 2) {
		got = append(got, string(r.Value))
	}
	if diff := gocmp.Diff([]string{"committed by the first", "committed by the second"}, got); diff != "" {
		t.Errorf("a read_committed reader sees (-want +got):\n%s", diff)
	}
}
