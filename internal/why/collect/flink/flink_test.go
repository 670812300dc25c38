package flink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/why"
)

// open looks once at the only job of a recorded cluster.
func open(t *testing.T, f *fakeCluster) *why.Evidence {
	t.Helper()
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
	if u := col.Unseen(); u != nil {
		t.Errorf("unseen: %v", u)
	}
	return col.Evidence()
}

// shape is what an operator of evidence says in a line.
func shape(e *why.Evidence) []string {
	var lines []string
	for _, o := range e.Operators {
		line := fmt.Sprintf("%s %s p%d", o.ID, o.Kind, o.Parallelism)
		for _, in := range o.Inputs {
			line += " <-"
			for _, edge := range in.Edges {
				line += fmt.Sprintf(" %s %s", edge.Ship, edge.From)
			}
		}
		if w := o.Window; w != nil {
			line += fmt.Sprintf(" %s %d/%d", w.Kind, w.SizeMillis, w.SlideMillis)
		}
		if o.Source != nil {
			line += fmt.Sprint(" ", o.Source.Topics)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestQuietPartition(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	f.empty = 2 // the TaskManagers are slow to answer
	e := open(t, f)
	want := []string{
		"quiet.a source p2 [quiet_a]",
		"count per key window p2 <- hash quiet.a tumbling 5000/0",
		"out: Writer plain p2 <- forward count per key",
	}
	if diff := cmp.Diff(want, shape(e)); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
	if e.Engine != (why.Engine{Name: why.Flink, Version: "2.3.0"}) || e.Job != "quiet" || !e.StartedMillis.OK || e.Restarts != why.Know[int64](0) ||
		!e.Means.Engine || !e.Means.SplitGauges {
		t.Errorf("evidence: %+v %s %+v %+v %+v", e.Engine, e.Job, e.StartedMillis, e.Restarts, e.Means)
	}
	s := e.History[0]
	type split struct {
		Partition int32
		Subtask   int
		State     why.SplitState
		Read      bool
	}
	var splits []split
	lowest := int32(-1)
	for _, sp := range s.Splits {
		splits = append(splits, split{sp.Partition, sp.Subtask.Value, sp.State.Value, sp.PositionOffset.Value > 0 && sp.Lag == why.Know[int64](0)})
		if sp.Partition == 2 && sp.Watermark.Value < s.Splits[0].Watermark.Value && sp.Watermark.Value < s.Splits[1].Watermark.Value {
			lowest = sp.Partition
		}
	}
	if diff := cmp.Diff([]split{{0, 1, why.SplitActive, true}, {1, 0, why.SplitActive, true}, {2, 1, why.SplitActive, true}}, splits); diff != "" {
		t.Errorf("splits (-want +got):\n%s", diff)
	}
	if lowest != 2 {
		t.Errorf("partition 2 is not behind: %+v", s.Splits)
	}
	if len(s.Tasks) != 4 || !s.Tasks[0].BusyMillis.OK || len(s.Subtasks) != 6 {
		t.Errorf("tasks %+v, subtasks %d", s.Tasks, len(s.Subtasks))
	}
	for _, sub := range s.Subtasks {
		if sub.Operator == "count per key" && (sub.InputWatermark != sub.OutputWatermark || !sub.LateDropped.OK || !sub.RecordsIn.OK) {
			t.Errorf("window: %+v", sub)
		}
	}
}

// TestAssignerBehindSource: an operator of any name that sends a watermark it did not get
// makes it.
func TestAssignerBehindSource(t *testing.T) {
	e := open(t, loadCluster(t, "after-2.3.0"))
	want := []string{
		"steady source p2 [steady]",
		"parse plain p2 <- forward steady",
		"assign assign p2 <- forward parse",
		"count per key window p2 <- hash assign tumbling 5000/0",
		"out: Writer plain p2 <- forward count per key",
	}
	if diff := cmp.Diff(want, shape(e)); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
}

func TestSQL(t *testing.T) {
	e := open(t, loadCluster(t, "sql-2.3.0"))
	want := []string{
		"KafkaSource-default_catalog.default_database.orders source p1 [steady]",
		"Calc[9] filter p1 <- forward KafkaSource-default_catalog.default_database.orders",
		"LocalWindowAggregate[10] plain p1 <- forward Calc[9]",
		"GlobalWindowAggregate[12] window p1 <- hash LocalWindowAggregate[10] sliding 10000/5000",
		"Calc[13] plain p1 <- forward GlobalWindowAggregate[12]",
		"out2[14]: Writer plain p1 <- forward Calc[13]",
	}
	if diff := cmp.Diff(want, shape(e)); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
	if e.Engine.Name != why.FlinkSQL {
		t.Errorf("engine %s, want SQL", e.Engine.Name)
	}
	for _, sub := range e.History[0].Subtasks {
		if sink := strings.HasPrefix(sub.Operator, "out2"); sub.OutputWatermark.OK == sink {
			t.Errorf("%s has the output watermark %+v", sub.Operator, sub.OutputWatermark)
		}
	}
}

// TestWithoutSplitGauges: before 2.1 only the names of offsets tell the assignment, and
// two-input operators tell their inputs' watermarks.
func TestWithoutSplitGauges(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	for _, metrics := range f.Metrics {
		for id := range metrics {
			if strings.Contains(id, ".split.") {
				delete(metrics, id)
			}
			if strings.HasSuffix(id, "partition.1.currentOffset") {
				metrics[id] = "-1"
			}
			if id == "0.count_per_key.currentInputWatermark" {
				metrics["0.count_per_key.currentInput1Watermark"], metrics["0.count_per_key.currentInput2Watermark"] = "5", "7"
			}
		}
	}
	e := open(t, f)
	if e.Means.SplitGauges {
		t.Error("split gauges are claimed")
	}
	var got []string
	for _, sp := range e.History[0].Splits {
		got = append(got, fmt.Sprint(sp.Partition, sp.Subtask.Value, sp.State.OK, sp.Watermark.OK, sp.LastReadMillis == why.Know(why.Never)))
	}
	if diff := cmp.Diff([]string{"0 1 false false false", "1 0 false false true", "2 1 false false false"}, got); diff != "" {
		t.Errorf("splits (-want +got):\n%s", diff)
	}
	for _, sub := range e.History[0].Subtasks {
		if sub.Operator == "count per key" && sub.Index == 0 && !cmp.Equal(sub.InputWatermarks, []why.Known[int64]{why.Know[int64](5), why.Know[int64](7)}) {
			t.Errorf("inputs %v", sub.InputWatermarks)
		}
	}
}

// TestLastReads: how far a partition that stands still is behind the foremost tells since
// when it is silent.
func TestLastReads(t *testing.T) {
	k := why.Know[int64]
	split := func(partition int32, position, watermark, lag int64) why.Split {
		return why.Split{Source: "s", Topic: "t", Partition: partition, PositionOffset: k(position), Watermark: k(watermark), Lag: k(lag)}
	}
	before := &why.Snapshot{AtMillis: 990_000, Splits: []why.Split{
		split(0, 50, 980_000, 0), split(1, 7, 400_000, 0), split(2, 7, 400_000, 0), split(3, 7, 400_000, 9), split(4, 7, why.MinTime, 0), split(5, 7, 994_000, 0),
	}}
	now := &why.Snapshot{AtMillis: 1_000_000, Splits: []why.Split{
		split(0, 60, 995_000, 0), split(1, 7, 400_000, 0), split(2, 8, 401_000, 0), split(3, 7, 400_000, 9), split(4, 7, why.MinTime, 0), split(5, 7, 994_000, 0),
	}}
	lastReads(before, now, nil)
	var got []why.Known[int64]
	for _, sp := range now.Splits {
		got = append(got, sp.LastReadMillis)
	}
	want := []why.Known[int64]{{}, k(405_000), {}, {}, {}, k(990_000)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("last reads (-want +got):\n%s", diff)
	}
}

// TestLastReadsWithoutGauges: the same from the watermark of the subtask and the lag of
// the newest record.
func TestLastReadsWithoutGauges(t *testing.T) {
	k := why.Know[int64]
	at := func(millis, position int64) *why.Snapshot {
		return &why.Snapshot{
			AtMillis: millis, Subtasks: []why.Subtask{{Operator: "s", OutputWatermark: k(400_000)}},
			Splits: []why.Split{
				{Source: "s", Topic: "t", Subtask: why.Know(0), PositionOffset: k(7), Lag: k(0)},
				{Source: "s", Topic: "t", Partition: 1, Subtask: why.Know(0), PositionOffset: k(position), Lag: k(0)},
			},
		}
	}
	now := at(1_000_000, 60)
	lastReads(at(990_000, 50), now, map[string]int64{"s": 1000})
	if got := now.Splits[0].LastReadMillis; got != k(401_000) {
		t.Errorf("the silent partition: %+v, want 401000", got)
	}
	if got := now.Splits[1].LastReadMillis; got.OK {
		t.Errorf("the other: %+v, want unknown", got)
	}
}

func TestFind(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	f.Answers["/jobs/overview"] = []byte(`{"jobs":[
		{"jid":"aaaa1111","name":"one","state":"RUNNING"},{"jid":"aaaa2222","name":"two","state":"RUNNING"},
		{"jid":"bbbb","name":"old","state":"FAILED"},{"jid":"cccc","name":"one","state":"CANCELED"},{"jid":"dddd","name":"gone","state":"CANCELED","end-time":60000}]}`)
	f.Answers["/jobs/bbbb/exceptions"] = []byte(`{"exceptionHistory":{"entries":[{"stacktrace":"a.B: x\n\tat y\nCaused by: c.D: disk full\n\tat z"}]}}`)
	c := f.serve(t, Options{})
	for text, want := range map[string]string{"one": "aaaa1111", "two": "aaaa2222", "aaaa2222": "aaaa2222", "aaaa1": "aaaa1111"} {
		if j, err := c.Find(t.Context(), text); err != nil || j.ID != want {
			t.Errorf("%q: %v, %v, want %s", text, j, err, want)
		}
	}
	for text, want := range map[string]string{
		"": `2 jobs run; say which: "one" (aaaa1111), "two" (aaaa2222)`, "old": `job "old" is FAILED: c.D: disk full`, "gone": `job "gone" is CANCELED since 1970-01-01 00:01:00 UTC`, "three": `no job "three"; there are "one"`,
		"aaaa": "2 jobs run",
	} {
		if _, err := c.Find(t.Context(), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	f.Answers["/jobs/overview"] = []byte(`{"jobs":[]}`)
	if _, err := c.Find(t.Context(), ""); err == nil || err.Error() != "no job runs" {
		t.Errorf("without jobs: %v", err)
	}
}

// TestImpossiblePlans are refused before memory is taken for what they say.
func TestImpossiblePlans(t *testing.T) {
	for _, test := range []struct{ plan, want string }{
		{`{"nodes":[{"id":"v","parallelism":2000000000}]}`, "the parallelism of vertex v is 2000000000: must be at most 32768"},
		{`{"nodes":[{"id":"v","parallelism":-1}]}`, "the parallelism of vertex v is -1"},
		{`{"nodes":[{"id":"v","parallelism":32768,"description":"` + strings.Repeat("a<br/>", 40) + `"}]}`, "subtasks of operators"},
	} {
		f := loadCluster(t, "quiet-2.3.0")
		f.Answers["/jobs/"+f.job()] = []byte(`{"state":"RUNNING","plan":` + test.plan + `}`)
		c := f.serve(t, Options{})
		if _, err := c.Open(t.Context(), Job{ID: f.job(), Name: "quiet"}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.plan, err, test.want)
		}
	}
}

// TestNoState: an answer that says nothing of the job is not taken for one that has ended.
func TestNoState(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	f.Answers["/jobs/"+f.job()] = []byte(`{}`)
	_, err := f.serve(t, Options{}).Open(t.Context(), Job{ID: f.job(), Name: "quiet"})
	if err == nil || !strings.Contains(err.Error(), `job "quiet": the answer does not say in what state it is`) || errors.Is(err, ErrNoJob) {
		t.Errorf("error %v", err)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"200 ms": 200 * time.Millisecond, "200ms": 200 * time.Millisecond, "5000": 5 * time.Second, "1 min": time.Minute, "2 minutes": 2 * time.Minute,
		"1m": time.Minute, "3 s": 3 * time.Second, "1 H": time.Hour, "2 d": 48 * time.Hour, "7 millis": 7 * time.Millisecond, "0": 0, " 9 µs ": 9 * time.Microsecond,
	} {
		if got, ok := parseDuration(text); !ok || got != want {
			t.Errorf("%q: %v %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "ms", "1 parsec", "-1 s", "1.5 s", "9223372036854775807 d", "1 ss"} {
		if got, ok := parseDuration(text); ok {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// TestSuccessor: a job that was started again is found by its name; one that may still be
// there is not replaced.
func TestSuccessor(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	c := f.serve(t, Options{})
	id := f.job()
	job, err := c.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	col, err := c.Open(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := col.Successor(t.Context(), io.EOF); next != nil || err != io.EOF {
		t.Errorf("after another failure: %v, %v", next, err)
	}
	const again = "00000000000000000000000000000001"
	f.Answers["/jobs/"+again] = f.Answers["/jobs/"+id]
	delete(f.Answers, "/jobs/"+id)
	look := col.Look(t.Context())
	if next, err := col.Successor(t.Context(), look); next != nil || err != look || err == nil {
		t.Errorf("before it runs again: %v, %v", next, err)
	}
	f.Answers["/jobs/overview"] = bytes.ReplaceAll(f.Answers["/jobs/overview"], []byte(id), []byte(again))
	if next, err := col.Successor(t.Context(), look); err != nil || next.Job().ID != again {
		t.Errorf("%v, %v", next, err)
	}
}

func TestLookEndsWithItsContext(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	c := f.serve(t, Options{})
	job, err := c.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	col, err := c.Open(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := col.Look(ctx); err == nil {
		t.Error("no error")
	}
}

func TestChains(t *testing.T) {
	tests := []struct {
		description, name string
		want              []chained
	}{
		{
			"Source: a<br/>:- Map<br/>:  +- Sink: x<br/>+- Filter<br/>", "Source: a -> (m, 1 -> Sink: x, Filter)",
			[]chained{{"Source: a", "Source: a", -1}, {"Map", "Map", 0}, {"Sink: x", "Sink: x", 1}, {"Filter", "Filter", 0}},
		},
		{
			"Source: a<br/>:- Map<br/>:  +- Sink: x<br/>+- Filter<br/>", "[vertex-0]Source: a -> (m -> out, Filter)",
			[]chained{{"Source: a", "Source: a", -1}, {"m", "Map", 0}, {"out", "Sink: x", 1}, {"Filter", "Filter", 0}},
		},
		{
			"Source: a -> b -&gt; c<br/>", "Source: a -> b -> c",
			[]chained{{"Source: a", "Source: a", -1}, {"b", "b", 0}, {"c", "c", 1}},
		},
		{
			"[5]:Calc(select=[a -&gt; b])<br/>+- out[6]: Writer<br/>", "something else",
			[]chained{{"Calc[5]", "[5]:Calc(select=[a -> b])", -1}, {"out[6]: Writer", "out[6]: Writer", 0}},
		},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, chainOf(test.description, test.name), cmp.AllowUnexported(chained{})); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", test.description, test.name, diff)
		}
	}
}

func TestDescribe(t *testing.T) {
	tests := map[string]string{
		"Window(TumblingEventTimeWindows(5000), EventTimeTrigger, Count)":           "window tumbling 5000 0 0",
		"Window(SlidingEventTimeWindows(10000, 5000), EventTimeTrigger, Count)":     "window sliding 10000 5000 0",
		"Window(EventTimeSessionWindows(60000), EventTimeTrigger, Count)":           "window session 0 0 60000",
		"Window(DynamicEventTimeSessionWindows(x), EventTimeTrigger, Count)":        "window",
		"Window(TumblingProcessingTimeWindows(5000), ProcessingTimeTrigger, Count)": "plain",
		"Window(GlobalWindows(), CountTrigger, Count)":                              "plain",
		"Timestamps/Watermarks": "assign",
		"Interval Join":         "join",
		"KeyedProcess":          "timers",
		"Co-Process-Broadcast":  "connect",
		"Map":                   "plain",
		"[2]:GlobalWindowAggregate(groupBy=[k], window=[TUMBLE(slice_end=[$slice_end], size=[1 min])], select=[x])": "window tumbling 60000 0 0",
		"[2]:WindowAggregate(window=[CUMULATE(time_col=[ts], max_size=[1 h], step=[10 min])], select=[x])":          "window sliding 3600000 600000 0",
		"[2]:WindowAggregate(window=[SESSION(time_col=[ts], gap=[1 min 30 s])], select=[x])":                        "window session 0 0 90000",
		"[2]:WatermarkAssigner(rowtime=[ts], watermark=[(ts - 5000:INTERVAL SECOND)])":                              "assign rows 5000",
		"[2]:WindowJoin(leftWindow=[TUMBLE(win_start=[x], size=[10 s])], joinType=[InnerJoin])":                     "join",
		"[2]:Calc(select=[a], where=[(a &gt; 1)])":                                                                  "filter",
		"[2]:Calc(select=[a])": "plain",
	}
	for text, want := range tests {
		o := describe(chained{name: nameOf(text), text: text})
		got := string(o.Kind)
		if w := o.Window; w != nil {
			got += fmt.Sprintf(" %s %d %d %d", w.Kind, w.SizeMillis, w.SlideMillis, w.GapMillis)
		}
		if s := o.Strategy; s != nil {
			got += fmt.Sprintf(" %s %d", s.Kind, s.BoundMillis.Value)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestMetricNames(t *testing.T) {
	for id, want := range map[string]metricID{
		"0.currentInputWatermark":                            {0, "", "currentInputWatermark"},
		"12.win_10s/5s.numRecordsIn":                         {12, "win_10s/5s", "numRecordsIn"},
		"1.Source__a.split.a_b-1.watermark.currentWatermark": {1, "Source__a", "split.a_b-1.watermark.currentWatermark"},
	} {
		if got, ok := parseMetricID(id); !ok || got != want || !got.wanted() {
			t.Errorf("%s: %+v, %t, want %+v", id, got, ok, want)
		}
	}
	for _, id := range []string{"x", "x.y", "0.mailboxQueueSize", "0.a.numBytesIn", "0.a.split.b.watermark.accumulatedActiveTimeMs"} {
		if got, ok := parseMetricID(id); ok && got.wanted() {
			t.Errorf("%s is wanted", id)
		}
	}
	if got := filtered("Source: " + strings.Repeat("a.b,", 30)); len(got) != 80 || strings.ContainsAny(got, " .:,") {
		t.Errorf("filtered: %q", got)
	}
	if topic, p, ok := partitionOf("my-topic-12"); !ok || topic != "my-topic" || p != 12 {
		t.Errorf("split id: %s %d %t", topic, p, ok)
	}
}

// TestState: state with a memory budget, of which only jobs of ours tell.
func TestState(t *testing.T) {
	s := newSnapshot([]why.Operator{{ID: "total", Name: "total", Vertex: "v", Parallelism: 2}})
	var metrics []metric
	for name, value := range map[string]string{
		"stateBudgetBytes": "1000", "stateMemoryBytes": "900", "stateSpilledEntries": "7", "stateDiskBytes": "5000", "stateSpillReads": "30", "stateSpillWrites": "37",
	} {
		m := metric{ID: "1.total." + name, Value: value}
		if id, ok := parseMetricID(m.ID); !ok || !id.wanted() {
			t.Errorf("%s is not asked for", m.ID)
		}
		metrics = append(metrics, m)
	}
	s.add("v", metrics)
	want := []why.KeyedState{{}, {BudgetBytes: 1000, MemoryBytes: 900, SpilledEntries: 7, DiskBytes: 5000, SpillReads: 30, SpillWrites: 37}}
	for i, sub := range s.finish().Subtasks {
		if sub.State != want[i] {
			t.Errorf("subtask %d: %+v, want %+v", i, sub.State, want[i])
		}
	}
}

// TestOwnServerIsNotWaitedFor: one of ours has its numbers at once.
