package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// TestHolder: a partition without records pins the windows, and the way there is shown.
func TestHolder(t *testing.T) {
	base, job, _ := orders(t, eventtime.ForBoundedOutOfOrderness[string](0))
	await(t, "watermarks of the two partitions with records", func() bool {
		n := 0
		for _, s := range job.Status().Vertices[0].Subtasks {
			for _, split := range s.Operators[0].Splits {
				if split.CurrentWatermark == 19_499 {
					n++
				}
			}
		}
		return n == 2
	})
	jid := firstJob(t, base)
	var g any
	await(t, "sample of the silent partition", func() bool {
		g = request(t, "GET", base+"/lowwater/jobs/"+jid+"/graph", "").body
		return field(t, g, "holder", "sinceMs") != nil
	})
	source, windows := observe.OperatorID("orders"), observe.OperatorID("count")
	owner := -1
	for i, s := range job.Status().Vertices[0].Subtasks {
		for _, split := range s.Operators[0].Splits {
			if split.Partition == 2 {
				owner = i
			}
		}
	}
	h := field(t, g, "holder")
	for _, test := range []struct {
		path []any
		want any
	}{
		{[]any{"watermark"}, nil},
		{[]any{"split", "id"}, "orders-2"},
		{[]any{"split", "topic"}, "orders"},
		{[]any{"split", "partition"}, 2.0},
		{[]any{"split", "vertex"}, source},
		{[]any{"split", "subtask"}, float64(owner)},
		{[]any{"path", 0, "vertex"}, source},
		{[]any{"path", 0, "subtask"}, float64(owner)},
		{[]any{"path", 0, "operator"}, "Source: orders"},
		{[]any{"path", 1, "vertex"}, windows},
		{[]any{"path", 1, "operator"}, "count"},
		{[]any{"text"}, `split orders-2 of "Source: orders" has sent no watermark yet`},
	} {
		if got := field(t, h, test.path...); got != test.want {
			t.Errorf("holder %v: %v, want %v", test.path, got, test.want)
		}
	}
	if since := field(t, h, "sinceMs").(float64); time.Since(time.UnixMilli(int64(since))) > time.Minute {
		t.Errorf("held since %v", time.UnixMilli(int64(since)))
	}
	why := request(t, "GET", base+"/lowwater/jobs/"+jid+"/why", "").body
	if cause := field(t, why, "cause"); cause == "nothing" || field(t, why, "job") != "count" {
		t.Errorf("why: %v", why)
	}
}

// TestWhyOfEndedJobs: a job that has ended does not stand still. What is said is how it ended,
// and it does not change with time.
func TestWhyOfEndedJobs(t *testing.T) {
	for state, want := range map[status.State]string{
		status.Finished: " finished at ", status.Canceled: " was canceled at ", status.Failed: " failed at ",
	} {
		job := newFakeJob(state)
		base, ids := serveFake(t, job)
		why := request(t, "GET", base+"/lowwater/jobs/"+ids[0]+"/why", "").body
		answer := field(t, why, "findings", 0, "answer").(string)
		if field(t, why, "cause") != "job-ended" || field(t, why, "severity") != "none" || len(field(t, why, "findings").([]any)) != 1 ||
			!strings.Contains(answer, want+job.status.Life.End().UTC().Format(time.DateTime)+" UTC") || !strings.HasSuffix(answer, " 1.0 s after it was started.") && !strings.HasSuffix(answer, " 1 s after it was started.") {
			t.Errorf("%s: %v", state, why)
		}
		if state == status.Failed && field(t, why, "findings", 0, "why", 0) != "the disk is full" {
			t.Errorf("the failure is missing: %v", why)
		}
	}
}

// TestWhyOfFailingJobs: that a job has failed comes before what its event time does, with how
// often and with what. Of one that does not run the numbers of its last attempt say nothing.
func TestWhyOfFailingJobs(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		state           status.State
		since           time.Duration
		restarts        int64
		cause, severity string
		answer          string
	}{
		"waits to run again": {status.Restarting, time.Second, 262, "job-not-running", "stall", `Job "count" is RESTARTING after 262 restarts: the disk is full`},
		"first failure":      {status.Restarting, time.Second, 0, "job-not-running", "stall", `Job "count" is RESTARTING: the disk is full`},
		"is failing":         {status.Failing, time.Second, 1, "job-not-running", "stall", `Job "count" is FAILING after 1 restart: the disk is full`},
		"runs for a second":  {status.Running, time.Second, 262, "job-restarts", "stall", `Job "count" fails again and again: 262 restarts, 262 of them in the last 10 min. Last: the disk is full`},
		"runs after one":     {status.Running, time.Second, 1, "job-restarts", "none", `Job "count" runs again since ` + now.Add(-time.Second).UTC().Format(time.TimeOnly) + ` UTC after 1 restart: the disk is full`},
		"has calmed down":    {status.Running, 2 * time.Minute, 3, "job-restarts", "none", `Job "count" runs again since`},
		"is cancelled":       {status.Cancelling, time.Second, 0, "job-not-running", "none", `Job "count" is CANCELLING since`},
		"does not end": {status.Cancelling, time.Minute, 0, "job-not-running", "none",
			`It waits for user code that does not return, of subtask 0 of "Source: orders", subtask 1 of "Source: orders", subtask 0 of "count" and 1 more: it has to end when its context does.`},
	} {
		t.Run(name, func(t *testing.T) {
			job := newFakeJob(test.state)
			job.status.Life.Since[test.state] = now.Add(-test.since)
			job.status.Restarts = test.restarts
			job.failures = []status.Failure{{At: now, Err: errors.New("the disk is full\ngoroutine 7 [running]:"), Vertex: 1, Subtask: 1}}
			base, ids := serveFake(t, job)
			why := request(t, "GET", base+"/lowwater/jobs/"+ids[0]+"/why", "").body
			answer := field(t, why, "findings", 0, "answer").(string)
			if field(t, why, "cause") != test.cause || field(t, why, "severity") != test.severity || !strings.Contains(answer, test.answer) || strings.Contains(answer, "goroutine") {
				t.Errorf("%v", why)
			}
			if at := field(t, why, "findings", 0, "why", 0).(string); !strings.HasSuffix(at, ` UTC, in subtask 1 of "count".`) {
				t.Errorf("place of the failure: %q", at)
			}
			if n := field(t, why, "findings", 0, "numbers", "restarts"); n != float64(test.restarts) {
				t.Errorf("%v restarts", n)
			}
		})
	}
}

func TestGraph(t *testing.T) {
	base, job := countingJob(t)
	g := request(t, "GET", base+"/lowwater/jobs/"+firstJob(t, base)+"/graph", "").body
	for _, test := range []struct {
		path []any
		want any
	}{
		{[]any{"name"}, "count"},
		{[]any{"state"}, "RUNNING"},
		{[]any{"parallelism"}, 2.0},
		{[]any{"restarts"}, 0.0},
		{[]any{"startTime"}, float64(job.Status().Started.UnixMilli())},
		{[]any{"vertices", 0, "kind"}, "source"},
		{[]any{"vertices", 0, "name"}, "Source: orders"},
		{[]any{"vertices", 0, "operators", 0, "uid"}, "orders"},
		{[]any{"vertices", 0, "subtasks", 0, "inputWatermark"}, nil},
		{[]any{"vertices", 0, "subtasks", 1, "status"}, "RUNNING"},
		{[]any{"vertices", 1, "kind"}, "window"},
		{[]any{"vertices", 1, "operators", 0, "eventTime"}, true},
		{[]any{"vertices", 1, "operators", 1, "kind"}, "sink"},
		{[]any{"vertices", 1, "operators", 1, "eventTime"}, false},
		{[]any{"vertices", 1, "inputs", 0, "id"}, observe.OperatorID("orders")},
		{[]any{"vertices", 1, "inputs", 0, "shipStrategy"}, "HASH"},
		{[]any{"vertices", 1, "lowWatermark"}, 19499.0},
		{[]any{"vertices", 1, "lateDropped"}, 1.0},
		{[]any{"vertices", 1, "subtasks", 1, "inputWatermark"}, 19499.0},
		{[]any{"vertices", 1, "subtasks", 1, "outputWatermark"}, 19499.0},
	} {
		if got := field(t, g, test.path...); got != test.want {
			t.Errorf("graph %v: %v, want %v", test.path, got, test.want)
		}
	}
	in := 0.0
	for i := range 2 {
		in += field(t, g, "vertices", 1, "subtasks", i, "recordsIn").(float64)
	}
	if in != 41 {
		t.Errorf("%v records at the windows, want 41", in)
	}
}

func TestSplits(t *testing.T) {
	base, _ := countingJob(t)
	body := request(t, "GET", base+"/lowwater/jobs/"+firstJob(t, base)+"/splits", "").body
	seen := map[string]bool{}
	for _, s := range field(t, body, "splits").([]any) {
		id := field(t, s, "id").(string)
		seen[id] = true
		want := map[string]any{"source": "orders", "topic": "orders", "watermark": 19499.0, "lastEventTime": 19500.0, "lag": 0.0, "futureRecords": 0.0, "vertex": observe.OperatorID("orders")}
		switch id {
		case "orders-0":
			want["records"], want["offset"] = 21.0, 21.0
		case "orders-1":
			want["records"], want["offset"] = 20.0, 20.0
		case "orders-2":
			want["records"], want["offset"], want["state"], want["idleBy"] = 0.0, 0.0, "idle", "timeout"
			want["watermark"], want["lastEventTime"], want["lastRecordAt"] = nil, nil, nil
			delete(want, "lag") // until the broker was heard
		}
		for name, w := range want {
			if got := field(t, s, name); got != w {
				t.Errorf("split %s: %s is %v, want %v", id, name, got, w)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("splits %v", seen)
	}
}

// TestPlanWarnings: a warning comes in parts, its fixes as a list.
func TestPlanWarnings(t *testing.T) {
	server, base := listen(t, rest.Config{})
	job := newFakeJob(status.Running)
	job.plan.Warnings = []graph.Warning{
		{Code: "over-parallel-source", Operator: "Source: orders", Where: "main.go:7", Message: "It has 4 subtasks and 3 splits.", Fixes: []string{"take one away", "add WithIdleness"}},
		{Code: "result-unused", Operator: "count", Message: "Nothing reads it."},
	}
	path := "/lowwater/jobs/" + server.Jobs().Add(job).ID + "/plan"
	got := request(t, "GET", base+path, "").body
	want := []any{
		map[string]any{"code": "over-parallel-source", "severity": "warning", "operator": "Source: orders", "where": "main.go:7",
			"message": "It has 4 subtasks and 3 splits.", "fixes": []any{"take one away", "add WithIdleness"}},
		map[string]any{"code": "result-unused", "severity": "warning", "operator": "count", "where": "", "message": "Nothing reads it.", "fixes": []any{}},
	}
	if diff := cmp.Diff(want, field(t, got, "warnings")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLate(t *testing.T) {
	base, _ := countingJob(t)
	late := request(t, "GET", base+"/lowwater/jobs/"+firstJob(t, base)+"/late", "").body
	for _, test := range []struct {
		path []any
		want any
	}{
		{[]any{"late"}, 1.0},
		{[]any{"dropped"}, 1.0},
		{[]any{"byReason", 0, "operator"}, "count"},
		{[]any{"byReason", 0, "reason"}, "late"},
		{[]any{"byReason", 0, "count"}, 1.0},
		{[]any{"bySplit", 0, "split"}, "orders-0"},
		{[]any{"samples", 0, "key"}, "late"},
		{[]any{"samples", 0, "split"}, "orders-0"},
		{[]any{"samples", 0, "offset"}, 20.0},
		{[]any{"samples", 0, "timestamp"}, 10_000.0},
		{[]any{"samples", 0, "behindMs"}, 9_499.0},
	} {
		if got := field(t, late, test.path...); got != test.want {
			t.Errorf("late %v: %v, want %v", test.path, got, test.want)
		}
	}
}

// TestEvents: ticks arrive with growing versions, and at once when a job starts.
func TestEvents(t *testing.T) {
	server, base := listen(t, rest.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", base+"/lowwater/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if got := stream.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(stream.Body)
	tick := func() (version int64) {
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var tick struct{ Version, Now int64 }
			if err := json.Unmarshal([]byte(data), &tick); err != nil || time.Since(time.UnixMilli(tick.Now)) > time.Minute {
				t.Fatalf("%v: %s", err, data)
			}
			return tick.Version
		}
		t.Fatal("the stream ended", lines.Err())
		return 0
	}
	last := tick()
	server.Jobs().Add(newFakeJob(status.Running))
	for range 3 { // the start, and two samples
		version := tick()
		if version <= last {
			t.Errorf("version %d after %d", version, last)
		}
		last = version
	}
}

// TestHistorySince: only what is new is sent again.
func TestHistorySince(t *testing.T) {
	base, _ := countingJob(t)
	path := base + "/lowwater/jobs/" + firstJob(t, base) + "/history"
	points := func(query string) int {
		body := request(t, "GET", path+query, "").body
		n := 0
		for _, s := range field(t, body, "series").([]any) {
			n += len(field(t, s, "points").([]any))
		}
		return n
	}
	await(t, "three samples", func() bool { return points("") >= 3*7 })
	body := request(t, "GET", path, "").body
	kinds := map[string]int{}
	for _, s := range field(t, body, "series").([]any) {
		kinds[fmt.Sprint(field(t, s, "kind"))]++
	}
	if kinds["subtask"] != 4 || kinds["split"] != 3 {
		t.Errorf("series: %v, want 4 subtasks and 3 splits", kinds)
	}
	second := field(t, body, "series", 0, "points", 1, 0).(float64)
	rest := points(fmt.Sprintf("?since=%.0f", second)) // before all, which may have a sample more by then
	if all := points(""); rest >= all || rest == 0 {
		t.Errorf("%d points in all, %d since the second", all, rest)
	}
	if got := request(t, "GET", path+"?since=yesterday", ""); got.status != 400 {
		t.Errorf("since yesterday: status %d", got.status)
	}
}

// TestStopGracefully: lowwater's own stop needs no savepoint.
func TestStopGracefully(t *testing.T) {
	base, job := countingJob(t)
	jid := firstJob(t, base)
	if got := request(t, "POST", base+"/lowwater/jobs/"+jid+"/stop", ""); got.status != 202 {
		t.Fatalf("status %d: %s", got.status, got.text)
	}
	if err := job.Wait(); err != nil {
		t.Error(err)
	}
	await(t, "end", func() bool {
		return field(t, request(t, "GET", base+"/jobs/"+jid+"/status", "").body, "status") == "FINISHED"
	})
	if got := request(t, "GET", base+"/lowwater/jobs/"+strings.Repeat("0", 32)+"/graph", ""); got.status != 404 {
		t.Errorf("an unknown job: status %d", got.status)
	}
}

// TestJavaReadsErrors compares the head of a serialized error with one that Flink sent.
func TestJavaReadsErrors(t *testing.T) {
	var recorded struct {
		Body struct {
			Operation struct {
				Cause struct {
					Serialized []byte `json:"serialized-throwable"`
				} `json:"failure-cause"`
			}
		}
	}
	all := recordings(t)
	cause := field(t, all["savepoint-failed"].Body, "operation", "failure-cause", "serialized-throwable").(string)
	data, err := json.Marshal(map[string]any{"body": map[string]any{"operation": map[string]any{"failure-cause": map[string]any{"serialized-throwable": cause[:1200]}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	theirs := recorded.Body.Operation.Cause.Serialized
	ours := rest.SerializedThrowable("error", "no such directory: größe", "trace")
	head := strings.Index(string(theirs), "Ljava/util/List;xp") + len("Ljava/util/List;xp")
	if head < 300 || string(ours[:head]) != string(theirs[:head]) {
		t.Errorf("the first %d bytes are\n%q\nwant\n%q", head, ours, theirs[:head])
	}
	if want := "t\x00\x1ano such directory: größe"; !strings.Contains(string(ours), want) {
		t.Errorf("no %q in %q", want, ours)
	}
}
