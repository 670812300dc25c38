//go:build synctests

package scenarios

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/gaps"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/kafka"
	"github.com/lowwater/lowwater/internal/why/collect/own"
)

// TestWhyLive runs the jobs of the scenarios and diagnoses them when the files say, from
// what the engine tells of itself and what is in Kafka.
func TestWhyLive(t *testing.T) {
	got, of := 0, 0
	for _, dir := range dirs() {
		all, err := Load(dir)
		if err != nil {
			t.Error(err)
		}
		for _, s := range all {
			if s.Mode != Replay || len(s.Snapshots) == 0 || s.Expected.Verdict.Cause == "backpressure" {
				// A replay reads late where a scenario has back pressure: there is none then.
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				var d *why.Diagnosis
				synctest.Test(t, func(t *testing.T) { d = why.Diagnose(observe(t, s)) })
				a := answerOf(d)
				if want := &s.Expected.Verdict.Culprit; len(want.Subtasks) == len(a.Culprit.Subtasks) {
					// Which subtasks it is follows from the engine's assignment.
					a.Culprit.Subtasks = want.Subtasks
				}
				p := s.Score(a)
				got, of = got+p.Points, of+p.Of
				t.Logf("%d of %d  %s", p.Points, p.Of, strings.Join(p.Missed, "; "))
				if p.FalseAlarm || p.Points < p.Of && testing.Verbose() {
					t.Logf("\n%v", d)
				}
				if p.FalseAlarm || slices.Contains(s.Expected.Reject, string(d.Answer().Code)) {
					t.Errorf("the verdict is wrong: %s", d.Answer().Code)
				}
			})
		}
	}
	t.Logf("why, live: %d of %d points", got, of)
	if got*100 < of*95 {
		t.Error("less than 95 %")
	}
}

func answerOf(d *why.Diagnosis) *Answer {
	f := d.Answer()
	a := &Answer{
		Cause: string(f.Code), Severity: string(f.Severity), Text: f.Answer, Numbers: map[string]int64{},
		Culprit: Culprit{Source: f.Culprit.Source, Topic: f.Culprit.Topic, Partitions: f.Culprit.Partitions, Subtasks: f.Culprit.Subtasks, Operator: f.Culprit.Operator},
	}
	for _, fix := range f.Fixes {
		a.Fixes = append(a.Fixes, string(fix.Code))
	}
	for _, n := range f.Numbers {
		a.Numbers[n.Name] = n.Value
	}
	return a
}

// observe runs a scenario's job until the time of the diagnosis, and looks at it a minute
// before that and then. It is called in a bubble.
func observe(t *testing.T, s *Scenario) *why.Evidence {
	start := time.UnixMilli(s.WallStartMillis)
	synctest.Sleep(time.Until(start.Add(-time.Second)))
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
		b.source(source, &replaySource{Source: kafkaSource(cluster, source), readAt: readAt, assignment: source.Assignment, end: end})
	}
	for i := range s.Job.Operators {
		b.operator(&s.Job.Operators[i])
	}
	collect := own.New(planOf(t, env, s.Name), "")
	job, err := env.Start(t.Context(), s.Name)
	if err != nil {
		t.Fatal(err)
	}
	topics := topicsCollector(t, cluster, s)
	for _, at := range []int64{s.Expected.DiagnoseAtMillis - 60_000, s.Expected.DiagnoseAtMillis} {
		when := start.Add(millis(at))
		producer.appendUntil(t, when)
		synctest.Sleep(time.Until(when.Add(early)))
		status := job.Status()
		collect.Add(&status, when)
		for _, unseen := range topics.Look(t.Context(), collect.Evidence()) {
			t.Log("not seen: " + unseen)
		}
	}
	close(end)
	job.Cancel()
	_ = job.Wait() // it was cancelled
	return collect.Evidence()
}

func planOf(t *testing.T, env *lowwater.Environment, name string) *graph.Description {
	plan, err := env.Plan(name)
	if err != nil {
		t.Fatal(err)
	}
	d := new(graph.Description)
	if err := json.Unmarshal(plan, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// topicsCollector reads all records of a scenario's topics.
func topicsCollector(t *testing.T, cluster *kafkatest.Cluster, s *Scenario) *kafka.Collector {
	options := kafka.DefaultOptions
	options.Records = 1_000_000
	unit := gaps.Milliseconds
	for _, source := range s.Job.Sources {
		if source.Strategy != nil && source.Strategy.Multiply == 1000 {
			unit = gaps.Seconds
		}
	}
	field, err := gaps.NewField("ts", unit)
	if err != nil {
		t.Fatal(err)
	}
	options.Payload = field
	c, err := kafka.New(append(cluster.Options(), kgo.SeedBrokers(cluster.Brokers()...)), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
