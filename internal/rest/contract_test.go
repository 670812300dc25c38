package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// recording is what a real Flink answered; see testdata/flink-2.3/record.py.
type recording struct {
	name   string
	Method string `json:"method"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	Body   any    `json:"body"`
}

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob("testdata/flink-2.3/*.json")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	all := map[string]recording{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recording{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		all[r.name] = r
	}
	return all
}

// intended are the differences from Flink that are meant. Each is a row of
// docs/flink-differences.md. The key is the name of a recording, and the path in its
// answer if only that is different.
var intended = map[string]string{
	// A job without checkpoints answers 404, where a streaming job in Flink has statistics of none.
	"checkpoints-off":                  "status 404",
	"checkpoints-config-off":           "status 404",
	"stop-without-checkpoints":         "not possible",
	"stop-without-checkpoints-trigger": "status 404",
	// What was not asked for a place can fail for want of checkpoints first.
	"stop-without-savepoints": "status 404",
	// There is no cluster that jobs are submitted to, and no adaptive scheduler.
	"jars":                  "status 404",
	"resource-requirements": "status 404",
	// Flink fails, lowwater says what is wrong.
	"error-unknown-taskmanager": "status 404",
	// One failure is one entry; Flink hangs the task's below that of the job.
	"job-exceptions-failed exceptionHistory.entries[].taskName":               "extra",
	"job-exceptions-failed exceptionHistory.entries[].endpoint":               "extra",
	"job-exceptions-failed exceptionHistory.entries[].taskManagerId":          "extra",
	"job-exceptions-failed exceptionHistory.entries[].concurrentExceptions[]": "empty",
	// There is no virtual machine.
	"jobmanager-environment classpath[]":       "empty",
	"jobmanager-environment jvm.options[]":     "empty",
	"job-jobmanager-environment classpath[]":   "empty",
	"job-jobmanager-environment jvm.options[]": "empty",
}

// enums are the words that clients of Flink know.
var enums = map[string][]string{
	"state":              {"INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED", "RESTARTING", "SUSPENDED", "RECONCILING"},
	"status":             {"CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING", "INITIALIZING", "IN_PROGRESS", "COMPLETED", "ok", "completed", "pending_or_failed"},
	"jobType":            {"STREAMING"},
	"job-type":           {"STREAMING"},
	"schedulerType":      {"Default"},
	"type":               {"STREAMING"},
	"ship_strategy":      {"FORWARD", "HASH", "REBALANCE", "RESCALE", "BROADCAST", "CUSTOM"},
	"exchange":           {"pipelined_bounded"},
	"backpressure-level": {"ok", "low", "high"},
	"backpressureLevel":  {"ok", "low", "high"},
	"application-status": {"SUCCEEDED", "FAILED", "CANCELED"},
	"className":          {"completed", "failed", "in_progress", "pending_or_failed"},
	"checkpoint_type":    {"CHECKPOINT", "SAVEPOINT"},
	"mode":               {"exactly_once", "at_least_once"},
}

// open are objects whose fields are names of the job, not of the API.
func open(path string) bool {
	return path == "applications[].jobs" || strings.HasSuffix(path, "tasks") && !strings.Contains(path, "vertices") && !strings.Contains(path, "jobs[]")
}

// shape compares an answer with a recorded one: the fields, the types, the words.
type shape struct {
	name string
	// met are the intended differences that were found.
	met      map[string]bool
	problems []string
}

func (s *shape) report(path, format string, args ...any) {
	key := s.name
	if path != "" {
		key += " " + path
	}
	if _, ok := intended[key]; ok {
		s.met[key] = true
		return
	}
	s.problems = append(s.problems, fmt.Sprintf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func (s *shape) compare(path string, want, got any) {
	if want == nil || got == nil {
		return // both may be null at times
	}
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			s.report(path, "is %T, want an object", got)
			return
		}
		s.object(path, want, got)
	case []any:
		got, ok := got.([]any)
		if !ok {
			s.report(path, "is %T, want a list", got)
			return
		}
		if len(want) > 0 && len(got) == 0 {
			s.report(path+"[]", "is empty, so nothing was compared")
			return
		}
		for _, element := range got {
			if like := likeness(want, element); len(like) > 0 {
				s.element(path+"[]", like, element)
			}
		}
	case string:
		text, isText := got.(string)
		if !isText && !(want == "NaN" && fmt.Sprintf("%T", got) == "float64") {
			s.report(path, "is %T, want a string", got)
		}
		name := path[strings.LastIndexAny(path, ".]")+1:]
		if words, ok := enums[name]; ok && isText && !slices.Contains(words, text) {
			s.report(path, "is %q, want one of %v", text, words)
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) && got != "NaN" {
			s.report(path, "is %T, want %T", got, want)
		}
	}
}

// likeness returns the recorded elements of a list that an element is to be like: those of
// the same class, if they have classes, else all.
func likeness(recorded []any, element any) []any {
	class := func(v any) any {
		m, _ := v.(map[string]any)
		return m["className"]
	}
	return slices.DeleteFunc(slices.Clone(recorded), func(r any) bool { return class(r) != class(element) })
}

// element compares an element with several recorded ones: fields that only some of those
// have may be missing.
func (s *shape) element(path string, recorded []any, got any) {
	want, isObject := recorded[0].(map[string]any)
	if !isObject {
		s.compare(path, recorded[0], got)
		return
	}
	all := maps.Clone(want)
	have, _ := got.(map[string]any)
	for _, r := range recorded {
		for name, v := range r.(map[string]any) {
			all[name] = v
		}
	}
	for name := range all {
		always := !slices.ContainsFunc(recorded, func(r any) bool { _, ok := r.(map[string]any)[name]; return !ok })
		if _, ok := have[name]; !ok && !always {
			delete(all, name)
		}
	}
	s.compare(path, all, got)
}

func (s *shape) object(path string, want, got map[string]any) {
	below := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	if open(path) {
		for _, w := range want {
			for _, g := range got {
				s.compare(below("*"), w, g)
			}
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; ok {
			s.compare(below(name), want[name], g)
		} else {
			s.report(below(name), "is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			s.report(below(name), "is extra")
		}
	}
}

// firstLine is an error without the frames, and without what differs between runs.
func firstLine(t *testing.T, body any, places map[string]string) string {
	text, _, _ := strings.Cut(field(t, body, "errors", 0).(string), "\n")
	for name, value := range places {
		if len(value) < 16 {
			continue // the number of a checkpoint
		}
		text = strings.ReplaceAll(text, value, "{"+name+"}")
	}
	return text
}

// flinkPlaces are the ids of the recorded jobs, as far as errors show them.
func flinkPlaces(t *testing.T, all map[string]recording) map[string]string {
	return map[string]string{
		"jid":    field(t, all["job"].Body, "jid").(string),
		"window": field(t, all["vertex"].Body, "id").(string),
		"source": field(t, all["vertex-source"].Body, "id").(string),
	}
}

// TestContract asks a job of the same shape what a real Flink was asked, and compares.
func TestContract(t *testing.T) {
	all := recordings(t)
	base, _ := countingJob(t)
	jid := field(t, request(t, "GET", base+"/jobs", "").body, "jobs", 0, "id").(string)
	tm := field(t, request(t, "GET", base+"/taskmanagers", "").body, "taskmanagers", 0, "id").(string)
	live := map[string]string{"jid": jid, "feed": jid, "tm": tm, "source": observe.OperatorID("orders"), "window": observe.OperatorID("count")}

	running, failed, finished, canceled := newFakeJob(status.Running), newFakeJob(status.Failed), newFakeJob(status.Finished), newFakeJob(status.Canceled)
	running.checkpoints, canceled.checkpoints = fakeCheckpoints{}, fakeCheckpoints{}
	fakeBase, ids := serveFake(t, running, failed, finished, canceled)
	made := map[string]string{"jid": ids[0], "failed": ids[1], "feed": ids[2], "other": ids[3], "source": live["source"], "window": live["window"], "cp": "1"}

	theirs := flinkPlaces(t, all)
	met := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		base, places := base, live
		if onMadeUpJobs(name) {
			base, places = fakeBase, made
		}
		if name == "job-finished" || name == "job-execution-result-finished" {
			places = maps.Clone(places)
			places["jid"] = ids[2]
		}
		t.Run(name, func(t *testing.T) {
			if intended[name] == "not possible" {
				met[name] = true
				return
			}
			path := fill(r.Path, places)
			if strings.Contains(path, "{rid}") {
				path = strings.ReplaceAll(path, "{rid}", trigger(t, base, name, all, places))
				await(t, "end of the operation", func() bool {
					return field(t, request(t, "GET", base+path, "").body, "status", "id") == "COMPLETED"
				})
			}
			got := request(t, r.Method, base+path, bodies[name])
			if strings.HasPrefix(intended[name], "status ") {
				met[name] = true
				if want := strings.TrimPrefix(intended[name], "status "); fmt.Sprint(got.status) != want {
					t.Errorf("status %d, want %s, which is meant", got.status, want)
				}
				return
			}
			if got.status != r.Status {
				t.Fatalf("status %d, want %d: %s", got.status, r.Status, got.text)
			}
			if r.Status >= 300 {
				if got, want := firstLine(t, got.body, places), firstLine(t, r.Body, theirs); got != want && name != "rescales" {
					t.Errorf("error %q, want %q", got, want)
				}
				return
			}
			s := shape{name: name, met: met}
			s.compare("", r.Body, got.body)
			if len(s.problems) > 0 {
				t.Errorf("%s %s\n%s\n%s", r.Method, path, strings.Join(s.problems, "\n"), got.text)
			}
		})
	}
	for key := range intended {
		if !met[key] {
			t.Errorf("the intended difference %q did not show", key)
		}
	}
}

// onMadeUpJobs names the recordings of what a running job cannot show here.
func onMadeUpJobs(name string) bool {
	return strings.Contains(name, "finished") || strings.Contains(name, "failed") || strings.Contains(name, "cancel") ||
		slices.Contains([]string{"checkpoints", "checkpoints-config", "checkpoint", "checkpoint-subtasks", "checkpoint-by-hand", "checkpoint-by-hand-trigger",
			"savepoint", "savepoint-trigger", "savepoint-without-directory", "stop", "stop-trigger", "stop-ended", "error-bad-body", "error-unknown-checkpoint",
			"job-after-stop-without-checkpoints", "error-unknown-trigger"}, name) && name != "error-cancel-unknown"
}

// bodies are those of the requests that have one, as the recorder sent them.
var bodies = map[string]string{
	"error-bad-body":                   `{"cancel-job": "perhaps"}`,
	"stop-without-savepoints":          `{"drain": false}`,
	"savepoint-without-directory":      `{"cancel-job": false}`,
	"savepoint-trigger":                `{"cancel-job": false, "target-directory": "/savepoints"}`,
	"savepoint-failed-trigger":         `{"target-directory": "/proc/nowhere"}`,
	"checkpoint-by-hand-trigger":       `{"checkpointType": "FULL"}`,
	"stop-trigger":                     `{"drain": false, "targetDirectory": "/savepoints"}`,
	"stop-without-checkpoints-trigger": `{"drain": false, "targetDirectory": "/savepoints"}`,
	"stop-ended":                       `{"drain": false}`,
	"error-wrong-method":               `{}`,
}

func fill(path string, places map[string]string) string {
	for name, value := range places {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

// trigger starts the operation whose answer was recorded under name.
func trigger(t *testing.T, base, name string, all map[string]recording, places map[string]string) string {
	t.Helper()
	r := all[name+"-trigger"]
	got := request(t, r.Method, base+fill(r.Path, places), bodies[r.name])
	if got.status != 202 {
		t.Fatalf("%s %s: status %d: %s", r.Method, r.Path, got.status, got.text)
	}
	return field(t, got.body, "request-id").(string)
}
