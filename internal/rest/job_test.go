package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/window"
)

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// orders runs a job of the recorded one's shape: three partitions of a topic, read by two
// subtasks and counted per key and second by two others. Partition 2 is silent.
func orders(t *testing.T, strategy eventtime.WatermarkStrategy[string], options ...lowwater.RESTOption) (base string, job *lowwater.Job, produce func(...kafkatest.Record)) {
	t.Helper()
	t.Parallel() // such a test mostly waits
	cluster := kafkatest.Start(t)
	const topic = "orders"
	cluster.CreateTopic(t, topic, 3)
	server, err := lowwater.ServeREST("127.0.0.1:0", append(options, lowwater.RESTLogger(quiet()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	env := lowwater.NewEnvironment(lowwater.WithParallelism(2), lowwater.WithLogger(quiet()), lowwater.WithRESTServer(server))
	source := kafka.NewSource(raw.String{}, kafka.Brokers(cluster.Brokers()...), kafka.Topics(topic), kafka.ClientOptions(cluster.Options()...))
	strategy = strategy.WithTimestampAssigner(func(_ string, millis int64) int64 { return millis })
	lowwater.FromSource(env, source, strategy, "orders").UID("orders").
		KeyBy(func(s string) string { return s }).
		Window(window.Tumbling(time.Second)).
		Aggregate(lowwater.Count[string]()).Name("count").UID("count").
		SinkFunc(func(context.Context, window.Pane[string, int64]) error { return nil }).Name("nowhere")
	if job, err = env.Start(t.Context(), "count"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		job.Cancel()
		if err := job.Wait(); err != nil {
			t.Error(err)
		}
	})
	produce = func(records ...kafkatest.Record) { cluster.Produce(t, topic, records...) }
	// Window by window: a partition that is read later than the other, which is idle by
	// then, would bring late records.
	for i := range int64(10) {
		first, second := 10_000+i*1000, 10_500+i*1000
		produce(kafkatest.Text(0, first, "", "tea"), kafkatest.Text(1, first, "", "cake"),
			kafkatest.Text(0, second, "", "tea"), kafkatest.Text(1, second, "", "cake"))
		await(t, "records at the windows", func() bool {
			in := int64(0)
			for _, s := range job.Status().Vertices[1].Subtasks {
				in += s.Operators[0].RecordsIn
			}
			return in == 4*(i+1)
		})
	}
	return strings.TrimSuffix(server.URL(), "/"), job, produce
}

// countingJob runs the orders with idleness, so that partition 2 does not hold them up, and
// gives them one late record.
func countingJob(t *testing.T, options ...lowwater.RESTOption) (base string, job *lowwater.Job) {
	t.Helper()
	strategy := eventtime.ForBoundedOutOfOrderness[string](0).WithIdleness(300 * time.Millisecond)
	base, job, produce := orders(t, strategy, options...)
	await(t, "watermark of the last record", func() bool {
		return !slices.ContainsFunc(job.Status().Vertices[1].Subtasks, func(s status.Subtask) bool {
			return s.Operators[0].CurrentInputWatermark != 19_499
		})
	})
	produce(kafkatest.Text(0, 10_000, "", "late"))
	await(t, "late record, idle partition and known ends", func() bool {
		idle, late, ends := false, int64(0), 0
		for _, v := range job.Status().Vertices {
			for _, task := range v.Subtasks {
				late += task.Operators[0].LateRecordsDropped
				for _, split := range task.Operators[0].Splits {
					idle = idle || split.Partition == 2 && split.State == status.SplitIdle
					if split.Partition < 2 && split.EndOffset == split.CurrentOffset {
						ends++
					}
				}
			}
		}
		return late == 1 && idle && ends == 2
	})
	return base, job
}

// await waits for what a job does in its own time.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("no %s", what)
		}
	}
}

// answer is what a server answered.
type answer struct {
	status int
	header http.Header
	body   any
	text   string
}

func request(t *testing.T, method, url string, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: got.StatusCode, header: got.Header, text: string(data)}
	if strings.HasPrefix(got.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(data, &a.body); err != nil {
			t.Fatalf("%s %s: %v in %s", method, url, err, data)
		}
	}
	return a
}

// field goes down into JSON by names of fields and numbers of elements.
func field(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no object with %q: %v", step, v)
			}
			if v, ok = m[step]; !ok {
				t.Fatalf("no %q in %v", step, m)
			}
		case int:
			list, ok := v.([]any)
			if !ok || step >= len(list) {
				t.Fatalf("no element %d of %v", step, v)
			}
			v = list[step]
		}
	}
	return v
}

// fakeJob is a job with whatever numbers a test wants.
type fakeJob struct {
	plan        *observe.Plan
	status      status.Job
	failures    []status.Failure
	checkpoints observe.Checkpoints
	done        chan struct{}
	calls       chan string
}

func (f *fakeJob) Plan() *observe.Plan        { return f.plan }
func (f *fakeJob) Status() status.Job         { return f.status }
func (f *fakeJob) Failures() []status.Failure { return f.failures }
func (f *fakeJob) Config() observe.Config {
	return observe.Config{Parallelism: 2, RestartStrategy: "none"}
}
func (f *fakeJob) Done() <-chan struct{} { return f.done }
func (f *fakeJob) Cancel()               { f.calls <- "cancel" }
func (f *fakeJob) Stop()                 { f.calls <- "stop" }
func (f *fakeJob) Checkpoints() observe.Checkpoints {
	return f.checkpoints
}

// newFakeJob returns a job of two vertices in a state that it has been in for a minute.
func newFakeJob(state status.State) *fakeJob {
	started := time.Now().Add(-time.Minute)
	life := status.Life{State: state, Since: map[status.State]time.Time{status.Running: started, state: started.Add(time.Second)}}
	operator := status.Operator{CurrentInputWatermark: eventtime.MinTimestamp, CurrentOutputWatermark: eventtime.MinTimestamp}
	subtask := status.Subtask{Life: life, Operators: []status.Operator{operator}}
	vertex := status.Vertex{Parallelism: 2, Subtasks: []status.Subtask{subtask, subtask}}
	f := &fakeJob{
		plan: &observe.Plan{Name: "count", Parallelism: 2, Vertices: []observe.Vertex{
			{ID: observe.OperatorID("orders"), Name: "Source: orders", Kind: observe.KindSource, Parallelism: 2, MaxParallelism: 128,
				Operators: []observe.Operator{{ID: observe.OperatorID("orders"), Name: "Source: orders", Kind: observe.KindSource, Sends: true}}},
			{ID: observe.OperatorID("count"), Name: "count", Kind: observe.KindWindow, Parallelism: 2, MaxParallelism: 128,
				Operators: []observe.Operator{{ID: observe.OperatorID("count"), Name: "count", Kind: observe.KindWindow}},
				Inputs:    []observe.Input{{Vertex: 0, Ship: "HASH"}}},
		}},
		status: status.Job{Name: "count", Started: started, Life: life, Vertices: []status.Vertex{vertex, vertex}},
		done:   make(chan struct{}),
		calls:  make(chan string, 16),
	}
	if state == status.Failed {
		f.failures = []status.Failure{{At: life.Since[state], Err: errors.New("the disk is full"), Vertex: 1, Subtask: 1}}
	}
	if state.Ended() {
		close(f.done)
	}
	return f
}

// fakeCheckpoints are those of a job that has completed two, one of them a savepoint, and
// failed at one.
type fakeCheckpoints struct{ savepoints string }

func (f fakeCheckpoints) CheckpointConfig() status.CheckpointConfig {
	return status.CheckpointConfig{Enabled: true, ExactlyOnce: true, Interval: 2 * time.Second, Timeout: 10 * time.Minute, MaxConcurrent: 1,
		SavepointDir: f.savepoints, Backend: "memory", Storage: "files"}
}

func (fakeCheckpoints) CheckpointStats() status.Checkpoints {
	at := time.UnixMilli(1_800_000_000_000)
	done := status.SubtaskCheckpoint{Ack: at.Add(12 * time.Millisecond), StartDelay: 3 * time.Millisecond, Alignment: 2 * time.Millisecond,
		Sync: time.Millisecond, Async: 4 * time.Millisecond, StateBytes: 100, WrittenBytes: 40}
	vertex := status.VertexCheckpoint{Subtasks: []status.SubtaskCheckpoint{done, done}}
	completed := func(id int64, savepoint bool) status.Checkpoint {
		return status.Checkpoint{ID: id, State: status.CheckpointCompleted, Savepoint: savepoint, Triggered: at, LastAck: at.Add(12 * time.Millisecond),
			StateBytes: 400, WrittenBytes: 160, Path: "/checkpoints/1", Vertices: []status.VertexCheckpoint{vertex, vertex}}
	}
	failed := status.Checkpoint{ID: 3, State: status.CheckpointFailed, Triggered: at, FailedAt: at.Add(time.Second), Failure: "took too long",
		Vertices: []status.VertexCheckpoint{{Subtasks: []status.SubtaskCheckpoint{done, {}}}, vertex}}
	history := []status.Checkpoint{completed(1, false), completed(2, true), failed}
	return status.Checkpoints{Total: 3, Completed: 2, Failed: 1, History: history,
		LatestCompleted: &history[0], LatestSavepoint: &history[1], LatestFailed: &history[2]}
}

func (fakeCheckpoints) TriggerCheckpoint(context.Context) (int64, error) { return 14, nil }
func (fakeCheckpoints) TriggerSavepoint(_ context.Context, dir string) (string, error) {
	if dir == "/proc/nowhere" {
		return "", errors.New("no such directory")
	}
	return dir + "/savepoint-1", nil
}
func (fakeCheckpoints) StopWithSavepoint(_ context.Context, dir string, drain bool) (string, error) {
	return dir + "/savepoint-2", nil
}

// serveFake serves jobs that a test made up, and returns their ids.
func serveFake(t *testing.T, jobs ...*fakeJob) (base string, ids []string) {
	t.Helper()
	server, err := rest.Listen(rest.Config{Addr: "127.0.0.1:0", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, j := range jobs {
		ids = append(ids, server.Jobs().Add(j).ID)
	}
	return strings.TrimSuffix(server.URL(), "/"), ids
}
