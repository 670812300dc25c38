package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/why"
)

// ownServer answers as the recorded cluster, and as a server of ours. Answers of the latter
// are by their path; one that is empty is not implemented.
func ownServer(t *testing.T, answers map[string]string) string {
	t.Helper()
	behind, err := url.Parse(recordedCluster(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if what, ours := strings.CutPrefix(r.URL.Path, "/lowwater/jobs/"); ours {
			_, what, _ = strings.Cut(what, "/")
			answer, known := answers[what]
			switch {
			case !known:
				w.WriteHeader(http.StatusNotFound)
			case answer == "":
				w.WriteHeader(http.StatusNotImplemented)
			}
			_, _ = w.Write([]byte(answer))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestWhyAsksOurServer: what a server of ours says counts, and is said at once.
func TestWhyAsksOurServer(t *testing.T) {
	report, err := json.Marshal(why.Report{Job: "quiet", Cause: why.QuietInput, Severity: why.Stall, Findings: []why.FindingReport{{
		Code: why.QuietInput, Severity: why.Stall, Answer: "The server knows.",
		Fixes: []why.FixReport{{Code: why.SetIdleness, Do: "Do it.", Go: "strategy.WithIdleness(time.Minute)", Java: "strategy.withIdleness()", Costs: "Some."}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	url := ownServer(t, map[string]string{"graph": "{}", "why": string(report)})
	out, _ := runCLI(t, exitFindings, "why", "--url", url, "--for=1h")
	for _, want := range []string{"The server knows.\nquiet-input, stall\n", "WithIdleness(time.Minute)"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	out, _ = runCLI(t, exitFindings, "why", "--url", url, "--for=1h", "--json")
	var got why.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Cause != why.QuietInput {
		t.Errorf("%v: %s", err, out)
	}
	out, _ = runCLI(t, exitFindings, "why", "--url", url, "--for=1h", "--details")
	if !strings.Contains(out, "The server knows.") || !strings.Contains(out, "seen at ") {
		t.Errorf("details:\n%s", out)
	}
}

// TestWhyLooksItself where the server does not know the job's graph, or is older.
func TestWhyLooksItself(t *testing.T) {
	for _, answers := range []map[string]string{{"graph": "{}", "why": ""}, {"graph": "{}"}} {
		if out, _ := runCLI(t, exitFindings, "why", "--url", ownServer(t, answers), "--for=1ms"); !strings.Contains(out, "quiet-partition, ") {
			t.Errorf("%v:\n%s", answers, out)
		}
	}
}

// TestExplainAsksOurServer: the warnings of the plan are with the server.
func TestExplainAsksOurServer(t *testing.T) {
	const warning = `{"warnings":[{"code":"no-idleness","severity":"warning","where":"main.go:7",` +
		`"operator":"Source: quiet.a","message":"silence stops all.","fixes":["add WithIdleness","feed it"]}]}`
	out, _ := runCLI(t, exitFindings, "explain", "--url", ownServer(t, map[string]string{"graph": "{}", "plan": warning}))
	for _, want := range []string{
		"no-idleness: quiet.a (main.go:7): silence stops all.\n  fix: add WithIdleness\n  or: feed it\n", "strategies are not in the answers of the server",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}

// TestExplainOfABusyServer: that a server of ours could not tell is said.
func TestExplainOfABusyServer(t *testing.T) {
	out, _ := runCLI(t, exitOK, "explain", "--url", ownServer(t, map[string]string{"graph": ""}))
	if flat := strings.Join(strings.Fields(out), " "); !strings.Contains(flat, "whether this is a server of lowwater's, so it was taken for one of Flink's") {
		t.Errorf("output:\n%s", out)
	}
}

// TestWatchWaits: a watch that is begun before the job sees the job.
func TestWatchWaits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	behind, err := url.Parse(recordedCluster(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jobs/overview" {
			switch asked.Add(1) {
			case 1, 2:
				_, _ = w.Write([]byte(`{"jobs":[]}`))
				return
			case 3:
				_, _ = w.Write([]byte(`{"jobs":[{"jid":"1","name":"quiet","state":"CANCELED"}]}`))
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := &whyCommand{clusterFlags: clusterFlags{URL: server.URL, Job: "quiet"}, For: time.Millisecond, Watch: true}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	o, err := c.await(ctx, &out)
	if err != nil {
		t.Fatal(err)
	}
	o.close()
	if n := strings.Count(out.String(), "waiting: "); n != 2 || !strings.Contains(out.String(), "no job runs") ||
		!strings.Contains(out.String(), `job "quiet" is CANCELED`) || asked.Load() != 4 {
		t.Errorf("asked %d times:\n%s", asked.Load(), &out)
	}
}

// restartedAs is the id of a job that is started again.
const restartedAs = "00000000000000000000000000000001"

// restartingCluster answers as the recorded one. After restart its job has another id.
func restartingCluster(t *testing.T) (address string, restart func()) {
	t.Helper()
	var id string
	behind, err := url.Parse(recordedCluster(t, func(answers map[string]json.RawMessage) {
		for path := range answers {
			if job, ok := strings.CutPrefix(path, "/jobs/"); ok && len(job) == 32 {
				id = job
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	var restarted atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !restarted.Load() || r.Request.URL.Path != "/jobs/overview" {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		body = bytes.ReplaceAll(body, []byte(id), []byte(restartedAs))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Del("Content-Length")
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if restarted.Load() && strings.Contains(r.URL.Path, id) {
			http.Error(w, `{"errors":["Job not found"]}`, http.StatusNotFound)
			return
		}
		r.URL.Path = strings.Replace(r.URL.Path, restartedAs, id, 1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() { restarted.Store(true) }
}

// TestWatchFollows: a job that is started again under its name, with another id, is looked at
// further, also if its name was not given.
func TestWatchFollows(t *testing.T) {
	t.Parallel()
	url, restart := restartingCluster(t)
	c := &whyCommand{clusterFlags: clusterFlags{URL: url}, For: time.Millisecond, Watch: true}
	o, err := c.observer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &reports{seen: func(n int) {
		restart()
		if n == 2 {
			cancel()
		}
	}}
	if err := c.watch(ctx, o, out); err != nil {
		t.Fatal(err)
	}
	if text := out.b.String(); out.n != 2 || strings.Count(text, `job "quiet" runs again, as `+restartedAs) != 1 || !strings.Contains(text, " UTC job ") {
		t.Errorf("%d reports:\n%s", out.n, text)
	}
}

// reports counts the reports that are written.
type reports struct {
	b    bytes.Buffer
	n    int
	seen func(n int)
}

func (r *reports) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("quiet-partition, ")) {
		r.n++
		r.seen(r.n)
	}
	return r.b.Write(p)
}

// TestWhyOfAnEndedJob: a server of ours says how it has ended.
func TestWhyOfAnEndedJob(t *testing.T) {
	end := why.End{Job: "quiet", How: "was canceled", Started: time.UnixMilli(0), At: time.UnixMilli(60_000)}
	report, err := json.Marshal(end.Report(time.UnixMilli(90_000)))
	if err != nil {
		t.Fatal(err)
	}
	_, errs := runCLI(t, exitBlind, "why", "--url", ownServer(t, map[string]string{"graph": "{}", "why": string(report)}))
	if !strings.Contains(errs, `Job "quiet" was canceled at 1970-01-01 00:01:00 UTC, 60 s after it was started.`) {
		t.Errorf("%q", errs)
	}
}

// TestErrorsDoNotSteerTheTerminal: what a server says is others' text, also as an error.
func TestErrorsDoNotSteerTheTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"errors":["\u001b[2J\u001b]0;owned\u0007b\u009b1moom\u202e"]}`))
	}))
	defer server.Close()
	for _, command := range []string{"why", "explain", "top"} {
		if _, errs := runCLI(t, exitBlind, command, "--url", server.URL); strings.ContainsAny(errs, "\x1b\x07\u009b\u202e") || !strings.Contains(errs, "b1moom") {
			t.Errorf("%s: %q", command, errs)
		}
	}
	c := &whyCommand{}
	var out bytes.Buffer
	if err := c.news(&out, "could not look: \x1b[2J"); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v: %q", err, &out)
	}
}

// TestWhyOfOurServerWithoutKafka: what the server says counts where the brokers do not answer,
// and that nothing is wrong is not known then.
func TestWhyOfOurServerWithoutKafka(t *testing.T) {
	for _, tt := range []struct {
		code why.Code
		exit int
		want string
	}{
		{why.None, exitBlind, "There is not enough evidence: Kafka was to be asked"},
		{why.QuietInput, exitFindings, "The server knows."},
	} {
		report := why.Report{Job: "quiet", Cause: tt.code, Severity: why.Stall, Findings: []why.FindingReport{{Code: tt.code, Severity: why.Stall, Answer: "The server knows."}}}
		if tt.code == why.None {
			report.Severity, report.Findings[0].Severity = why.Fine, why.Fine
		}
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		url := ownServer(t, map[string]string{"graph": "{}", "why": string(text)})
		out, _ := runCLI(t, tt.exit, "why", "--url", url, "--for=1h", "--brokers=127.0.0.1:1")
		if !strings.Contains(out, tt.want) || !strings.Contains(out, "could not see\n  anything of Kafka") {
			t.Errorf("%s:\n%s", tt.code, out)
		}
	}
}
