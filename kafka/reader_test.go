package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

type order struct {
	ID    string
	Cents int
}

var errNotAnOrder = errors.New("not an order")

// orders decodes JSON objects, which need not have every field.
type orders struct{}

func (orders) Decode(data []byte, into *order) error {
	if json.Unmarshal(data, into) != nil {
		return errNotAnOrder
	}
	return nil
}

func TestDecodeErrors(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	long := "{\x00" + strings.Repeat("x", 500)
	c.Produce(t, "orders",
		kafkatest.Text(0, 1000, "", `{"ID":"a","Cents":1}`),
		kafkatest.Text(0, 1001, "k", `{"ID":`),
		kafkatest.Text(0, 1002, "", long),
		kafkatest.Record{Key: []byte("gone"), Millis: 1003},
		kafkatest.Text(0, 1004, "", `{"ID":"b"}`),
	)
	read := func(policy DecodeErrorPolicy) *subtask[order] {
		return start(t, NewSource(orders{}, at(c), Topics("orders"), Bounded(), OnDecodeError(policy)))
	}
	good := []got[order]{{"orders-0", 0, 1000, order{"a", 1}}, {"orders-0", 4, 1004, order{"b", 0}}}
	tombstone := `orders-0@3 key "gone"`

	t.Run("FailJob", func(t *testing.T) {
		s := read(FailJob)
		err := s.fails()
		if missing := mentions(err, "orders-0@1", "not an order", "OnDecodeError", "ToDeadLetters"); missing != "" {
			t.Errorf("error %q does not mention %s", err, missing)
		}
		if !errors.Is(err, errNotAnOrder) {
			t.Errorf("error %q does not wrap the decoder's", err)
		}
	})
	t.Run("SkipRecord", func(t *testing.T) {
		s := read(SkipRecord)
		s.toEnd()
		if diff := cmp.Diff(good, s.out.records); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		want := map[string][]string{
			"malformed": {
				`orders-0@1 "{\"ID\":": not an order`,
				`orders-0@2 "{\x00` + strings.Repeat("x", 62) + `"… (502 bytes): not an order`,
			},
			"tombstone": {tombstone},
		}
		if diff := cmp.Diff(want, s.drops.reasons); diff != "" {
			t.Errorf("drops (-want +got):\n%s", diff)
		}
	})
	t.Run("ToDeadLetters", func(t *testing.T) {
		s := read(ToDeadLetters)
		s.toEnd()
		if diff := cmp.Diff(good, s.out.records); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		want := []connector.DeadLetter{
			{SplitID: "orders-0", Topic: "orders", Offset: 1, Timestamp: 1001, Key: []byte("k"), Value: []byte(`{"ID":`), Err: errNotAnOrder},
			{SplitID: "orders-0", Topic: "orders", Offset: 2, Timestamp: 1002, Value: []byte(long), Err: errNotAnOrder},
		}
		if diff := cmp.Diff(want, s.out.side, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string][]string{"tombstone": {tombstone}}, s.drops.reasons); diff != "" {
			t.Errorf("drops (-want +got):\n%s", diff)
		}
	})
}

// TestDropsAreLogged: the first of each kind with its place, all at the end.
func TestDropsAreLogged(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	c.Produce(t, "orders",
		kafkatest.Text(0, 1, "", `{"ID":`), kafkatest.Text(0, 2, "", "x"), kafkatest.Text(0, 3, "", "y"),
		kafkatest.Record{Key: []byte("k")}, kafkatest.Record{Key: []byte("l")})
	s := start(t, NewSource(orders{}, at(c), Topics("orders"), Bounded(), OnDecodeError(SkipRecord)))
	s.toEnd()
	want := []string{
		`level=WARN msg="a record was dropped; those that follow are only counted" reason=malformed record="orders-0@0 \"{\\\"ID\\\":\": not an order"`,
		`level=WARN msg="a record was dropped; those that follow are only counted" reason=tombstone record="orders-0@3 key \"k\""`,
	}
	if diff := cmp.Diff(want, s.log.written()); diff != "" {
		t.Errorf("log before the end (-want +got):\n%s", diff)
	}
	s.close()
	want = append(want,
		`level=WARN msg="records were dropped in all" reason=malformed records=3`,
		`level=WARN msg="records were dropped in all" reason=tombstone records=2`,
	)
	if diff := cmp.Diff(want, s.log.written()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestTombstonesForNullDecoder(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	c.Produce(t, "orders", kafkatest.Text(0, 1, "k", "v"), kafkatest.Record{Key: []byte("k")}, kafkatest.Record{Value: []byte{}})
	s := start(t, NewSource(raw.Bytes{}, at(c), Topics("orders"), Bounded()))
	s.toEnd()
	want := map[string][][]byte{"orders-0": {[]byte("v"), nil, {}}}
	if diff := cmp.Diff(want, s.out.values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestRecordSource(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	header := kgo.RecordHeader{Key: "trace", Value: []byte("7")}
	c.Produce(t, "orders",
		kafkatest.Record{Partition: 1, Millis: 1500, Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{header}},
		kafkatest.Record{Partition: 1, Millis: 1501},
	)
	src := NewRecordSource(func(rec Record) (Record, error) {
		rec.Key, rec.Value = slices.Clone(rec.Key), slices.Clone(rec.Value)
		return rec, nil
	}, at(c), Topics("orders"), Bounded())
	s := start(t, src)
	s.toEnd()
	want := map[string][]Record{"orders-1": {
		{Topic: "orders", Partition: 1, Offset: 0, Timestamp: 1500, TimestampType: connector.CreateTime,
			Key: []byte("k"), Value: []byte("v"), Headers: []Header{header}},
		{Topic: "orders", Partition: 1, Offset: 1, Timestamp: 1501, TimestampType: connector.CreateTime},
	}}
	if diff := cmp.Diff(want, s.out.values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// dirtyOutput hands out batches that were used before.
type dirtyOutput struct{ output[order] }

func (o *dirtyOutput) Batch() *connector.Batch[order] {
	b := &connector.Batch[order]{Values: make([]order, connector.BatchSize)}
	for i := range b.Values {
		b.Values[i] = order{"stale", 99}
	}
	b.Values = b.Values[:0]
	return b
}

func TestNothingStaleInRecycledBatches(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	c.Produce(t, "orders", kafkatest.Text(0, 1, "", `{"ID":"a"}`), kafkatest.Text(0, 1, "", `[`), kafkatest.Text(0, 1, "", `{"Cents":1}`))
	s := start(t, NewSource(orders{}, at(c), Topics("orders"), Bounded(), OnDecodeError(SkipRecord)))
	out := &dirtyOutput{output[order]{t: t}}
	for {
		status, err := s.reader.Poll(out)
		if err != nil {
			t.Fatal(err)
		}
		if status == connector.EndOfInput {
			break
		}
		if status == connector.NothingAvailable {
			<-s.reader.Available()
		}
	}
	want := map[string][]order{"orders-0": {{"a", 0}, {"", 1}}}
	if diff := cmp.Diff(want, out.values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestPauseAndResume(t *testing.T) {
	const n = 5000
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	c.Produce(t, "orders", slices.Concat(numbered(0, n), numbered(1, n))...)
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
	if _, err := s.poll(func() bool { return len(s.out.of("orders-0")) > 0 }); err != nil {
		t.Fatal(err)
	}
	s.reader.PauseSplits([]string{"orders-0", "unknown-9"})
	before := len(s.out.of("orders-0"))
	s.want(before + n) // all of the other split, although more of this one is at hand
	if after := len(s.out.of("orders-0")); after != before {
		t.Fatalf("%d records of a paused split", after-before)
	}
	c.Produce(t, "orders", numbered(1, 3)...) // goes on while the other is paused
	s.want(before + n + 3)

	s.reader.ResumeSplits([]string{"orders-0"})
	s.want(2*n + 3)
	for i, r := range s.out.of("orders-0") {
		if want := fmt.Sprintf("0/%d", i); r.Offset != int64(i) || r.Value != want {
			t.Fatalf("record %d is %q at offset %d, want %q: the pause lost or repeated records", i, r.Value, r.Offset, want)
		}
	}
}

func TestPauseAllOfAFinishedSplit(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	c.Produce(t, "orders", numbered(0, 10)...)
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded()))
	s.reader.PauseSplits([]string{"orders-0", "orders-1"})
	if _, err := s.poll(func() bool { return len(s.out.finished) == 1 }); err != nil {
		t.Fatal(err)
	}
	if len(s.out.records) != 0 {
		t.Fatalf("%d records of a paused split", len(s.out.records))
	}
	s.reader.ResumeSplits([]string{"orders-0", "orders-1"})
	s.toEnd()
	if len(s.out.records) != 10 {
		t.Errorf("got %d records, want 10", len(s.out.records))
	}
}

func TestSplitsTakeTurns(t *testing.T) {
	const partitions, batches = 4, 5
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", partitions)
	for p := range int32(partitions) {
		c.Produce(t, "orders", numbered(p, batches*connector.BatchSize)...)
	}
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded()))
	s.toEnd()
	if len(s.out.batches) != partitions*batches {
		t.Fatalf("got %d batches, want %d full ones", len(s.out.batches), partitions*batches)
	}
	for i := 0; i < len(s.out.batches); i += partitions {
		round := slices.Sorted(slices.Values(s.out.batches[i : i+partitions]))
		if len(slices.Compact(round)) != partitions {
			t.Fatalf("batches %d to %d are of %v, want one of each split", i, i+partitions-1, s.out.batches[i:i+partitions])
		}
	}
}

func TestTimestampTypesDoNotMix(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	s := newSubtask(t, NewSource(raw.String{}, at(c), Topics("orders")))
	if err := s.reader.AddSplits([]connector.Split{Split{Topic: "orders"}}); err != nil {
		t.Fatal(err)
	}
	// kfake knows only CreateTime, so the records do not come from it.
	var records []*kgo.Record
	for i, typ := range []int8{0, 0, 1, -1, -1, 0} {
		records = append(records, &kgo.Record{
			Topic: "orders", Offset: int64(i), Value: []byte{}, Timestamp: time.UnixMilli(int64(1000 + i)),
			Attrs: kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: typ}),
		})
	}
	s.reader.distribute(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{{Records: records}}}}}})
	s.want(len(records))
	wantTypes := []connector.TimestampType{connector.CreateTime, connector.LogAppendTime, connector.NoTimestamp, connector.CreateTime}
	if diff := cmp.Diff(wantTypes, s.out.types); diff != "" {
		t.Errorf("timestamp types of the batches (-want +got):\n%s", diff)
	}
	var millis []int64
	for _, r := range s.out.records {
		millis = append(millis, r.Timestamp)
	}
	want := []int64{1000, 1001, 1002, eventtime.MinTimestamp, eventtime.MinTimestamp, 1005}
	if diff := cmp.Diff(want, millis); diff != "" {
		t.Errorf("timestamps (-want +got):\n%s", diff)
	}
}

// TestStopInAGap: compaction removed the records around the stop offset, so that
// the first one behind it tells that it is reached.
func TestStopInAGap(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	s := newSubtask(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded()))
	if err := s.reader.AddSplits([]connector.Split{Split{Topic: "orders", Stop: 5, Bounded: true}}); err != nil {
		t.Fatal(err)
	}
	s.reader.NoMoreSplits()
	records := []*kgo.Record{
		{Topic: "orders", Offset: 2, Value: []byte("before"), Timestamp: time.UnixMilli(1)},
		{Topic: "orders", Offset: 7, Value: []byte("behind"), Timestamp: time.UnixMilli(2)},
	}
	s.reader.distribute(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{{Records: records}}}}}})
	s.toEnd()
	if diff := cmp.Diff([]got[string]{{"orders-0", 2, 1, "before"}}, s.out.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestOffsetsDeletedWhileReading(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	c.Produce(t, "orders", numbered(0, 10)...)
	src := NewSource(raw.String{}, at(c), Topics("orders"))
	splits, err := discover(t, src)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fake.DeleteRecords("orders", 0, 5); err != nil {
		t.Fatal(err)
	}
	s := newSubtask(t, src)
	if err := s.reader.AddSplits(splits); err != nil {
		t.Fatal(err)
	}
	err = s.fails()
	if missing := mentions(err, "orders-0 at offset 0", "OFFSET_OUT_OF_RANGE", "deleted before they were read"); missing != "" {
		t.Errorf("error %q does not mention %s", err, missing)
	}
	if len(s.out.records) != 0 {
		t.Errorf("read %d records from another offset", len(s.out.records))
	}
	if _, again := s.reader.Poll(s.out); again == nil {
		t.Error("the next Poll forgot the error")
	}
}

func TestAddSplitsErrors(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	s := newSubtask(t, NewSource(raw.String{}, at(c), Topics("orders")))
	split := Split{Topic: "orders"}
	if err := s.reader.AddSplits([]connector.Split{split}); err != nil {
		t.Fatal(err)
	}
	if err := s.reader.AddSplits([]connector.Split{split}); mentions(err, "orders-0", "twice") != "" {
		t.Errorf("adding a split twice: %v", err)
	}
	if err := s.reader.AddSplits([]connector.Split{foreign{}}); mentions(err, "foreign", "kafka.Split") != "" {
		t.Errorf("adding another source's split: %v", err)
	}
}

type foreign struct{}

func (foreign) ID() string { return "foreign" }
