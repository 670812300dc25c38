//go:build synctests

package own_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	formatjson "github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/own"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/window"
)

type record struct {
	Key    string `json:"k"`
	Millis int64  `json:"t"`
}

// TestDiagnosesAJob: a job with a partition that stops is looked at for a minute.
func TestDiagnosesAJob(t *testing.T) {
	for name, test := range map[string]struct {
		idleness time.Duration
		want     why.Code
	}{
		"without idleness": {0, why.QuietPartition},
		"with idleness":    {5 * time.Second, why.None},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { diagnose(t, test.idleness, test.want) })
		})
	}
}

func diagnose(t *testing.T, idleness time.Duration, want why.Code) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 3)
	client := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	env := lowwater.NewEnvironment(lowwater.WithParallelism(2), lowwater.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	strategy := eventtime.ForBoundedOutOfOrderness[record](time.Second).WithTimestampAssigner(func(r record, _ int64) int64 { return r.Millis })
	if idleness > 0 {
		strategy = strategy.WithIdleness(idleness)
	}
	source := kafka.NewSource(formatjson.Value[record](), kafka.Brokers(c.Brokers()...), kafka.ClientOptions(c.Options()...), kafka.Topics("orders"))
	lowwater.FromSource(env, source, strategy, "orders").
		KeyBy(func(r record) string { return r.Key }).Window(window.Tumbling(5 * time.Second)).Aggregate(lowwater.Count[record]()).Collect()
	text, err := env.Plan("counts")
	if err != nil {
		t.Fatal(err)
	}
	var d graph.Description
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	job, err := env.Start(t.Context(), "counts")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		job.Cancel()
		_ = job.Wait() // cancelled
	}()
	collector := own.New(&d, "test")
	for i := range 120 {
		now := time.Now()
		for p := range int32(3) {
			if p < 2 || i < 10 {
				kafkatest.ProduceWith(t, client, "orders", kafkatest.Text(p, 0, "", fmt.Sprintf(`{"k":"a","t":%d}`, now.UnixMilli())))
			}
		}
		<-time.After(time.Second)
		if i%20 == 19 {
			s := job.Status()
			collector.Add(&s, time.Now())
		}
	}
	e := collector.Evidence()
	got := why.Diagnose(e)
	if f := got.Answer(); f.Code != want {
		t.Fatalf("diagnosis %s, want %s:\n%s", f.Code, want, got)
	} else if want == why.QuietPartition && (len(f.Culprit.Partitions) != 1 || f.Culprit.Partitions[0] != 2 || f.Culprit.Topic != "orders") {
		t.Errorf("culprit %+v, want partition 2 of orders", f.Culprit)
	}
	if n := len(e.History); n != 6 || len(e.History[5].Splits) != 3 || e.Engine.Name != why.Lowwater {
		t.Errorf("%d snapshots: %+v", n, e.History[n-1].Splits)
	}
	now := time.Now()
	collector.Keep(func(at time.Time) bool { return now.Sub(at) <= 30*time.Second })
	if n := len(e.History); n != 2 {
		t.Errorf("%d snapshots of the last 30 s, want 2", n)
	}
}
