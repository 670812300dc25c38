package kafkatest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestProduceAndReadAll(t *testing.T) {
	c := Start(t)
	c.CreateTopic(t, "orders", 3)
	records := []Record{
		Text(1, 1500, "k", "v"),
		Text(0, 1501, "", ""),
		{Partition: 1, Millis: 1502, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}}},
	}
	c.Produce(t, "orders", records...)
	tx := c.Client(t, kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	ProduceWith(t, tx, "orders", Text(0, 1503, "", "aborted"))
	if err := tx.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Partition: 0, Offset: 0, Millis: 1501, Value: []byte{}},
		{Partition: 1, Offset: 0, Millis: 1500, Key: []byte("k"), Value: []byte("v")},
		{Partition: 1, Offset: 1, Millis: 1502, Headers: records[2].Headers},
	}
	if diff := cmp.Diff(want, c.ReadAll(t, "orders")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	c.AddPartitions(t, "orders", 4)
	c.Produce(t, "orders", Text(3, 1504, "", "late"))
	if got := c.ReadAll(t, "orders"); len(got) != 4 || got[3].Partition != 3 {
		t.Errorf("records %+v, want one more, in partition 3", got)
	}
}
