package kafka

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

func TestStartModes(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 3)
	c.Produce(t, "orders", slices.Concat(numbered(0, 5), numbered(1, 5))...) // partition 2 stays empty
	if err := c.Fake.DeleteRecords("orders", 1, 2); err != nil {
		t.Fatal(err)
	}
	group := kadm.NewClient(c.Client(t))
	committed := kadm.Offsets{}
	committed.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 3, LeaderEpoch: -1})
	if err := group.CommitAllOffsets(t.Context(), "readers", committed); err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name  string
		start Start
		want  [3]int64
	}{
		{"earliest", Earliest(), [3]int64{0, 2, 0}},
		{"latest", Latest(), [3]int64{5, 5, 0}},
		{"timestamp within", Timestamp(time.UnixMilli(1003)), [3]int64{3, 3, 0}},
		{"timestamp before all", Timestamp(time.UnixMilli(1)), [3]int64{0, 2, 0}},
		{"timestamp after all", Timestamp(time.UnixMilli(1005)), [3]int64{5, 5, 0}},
		{"group, else earliest", GroupOffsets("readers", Earliest()), [3]int64{3, 2, 0}},
		{"group, else latest", GroupOffsets("readers", Latest()), [3]int64{3, 5, 0}},
		{"group without offsets", GroupOffsets("nobody", Earliest()), [3]int64{0, 2, 0}},
		{"offsets, the others earliest", Offsets(map[string]map[int32]int64{"orders": {0: 4}}), [3]int64{4, 2, 0}},
		{"offset at the end", Offsets(map[string]map[int32]int64{"orders": {0: 5, 1: 2, 2: 0}}), [3]int64{5, 2, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			splits, err := discover(t, NewSource(raw.String{}, at(c), Topics("orders"), StartFrom(tt.start)))
			if err != nil {
				t.Fatal(err)
			}
			var want []connector.Split
			for n, offset := range tt.want {
				want = append(want, Split{Topic: "orders", Partition: int32(n), Start: offset})
			}
			if diff := cmp.Diff(want, splits); diff != "" {
				t.Errorf("splits (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("records", func(t *testing.T) {
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded(), StartFrom(Timestamp(time.UnixMilli(1003)))))
		s.toEnd()
		want := map[string][]string{"orders-0": {"0/3", "0/4"}, "orders-1": {"1/3", "1/4"}}
		if diff := cmp.Diff(want, s.out.values()); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
	})
}

func TestStartErrors(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	c.Produce(t, "orders", numbered(0, 10)...)
	if err := c.Fake.DeleteRecords("orders", 0, 4); err != nil {
		t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 1, LeaderEpoch: -1})
	if err := kadm.NewClient(c.Client(t)).CommitAllOffsets(t.Context(), "slow", offsets); err != nil {
		t.Fatal(err)
	}
	given := func(n int32, offset int64) SourceOption {
		return StartFrom(Offsets(map[string]map[int32]int64{"orders": {n: offset}}))
	}
	addr := c.Brokers()[0]
	tests := []struct {
		name string
		opts []SourceOption
		want []string
	}{
		{"unknown topic", []SourceOption{Topics("orders", "odrers")}, []string{`topic "odrers" does not exist`, addr, "create it"}},
		{"below the log", []SourceOption{Topics("orders"), given(0, 3)}, []string{"offset 3 of orders-0", "4 to 10", addr}},
		{"beyond the log", []SourceOption{Topics("orders"), given(0, 11)}, []string{"offset 11 of orders-0", "4 to 10", addr}},
		{"unknown partition", []SourceOption{Topics("orders"), given(2, 0)}, []string{"orders-2", "does not exist"}},
		{"expired commit", []SourceOption{Topics("orders"), StartFrom(GroupOffsets("slow", Latest()))}, []string{"offset 1 of orders-0", "4 to 10"}},
		{"pattern without a match", []SourceOption{TopicPattern("order"), DiscoveryInterval(0)}, []string{`"order"`, addr, "TopicPattern"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := discover(t, NewSource(raw.String{}, append(tt.opts, at(c))...))
			if missing := mentions(err, tt.want...); missing != "" {
				t.Errorf("error %q does not mention %s", err, missing)
			}
		})
	}
}

func TestDiscoverLater(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "clicks-eu", 1)
	c.CreateTopic(t, "other", 1)
	src := NewSource(raw.String{}, at(c), TopicPattern("clicks-.*"), StartFrom(Latest()))
	e, err := src.NewEnumerator(t.Context(), connector.SourceRuntime{Operator: "source", Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if d := e.(connector.Discoverer).DiscoveryInterval(); d != 5*time.Minute {
		t.Errorf("DiscoveryInterval = %v, want 5m", d)
	}
	expect := func(want ...connector.Split) {
		t.Helper()
		splits, err := e.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, splits); diff != "" {
			t.Errorf("splits (-want +got):\n%s", diff)
		}
	}
	c.Produce(t, "clicks-eu", numbered(0, 2)...)
	expect(Split{Topic: "clicks-eu", Start: 2})
	expect()

	// What appears later is read from its beginning: nothing may be missed.
	c.CreateTopic(t, "clicks-us", 1)
	c.AddPartitions(t, "clicks-eu", 2)
	c.Produce(t, "clicks-eu", numbered(1, 3)...)
	expect(Split{Topic: "clicks-eu", Partition: 1}, Split{Topic: "clicks-us"})
	expect()
}

func TestBounded(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 4)
	c.Produce(t, "orders", slices.Concat(numbered(0, 3000), numbered(1, 1), numbered(3, 700))...) // partition 2 stays empty
	src := NewSource(raw.String{}, at(c), Topics("orders"), Bounded())
	if src.Boundedness() != connector.Bounded {
		t.Error("not bounded")
	}
	s := start(t, src)
	c.Produce(t, "orders", slices.Concat(numbered(0, 10), numbered(2, 10))...) // too late

	s.toEnd()
	want := map[string][]string{}
	for p, n := range map[int32]int{0: 3000, 1: 1, 3: 700} {
		for _, r := range numbered(p, n) {
			id := partition{"orders", p}.String()
			want[id] = append(want[id], string(r.Value))
		}
	}
	if diff := cmp.Diff(want, s.out.values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"orders-0", "orders-1", "orders-2", "orders-3"}, slices.Sorted(slices.Values(s.out.finished))); diff != "" {
		t.Errorf("finished splits (-want +got):\n%s", diff)
	}
	for _, r := range s.out.records {
		if r.Timestamp != 1000+r.Offset {
			t.Fatalf("record at offset %d has timestamp %d, want %d", r.Offset, r.Timestamp, 1000+r.Offset)
		}
	}
	for _, typ := range s.out.types {
		if typ != connector.CreateTime {
			t.Fatalf("timestamp type %v, want CreateTime", typ)
		}
	}
	if status, err := s.reader.Poll(s.out); status != connector.EndOfInput || err != nil {
		t.Errorf("Poll after the end = %v, %v, want EndOfInput again", status, err)
	}
}

func TestBoundedEmptyTopicNeedsNoFetch(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded()))
	status, err := s.reader.Poll(s.out)
	if status != connector.EndOfInput || err != nil {
		t.Errorf("first Poll = %v, %v, want EndOfInput", status, err)
	}
	if len(s.out.finished) != 2 {
		t.Errorf("finished %v, want both", s.out.finished)
	}
}

// TestClientReadsOnlyItsSplits: topics in the client's options do not count.
func TestClientReadsOnlyItsSplits(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	c.CreateTopic(t, "other", 1)
	c.Produce(t, "orders", numbered(0, 3)...)
	own := map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().At(2)}}
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded(),
		ClientOptions(kgo.ConsumeTopics("other"), kgo.ConsumePartitions(own))))
	s.toEnd()
	if len(s.out.records) != 3 {
		t.Errorf("read %d records, want 3", len(s.out.records))
	}
	if topics := s.reader.client.GetConsumeTopics(); !slices.Equal(topics, []string{"orders"}) {
		t.Errorf("the client reads %v, want only the source's topic", topics)
	}
}

// TestSplitWithoutStop: a split that names nothing but a partition is read from the
// beginning and on.
func TestSplitWithoutStop(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	c.Produce(t, "orders", numbered(0, 3)...)
	s := newSubtask(t, NewSource(raw.String{}, at(c), Topics("orders")))
	if err := s.reader.AddSplits([]connector.Split{Split{Topic: "orders"}}); err != nil {
		t.Fatal(err)
	}
	s.want(3)
	if len(s.out.finished) != 0 {
		t.Errorf("finished %v, want none", s.out.finished)
	}
}

func TestReaderWithoutSplits(t *testing.T) {
	c := kafkatest.Start(t)
	s := newSubtask(t, NewSource(raw.String{}, at(c), Topics("orders")))
	if status, err := s.reader.Poll(s.out); status != connector.NothingAvailable || err != nil {
		t.Errorf("Poll = %v, %v, want NothingAvailable: splits may come", status, err)
	}
	s.reader.NoMoreSplits()
	select {
	case <-s.reader.Available():
	default:
		t.Error("NoMoreSplits did not make the reader available")
	}
	if status, err := s.reader.Poll(s.out); status != connector.EndOfInput || err != nil {
		t.Errorf("Poll after NoMoreSplits = %v, %v, want EndOfInput", status, err)
	}
}

func TestUnboundedGoesOn(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	c.Produce(t, "orders", numbered(0, 5)...)
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
	s.want(5)
	c.Produce(t, "orders", numbered(1, 5)...)
	s.want(10)
	if len(s.out.finished) != 0 {
		t.Errorf("finished %v, want none", s.out.finished)
	}
	positions := map[string][2]int64{}
	s.reader.Positions(func(id string, next, end int64) { positions[id] = [2]int64{next, end} })
	want := map[string][2]int64{"orders-0": {5, 5}, "orders-1": {5, 5}}
	if diff := cmp.Diff(want, positions); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

// TestTransactions ends partitions with a commit marker, an abort marker and an
// open transaction.
func TestTransactions(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 3)
	inTransaction := func(id string, p int32, end kgo.TransactionEndTry, values ...string) *kgo.Client {
		client := c.Client(t, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			kafkatest.ProduceWith(t, client, "orders", kafkatest.Text(p, 0, "", v))
		}
		if p == 2 {
			return client // stays open
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		return client
	}
	inTransaction("a", 0, kgo.TryAbort, "dropped")
	inTransaction("b", 0, kgo.TryCommit, "kept")
	inTransaction("c", 1, kgo.TryCommit, "kept")
	inTransaction("d", 1, kgo.TryAbort, "dropped")
	c.Produce(t, "orders", kafkatest.Text(2, 0, "", "before"))
	inTransaction("e", 2, kgo.TryCommit, "open")
	c.Produce(t, "orders", kafkatest.Text(2, 0, "", "behind"))

	tests := []struct {
		name string
		opts []SourceOption
		want map[string][]string
	}{
		{"read committed", []SourceOption{ReadCommitted()}, map[string][]string{
			"orders-0": {"kept"}, "orders-1": {"kept"}, "orders-2": {"before"},
		}},
		{"read uncommitted", nil, map[string][]string{
			"orders-0": {"dropped", "kept"}, "orders-1": {"kept", "dropped"}, "orders-2": {"before", "open", "behind"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, NewSource(raw.String{}, append(tt.opts, at(c), Topics("orders"), Bounded())...))
			s.toEnd()
			if diff := cmp.Diff(tt.want, s.out.values()); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if len(s.out.finished) != 3 {
				t.Errorf("finished %v, want all", s.out.finished)
			}
		})
	}
}

func TestSeveralSubtasks(t *testing.T) {
	const parallelism, partitions = 3, 7
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", partitions)
	want := map[string][]string{}
	for p := range int32(partitions) {
		records := numbered(p, 50)
		c.Produce(t, "orders", records...)
		for _, r := range records {
			id := partition{"orders", p}.String()
			want[id] = append(want[id], string(r.Value))
		}
	}
	src := NewSource(raw.String{}, at(c), Topics("orders"), Bounded())
	splits, err := discover(t, src)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for i := range parallelism {
		var mine []connector.Split
		for _, s := range splits {
			if (&enumerator{}).Owner(s, parallelism) == i {
				mine = append(mine, s)
			}
		}
		s := newSubtask(t, src)
		if err := s.reader.AddSplits(mine); err != nil {
			t.Fatal(err)
		}
		s.reader.NoMoreSplits()
		s.toEnd()
		maps.Copy(all, s.out.values())
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// TestLeadersMove moves partitions between brokers while they are read. In a
// bubble the client would spin for ever: it asks the old leader again until its
// metadata loop has slept for 10 ms.
func TestLeadersMove(t *testing.T) {
	const partitions, rounds = 4, 10
	c := kafkatest.Start(t, kfake.Ports(9092, 9093, 9094))
	c.CreateTopic(t, "orders", partitions)
	s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
	for round := range rounds {
		for p := range int32(partitions) {
			c.Produce(t, "orders", numbered(p, (round+1)*100)[round*100:]...)
			if err := c.Fake.MoveTopicPartition("orders", p, (p+int32(round))%3); err != nil {
				t.Fatal(err)
			}
		}
		s.want((round + 1) * 100 * partitions)
	}
	for p := range partitions {
		for i, r := range s.out.of(fmt.Sprint("orders-", p)) {
			if want := fmt.Sprintf("%d/%d", p, i); r.Value != want {
				t.Fatalf("record %d is %q, want %q", i, r.Value, want)
			}
		}
	}
}
