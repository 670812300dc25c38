//go:build synctests

package lowwatertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/lowwatertest"
)

// What is appended comes back, through a job and its sink.
func TestThroughAJobAndBack(t *testing.T) {
	lowwatertest.Run(t, func(t *testing.T, k *lowwatertest.Kafka) {
		k.CreateTopic("in", 2)
		k.CreateTopic("out", 1)
		at := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
		k.Produce("in",
			lowwatertest.Text(1, "a").WithKey("k").At(at),
			lowwatertest.JSON(0, map[string]int{"y": 2, "x": 1}))

		env := lowwatertest.NewEnvironment(t)
		source := kafka.NewSource(raw.String{}, k.SourceOptions(kafka.Topics("in"), kafka.Bounded())...)
		sink := kafka.NewSink(raw.String{}, k.SinkOptions(kafka.Topic("out"))...)
		lowwater.FromSource(env, source, eventtime.NoWatermarks[string](), "in").Map(strings.ToUpper).SinkTo(sink)
		job := k.Start(env)
		if err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range k.Read("out") {
			got = append(got, r.Value)
		}
		if len(got) != 2 || !strings.Contains(strings.Join(got, " "), `{"X":1,"Y":2}`) {
			t.Errorf("the sink's topic holds %q", got)
		}
		want := []lowwatertest.Stored{
			{Partition: 0, Timestamp: k.Read("in")[0].Timestamp, Value: `{"x":1,"y":2}`},
			{Partition: 1, Timestamp: at.Local(), Key: "k", Value: "a"},
		}
		if diff := cmp.Diff(want, k.Read("in")); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}

// A new partition is found, read, and shown in the status.
func TestAddedPartition(t *testing.T) {
	lowwatertest.Run(t, func(t *testing.T, k *lowwatertest.Kafka) {
		k.CreateTopic("in", 1)
		env := lowwatertest.NewEnvironment(t)
		source := kafka.NewSource(raw.String{}, k.SourceOptions(kafka.Topics("in"), kafka.DiscoveryInterval(time.Minute))...)
		read := lowwater.FromSource(env, source, eventtime.NoWatermarks[string](), "in").Collect()
		job := k.Start(env)
		k.Produce("in", lowwatertest.Text(0, "old"))
		k.Wait(time.Second)
		k.AddPartitions("in", 2)
		k.Produce("in", lowwatertest.Text(1, "new"))
		k.Wait(30 * time.Second)
		if diff := cmp.Diff([]string{"old"}, read.Values()); diff != "" {
			t.Errorf("before the discovery (-want +got):\n%s", diff)
		}
		k.Wait(time.Minute)
		if diff := cmp.Diff([]string{"old", "new"}, read.Values()); diff != "" {
			t.Errorf("after it (-want +got):\n%s", diff)
		}
		splits := lowwatertest.Splits(job)
		if len(splits) != 2 || splits["in-1"].Records != 1 {
			t.Errorf("splits: %+v", splits)
		}
		k.Stop(job)
		k.Stop(job)
		if job.Status().Running {
			t.Error("the job runs after Stop")
		}
	})
}
