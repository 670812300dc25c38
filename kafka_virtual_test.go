//go:build synctests

package lowwater_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/window"
)

// These jobs read a Kafka of their own in a bubble of virtual time.

// measured is a record of the topics here.
type measured struct {
	Partition int   `json:"p"`
	Millis    int64 `json:"t"`
}

// bed is a cluster and what is written to it.
type bed struct {
	*kafkatest.Cluster
	t      *testing.T
	client *kgo.Client
}

func inBed(t *testing.T, f func(*testing.T, *bed)) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		f(t, &bed{c, t, c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))})
	})
}

func (b *bed) write(topic string, partition int, millis ...int64) {
	b.t.Helper()
	var records []kafkatest.Record
	for _, ts := range millis {
		records = append(records, kafkatest.Text(int32(partition), 0, "", fmt.Sprintf(`{"p":%d,"t":%d}`, partition, ts)))
	}
	kafkatest.ProduceWith(b.t, b.client, topic, records...)
}

func (b *bed) source(options ...kafka.SourceOption) *kafka.Source[measured] {
	return kafka.NewSource(json.Value[measured](), append([]kafka.SourceOption{
		kafka.Brokers(b.Brokers()...), kafka.ClientOptions(b.Options()...),
	}, options...)...)
}

func quietEnvironment(parallelism int) *lowwater.Environment {
	return lowwater.NewEnvironment(
		lowwater.WithParallelism(parallelism),
		lowwater.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
}

func byMillis() eventtime.WatermarkStrategy[measured] {
	return eventtime.ForMonotonousTimestamps[measured]().
		WithTimestampAssigner(func(r measured, _ int64) int64 { return r.Millis })
}

func start(t *testing.T, env *lowwater.Environment) *lowwater.Job {
	t.Helper()
	job, err := env.Start(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func stop(t *testing.T, job *lowwater.Job) {
	t.Helper()
	job.Stop()
	if err := job.Wait(); err != nil {
		t.Fatal(err)
	}
}

func pause(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// splits returns the splits of all sources by id.
func splits(job *lowwater.Job) map[string]lowwater.SplitStatus {
	out := map[string]lowwater.SplitStatus{}
	for _, v := range job.Status().Vertices {
		for _, s := range v.Subtasks {
			for _, split := range s.Operators[0].Splits {
				out[split.ID] = split
			}
		}
	}
	return out
}

// backlog is how many records of a fast partition wait for the watermark behind the source:
// what a window would have to keep.
type backlog struct {
	mu   sync.Mutex
	fast func(measured) bool
	work time.Duration
	wait []int64
	most int
	read int
}

func (b *backlog) process(ctx *lowwater.ProcessContext, r measured, out *lowwater.Collector[measured]) error {
	<-time.After(b.work)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read++
	if b.fast(r) {
		b.wait = append(b.wait, r.Millis)
	}
	for len(b.wait) > 0 && b.wait[0] <= ctx.CurrentWatermark() {
		b.wait = b.wait[1:] // the partition is in order
	}
	b.most = max(b.most, len(b.wait))
	out.Emit(r)
	return nil
}

// Two partitions an hour apart in event time, 100 ms of it between two records, grow by 400
// records a second; the slow one has four times the event time in them and catches up.
// Behind the source 2000 records a second are worked through. The fast partition must not
// run ahead by more than the drift and what is read while alignment looks away: three
// samples, a report and an announcement, each of which may have to wait for a batch.
func TestAlignmentBoundsWhatTheFastPartitionBuffers(t *testing.T) {
	const (
		seconds   = 45
		perSecond = 400
		work      = 500 * time.Microsecond
		step      = int64(100) // milliseconds of event time
		hour      = int64(3_600_000)
		drift     = 2 * time.Minute
		interval  = 100 * time.Millisecond
		mayBuffer = int(drift/time.Millisecond)/int(step) + 5*connector.BatchSize // a batch takes longer than an interval
		unaligned = mayBuffer + mayBuffer/4
	)
	for _, tt := range []struct {
		name    string
		aligned bool
		sources int
	}{
		{"not aligned", false, 1},
		{"splits of one source", true, 1},
		{"two sources of a group", true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				strategy := byMillis()
				if tt.aligned {
					strategy = strategy.WithWatermarkAlignment("readings", drift, interval)
				}
				log := &backlog{work: work, fast: func(r measured) bool { return r.Partition == 1 }}
				env := quietEnvironment(1)
				topics := []string{"readings", "readings"}
				if tt.sources == 2 {
					topics[1] = "others"
				}
				b.CreateTopic(t, "readings", 2)
				b.CreateTopic(t, "others", 2)
				var streams []*lowwater.DataStream[measured]
				for _, topic := range slices.Compact(slices.Clone(topics)) {
					// One partition of each topic stays empty where there are two.
					s := strategy
					if tt.sources == 2 {
						s = s.WithIdleness(10 * time.Second)
					}
					streams = append(streams, lowwater.FromSource(env, b.source(kafka.Topics(topic), kafka.FetchMaxWait(100*time.Millisecond)), s, topic))
				}
				streams[0].Union(streams[1:]...).Process(log.process).
					WindowAll(window.Tumbling(time.Minute)).Aggregate(lowwater.Count[measured]()).Collect()
				job := start(t, env)

				base := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
				for n := int64(0); n < seconds*perSecond; n += perSecond {
					var slow, fast []int64
					for i := range int64(perSecond) {
						slow = append(slow, base+4*(n+i)*step)
						fast = append(fast, base+hour+(n+i)*step)
					}
					b.write(topics[0], 0, slow...)
					b.write(topics[1], 1, fast...)
					pause(time.Second)
				}
				pause(10 * time.Second)
				log.mu.Lock()
				most, read := log.most, log.read
				log.mu.Unlock()
				stop(t, job)
				t.Logf("%d records were read, at most %d of the fast partition waited; alignment allows %d", read, most, mayBuffer)
				if tt.aligned && most > mayBuffer {
					t.Errorf("%d records of the fast partition waited, want at most %d", most, mayBuffer)
				}
				if !tt.aligned && most < unaligned {
					t.Errorf("without alignment only %d records waited: the test shows nothing", most)
				}
				if read < seconds*perSecond {
					t.Errorf("only %d records were read: alignment stopped the slow partition, too", read)
				}
			})
		})
	}
}

// Members that are idle or have finished do not hold the others.
func TestAlignmentIsNotHeldByIdleOrFinishedMembers(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.CreateTopic(t, "running", 1)
		b.CreateTopic(t, "idle", 1)
		b.CreateTopic(t, "finished", 1)
		b.write("idle", 0, 1000)
		b.write("finished", 0, 2000)
		align := func() eventtime.WatermarkStrategy[measured] {
			return byMillis().WithIdleness(5*time.Second).WithWatermarkAlignment("group", time.Minute, time.Second)
		}
		env := quietEnvironment(1)
		running := lowwater.FromSource(env, b.source(kafka.Topics("running")), align(), "running")
		idle := lowwater.FromSource(env, b.source(kafka.Topics("idle")), align(), "idle")
		finished := lowwater.FromSource(env, b.source(kafka.Topics("finished"), kafka.Bounded()), align(), "finished")
		var read atomic.Int64
		running.Union(idle, finished).SinkFunc(func(context.Context, measured) error { read.Add(1); return nil })
		job := start(t, env)
		pause(20 * time.Second)
		for n := range int64(30) {
			b.write("running", 0, n*10*time.Minute.Milliseconds())
			pause(time.Second)
		}
		pause(10 * time.Second)
		if got := read.Load(); got != 32 {
			t.Errorf("%d records were read, want 32", got)
		}
		stop(t, job)
	})
}

// A partition that appears while the job runs counts from its assignment: it holds the
// watermark until it has records.
func TestDiscoveredPartitionCountsFromItsAssignment(t *testing.T) {
	for _, option := range []kafka.SourceOption{kafka.Topics("readings"), kafka.TopicPattern("read.*")} {
		inBed(t, func(t *testing.T, b *bed) {
			b.CreateTopic(t, "readings", 1)
			env := quietEnvironment(2)
			panes := lowwater.FromSource(env, b.source(option, kafka.DiscoveryInterval(10*time.Second)), byMillis(), "readings").
				Parallelism(1).
				WindowAll(window.Tumbling(time.Second)).Aggregate(lowwater.Count[measured]()).Collect()
			job := start(t, env)
			b.write("readings", 0, 100, 1100)
			pause(2 * time.Second)
			if n := len(panes.Values()); n != 1 {
				t.Fatalf("%d windows fired before the new partition, want 1", n)
			}
			b.AddPartitions(t, "readings", 2)
			b.client = b.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner())) // the old one's metadata is old
			pause(12 * time.Second)
			if _, ok := splits(job)["readings-1"]; !ok {
				t.Fatalf("the new partition was not discovered: %v", splits(job))
			}
			b.write("readings", 0, 2100, 3100)
			pause(5 * time.Second)
			if n := len(panes.Values()); n != 1 {
				t.Errorf("%d windows fired although nothing is known of the new partition, want 1", n)
			}
			b.write("readings", 1, 2500, 3200)
			pause(5 * time.Second)
			got := map[int64]int64{}
			for _, p := range panes.Values() {
				got[p.Window.Start] += p.Value
			}
			if want := map[int64]int64{0: 1, 1000: 1, 2000: 2}; !maps.Equal(got, want) {
				t.Errorf("windows counted %v, want %v", got, want)
			}
			stop(t, job)
		})
	}
}

func TestDiscoveredTopic(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.CreateTopic(t, "read-a", 1)
		b.CreateTopic(t, "other", 1)
		env := quietEnvironment(1)
		var read atomic.Int64
		lowwater.FromSource(env, b.source(kafka.TopicPattern("read-.*"), kafka.DiscoveryInterval(10*time.Second)), byMillis(), "readings").
			SinkFunc(func(context.Context, measured) error { read.Add(1); return nil })
		job := start(t, env)
		pause(time.Second)
		b.CreateTopic(t, "read-b", 2)
		b.write("read-a", 0, 1)
		b.write("read-b", 1, 2)
		b.write("other", 0, 3)
		pause(15 * time.Second)
		if n := read.Load(); n != 2 || len(splits(job)) != 3 {
			t.Errorf("%d records of splits %v were read, want 2 of 3 splits", n, splits(job))
		}
		stop(t, job)
	})
}

// A partition that was read to its end is idle by the broker's word, with nothing to guess;
// one whose broker does not answer is not.
func TestBrokerIdleness(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.CreateTopic(t, "readings", 2)
		b.write("readings", 1, 50)
		env := quietEnvironment(1)
		panes := lowwater.FromSource(env, b.source(kafka.Topics("readings")), byMillis().WithBrokerIdleness(3*time.Second), "readings").
			WindowAll(window.Tumbling(time.Second)).Aggregate(lowwater.Count[measured]()).Collect()
		job := start(t, env)
		feed := func(seconds int, from int64) {
			for i := range int64(seconds) {
				b.write("readings", 0, (from+i)*1000+1)
				pause(time.Second)
			}
		}
		feed(2, 0)
		if n := len(panes.Values()); n != 0 {
			t.Errorf("%d windows fired before the partition was quiet for long enough", n)
		}
		feed(8, 2)
		if n := len(panes.Values()); n < 8 {
			t.Errorf("%d windows fired although the broker knows that nothing was appended", n)
		}
		quiet := splits(job)["readings-1"]
		if quiet.State != status.SplitIdle || quiet.IdleBy != status.IdleByBroker {
			t.Errorf("the quiet split is %v by %q", quiet.State, quiet.IdleBy)
		}

		// From here on the broker does not say where partition 1 ends.
		b.Fake.KeepControl()
		b.Fake.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			b.Fake.KeepControl()
			req := kreq.(*kmsg.ListOffsetsRequest)
			resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
			for _, topic := range req.Topics {
				rt := kmsg.NewListOffsetsResponseTopic()
				rt.Topic = topic.Topic
				for _, p := range topic.Partitions {
					rp := kmsg.NewListOffsetsResponseTopicPartition()
					rp.Partition, rp.ErrorCode = p.Partition, kerr.RequestTimedOut.Code
					rt.Partitions = append(rt.Partitions, rp)
				}
				resp.Topics = append(resp.Topics, rt)
			}
			return resp, nil, true
		})
		feed(20, 10)
		before := len(panes.Values())
		feed(10, 30)
		if n := len(panes.Values()); n != before {
			t.Errorf("windows went on firing (%d, then %d) although nobody knows the end of partition 1", before, n)
		}
		if s := splits(job)["readings-1"]; s.State != status.SplitActive {
			t.Errorf("a split whose broker does not answer is %v by %q", s.State, s.IdleBy)
		}
		stop(t, job)
	})
}

// A record of tomorrow passes, and everything else is still on time.
func TestMaxFutureSkew(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.CreateTopic(t, "readings", 1)
		now := time.Now().UnixMilli()
		tomorrow := now + 24*time.Hour.Milliseconds()
		env := quietEnvironment(1)
		late := lowwater.NewOutputTag[measured]("late")
		counts := lowwater.FromSource(env, b.source(kafka.Topics("readings")), byMillis().WithMaxFutureSkew(time.Minute), "readings").
			WindowAll(window.Tumbling(time.Second)).SideOutputLate(late).Aggregate(lowwater.Count[measured]())
		panes, lateRecords := counts.Collect(), counts.SideOutput(late).Collect()
		job := start(t, env)
		b.write("readings", 0, now, tomorrow, now+100)
		pause(time.Second)
		b.write("readings", 0, now+2000)
		pause(time.Second)
		if n := len(lateRecords.Values()); n != 0 {
			t.Errorf("%d records were late behind the one of tomorrow", n)
		}
		if got := panes.Values(); len(got) != 1 || got[0].Value != 2 {
			t.Errorf("fired %v, want one window of two records", got)
		}
		if s := splits(job)["readings-0"]; s.Future.Count != 1 || len(s.Future.Latest) != 1 {
			t.Errorf("the split counts %+v records ahead of the clock, want 1 with a sample", s.Future)
		}
		stop(t, job)
	})
}
