package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/internal/gaps"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/internal/why"
)

const base = int64(1_700_000_000_000)

// evidence is what an engine tells of a source that reads partitions 0 and 1 of a topic,
// in the form of its metrics.
func evidence(topic string) *why.Evidence {
	return &why.Evidence{
		AtMillis:  base + 100_000,
		Operators: []why.Operator{{ID: "s", Name: "s", Kind: why.KindSource, Parallelism: 1, Source: &why.Source{Topics: []string{topic}}}},
		History: []why.Snapshot{{AtMillis: base + 100_000, Splits: []why.Split{
			{Source: "s", Topic: topic, Partition: 0, Subtask: why.Know(0)}, {Source: "s", Topic: topic, Partition: 1, Subtask: why.Know(0)},
		}}},
	}
}

func collector(t *testing.T, c *kafkatest.Cluster, o Options) *Collector {
	t.Helper()
	k, err := New(append(c.Options(), kgo.SeedBrokers(c.Brokers()...), kgo.RetryTimeout(2*time.Second)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func TestLook(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "shop.orders", 3)
	var records []kafkatest.Record
	for i := range int64(20) {
		records = append(records, kafkatest.Text(0, base+i*1000, "steady", fmt.Sprintf(`{"at":%d}`, (base+i*1000)/1000)))
	}
	records = append(records,
		kafkatest.Text(0, base+50_000, "x", fmt.Sprintf(`{"at":%d}`, (base+12_000)/1000)),  // 7 s behind, after a gap
		kafkatest.Text(0, base+50_500, "x", fmt.Sprintf(`{"at":%d}`, (base+650_500)/1000)), // ahead
		kafkatest.Text(0, base+51_000, "x", `{}`),
	)
	c.Produce(t, "shop.orders", records...)
	field, err := gaps.NewField("at", gaps.Seconds)
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions
	o.Payload = field
	e := evidence("shop_orders")
	if unseen := collector(t, c, o).Look(t.Context(), e); unseen != nil {
		t.Errorf("unseen: %v", unseen)
	}
	if !e.Means.KafkaOffsets || !e.Means.KafkaRecords || e.Operators[0].Source.Topics[0] != "shop.orders" {
		t.Errorf("means %+v, topics %v", e.Means, e.Operators[0].Source.Topics)
	}
	splits := e.History[0].Splits
	if len(splits) != 3 || splits[2].Partition != 2 || !splits[2].Unassigned {
		t.Fatalf("splits %+v", splits)
	}
	k := why.Know[int64]
	read, empty := splits[0], splits[1]
	if read.EndOffset != k(23) || read.LastAppendMillis != k(base+51_000) || read.LastRecordMillis != k(base+51_000) || read.LastPayloadMillis.OK {
		t.Errorf("partition 0: %+v", read)
	}
	if empty.EndOffset != k(0) || empty.LastAppendMillis != k(why.Never) || empty.LastPayloadMillis != k(why.MinTime) || empty.PositionOffset != k(0) || empty.Profile != nil {
		t.Errorf("partition 1, which is empty: %+v", empty)
	}
	want := &why.Profile{
		Records: 23, FirstAppendMillis: base, LastAppendMillis: base + 51_000, DisorderMillis: 7000, DelaySpreadMillis: 38_000,
		MaxAheadMillis: 600_000 - 500 + 500, AheadRecords: 1,
		Ahead:                     []why.AheadRecord{{Offset: 21, Key: "x", EventMillis: base + 650_000, AppendMillis: base + 50_500}},
		PayloadBehindRecordMillis: 38_000, SteadiestGapMillis: k(32_000), SteadiestSpanMillis: 19_000, SteadiestKey: "steady",
	}
	want.MaxAheadMillis = base + 650_000 - (base + 50_500)
	got := *read.Profile
	if len(got.Gaps) != 22 || got.Gaps[0] != (why.Gap{FromMillis: base + 19_000, ToMillis: base + 50_000}) || got.Gaps[21].Millis() != 500 {
		t.Errorf("gaps %+v", got.Gaps)
	}
	got.Gaps = nil
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
}

// TestBound: the bound follows from the watermark and what was read when it was made.
func TestBound(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	for i := range int64(30) {
		c.Produce(t, "orders", kafkatest.Text(0, base+i*1000, "", fmt.Sprintf(`{"at":%d}`, base+i*1000)))
	}
	field, err := gaps.NewField("at", gaps.Milliseconds)
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions
	o.Payload = field
	k := why.Know[int64]
	tests := []struct {
		name    string
		payload *gaps.Field
		change  func(*why.Evidence)
		want    *why.Strategy
	}{
		// Records 0 to 19 are read, the last of 19 s; the watermark is from 150 ms before that.
		{"gauge", field, func(e *why.Evidence) { e.History[0].Splits[0].Watermark = k(base + 19_000 - 5_000 - 1 - 150) }, &why.Strategy{BoundMillis: k(5000)}},
		{"none before the first watermark", field, func(e *why.Evidence) { e.History[0].Splits[0].Watermark = k(why.MinTime) }, nil},
		{"event times unknown", nil, func(e *why.Evidence) { e.History[0].Splits[0].Watermark = k(base + 13_999) }, nil},
		{"subtask with one split", field, func(e *why.Evidence) {
			e.History[0].Splits = e.History[0].Splits[:1]
			e.History[0].Subtasks = []why.Subtask{{Operator: "s", OutputWatermark: k(base + 19_000 - 1)}}
		}, &why.Strategy{BoundMillis: k(0)}},
		{"subtask with two splits", field, func(e *why.Evidence) {
			e.History[0].Subtasks = []why.Subtask{{Operator: "s", OutputWatermark: k(base + 19_000 - 1)}}
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := evidence("orders")
			e.History[0].Splits[0].PositionOffset = k(20)
			test.change(e)
			o.Payload = test.payload
			collector(t, c, o).Look(t.Context(), e)
			if diff := cmp.Diff(test.want, e.Operators[0].Source.Strategy); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
		})
	}
	for _, r := range [][3]int64{{-300, 0, 0}, {-100, 180, 0}, {4850, 5150, 5000}, {59_900, 60_200, 60_000}, {1301, 1307, 1307}, {0, 250, 0}} {
		if got := roundest(r[0], r[1]); got != r[2] {
			t.Errorf("between %d and %d: %d, want %d", r[0], r[1], got, r[2])
		}
	}
}

func TestUnknownTopic(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "a.b", 1)
	e := evidence("gone")
	want := []string{`topic "gone" of source "s": there is none on these brokers, or no permission to see it`}
	if diff := cmp.Diff(want, collector(t, c, DefaultOptions).Look(t.Context(), e)); diff != "" {
		t.Errorf("unseen (-want +got):\n%s", diff)
	}
	if e.Means.KafkaOffsets || len(e.History[0].Splits) != 2 {
		t.Errorf("evidence %+v", e)
	}
}

func TestNoKafka(t *testing.T) {
	k, err := New([]kgo.Opt{kgo.SeedBrokers("127.0.0.1:1"), kgo.RetryTimeout(100 * time.Millisecond)}, DefaultOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	e := evidence("orders")
	if unseen := k.Look(t.Context(), e); len(unseen) != 1 || e.Means.KafkaOffsets {
		t.Errorf("unseen %v", unseen)
	}
}

// TestOnlyTheLastRecords: of a long partition the end is read.
func TestOnlyTheLastRecords(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	var records []kafkatest.Record
	for i := range int64(500) {
		records = append(records, kafkatest.Text(int32(i%2), base+i, "", "0123456789"))
	}
	c.Produce(t, "orders", records...)
	o := DefaultOptions
	o.Records = 10
	e := evidence("orders")
	if unseen := collector(t, c, o).Look(t.Context(), e); unseen != nil {
		t.Errorf("unseen: %v", unseen)
	}
	if p := e.History[0].Splits[0].Profile; p == nil || p.Records != 10 || p.LastAppendMillis != base+498 {
		t.Errorf("profile %+v", p)
	}
	o.Records, o.Bytes = 200, 100
	e = evidence("orders")
	if unseen := collector(t, c, o).Look(t.Context(), e); len(e.History[0].Splits) != 2 || e.History[0].Splits[0].EndOffset != why.Know[int64](250) {
		t.Errorf("with a limit of bytes: %v", unseen)
	}
}

// TestOtherBrokers: what a cluster has that the job cannot be reading tells nothing of it.
func TestOtherBrokers(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 3)
	c.Produce(t, "orders", kafkatest.Text(0, base, "", "x"), kafkatest.Text(0, base, "", "x"), kafkatest.Text(1, base, "", "x"))
	k := why.Know[int64]
	for name, change := range map[string]func(splits []why.Split){
		"a position beyond the end":     func(splits []why.Split) { splits[0].PositionOffset = k(3) },
		"an end beyond the end":         func(splits []why.Split) { splits[1].PositionOffset, splits[1].EndOffset = k(1), k(2) },
		"a partition that is not there": func(splits []why.Split) { splits[1].Partition = 3 },
	} {
		e := evidence("orders")
		change(e.History[0].Splits)
		want := slices.Clone(e.History[0].Splits)
		unseen := collector(t, c, DefaultOptions).Look(t.Context(), e)
		if len(unseen) != 1 || !strings.Contains(unseen[0], "not the brokers that the job reads") || e.Means != (why.Means{}) {
			t.Errorf("%s: unseen %q, means %+v", name, unseen, e.Means)
		}
		if diff := cmp.Diff(want, e.History[0].Splits); diff != "" {
			t.Errorf("%s: splits (-want +got):\n%s", name, diff)
		}
	}
	e := evidence("orders")
	e.History[0].Splits[0].PositionOffset = k(2) // all of it
	if unseen := collector(t, c, DefaultOptions).Look(t.Context(), e); unseen != nil || !e.Means.KafkaOffsets {
		t.Errorf("the job's own brokers: unseen %q", unseen)
	}
}
