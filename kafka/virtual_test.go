//go:build synctests

package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// These tests run in bubbles of virtual time. A bubble also fails if a
// goroutine is left when its test ends.

// cable is a network that can be cut.
type cable struct {
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

var errCut = errors.New("the cable is cut")

// plug returns the network of a cluster.
func plug(c *kafkatest.Cluster) *cable {
	var client cable
	kept, _ := kgo.NewClient(c.Options()...)
	defer kept.Close()
	client.dial = kept.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	return &client
}

func (c *cable) option() Option { return ClientOptions(kgo.Dialer(c.connect)) }

func (c *cable) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		err = &net.OpError{Op: "dial", Net: network, Err: errCut}
	}
	if err != nil {
		return nil, err
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, conn := range c.conns {
		if cut {
			conn.Close()
		}
	}
}

func TestUnreachableBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		dial := func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errCut}
		}
		client := ClientOptions(kgo.Dialer(dial))
		_, err := discover(t, NewSource(raw.String{}, Brokers("kafka-1:9092", "kafka-2:9092"), Topics("orders"), client))
		if missing := mentions(err, "kafka-1:9092,kafka-2:9092", "within 10s", errCut.Error(), "check that Kafka runs"); missing != "" {
			t.Errorf("error %q does not mention %s", err, missing)
		}
		_, err = NewSink(raw.String{}, Brokers("kafka-1:9092"), Topic("out"), StartupTimeout(3*time.Second), client).
			NewWriter(t.Context(), connector.WriterRuntime{Logger: testLogger(t)})
		if missing := mentions(err, "kafka-1:9092", "within 3s", errCut.Error()); missing != "" {
			t.Errorf("error %q does not mention %s", err, missing)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("giving up took %v", took)
		}
	})
}

// TestSilentBroker has a broker that accepts connections and never answers.
func TestSilentBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				buf := make([]byte, 1024)
				for {
					if _, err := theirs.Read(buf); err != nil {
						return
					}
				}
			}()
			return ours, nil
		}
		began := time.Now()
		_, err := discover(t, NewSource(raw.String{}, Brokers("kafka:9092"), Topics("orders"), ClientOptions(kgo.Dialer(dial))))
		if missing := mentions(err, "no answer from kafka:9092 within 10s"); missing != "" {
			t.Errorf("error %q does not mention %s", err, missing)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("giving up took %v", took)
		}
	})
}

// TestStopBehindAbortedRecords has a bounded read-committed source stop at a
// last stable offset before which there is an aborted record whose marker is
// behind it. Neither is ever visible.
func TestStopBehindAbortedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		c.CreateTopic(t, "orders", 1)
		begin := func(id string) *kgo.Client {
			client := c.Client(t, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err := client.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			return client
		}
		aborted, open := begin("aborted"), begin("open")
		kafkatest.ProduceWith(t, aborted, "orders", numbered(0, 3)...)
		kafkatest.ProduceWith(t, open, "orders", kafkatest.Text(0, 0, "", "open"))
		if err := aborted.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		if p := c.Fake.PartitionInfo("orders", 0); p.LastStableOffset != 3 || p.HighWatermark != 5 {
			t.Fatalf("the last stable offset is %d of %d, want 3 of 5", p.LastStableOffset, p.HighWatermark)
		}
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded(), ReadCommitted()))
		began := time.Now()
		s.toEnd()
		if len(s.out.records) != 0 || len(s.out.finished) != 1 {
			t.Errorf("%d records, finished %v, want none and the split", len(s.out.records), s.out.finished)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("finding the end took %v", took)
		}
	})
}

type progress struct {
	caughtUp    bool
	since, asOf time.Time
}

func caughtUp(s *subtask[string]) map[string]progress {
	all := map[string]progress{}
	s.reader.CaughtUp(func(id string, caughtUp bool, since, asOf time.Time) {
		all[id] = progress{caughtUp, since, asOf}
	})
	return all
}

func TestCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "orders", 2)
		c.Produce(t, "orders", numbered(0, 3)...)
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), net.option()))
		settle := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		settle(3 * time.Second)
		if got := caughtUp(s); got["orders-0"].caughtUp || !got["orders-1"].caughtUp {
			t.Fatalf("caught up before reading: %+v, want the empty partition only", got)
		}
		ends := map[string]int64{}
		s.reader.Positions(func(id string, _, end int64) { ends[id] = end })
		if diff := cmp.Diff(map[string]int64{"orders-0": 3, "orders-1": 0}, ends); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		s.want(3)
		settle(10 * time.Second)
		p := caughtUp(s)["orders-0"]
		if quiet := p.asOf.Sub(p.since); !p.caughtUp || quiet < 7*time.Second || quiet > 10*time.Second {
			t.Fatalf("10 s after the last record: %+v", p)
		}

		// Without answers nothing is known about later times.
		net.set(true)
		settle(20 * time.Second)
		if later := caughtUp(s)["orders-0"]; later.asOf.Sub(p.asOf) > 2*time.Second {
			t.Errorf("asOf went on by %v while the broker was away", later.asOf.Sub(p.asOf))
		}
		net.set(false)
		settle(10 * time.Second)
		if later := caughtUp(s)["orders-0"]; later.asOf.Sub(p.asOf) < 20*time.Second || later.since != p.since {
			t.Errorf("after the outage: %+v", later)
		}

		// Appended is not passed on yet.
		c.Produce(t, "orders", numbered(0, 1)...)
		settle(3 * time.Second)
		if caughtUp(s)["orders-0"].caughtUp {
			t.Error("caught up with a record at hand")
		}
		s.want(4)
		if caughtUp(s)["orders-0"].caughtUp {
			t.Error("caught up without an answer for the new position")
		}
	})
}

// TestQuietSplitsAreAskedAboutSeldom: but every second once someone relies on the
// answers.
func TestQuietSplitsAreAskedAboutSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		c.CreateTopic(t, "orders", 2)
		c.Produce(t, "orders", numbered(0, 3)...)
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
		s.want(3)
		var asked atomic.Int64
		c.Fake.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.Fake.KeepControl()
			asked.Add(1)
			return nil, nil, false
		})
		time.Sleep(time.Hour)
		if n := asked.Load(); n > 200 {
			t.Errorf("asked %d times about two partitions in a quiet hour, want about once a minute about each", n)
		}
		if p := caughtUp(s)["orders-0"]; !p.caughtUp || p.asOf.Sub(p.since) < 58*time.Minute {
			t.Errorf("after a quiet hour: %+v", p)
		}
		asked.Store(0)
		time.Sleep(time.Minute)
		if n := asked.Load(); n < 59 || n > 61 {
			t.Errorf("asked %d times in a minute although the answers matter", n)
		}
		c.Produce(t, "orders", numbered(0, 1)...)
		s.want(4)
	})
}

// TestOpenTransactionIsNotCaughtUp: there is something to come.
func TestOpenTransactionIsNotCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		c.CreateTopic(t, "orders", 1)
		client := c.Client(t, kgo.TransactionalID("x"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		kafkatest.ProduceWith(t, client, "orders", numbered(0, 1)...)
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), ReadCommitted()))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if p := caughtUp(s)["orders-0"]; p.caughtUp {
			t.Errorf("caught up before an open transaction: %+v", p)
		}
		if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		s.want(1)
	})
}

// TestCommitPositions: positions are committed now and then, but not at the end, when
// records may be under way in the job.
func TestCommitPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		c.CreateTopic(t, "orders", 2)
		c.Produce(t, "orders", numbered(0, 5)...)
		committed := func() map[string]int64 {
			t.Helper()
			resp, err := kadm.NewClient(c.Client(t)).FetchOffsets(t.Context(), "dashboards")
			if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
				t.Fatal(err)
			}
			offsets := map[string]int64{}
			resp.Each(func(o kadm.OffsetResponse) { offsets[fmt.Sprint(o.Topic, "-", o.Partition)] = o.At })
			return offsets
		}
		check := func(when string, want map[string]int64) {
			t.Helper()
			if diff := cmp.Diff(want, committed()); diff != "" {
				t.Errorf("committed %s (-want +got):\n%s", when, diff)
			}
		}
		source := func(opts ...SourceOption) *Source[string] {
			return NewSource(raw.String{}, append(opts, at(c), Topics("orders"))...)
		}
		quiet := start(t, source())
		quiet.want(5)
		time.Sleep(time.Minute)
		check("without a group", map[string]int64{})

		s := start(t, source(GroupID("dashboards")))
		s.want(5)
		time.Sleep(commitInterval + time.Second)
		check("after the interval", map[string]int64{"orders-0": 5, "orders-1": 0})
		c.Produce(t, "orders", numbered(1, 3)...)
		s.want(8)
		s.close()
		check("when the reader closed", map[string]int64{"orders-0": 5, "orders-1": 0})

		resumed := start(t, source(GroupID("dashboards"), StartFrom(GroupOffsets("dashboards", Earliest()))))
		resumed.want(3)
	})
}

// fetched counts the bytes that a client fetches.
type fetched struct{ bytes atomic.Int64 }

func (f *fetched) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	f.bytes.Add(int64(m.UncompressedBytes))
}

func TestSlowJobStopsFetching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answer, records = 64 << 10, 4000
		c := kafkatest.Start(t)
		c.CreateTopic(t, "orders", 4)
		var all []kafkatest.Record
		random := rand.New(rand.NewPCG(1, 2)) // does not compress
		for i := range records {
			value := make([]byte, 1000)
			for j := range value {
				value[j] = byte(random.Uint32())
			}
			all = append(all, kafkatest.Record{Partition: int32(i % 4), Millis: 1000, Value: value})
		}
		for chunk := range slices.Chunk(all, 20) { // small batches
			c.Produce(t, "orders", chunk...)
		}
		count := &fetched{}
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), Bounded(),
			FetchMaxBytes(answer), FetchMaxPartitionBytes(answer/4), ClientOptions(kgo.WithHooks(count))))
		time.Sleep(time.Minute)
		synctest.Wait()
		// One answer waits in the client, one in the reader.
		if n := count.bytes.Load(); n == 0 || n > 2*answer {
			t.Errorf("fetched %d bytes for a job that takes none, want at most two answers of %d", n, answer)
		}
		s.toEnd()
		if len(s.out.records) != records {
			t.Errorf("got %d records, want %d", len(s.out.records), records)
		}
	})
}

func TestTopicDeletedWhileReading(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records int
		kafka   *kversion.Versions
	}{
		{"with records", 5, kversion.Stable()},
		{"empty", 0, kversion.Stable()},
		{"before topics had IDs", 5, kversion.V2_7_0()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := kafkatest.Start(t, kfake.MaxVersions(tt.kafka))
				c.CreateTopic(t, "orders", 1)
				if tt.records > 0 {
					c.Produce(t, "orders", numbered(0, tt.records)...)
				}
				s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
				s.want(tt.records)
				time.Sleep(5 * time.Second)
				if err := c.Fake.DeleteTopic("orders"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err := s.fails()
				if missing := mentions(err, "orders", fmt.Sprintf("offset %d", tt.records), "deleted"); missing != "" {
					t.Errorf("error %q does not mention %s", err, missing)
				}
				if took := time.Since(began); took > 45*time.Second {
					t.Errorf("noticing took %v", took)
				}
			})
		})
	}
}

func TestBrokerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "orders", 2)
		c.Produce(t, "orders", slices.Concat(numbered(0, 10), numbered(1, 10))...)
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), net.option()))
		s.want(20)
		net.set(true)
		more := slices.Concat(numbered(0, 15)[10:], numbered(1, 15)[10:])
		c.Produce(t, "orders", more...)
		time.Sleep(10 * time.Minute)
		if status, err := s.reader.Poll(s.out); status != connector.NothingAvailable || err != nil {
			t.Fatalf("Poll during the outage = %v, %v, want NothingAvailable", status, err)
		}
		net.set(false)
		s.want(30)
		for _, line := range s.log.written() {
			if strings.Contains(line, " err=") || strings.Contains(line, "subtask=") || !strings.Contains(line, " error=") {
				t.Errorf("the log does not name errors, or names what its reader knows: %s", line)
			}
		}
		for p := range 2 {
			for i, r := range s.out.of(fmt.Sprint("orders-", p)) {
				if want := fmt.Sprintf("%d/%d", p, i); r.Value != want {
					t.Fatalf("record %d is %q, want %q", i, r.Value, want)
				}
			}
		}
	})
}

func TestCloseDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "orders", 2)
		c.Produce(t, "orders", numbered(0, 3000)...)
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), net.option()))
		s.want(connector.BatchSize) // the rest stays at hand
		net.set(true)
		time.Sleep(10 * time.Second)
		began := time.Now()
		s.close()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestSinkBrokerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "out", 1)
		w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out"), net.option()))
		if err := w.Write(t.Context(), batchOf("a")); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		net.set(true)
		began := time.Now()
		if err := w.Write(t.Context(), batchOf("b")); err != nil {
			t.Fatal(err)
		}
		err := w.Flush(t.Context())
		if missing := mentions(err, "out-0", c.Brokers()[0], "not acknowledged within 2m0s", "DeliveryTimeout"); missing != "" {
			t.Errorf("error %q does not mention %s", err, missing)
		}
		if took := time.Since(began); took < 2*time.Minute || took > 2*time.Minute+20*time.Second {
			t.Errorf("giving up took %v, want about 2m", took)
		}
		if again := w.Write(t.Context(), batchOf("c")); !errors.Is(again, err) {
			t.Errorf("Write after the failure = %v, want it again", again)
		}
	})
}

// TestSinkSurvivesOutage: nothing is lost if the broker comes back in time, and
// event times in the past do not count as waiting.
func TestSinkSurvivesOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "out", 1)
		w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out"), net.option()))
		b := &connector.Batch[string]{}
		b.Append("a", 1, 0)
		b.Append("b", 2, 0)
		net.set(true)
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		net.set(false)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []kafkatest.Record{{Millis: 1, Value: []byte("a")}, {Offset: 1, Millis: 2, Value: []byte("b")}}
		if diff := cmp.Diff(want, c.ReadAll(t, "out")); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}

func TestSinkHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, batches = 1 << 20, 50
		c := kafkatest.Start(t)
		c.CreateTopic(t, "out", 1)
		release := make(chan struct{})
		c.Fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.Fake.KeepControl()
			c.Fake.SleepControl(func() { <-release })
			return nil, nil, false
		})
		w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out"), MaxBufferedBytes(limit)))
		var written atomic.Int64
		done := make(chan error, 1)
		go func() {
			value := strings.Repeat("x", 1000)
			for range batches {
				if err := w.Write(t.Context(), batchOf(slices.Repeat([]string{value}, 100)...)); err != nil {
					done <- err
					return
				}
				written.Add(1)
			}
			done <- w.Flush(t.Context())
		}()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := written.Load(); n < 5 || n > limit/100_000 {
			t.Errorf("%d batches of 100 kB were written to a broker that answers none, want about %d", n, limit/100_000)
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := len(c.ReadAll(t, "out")); n != 100*batches {
			t.Errorf("%d records, want %d", n, 100*batches)
		}
	})
}

// TestSinkWriteIsCancelled: a Write that waits for a broker ends with its
// context.
func TestSinkWriteIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "out", 1)
		w := openWriter(t, NewSink(raw.String{}, sinkAt(c), Topic("out"), MaxBufferedBytes(1<<20), net.option()))
		net.set(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		value := strings.Repeat("x", 1000)
		began := time.Now()
		var err error
		for err == nil {
			err = w.Write(ctx, batchOf(slices.Repeat([]string{value}, 100)...))
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Write ended after %v, want 1m", took)
		}
	})
}

// TestManyMinutes reads a topic that grows by a record a second.
func TestManyMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 600
		c := kafkatest.Start(t, kfake.NumBrokers(1))
		c.CreateTopic(t, "orders", 3)
		producer := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		go func() {
			for i := range seconds {
				time.Sleep(time.Second)
				kafkatest.ProduceWith(t, producer, "orders", kafkatest.Text(int32(i%3), time.Now().UnixMilli(), "", fmt.Sprint(i)))
			}
		}()
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
		s.want(seconds)
		for i, r := range s.out.records {
			if r.Value != fmt.Sprint(i) {
				t.Fatalf("record %d is %q", i, r.Value)
			}
		}
	})
}
