package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/window"
)

// recordedCluster answers as a Flink cluster did whose job has a quiet partition. Between
// two looks 20 s pass, in which all but that partition goes on.
func recordedCluster(t *testing.T, change func(answers map[string]json.RawMessage)) string {
	t.Helper()
	data, err := os.ReadFile("../../internal/why/collect/flink/testdata/quiet-2.3.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Answers map[string]json.RawMessage
		Metrics map[string]map[string]string
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(recorded.Answers)
	}
	var passed atomic.Int64 // ms
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		metrics, ok := recorded.Metrics[r.URL.Path]
		if !ok {
			answer, ok := recorded.Answers[r.URL.Path]
			if !ok {
				w.WriteHeader(http.StatusNotFound)
				answer = json.RawMessage(`{"errors":["not found"]}`)
			}
			if now := nowMember.FindSubmatch(answer); now != nil {
				at, _ := strconv.ParseInt(string(now[1]), 10, 64)
				answer = bytes.Replace(answer, now[0], fmt.Appendf(nil, `"now": %d`, at+passed.Add(20_000)), 1)
			}
			_, _ = w.Write(answer)
			return
		}
		get := r.URL.Query().Get("get")
		out := []map[string]string{}
		for id, value := range metrics {
			if get == "" || strings.Contains(","+get+",", ","+id+",") {
				if n, err := strconv.ParseInt(value, 10, 64); err == nil && goesOn.MatchString(id) {
					value = strconv.FormatInt(n+passed.Load(), 10)
				}
				out = append(out, map[string]string{"id": id, "value": value})
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

var (
	nowMember = regexp.MustCompile(`"now": ?(\d+)`)
	goesOn    = regexp.MustCompile(`Source__quiet_a\.numRecords|count_per_key.numRecordsIn|0\.Source__quiet_a.currentOutputWatermark|quiet_a-[01]\.watermark\.currentW|partition\.[01]\.currentO`)
)

func runCLI(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli(args, &out, &errs); code != want {
		t.Fatalf("lowwater %v: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
	}
	return out.String(), errs.String()
}

func TestWhy(t *testing.T) {
	url := recordedCluster(t, nil)
	out, errs := runCLI(t, exitFindings, "why", "--url", url, "--for=1ms", "--details")
	for _, want := range []string{"quiet-partition, ", "partition 2", "withIdleness", "quiet_a-2", "seen at ", "_ms="} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if errs != "" {
		t.Errorf("standard error: %q", errs)
	}
	out, _ = runCLI(t, exitFindings, "why", "--url", url, "--for=1ms")
	if strings.Contains(out, "_ms=") {
		t.Errorf("numbers by their names, without --details:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "      ") && len(strings.TrimSuffix(line, "\n")) > textWidth { // code is not wrapped
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	out, _ = runCLI(t, exitFindings, "why", "--url", url, "--for=1ms", "--json", "--job=quiet")
	var report why.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Cause != why.QuietPartition || report.Job != "quiet" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestWhyOneLook: what a look cannot tell is no good news.
func TestWhyOneLook(t *testing.T) {
	out, errs := runCLI(t, exitBlind, "why", "--url", recordedCluster(t, nil), "--for=0s")
	if !strings.Contains(out, "not-enough-evidence") || errs != "" {
		t.Errorf("output:\n%s%s", out, errs)
	}
}

func TestWhyCannotLook(t *testing.T) {
	url := recordedCluster(t, nil)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"why", "--url", "http://127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"why", "--url", "nonsense"}, "is not the URL"},
		{[]string{"why", "--url", url, "--job=other"}, `no job "other"; there are "quiet"`},
		{[]string{"why", "--url", url, "--token-file=/nowhere"}, "--token-file"},
		{[]string{"why", "--url", url + "/elsewhere"}, "HTTP 404"},
		{[]string{"explain", "--url", "http://127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"top", "--url", "http://127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"top", "--url", "nonsense"}, "is not the URL"},
		{[]string{"explain", "/nowhere.json"}, "/nowhere.json"},
	}
	for _, test := range tests {
		out, errs := runCLI(t, exitBlind, test.args...)
		if out != "" || !strings.Contains(errs, test.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("lowwater %v: %q, want one line with %q; stdout %q", test.args, errs, test.want, out)
		}
	}
	failed := recordedCluster(t, func(answers map[string]json.RawMessage) {
		answers["/jobs/overview"] = bytes.ReplaceAll(answers["/jobs/overview"], []byte("RUNNING"), []byte("FAILED"))
	})
	if _, errs := runCLI(t, exitBlind, "why", "--url", failed, "--job=quiet"); !strings.Contains(errs, `job "quiet" is FAILED`) {
		t.Errorf("a failed job: %q", errs)
	}
}

func TestWhyUsage(t *testing.T) {
	for _, args := range [][]string{
		{"why", "--for=-1s"}, {"why", "--watch", "--for=0s"}, {"why", "--records=-1"}, {"why", "--timeout=0s"},
		{"explain"}, {"explain", "a.json", "--url=http://x"},
	} {
		runCLI(t, exitUsage, args...)
	}
}

// looksAt answers as the recorded cluster, and calls looked with the number of the look that
// begins.
func looksAt(t *testing.T, looked func(n int64)) string {
	t.Helper()
	behind, err := url.Parse(recordedCluster(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	var plans atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if jobPath.MatchString(r.URL.Path) {
			looked(plans.Add(1) - 1) // the first one opens the job
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

var jobPath = regexp.MustCompile(`^/jobs/[0-9a-f]{32}$`)

// watchUntil watches until ctx is done, which is to be before a minute has passed.
func watchUntil(t *testing.T, ctx context.Context, c *whyCommand, w io.Writer) {
	t.Helper()
	o, err := c.observer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.watch(patient, o, w); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == nil {
		t.Error("nothing to see for a minute")
	}
}

// TestWatch: what stays the same is reported once.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url := looksAt(t, func(n int64) {
		if n == 4 {
			cancel()
		}
	})
	var out bytes.Buffer
	watchUntil(t, ctx, &whyCommand{clusterFlags: clusterFlags{URL: url}, For: time.Millisecond, Watch: true}, &out)
	if n := strings.Count(out.String(), "quiet-partition, "); n != 1 || !strings.HasPrefix(out.String(), "\n== ") {
		t.Errorf("%d reports, want one:\n%s", n, &out)
	}
}

// TestWatchJSON: each change is a line.
func TestWatchJSON(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	seen := writerFunc(func(p []byte) (int, error) {
		cancel()
		return out.Write(p)
	})
	watchUntil(t, ctx, &whyCommand{clusterFlags: clusterFlags{URL: recordedCluster(t, nil)}, For: time.Millisecond, Watch: true, JSON: true}, seen)
	var report why.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Cause != why.QuietPartition || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v: %q", err, &out)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestExplain(t *testing.T) {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(2))
	type record struct{ Key string }
	lowwater.FromSlice(env, []record{{"a"}}).
		AssignTimestampsAndWatermarks(eventtime.ForBoundedOutOfOrderness[record](time.Hour).WithIdleness(300 * time.Millisecond)).
		KeyBy(func(r record) string { return r.Key }).Window(window.Tumbling(time.Minute)).Aggregate(lowwater.Count[record]()).Name("counts").Print()
	text, err := env.Plan("orders")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/plan.json"
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := runCLI(t, exitFindings, "explain", file)
	for _, want := range []string{
		"orders\n\n  source ", "window counts, parallelism 2, hash from ", "watermarks bounded 3600000 ms, idle after 300 ms",
		"bound-above-window: counts (", "idleness-below-interval: ", "  fix: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	out, _ = runCLI(t, exitFindings, "explain", "--json", file)
	var explained struct {
		Job      string
		Warnings []struct{ Code, Operator, Where string }
	}
	if err := json.Unmarshal([]byte(out), &explained); err != nil || explained.Job != "orders" || len(explained.Warnings) < 2 {
		t.Errorf("%v: %s", err, out)
	}
	for name, content := range map[string]string{
		"empty": "", "no plan": `{"version":1,"operators":[{"id":3}]}`, "a loop": `{"version":1,"operators":[{"id":0,"inputs":[{"from":0}]}]}`,
		"impossible parallelism": `{"version":1,"operators":[{"id":0,"parallelism":2000000000}]}`,
		"another version":        `{"version":99}`, "no JSON": "hello",
	} {
		bad := fmt.Sprintf("%s/%s.json", t.TempDir(), strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(bad, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, errs := runCLI(t, exitBlind, "explain", bad); !strings.Contains(errs, bad) {
			t.Errorf("%s: %q", name, errs)
		}
	}
}

func TestExplainRunning(t *testing.T) {
	out, _ := runCLI(t, exitOK, "explain", "--url", recordedCluster(t, nil))
	if !strings.Contains(out, "source quiet.a, parallelism 2, strategy unknown") || !strings.Contains(out, "No warnings.") {
		t.Errorf("output:\n%s", out)
	}
}

// TestWhyWithoutKafka: brokers that were given and do not answer are told of, also if
// nothing else is wrong.
func TestWhyWithoutKafka(t *testing.T) {
	d := &why.Diagnosis{Findings: []why.Finding{{Code: why.None, Severity: why.Fine, Answer: "Nothing holds event time back."}}, Blind: []string{"usual"}, Failed: []string{"anything of Kafka"}}
	if text := d.String(); !strings.HasPrefix(text, "Nothing holds") || !strings.Contains(text, "could not see\n  anything of Kafka\n") || strings.Contains(text, "usual") {
		t.Errorf("text:\n%s", text)
	}
	if r := d.Report(); len(r.Blind) != 2 {
		t.Errorf("could not see %q", r.Blind)
	}
	out, _ := runCLI(t, exitFindings, "why", "--url", recordedCluster(t, nil), "--for=1ms", "--brokers=127.0.0.1:1")
	if !strings.Contains(out, "anything of Kafka") {
		t.Errorf("output:\n%s", out)
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestNoOutput: a report that nobody got is not a finding.
func TestNoOutput(t *testing.T) {
	plan := t.TempDir() + "/plan.json"
	if err := os.WriteFile(plan, []byte(`{"version":1,"job":"a\u001b[31m","operators":[{"id":0,"name":"x\ny","source":{"splits":1},"parallelism":3,"watermarks":{"strategy":"none","none":true}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"explain", plan}, {"why", "--url", recordedCluster(t, nil), "--for=1ms", "--json"}} {
		var errs bytes.Buffer
		if code := cli(args, full{}, &errs); code != exitBlind || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit code %d, want %d: %s", args[0], code, exitBlind, &errs)
		}
	}
	var out, errs bytes.Buffer
	cli([]string{"explain", plan}, &out, &errs)
	if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "source x y,") {
		t.Errorf("output:\n%q%s", &out, &errs)
	}
}
