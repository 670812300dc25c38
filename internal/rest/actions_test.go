package rest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

const someTrigger = "abcdef00000000000000000000000001"

// TestBodiesThatAreNotUnderstood: what a request asks for is done or refused, not passed over.
func TestBodiesThatAreNotUnderstood(t *testing.T) {
	job := newFakeJob(status.Running)
	job.checkpoints = fakeCheckpoints{}
	base, ids := serveFake(t, job)
	path := base + "/jobs/" + ids[0]
	for _, c := range []struct {
		what, body string
		status     int
	}{
		{"/savepoints", `{"target-directory": "/s"}`, 202},
		{"/savepoints", `{"target-directory": "/s", "cancel-job": null, "formatType": "NATIVE", "triggerId": null}`, 202},
		{"/savepoints", `{"targetDirectory": "/s"}`, 400}, // as a stop spells it
		{"/savepoints", `{"target-directory": "/s", "formatType": "canonical"}`, 400},
		{"/savepoints", `{"target-directory": "/s", "triggerId": "mine"}`, 400}, // nobody could ask for it
		{"/savepoints", `{"target-directory": "/s", "triggerId": ""}`, 400},
		{"/savepoints", `{"target-directory": "/s"} {}`, 400},
		{"/stop", `{"targetDirectory": "/s", "drain": true, "formatType": "CANONICAL"}`, 202},
		{"/stop", `{"target-directory": "/s"}`, 400},
		{"/stop", `{"targetDirectory": "/s", "triggerId": "mine"}`, 400},
		{"/stop", `{"targetDirectory": "/s", "formatType": ""}`, 400},
		{"/checkpoints", `{"checkpointType": "FULL"}`, 202},
		{"/checkpoints", `{"checkpointType": "full"}`, 400},
		{"/checkpoints", `{"triggerId": "mine"}`, 400},
		{"/checkpoints", `{"kind": "FULL"}`, 400},
	} {
		got := request(t, "POST", path+c.what, c.body)
		if got.status != c.status {
			t.Errorf("%s %s: status %d, want %d: %s", c.what, c.body, got.status, c.status, got.text)
		}
		if c.status == 400 && !strings.Contains(got.text, "Request did not match expected format") {
			t.Errorf("%s %s: %s", c.what, c.body, got.text)
		}
		if c.status == 202 {
			id := field(t, got.body, "request-id").(string)
			poll := path + strings.Replace(c.what, "/stop", "/savepoints", 1) + "/" + id
			await(t, c.what, func() bool { return field(t, request(t, "GET", poll, "").body, "status", "id") == "COMPLETED" })
		}
	}
}

// TestIDsInCapitals: the case of an id's digits does not matter.
func TestIDsInCapitals(t *testing.T) {
	job := newFakeJob(status.Running)
	job.checkpoints = fakeCheckpoints{}
	base, ids := serveFake(t, job)
	path := base + "/jobs/" + strings.ToUpper(ids[0])
	vertex := path + "/vertices/" + strings.ToUpper(observe.OperatorID("count"))
	asked := request(t, "POST", path+"/savepoints", `{"target-directory": "/s", "triggerId": "`+strings.ToUpper(someTrigger)+`"}`)
	if got := field(t, asked.body, "request-id"); got != someTrigger {
		t.Errorf("the savepoint has the id %v", got)
	}
	await(t, "savepoint", func() bool {
		return field(t, request(t, "GET", path+"/savepoints/"+strings.ToUpper(someTrigger), "").body, "status", "id") == "COMPLETED"
	})
	for _, url := range []string{
		path, path + "/metrics", vertex, vertex + "/metrics", vertex + "/subtasks/metrics", path + "/savepoints/" + someTrigger,
		base + "/jobs/metrics?jobs=" + strings.ToUpper(ids[0]),
	} {
		if got := request(t, "GET", url, ""); got.status != 200 || strings.TrimSpace(got.text) == "[]" {
			t.Errorf("%s: status %d: %s", url, got.status, got.text)
		}
	}
	if got := request(t, "GET", base+"/jobs/metrics?jobs=mine", ""); got.status != 400 {
		t.Errorf("metrics of a job that has no id: status %d", got.status)
	}
	if got := request(t, "PATCH", path+"?mode=cancel", ""); got.status != 202 {
		t.Errorf("cancel: status %d: %s", got.status, got.text)
	}
}

// TestLinger: a server stays for clients that may still ask, not for a result that has been
// there for long.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if took := rest.LingersFor(0, time.Minute); took != time.Minute {
			t.Errorf("the server stayed for %v although nobody has heard of the result", took)
		}
		if took := rest.LingersFor(time.Hour, time.Hour/2); took != 0 {
			t.Errorf("the server stayed for %v for a result that nobody asked for", took)
		}
	})
}
