//go:build synctests

package scenarios

import (
	"encoding/json/v2"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/kafka"
)

// early is how much before its time a record is appended and read. A record that is
// read at the instant of a watermark probe comes before the probe.
const early = 100 * time.Microsecond

// TestScenario replays the files of testdata, and of the directories in
// LOWWATER_SCENARIOS, through the public API, over Kafka's protocol, under virtual
// time.
func TestScenario(t *testing.T) {
	var table report
	for _, dir := range dirs() {
		all, err := Load(dir)
		if err != nil {
			t.Error(err) // and replay the others
		}
		for _, s := range all {
			t.Run(s.Name, func(t *testing.T) { table.replay(t, s) })
		}
	}
	t.Log(table.String())
}

// replay replays a file as it is and with its fix.
func (r *report) replay(t *testing.T, s *Scenario) {
	if s.Mode == Evidence {
		// That it is valid was checked when it was loaded.
		r.add("%-45s evidence only, nothing to replay", s.Name)
		return
	}
	fixed, err := s.Fixed()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("as given", func(t *testing.T) { r.run(t, s) })
	if fixed != nil {
		t.Run("fixed", func(t *testing.T) { r.run(t, fixed) })
	}
}

func (r *report) run(t *testing.T, s *Scenario) {
	start := time.Now()
	var got *Results
	synctest.Test(t, func(t *testing.T) { got = replay(t, s) })
	r.ran(t, s, time.Since(start))
	if diff := difference(s.Expected.Results, got, s.WatermarkIntervalMillis); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// replay runs a scenario's job to the scenario's end. It is called in a bubble.
func replay(t *testing.T, s *Scenario) *Results {
	start := time.UnixMilli(s.WallStartMillis)
	synctest.Sleep(time.Until(start.Add(-time.Second))) // before anything is there that ticks
	cluster := kafkatest.Start(t)
	for _, topic := range s.Topics {
		cluster.CreateTopic(t, topic.Name, topic.Partitions)
	}
	records, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	producer := newProducer(t, cluster, records, start)
	producer.appendUntil(t, start)
	synctest.Sleep(time.Until(start))

	env := lowwater.NewEnvironment(
		lowwater.WithParallelism(1),
		lowwater.WithAutoWatermarkInterval(millis(s.WatermarkIntervalMillis)),
		lowwater.WithLogger(slog.New(slog.DiscardHandler)),
	)
	out := &collector{start: start, lateBy: map[string]map[int32]int64{}, unrouted: map[string]bool{}}
	b := &builder{env: env, results: out, streams: map[string]*lowwater.DataStream[event]{}, parallelism: map[string]int{}}
	end := make(chan struct{})
	readAt := readTimes(records, start)
	for i := range s.Job.Sources {
		source := &s.Job.Sources[i]
		b.source(source, &replaySource{
			Source:     kafkaSource(cluster, source),
			readAt:     readAt,
			assignment: source.Assignment,
			end:        end,
		})
	}
	for i := range s.Job.Operators {
		b.operator(&s.Job.Operators[i])
	}
	job, err := env.Start(t.Context(), s.Name)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took != 0 {
		t.Errorf("the job took %v of virtual time to start, so that its watermark probes are late", took)
	}
	stop := start.Add(millis(s.DurationMillis))
	producer.appendUntil(t, stop)
	// Just behind a probe at the last instant.
	synctest.Sleep(time.Until(stop.Add(early)))
	watermarks, late := windowNumbers(s, job.Status())
	synctest.Sleep(time.Millisecond)
	close(end)
	if err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	for key := range out.unrouted {
		t.Errorf("no routing for key %q", key)
	}
	results := out.results(s, watermarks)
	if late != results.LateTotal {
		t.Errorf("the job has counted %d late records, %d came out", late, results.LateTotal)
	}
	return results
}

// kafkaSource returns the connector's source of a topic.
func kafkaSource(cluster *kafkatest.Cluster, s *Source) *kafka.Source[event] {
	options := []kafka.SourceOption{
		kafka.Brokers(cluster.Brokers()...), kafka.Topics(s.Topic),
		kafka.ClientOptions(append(cluster.Options(), kgo.DisableClientMetrics())...),
	}
	if s.Alignment == nil {
		// A broker answers at once when there is something to answer. What a long wait
		// delays is partitions that are resumed, and only alignment pauses any.
		options = append(options, kafka.FetchMaxWait(5*time.Minute))
	}
	return kafka.NewRecordSource(decodeEvent, options...)
}

// producer appends records at their times.
type producer struct {
	client  *kgo.Client
	start   time.Time
	records []Record // not appended yet
}

func newProducer(t *testing.T, cluster *kafkatest.Cluster, records []Record, start time.Time) *producer {
	client := cluster.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.DisableClientMetrics())
	return &producer{client, start, records}
}

// appendUntil appends what is to be appended before a time. Records before the start
// of the job are appended at once.
func (p *producer) appendUntil(t *testing.T, end time.Time) {
	for len(p.records) > 0 {
		at := p.start.Add(millis(p.records[0].AppendMillis) - early)
		if !at.Before(end) {
			return
		}
		synctest.Sleep(time.Until(at))
		n := 1
		for n < len(p.records) && (p.records[n].AppendMillis == p.records[0].AppendMillis || p.records[n].AppendMillis < 0) {
			n++
		}
		p.append(t, p.records[:n])
		p.records = p.records[n:]
	}
}

func (p *producer) append(t *testing.T, records []Record) {
	batch := make([]*kgo.Record, len(records))
	for i, r := range records {
		value, err := json.Marshal(payload{r.PayloadTime, r.Key})
		if err != nil {
			t.Fatal(err)
		}
		batch[i] = &kgo.Record{
			Topic: r.Topic, Partition: r.Partition, Key: []byte(r.Key), Value: value,
			Timestamp: time.UnixMilli(r.KafkaMillis),
		}
	}
	if err := p.client.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// readTimes returns when records may be read, by split and offset.
func readTimes(records []Record, start time.Time) map[string][]time.Time {
	times := map[string][]time.Time{}
	for _, r := range records {
		id := kafka.Split{Topic: r.Topic, Partition: r.Partition}.ID()
		times[id] = append(times[id], start.Add(millis(r.ReadMillis)-early))
	}
	return times
}

// windowNumbers returns the input watermarks of the window operators, and the late
// records that they have counted.
func windowNumbers(s *Scenario, status lowwater.JobStatus) (watermarks map[string]Instant, late int64) {
	watermarks = map[string]Instant{}
	for i := range s.Job.Operators {
		if o := &s.Job.Operators[i]; o.Kind == Window {
			watermarks[o.ID] = Max
		}
	}
	for _, v := range status.Vertices {
		for _, sub := range v.Subtasks {
			for _, o := range sub.Operators {
				if w, ok := watermarks[o.Name]; ok {
					watermarks[o.Name] = min(w, Instant(o.CurrentInputWatermark))
					late += o.LateRecords
				}
			}
		}
	}
	return watermarks, late
}

// report tells how long the replays took.
type report struct {
	lines []string
	runs  int
	total time.Duration
}

func (r *report) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *report) ran(t *testing.T, s *Scenario, took time.Duration) {
	r.runs++
	r.total += took
	r.add("%-45s %-9s %9v in %v", s.Name, path.Base(t.Name()), millis(s.DurationMillis), took.Round(time.Millisecond))
}

func (r *report) String() string {
	return fmt.Sprintf("virtual and real time:\n%s\n%d replays in %v", strings.Join(r.lines, "\n"), r.runs, r.total.Round(time.Millisecond))
}
