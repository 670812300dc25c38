package lowwater_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// TestStatus looks at a job in the middle of its input and at its end.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		env := newEnv(lowwater.WithParallelism(2))
		s := from(env, &script[event]{splits: [][]step[event]{
			{{0, timeline[:3]}, {time.Minute, timeline[3:]}},
			{{0, []event{{"b", 1200, 9}}}},
		}, endAfter: 2 * time.Minute}, bounded(0)).UID("source")
		s.Filter(func(e event) bool { return e.Key == "a" }).
			KeyBy(keyOf).Window(window2s).Aggregate(lowwater.Count[event]()).Parallelism(1).Forward().SinkTo(discardPanes{})
		job, err := env.Start(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second)
		got := job.Status()
		split := func(id string, records, watermark, latest int64) lowwater.SplitStatus {
			return lowwater.SplitStatus{ID: id, Records: records, CurrentWatermark: watermark, CurrentOffset: records, EndOffset: -1,
				LastRecordAt: started, LastEventTime: latest}
		}
		source := func(records int64, output int64, s lowwater.SplitStatus) lowwater.OperatorStatus {
			return lowwater.OperatorStatus{Name: "events", UID: "source", RecordsIn: records, RecordsOut: records,
				CurrentInputWatermark: eventtime.MinTimestamp, CurrentOutputWatermark: output, Splits: []lowwater.SplitStatus{s}}
		}
		filter := func(in, out, watermark int64) lowwater.OperatorStatus {
			return lowwater.OperatorStatus{Name: "Filter", RecordsIn: in, RecordsOut: out, CurrentInputWatermark: watermark, CurrentOutputWatermark: watermark}
		}
		want := lowwater.JobStatus{Name: "orders", Started: started, Running: true, Vertices: []lowwater.VertexStatus{
			{Name: "Source: events -> Filter", Parallelism: 2, Subtasks: []lowwater.SubtaskStatus{
				{Operators: []lowwater.OperatorStatus{source(3, 1998, split("split-0", 3, 1998, 1999)), filter(3, 2, 1998)}},
				{Operators: []lowwater.OperatorStatus{source(1, 1199, split("split-1", 1, 1199, 1200)), filter(1, 0, 1199)}},
			}},
			{Name: "window.Tumbling(2s) Aggregate -> Sink", Parallelism: 1, Subtasks: []lowwater.SubtaskStatus{
				{Operators: []lowwater.OperatorStatus{
					{Name: "window.Tumbling(2s) Aggregate", RecordsIn: 2, CurrentInputWatermark: 1199, CurrentOutputWatermark: 1199},
					{Name: "Sink", CurrentInputWatermark: 1199, CurrentOutputWatermark: eventtime.MinTimestamp},
				}},
			}},
		}}
		for _, v := range want.Vertices {
			for _, subtask := range v.Subtasks {
				for i := range subtask.Operators {
					subtask.Operators[i].EventTimers.Next = eventtime.MaxTimestamp
				}
			}
		}
		ignored := cmp.Options{
			cmpopts.IgnoreFields(lowwater.JobStatus{}, "Life"),
			cmpopts.IgnoreFields(lowwater.SubtaskStatus{}, "Busy", "Idle", "SoftBackPressured", "HardBackPressured", "Life"),
			cmpopts.IgnoreFields(lowwater.OperatorStatus{}, "Source"),
			cmpopts.IgnoreFields(lowwater.SplitStatus{}, "StateSince", "ActiveFor", "CommittedOffset", "LongestPause"),
			cmpopts.EquateEmpty(),
		}
		if diff := cmp.Diff(want, got, ignored); diff != "" {
			t.Errorf("status in the middle (-want +got):\n%s", diff)
		}
		if err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		end := job.Status()
		sink := end.Vertices[1].Subtasks[0].Operators[1]
		if end.Running || sink.RecordsIn != 2 || sink.CurrentInputWatermark != eventtime.MaxTimestamp {
			t.Errorf("at the end: running %v, %d panes at the sink, watermark %d", end.Running, sink.RecordsIn, sink.CurrentInputWatermark)
		}
		if state := end.Vertices[0].Subtasks[1].Operators[0].Splits[0].State; state != status.SplitFinished {
			t.Errorf("a split is %v at the end", state)
		}
	})
}

// discardPanes is a sink that forgets.
type discardPanes struct{}

func (discardPanes) Validate() error { return nil }
func (discardPanes) NewWriter(context.Context, connector.WriterRuntime) (connector.Writer[pane], error) {
	return discardPanes{}, nil
}
func (discardPanes) Write(context.Context, *connector.Batch[pane]) error { return nil }
func (discardPanes) Flush(context.Context) error                         { return nil }
func (discardPanes) Close() error                                        { return nil }

// TestRecordsDoNotWait: a record passes the whole job at once if nothing else is to do,
// also where its batch is far from full.
func TestRecordsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		var steps []step[event]
		for i := range 50 {
			steps = append(steps, step[event]{time.Duration(i) * 777 * time.Millisecond, []event{{fmt.Sprint("key-", i), 0, i}}})
		}
		env := newEnv(lowwater.WithParallelism(3))
		seen := 0
		from(env, &script[event]{splits: [][]step[event]{steps}}, eventtime.NoWatermarks[event]()).
			Rebalance().Map(func(e event) event { return e }).
			Broadcast().Filter(func(event) bool { return true }).
			Rebalance().SinkFunc(func(_ context.Context, e event) error {
			if took := time.Since(started) - time.Duration(e.N)*777*time.Millisecond; took != 0 {
				t.Errorf("record %d took %v", e.N, took)
			}
			seen++
			return nil
		}).Parallelism(1)
		execute(t, env)
		if seen != 3*50 {
			t.Errorf("%d records, want each of 50 three times", seen)
		}
	})
}

// TestDeadLetters: what a source cannot decode is a side output of it.
func TestDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		source := &halfReadable{script[event]{splits: [][]step[event]{{{0, timeline}}}}}
		s := lowwater.FromSource(env, source, bounded(0), "events")
		good := s.Collect()
		bad := s.SideOutput(lowwater.DeadLetters).Map(func(d connector.DeadLetter) string { return fmt.Sprint(d.Offset, " ", d.Err) }).Collect()
		execute(t, env)
		inOrder(t, "good records", good.Values(), timeline...)
		inOrder(t, "dead letters", bad.Values(), "6 not json")
		inOrder(t, "their timestamps", bad.Timestamps(), 77)
	})
}

// halfReadable is a script with a record at the end of every split that nobody can read.
type halfReadable struct{ script[event] }

func (h *halfReadable) NewReader(ctx context.Context, rt connector.ReaderRuntime) (connector.Reader[event], error) {
	r, err := h.script.NewReader(ctx, rt)
	return halfReader{r}, err
}

type halfReader struct{ connector.Reader[event] }

func (h halfReader) Poll(out connector.ReaderOutput[event]) (connector.PollStatus, error) {
	return h.Reader.Poll(halfOutput{out})
}

type halfOutput struct{ connector.ReaderOutput[event] }

func (h halfOutput) FinishSplit(id string) error {
	bad := connector.DeadLetter{SplitID: id, Offset: int64(len(timeline)), Timestamp: 77, Err: errors.New("not json")}
	if err := h.ReaderOutput.EmitSide(bad); err != nil {
		return err
	}
	return h.ReaderOutput.FinishSplit(id)
}

// TestWarningsComeBeforeTheJob: they are in the log and on the job.
func TestWarningsComeBeforeTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		env := lowwater.NewEnvironment(lowwater.WithParallelism(2), lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		source := from(env, &script[event]{splits: [][]step[event]{{}, {}, {}}, unbounded: true}, bounded(0)).Parallelism(8)
		source.KeyBy(keyOf).Window(window2s).Aggregate(lowwater.Count[event]()).Name("Count")
		job, err := env.Start(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, w := range job.Warnings() {
			codes = append(codes, w.Code+" "+w.Operator)
		}
		inOrder(t, "warnings", codes, "over-parallel-source events", "result-unused Count")
		for _, part := range []string{"parallelism 8 but only 3 splits", "Parallelism(3)", "WithIdleness", "over-parallel-source"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not say %q:\n%s", part, log.String())
			}
		}
		job.Stop()
		if err := job.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}
