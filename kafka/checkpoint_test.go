package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// source is a source of the stage's topic.
func (s *stage) source(opts ...SourceOption) *Source[string] {
	all := []SourceOption{Topics(s.topic)}
	for _, o := range s.options {
		all = append(all, o)
	}
	return NewSource(raw.String{}, append(all, opts...)...)
}

// fill writes n records to each partition, in transactions and without, some of them
// aborted, so that partitions have gaps and end with markers.
func (s *stage) fill(rnd *rand.Rand, n int) {
	s.t.Helper()
	for len, i := 0, 0; len < n; i++ {
		run := min(1+rnd.IntN(n/4), n-len)
		var records []kafkatest.Record
		for p := range int32(sinkPartitions) {
			for k := range run {
				records = append(records, kafkatest.Text(p, int64(1000+len+k), "", fmt.Sprint(len+k)))
			}
		}
		opts := append([]kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())}, s.client...)
		how := rnd.IntN(3)
		if how > 0 {
			opts = append(opts, kgo.TransactionalID(fmt.Sprint(s.topic, "-fill")))
		}
		client, err := kgo.NewClient(opts...)
		if err != nil {
			s.t.Fatal(err)
		}
		if how > 0 {
			err = client.BeginTransaction()
		}
		if err != nil {
			s.t.Fatal(err)
		}
		kafkatest.ProduceWith(s.t, client, s.topic, records...)
		if how > 0 {
			err = client.EndTransaction(s.t.Context(), kgo.TransactionEndTry(how == 1))
		}
		if err != nil {
			s.t.Fatal(err)
		}
		client.Close()
		if how != 2 {
			len += run
		}
	}
}

// restored returns a reader for splits as a checkpoint gives them back.
func restored(t *testing.T, src *Source[string], out *output[string], splits []connector.Split) *subtask[string] {
	t.Helper()
	s := newSubtask(t, src)
	s.out.records, s.out.finished = out.records, out.finished
	for i, split := range splits {
		data, err := src.EncodeSplit(split)
		if err != nil {
			t.Fatal(err)
		}
		if splits[i], err = src.DecodeSplit(data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(split, splits[i]); diff != "" {
			t.Fatalf("split %s (-encoded +decoded):\n%s", data, diff)
		}
	}
	if err := s.reader.AddSplits(splits); err != nil {
		t.Fatal(err)
	}
	s.reader.NoMoreSplits()
	return s
}

// TestRestoredReaderReadsEachRecordOnce stops a bounded source at random places, between
// batches, with splits that are paused, finished, or stand before a transaction's marker,
// and goes on from what the snapshot says.
func TestRestoredReaderReadsEachRecordOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		const n = 4000
		s.fill(rnd, n)
		s.settled()
		src := s.source(Bounded(), ReadCommitted(), FetchMaxPartitionBytes(4<<10), FetchMaxWait(20*time.Millisecond))
		splits, err := discover(t, src)
		if err != nil {
			t.Fatal(err)
		}
		out, runs := &output[string]{}, 0
		for len(out.finished) < sinkPartitions {
			run := restored(t, src, out, splits)
			runs++
			target := len(run.out.records) + rnd.IntN(n)
			paused := []string{fmt.Sprint(s.topic, "-", rnd.IntN(sinkPartitions))}
			for len(run.out.records) < target && (len(run.out.finished) == len(out.finished) || rnd.IntN(3) > 0) {
				switch rnd.IntN(8) {
				case 0:
					run.reader.PauseSplits(paused)
				case 1:
					run.reader.ResumeSplits(paused)
				}
				status, err := run.reader.Poll(run.out)
				if err != nil {
					t.Fatal(err)
				}
				if status == connector.EndOfInput {
					break
				}
				if status == connector.NothingAvailable {
					select {
					case <-run.reader.Available():
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
			if splits, err = run.reader.SnapshotSplits(); err != nil {
				t.Fatal(err)
			}
			if len(splits)+len(run.out.finished) != sinkPartitions {
				t.Fatalf("%d splits in the snapshot, %d finished", len(splits), len(run.out.finished))
			}
			out = run.out
			run.close()
		}
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint(i))
		}
		for p := range sinkPartitions {
			if diff := cmp.Diff(want, out.values()[fmt.Sprint(s.topic, "-", p)]); diff != "" {
				t.Errorf("partition %d over %d runs (-want +got):\n%.2000s", p, runs, diff)
			}
		}
	})
}

// TestGroupOffsetsFollowCheckpoints: what is committed is what a completed checkpoint covers,
// and the last one's also if the reader is closed at once.
func TestGroupOffsetsFollowCheckpoints(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		s.fill(rand.New(rand.NewPCG(1, 1)), 10)
		group := s.topic + "-group"
		src := s.source(GroupID(group), ReadCommitted())
		splits, err := discover(t, src)
		if err != nil {
			t.Fatal(err)
		}
		r, err := src.NewReader(t.Context(), connector.ReaderRuntime{Parallelism: 1, Logger: testLogger(t), Checkpointing: true})
		if err != nil {
			t.Fatal(err)
		}
		run := newSubtask(t, src)
		run.close()
		run.reader = r.(*reader[string])
		if err := run.reader.AddSplits(splits); err != nil {
			t.Fatal(err)
		}
		run.reader.SnapshotTaken(1)
		run.want(10 * sinkPartitions)
		want := map[int32]int64{}
		for _, split := range must(run.reader.SnapshotSplits())(t) {
			want[split.(Split).Partition] = split.(Split).Start
		}
		run.reader.SnapshotTaken(2)
		run.reader.SnapshotTaken(3)
		committed := func() map[int32]int64 {
			at := map[int32]int64{}
			offsets, err := s.admin.FetchOffsets(t.Context(), group)
			if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
				t.Fatal(err)
			}
			offsets.Offsets().Each(func(o kadm.Offset) { at[o.Partition] = o.At })
			return at
		}
		if got := committed(); len(got) > 0 {
			t.Errorf("committed %v before a checkpoint has completed", got)
		}
		run.reader.CheckpointCompleted(2)
		run.close()
		if diff := cmp.Diff(want, committed()); diff != "" {
			t.Errorf("committed (-want +got):\n%s", diff)
		}
	})
}

// must returns a function that returns v, and fails the test on an error.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestRestoredEnumerator finds only what is new, and reads it from the start or from where
// it is told.
func TestRestoredEnumerator(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "a", 2)
	c.Produce(t, "a", numbered(0, 5)...)
	find := func(src *Source[string], from []byte) ([]connector.Split, []byte) {
		t.Helper()
		e := must(src.NewEnumerator(t.Context(), connector.SourceRuntime{Operator: "source", Logger: testLogger(t)}))(t)
		defer e.Close()
		r := e.(connector.RestorableEnumerator)
		if from != nil {
			if err := r.RestoreEnumerator(from); err != nil {
				t.Fatal(err)
			}
		}
		splits := must(e.Discover(t.Context()))(t)
		return splits, must(r.SnapshotEnumerator())(t)
	}
	src := func(topic string, start Start) *Source[string] {
		return NewSource(raw.String{}, at(c), Topics("a", topic), StartFrom(start))
	}
	c.CreateTopic(t, "b", 1)
	splits, seen := find(src("b", Latest()), nil)
	if want := `{"partitions":{"a":[0,1],"b":[0]}}`; string(seen) != want || len(splits) != 3 {
		t.Fatalf("found %v, stored %s, want %s", splits, seen, want)
	}
	if splits, again := find(src("b", Latest()), seen); len(splits) > 0 || string(again) != string(seen) {
		t.Errorf("a restored enumerator finds %v, stored %s", splits, again)
	}
	c.CreateTopic(t, "c", 2)
	c.Produce(t, "c", numbered(0, 5)...)
	splits, seen = find(src("c", Latest()), seen)
	if diff := cmp.Diff([]connector.Split{Split{Topic: "c"}, Split{Topic: "c", Partition: 1}}, splits); diff != "" {
		t.Errorf("a new topic is read from the latest offset, not from the start (-want +got):\n%s", diff)
	}
	c.CreateTopic(t, "d", 2)
	c.Produce(t, "d", numbered(0, 5)...)
	splits, _ = find(src("d", Offsets(map[string]map[int32]int64{"a": {0: 1}, "d": {0: 3}})), seen)
	if diff := cmp.Diff([]connector.Split{Split{Topic: "d", Start: 3}, Split{Topic: "d", Partition: 1}}, splits); diff != "" {
		t.Errorf("given offsets (-want +got):\n%s", diff)
	}

	// Before the first look nothing is known, and a bounded source does not look again.
	e := must(src("b", Earliest()).NewEnumerator(context.Background(), connector.SourceRuntime{Logger: testLogger(t)}))(t)
	defer e.Close()
	nothing := must(e.(connector.RestorableEnumerator).SnapshotEnumerator())(t)
	if splits, _ := find(src("b", Earliest()), nothing); len(splits) != 3 {
		t.Errorf("found %v, want all", splits)
	}
	bounded := NewSource(raw.String{}, at(c), Topics("a", "c"), Bounded())
	if splits, _ := find(bounded, []byte(`{"partitions":{"a":[0]}}`)); len(splits) > 0 {
		t.Errorf("a bounded source that is restored finds %v", splits)
	}
}

func TestSplitCodec(t *testing.T) {
	src := NewSource(raw.String{}, Brokers("x:1"), Topics("orders"))
	data := must(src.EncodeSplit(Split{Topic: "orders", Partition: 2, Start: 17}))(t)
	if want := `{"topic":"orders","partition":2,"offset":17}`; string(data) != want {
		t.Errorf("encoded as %s, want %s", data, want)
	}
	bounded := NewSource(raw.String{}, Brokers("x:1"), TopicPattern("o.*"), Bounded())
	data = must(bounded.EncodeSplit(Split{Topic: "orders", Start: 0, Stop: 0, Bounded: true}))(t)
	if want := `{"topic":"orders","partition":0,"offset":0,"stop":0}`; string(data) != want {
		t.Errorf("encoded as %s, want %s", data, want)
	}
	tests := []struct {
		src  *Source[string]
		data string
		want []string
	}{
		{src, `{"topic":"other","partition":2,"offset":17}`, []string{`"other"`, "orders", "UID"}},
		{src, `{"topic":"orders","partition":2,"offset":17,"stop":20}`, []string{"Bounded on", "now is off"}},
		{bounded, `{"topic":"orders","partition":2,"offset":17}`, []string{"Bounded off", "now is on"}},
		{bounded, `{"topic":"xorders","partition":2,"offset":17,"stop":20}`, []string{`"xorders"`, "o.*"}},
		{src, `{"topic":"orders","partition":-1,"offset":17}`, []string{"not negative"}},
		{src, `{"topic":"orders","partition":1,"offset":-2}`, []string{"not negative"}},
		{src, `{}`, []string{"want a topic"}},
		{src, `{`, []string{"unexpected end"}},
	}
	for _, tt := range tests {
		if _, err := tt.src.DecodeSplit([]byte(tt.data)); mentions(err, tt.want...) != "" {
			t.Errorf("%s: error %v does not mention %s", tt.data, err, mentions(err, tt.want...))
		}
	}
}
