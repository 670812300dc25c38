package flink

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/why"
)

// TestOwnServer: a server of ours tells what operators wait for event time, and the true
// names of topics.
func TestOwnServer(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	job := f.job()
	f.Answers["/lowwater/jobs/"+job+"/graph"] = []byte(`{"vertices":[{"id":"bc764cd8ddf7a0cff126f51c16239658","operators":[{"name":"Source: quiet.a","kind":"source","eventTime":false}]},
		{"id":"20ba6b65f97481d5570070de90e4e791","operators":[{"name":"count per key","kind":"window","eventTime":true},{"name":"out: Writer","kind":"window","eventTime":true}]}]}`)
	f.Answers["/lowwater/jobs/"+job+"/splits"] = []byte(`{"splits":[{"topic":"quiet.a"}]}`)
	e := open(t, f)
	want := []string{
		"quiet.a source p2 [quiet.a]",
		"count per key window p2 <- hash quiet.a tumbling 5000/0",
		"out: Writer window p2 <- forward count per key",
	}
	if diff := cmp.Diff(want, shape(e)); diff != "" || e.Engine != (why.Engine{Name: why.Lowwater}) {
		t.Errorf("engine %+v, operators (-want +got):\n%s", e.Engine, diff)
	}
}

// TestOwnProcessingTime: a window of a server of ours that does not wait for event time is
// none to look for a stall at.
func TestOwnProcessingTime(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	id := f.job()
	for path, answer := range f.Answers {
		f.Answers[path] = bytes.ReplaceAll(answer, []byte("Window(TumblingEventTimeWindows(5000), EventTimeTrigger, Count)"), []byte("count"))
	}
	f.Answers["/lowwater/jobs/"+id+"/graph"] = []byte(`{"vertices":[{"id":"20ba6b65f97481d5570070de90e4e791",
		"operators":[{"name":"count per key","kind":"window","eventTime":false}]}]}`)
	for _, o := range open(t, f).Operators {
		if o.Kind != why.KindSource && o.Kind != why.KindPlain {
			t.Errorf("%s is a %s, want an operator that does not wait", o.ID, o.Kind)
		}
	}
}

// TestOwnServerIsBusy: only a path that does not exist stands for a Flink cluster. Another
// failure is told, and the server asked again.
func TestOwnServerIsBusy(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	graph := "/lowwater/jobs/" + f.job() + "/graph"
	f.Answers[graph] = []byte(`{"vertices": []}`)
	f.busy = graph
	c := f.serve(t, Options{})
	job, err := c.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	col, err := c.Open(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if err := col.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if unseen := col.Unseen(); len(unseen) != 1 || !strings.Contains(unseen[0], "taken for one of Flink's") || !strings.Contains(unseen[0], "HTTP 503: try again") {
		t.Errorf("unseen: %q", unseen)
	}
	f.busy = ""
	if err := col.Look(t.Context()); err != nil || col.Unseen() != nil || col.Evidence().Engine.Name != why.Lowwater {
		t.Errorf("when it is not busy any more: %v, unseen %q, engine %v", err, col.Unseen(), col.Evidence().Engine)
	}
}

func TestOwnServerIsNotWaitedFor(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	f.empty = 0
	c := f.serve(t, Options{})
	c.primeWait = time.Hour
	job, err := c.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Answers["/lowwater/jobs/"+job.ID+"/graph"] = []byte(`{"vertices": []}`)
	col, err := c.Open(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if err := col.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := col.Evidence(); e.Engine.Name != why.Lowwater || len(e.History) != 1 || len(e.History[0].Splits) == 0 {
		t.Errorf("evidence of %q, history %+v", e.Engine.Name, e.History)
	}
}

// TestFindOfAHaltedJob: a server of ours says how often a job was started again, and with what
// it failed last, also where the job is the only one and was not named.
func TestFindOfAHaltedJob(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	f.Answers["/jobs/overview"] = []byte(`{"jobs":[{"jid":"aaaa","name":"loop","state":"RESTARTING"},{"jid":"bbbb","name":"old","state":"FINISHED"}]}`)
	f.Answers["/jobs/aaaa/exceptions"] = []byte(`{"exceptionHistory":{"entries":[{"stacktrace":"boom"}]}}`)
	c := f.serve(t, Options{})
	for _, want := range []string{`job "loop" is RESTARTING: boom`, `Job "loop" is RESTARTING after 262 restarts: boom`} {
		for _, name := range []string{"", "loop"} {
			if _, err := c.Find(t.Context(), name); err == nil || err.Error() != want || !errors.Is(err, ErrNoJob) {
				t.Errorf("%q: error %v, want %q", name, err, want)
			}
		}
		f.Answers["/lowwater/jobs/aaaa/why"] = []byte(`{"cause":"job-not-running","findings":[{"code":"job-not-running","answer":"Job \"loop\" is RESTARTING after 262 restarts: boom"}]}`)
	}
}
