package rest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/window"
)

// TestCheckpoints follows a job's own checkpoints: by the clock, by hand, a savepoint, and one
// that ends the job.
func TestCheckpoints(t *testing.T) {
	cluster := kafkatest.Start(t)
	cluster.CreateTopic(t, "orders", 1)
	store := t.TempDir()
	server, err := lowwater.ServeREST("127.0.0.1:0", lowwater.RESTLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1), lowwater.WithLogger(quiet()), lowwater.WithRESTServer(server),
		lowwater.WithCheckpoints("file://"+store+"?secret="+canary, 50*time.Millisecond))
	source := kafka.NewSource(raw.String{}, kafka.Brokers(cluster.Brokers()...), kafka.Topics("orders"), kafka.ClientOptions(cluster.Options()...))
	lowwater.FromSource(env, source, eventtime.ForBoundedOutOfOrderness[string](0), "orders").UID("orders").
		KeyBy(func(s string) string { return s }).Window(window.Tumbling(time.Second)).Aggregate(lowwater.Count[string]()).UID("count").
		SinkFunc(func(context.Context, window.Pane[string, int64]) error { return nil }).UID("nowhere")
	job, err := env.Start(t.Context(), "count")
	if err != nil {
		t.Fatal(err)
	}
	defer job.Cancel()
	base := strings.TrimSuffix(server.URL(), "/")
	jid := firstJob(t, base)
	path := base + "/jobs/" + jid
	get := func(what string) any { return request(t, "GET", path+what, "").body }
	await(t, "two checkpoints", func() bool { return field(t, get("/checkpoints"), "counts", "completed").(float64) >= 2 })
	latest := field(t, get("/checkpoints"), "latest", "completed")
	if field(t, latest, "status") != "COMPLETED" || field(t, latest, "num_acknowledged_subtasks") != field(t, latest, "num_subtasks") {
		t.Errorf("the latest: %v", latest)
	}
	operation := func(what, body, poll string) any {
		a := request(t, "POST", path+what, body)
		if a.status != 202 {
			t.Fatalf("%s: status %d: %s", what, a.status, a.text)
		}
		at := poll + "/" + field(t, a.body, "request-id").(string)
		await(t, what, func() bool { return field(t, get(at), "status", "id") == "COMPLETED" })
		return field(t, get(at), "operation")
	}
	if id := field(t, operation("/checkpoints", "", "/checkpoints"), "checkpointId").(float64); id < 3 {
		t.Errorf("a checkpoint by hand has number %v", id)
	}
	operation("/savepoints", "", "/savepoints")
	savepoint := field(t, get("/checkpoints"), "latest", "savepoint")
	if field(t, savepoint, "is_savepoint") != true || field(t, savepoint, "external_path") == "" {
		t.Errorf("the savepoint: %v", savepoint)
	}
	if got := value(t, base, "/jobs/"+jid+"/metrics", "numberOfCompletedCheckpoints"); got == "0" {
		t.Error("no completed checkpoints among the metrics")
	}
	for _, what := range []string{"/checkpoints/config", "/jobmanager/config", "/config", "/exceptions", "/checkpoints"} {
		if text := request(t, "GET", path+what, "").text; strings.Contains(text, canary) {
			t.Errorf("%s shows the secret: %s", what, text)
		}
	}
	if got := field(t, get("/checkpoints/config"), "interval"); got != 50.0 {
		t.Errorf("interval %v", got)
	}
	if got := field(t, operation("/stop", `{"drain": true}`, "/savepoints"), "location").(string); !strings.Contains(got, "savepoint") {
		t.Errorf("stopped with a savepoint at %q", got)
	}
	if err := job.Wait(); err != nil {
		t.Error(err)
	}
	await(t, "end", func() bool { return field(t, get("/status"), "status") == "FINISHED" })
	if files, err := os.ReadDir(store); err != nil || len(files) == 0 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// outage are checkpoints of which so many have failed lately that the history holds no other.
type outage struct{ fakeCheckpoints }

func (o outage) CheckpointStats() status.Checkpoints {
	stats := o.fakeCheckpoints.CheckpointStats()
	stats.History = stats.History[2:]
	return stats
}

// TestCheckpointsInAnOutage: the last checkpoint that completed is what matters most when no
// other does.
func TestCheckpointsInAnOutage(t *testing.T) {
	job := newFakeJob(status.Running)
	job.checkpoints = outage{}
	base, ids := serveFake(t, job)
	path := base + "/jobs/" + ids[0]
	latest := field(t, request(t, "GET", path+"/checkpoints", "").body, "latest")
	for kind, want := range map[string]float64{"completed": 1, "savepoint": 2, "failed": 3} {
		if got := field(t, latest, kind); got == nil || field(t, got, "id") != want {
			t.Errorf("the latest %s is %v, want %v", kind, got, want)
		}
	}
	if a := request(t, "GET", path+"/checkpoints/details/1", ""); a.status != 200 || field(t, a.body, "id") != 1.0 {
		t.Errorf("details: status %d: %s", a.status, a.text)
	}
	for name, want := range map[string]string{"lastCompletedCheckpointId": "2", "lastCheckpointSize": "160", "lastCheckpointCompletedTimestamp": "1800000000012", "lastCheckpointExternalPath": "/checkpoints/1"} {
		if got := field(t, request(t, "GET", path+"/metrics?get="+name, "").body, 0, "value"); got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}
