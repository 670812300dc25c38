package kafka

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// batchOf returns a batch of values without timestamps.
func batchOf[T any](values ...T) *connector.Batch[T] {
	b := &connector.Batch[T]{}
	for _, v := range values {
		b.Append(v, eventtime.MinTimestamp, 0)
	}
	return b
}

func openWriter[T any](t testing.TB, s *Sink[T]) connector.Writer[T] {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	w, err := s.NewWriter(t.Context(), connector.WriterRuntime{Operator: "sink", Parallelism: 1, Logger: testLogger(t)})
	if err != nil {
		t.Fatalf("NewWriter: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

// write writes batches and flushes.
func write[T any](t testing.TB, s *Sink[T], batches ...*connector.Batch[T]) {
	t.Helper()
	w := openWriter(t, s)
	for _, b := range batches {
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
}

func TestSinkRecords(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	sink := NewSink(raw.Bytes{}, sinkAt(c), Topic("out")).
		WithKey(func(v []byte) []byte {
			if len(v) < 2 {
				return nil
			}
			return v[:len(v)-2]
		}).
		WithHeaders(func(v []byte) []Header {
			if len(v) < 3 {
				return nil
			}
			return []Header{{Key: "h", Value: []byte("1")}}
		})
	b := &connector.Batch[[]byte]{}
	b.Append([]byte("abc"), 1500, 0)
	b.Append(nil, 1501, 0)
	b.Append([]byte{}, 0, 0)
	b.Append([]byte("de"), 1503, 0)
	before := time.Now().UnixMilli()
	b.Append([]byte("f"), eventtime.MinTimestamp, 0)
	b.Append([]byte("g"), -1, 0)
	write(t, sink, b)

	records := c.ReadAll(t, "out")
	if len(records) != 6 {
		t.Fatalf("%d records, want 6: %v", len(records), records)
	}
	for i := range records[4:] {
		r := &records[4+i]
		if r.Millis < before || r.Millis > time.Now().UnixMilli() {
			t.Errorf("a record without event time has timestamp %d, want the time of writing", r.Millis)
		}
		r.Millis = 0
	}
	want := []kafkatest.Record{
		{Offset: 0, Millis: 1500, Key: []byte("a"), Value: []byte("abc"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}},
		{Offset: 1, Millis: 1501},
		{Offset: 2, Value: []byte{}},
		{Offset: 3, Millis: 1503, Key: []byte{}, Value: []byte("de")},
		{Offset: 4, Value: []byte("f")},
		{Offset: 5, Value: []byte("g")},
	}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestSinkReusesRecords writes more than is in flight at once, so that records
// and their buffers are used again.
func TestSinkReusesRecords(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out")).WithKey(func(v string) []byte { return []byte(v[len(v)-1:]) }))
	var want, got []string
	for i := range 20 {
		b := &connector.Batch[string]{}
		for j := range 200 {
			v := fmt.Sprintf("%0*d", 1+(i*7+j)%50, i*1000+j)
			want = append(want, v[len(v)-1:]+" "+v)
			b.Append(v, int64(j), 0)
		}
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range c.ReadAll(t, "out") {
		got = append(got, string(r.Key)+" "+string(r.Value))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestSinkTopicAndTimestampFromValue(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out-a", 1)
	c.CreateTopic(t, "out-b", 1)
	sink := NewSink(raw.String{}, sinkAt(c)).
		WithTopic(func(v string) string { return "out-" + v[:1] }).
		WithTimestamp(func(v string) int64 { return int64(1000 + len(v)) })
	write(t, sink, batchOf("a1", "b", "a22"))
	want := map[string][]kafkatest.Record{
		"out-a": {{Millis: 1002, Value: []byte("a1")}, {Offset: 1, Millis: 1003, Value: []byte("a22")}},
		"out-b": {{Millis: 1001, Value: []byte("b")}},
	}
	for topic, records := range want {
		if diff := cmp.Diff(records, c.ReadAll(t, topic)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", topic, diff)
		}
	}
}

func TestSinkPartitions(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "keyed", 6)
	c.CreateTopic(t, "chosen", 3)
	itself := func(v string) []byte { return []byte(v) }
	// What kafka-clients 4.4.0 answers: toPositive(murmur2(key)) % 6.
	want := map[string]int32{"": 3, "a": 4, "order-1": 4, "order-2": 3, "Grüße": 3}
	write(t, NewSink(raw.String{}, sinkAt(c), Topic("keyed")).WithKey(itself), batchOf("", "a", "order-1", "order-2", "Grüße"))
	got := map[string]int32{}
	for _, r := range c.ReadAll(t, "keyed") {
		got[string(r.Value)] = r.Partition
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("partitions by key (-want +got):\n%s", diff)
	}

	chosen := NewSink(raw.String{}, sinkAt(c), Topic("chosen")).
		WithPartition(func(v string, n int) int { return len(v) % (n + 1) })
	write(t, chosen, batchOf("", "x", "xx", "xxxx"))
	want, got = map[string]int32{"": 0, "x": 1, "xx": 2, "xxxx": 0}, map[string]int32{}
	for _, r := range c.ReadAll(t, "chosen") {
		got[string(r.Value)] = r.Partition
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chosen partitions (-want +got):\n%s", diff)
	}
	err := openWriter(t, chosen).Write(t.Context(), batchOf("xxx"))
	if missing := mentions(err, "WithPartition returned 3", `"chosen"`, "0 to 2"); missing != "" {
		t.Errorf("error %q does not mention %s", err, missing)
	}
}

func TestSinkUnknownTopic(t *testing.T) {
	c := kafkatest.Start(t)
	addr := c.Brokers()[0]
	t.Run("at NewWriter", func(t *testing.T) {
		_, err := NewSink(raw.String{}, sinkAt(c), Topic("nowhere")).NewWriter(t.Context(), connector.WriterRuntime{Logger: testLogger(t)})
		if missing := mentions(err, `topic "nowhere" does not exist`, addr, "create it"); missing != "" {
			t.Errorf("error %q does not mention %s", err, missing)
		}
	})
	t.Run("at the first Write", func(t *testing.T) {
		w := openWriter(t, NewSink(raw.String{}, sinkAt(c)).WithTopic(func(v string) string { return v }))
		if missing := mentions(w.Write(t.Context(), batchOf("nowhere")), `topic "nowhere" does not exist`, addr); missing != "" {
			t.Errorf("the error does not mention %s", missing)
		}
		if missing := mentions(w.Write(t.Context(), batchOf("")), "empty topic"); missing != "" {
			t.Errorf("the error does not mention %s", missing)
		}
	})
}

var errNoCode = errors.New("no code for it")

type picky struct{}

func (picky) Encode(dst []byte, v string) ([]byte, error) {
	if v == "" {
		return nil, errNoCode
	}
	return append(dst, v...), nil
}

func TestSinkEncodeError(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	err := openWriter(t, NewSink(picky{}, sinkAt(c), Topic("out"))).Write(t.Context(), batchOf("x", ""))
	if !errors.Is(err, errNoCode) || mentions(err, `"out"`) != "" {
		t.Errorf("error %q, want the encoder's with the topic", err)
	}
}

// TestSinkProduceError has the broker refuse one partition.
func TestSinkProduceError(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 3)
	c.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Partitions: []int32{2}, Err: kerr.RecordListTooLarge, Count: -1})
	w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out")).WithPartition(func(v string, _ int) int { return len(v) }))
	if err := w.Write(t.Context(), batchOf("a", "bb", "c")); err != nil {
		t.Fatal(err)
	}
	err := w.Flush(t.Context())
	if !errors.Is(err, kerr.RecordListTooLarge) || mentions(err, "out-2", c.Brokers()[0]) != "" {
		t.Errorf("Flush = %v, want the broker's error with the partition", err)
	}
	if again := w.Write(t.Context(), batchOf("d")); !errors.Is(again, err) {
		t.Errorf("Write after the failure = %v, want it again", again)
	}
	if again := w.Flush(t.Context()); !errors.Is(again, err) {
		t.Errorf("Flush after the failure = %v, want it again", again)
	}
}

// TestSinkFlushWaits checks that Flush does not return before the broker
// answered, and says what is missing if it may not wait for that.
func TestSinkFlushWaits(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	release := make(chan struct{})
	c.Fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.Fake.SleepControl(func() { <-release })
		return nil, nil, false
	})
	w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out")))
	if err := w.Write(t.Context(), batchOf("a", "b")); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	err := w.Flush(impatient)
	if !errors.Is(err, context.Canceled) || mentions(err, "2 records") != "" {
		t.Errorf("Flush = %v, want that 2 records are not acknowledged", err)
	}
	close(release)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(c.ReadAll(t, "out")); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// TestNothingOfAClosedWriterStays: neither leases nor timers hold on to it.
func TestNothingOfAClosedWriterStays(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	gone := make(chan struct{})
	func() {
		w, err := NewSink(raw.String{}, sinkAt(c), Topic("out")).NewWriter(t.Context(), connector.WriterRuntime{Logger: testLogger(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), batchOf("a")); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		runtime.SetFinalizer(w.(*writer[string]).lease, func(context.Context) { close(gone) })
	}()
	for range 200 {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the last lease is still in memory")
}

func TestSinkNone(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "out", 1)
	var acks []int16
	c.Fake.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.Fake.KeepControl()
		acks = append(acks, req.(*kmsg.ProduceRequest).Acks)
		return nil, nil, false
	})
	write(t, NewSink(raw.String{}, sinkAt(c), Topic("out"), Delivery(None)), batchOf("a"))
	write(t, NewSink(raw.String{}, sinkAt(c), Topic("out")), batchOf("b"))
	if records := c.ReadAll(t, "out"); len(records) != 2 {
		t.Errorf("%d records, want 2", len(records))
	}
	if !slices.Equal(acks, []int16{1, -1}) {
		t.Errorf("acks = %v, want 1 (the leader) for None, -1 (all) for AtLeastOnce", acks)
	}
}
