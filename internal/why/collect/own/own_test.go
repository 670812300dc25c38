package own

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/status"
)

var described = &graph.Description{Job: "j", WatermarkIntervalMillis: 100, Operators: []graph.OperatorDescription{
	{ID: 0, Name: "orders", Parallelism: 1, Source: &graph.SourceDescription{Splits: 1}, Watermarks: &graph.WatermarkDescription{Strategy: "monotonous-timestamps"}},
	{ID: 1, Name: "counts", Vertex: 1, Parallelism: 1, EventTime: true, Window: "window.Tumbling(1s)", Inputs: []graph.InputDescription{{From: 0, Ship: "HASH"}}},
}}

var began = time.UnixMilli(1_000_000)

// job is a status d after the start, when n records were read.
func job(d time.Duration, n int64) *status.Job {
	return &status.Job{Name: "j", Started: began, Vertices: []status.Vertex{
		{Subtasks: []status.Subtask{{
			Busy: d / 4, Idle: d / 2, SoftBackPressured: d / 8, HardBackPressured: d / 8,
			Operators: []status.Operator{{
				Name: "orders", RecordsIn: n, RecordsOut: n, CurrentInputWatermark: eventtime.MinTimestamp, CurrentOutputWatermark: 5,
				Splits: []status.Split{{
					ID: "orders-3", Topic: "orders", Partition: 3, State: status.SplitIdle, Records: n, CurrentWatermark: 5, CurrentOffset: 7, EndOffset: -1,
					LastRecordAt: began, LongestPause: 3 * time.Second, LastEventTime: 6, ActiveFor: d / 2, IdleFor: d / 2, Future: status.Sample{Count: 2},
				}},
			}},
		}}},
		{Subtasks: []status.Subtask{{Operators: []status.Operator{{
			Name: "counts", RecordsIn: n, CurrentInputWatermark: 5, CurrentOutputWatermark: 5, LateRecords: 3, LateRecordsDropped: 1, InputWatermarks: []int64{5, 9},
			State:       status.KeyedState{BudgetBytes: 1000, MemoryBytes: 900, SpilledEntries: 7, DiskBytes: 5000, SpillReads: 30, SpillWrites: 37},
			LateBySplit: []status.LateCount{{Source: "orders", Split: "orders-3", Count: 1}},
			LateSamples: []status.LateSample{{Timestamp: 1, Watermark: 5, Key: "k", Source: "orders", Split: "orders-3", Offset: 4}},
		}}}}},
	}}
}

func TestAdd(t *testing.T) {
	c := New(described, "v1")
	c.Add(job(0, 0), began)
	c.Add(job(8*time.Second, 10), began.Add(8*time.Second))
	e := c.Evidence()
	k := why.Know[int64]
	want := why.Snapshot{
		AtMillis: 1_008_000,
		Subtasks: []why.Subtask{
			{Operator: "orders", InputWatermark: k(why.MinTime), OutputWatermark: k(5), Idle: why.Know(false), RecordsIn: k(10), RecordsOut: k(10), LateDropped: k(0), LateOutput: k(0)},
			{
				Operator: "counts", InputWatermark: k(5), InputWatermarks: []why.Known[int64]{k(5), k(9)}, Idle: why.Know(false),
				RecordsIn: k(10), RecordsOut: k(0), LateDropped: k(1), LateOutput: k(2),
				State:       why.KeyedState{BudgetBytes: 1000, MemoryBytes: 900, SpilledEntries: 7, DiskBytes: 5000, SpillReads: 30, SpillWrites: 37},
				LateBySplit: []why.LateCount{{Source: "orders", Topic: "orders", Partition: 3, Count: 1}},
				LateSamples: []why.LateSample{{EventMillis: 1, WatermarkMillis: 5, Key: "k", Topic: "orders", Partition: 3, Offset: 4}},
			},
		},
		Splits: []why.Split{{
			Source: "orders", Topic: "orders", Partition: 3, Subtask: why.Know(0), Watermark: k(5), State: why.Know(why.SplitIdle),
			ActiveMillisPerSecond: k(500), IdleMillisPerSecond: k(500), PausedMillisPerSecond: k(0), Records: k(10),
			LastReadMillis: k(1_000_000), LongestPauseMillis: k(3000), MaxEventMillis: k(6), FutureRecords: k(2), PositionOffset: k(7),
		}},
		Tasks: []why.Task{
			{Vertex: "vertex 0", BusyMillis: k(250), IdleMillis: k(500), BackPressuredMillis: k(250)},
			{Vertex: "vertex 1", BusyMillis: k(0), IdleMillis: k(0), BackPressuredMillis: k(0)},
		},
	}
	if diff := cmp.Diff(want, e.History[1]); diff != "" {
		t.Errorf("second snapshot (-want +got):\n%s", diff)
	}
	first := e.History[0].Splits[0]
	if first.LastReadMillis != k(why.Never) || first.MaxEventMillis != k(why.MinTime) {
		t.Errorf("a split without records: %+v", first)
	}
	if e.Engine != (why.Engine{Name: why.Lowwater, Version: "v1"}) || e.StartedMillis != k(1_000_000) || !cmp.Equal(e.Operators[0].Source.Topics, []string{"orders"}) {
		t.Errorf("evidence %+v", e)
	}
}

// TestNow: the present is not kept, and only what was seen since a time is behind it.
func TestNow(t *testing.T) {
	c := New(described, "v1")
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	for _, s := range []int{0, 5, 10} {
		c.Add(job(at(s).Sub(began), int64(s)), at(s))
	}
	now := c.Now(job(12*time.Second, 12), at(12), at(5))
	var seen []int64
	for _, s := range now.History {
		seen = append(seen, s.Splits[0].Records.Value)
	}
	if want := []int64{5, 10, 12}; !cmp.Equal(want, seen) || now.AtMillis != at(12).UnixMilli() {
		t.Errorf("at %d: records %v, want %v", now.AtMillis, seen, want)
	}
	if e := c.Evidence(); len(e.History) != 3 || e.AtMillis != at(10).UnixMilli() {
		t.Errorf("kept: %d snapshots until %d, want 3 until %d", len(e.History), e.AtMillis, at(10).UnixMilli())
	}
	c.Keep(func(when time.Time) bool { return when.Equal(at(5)) })
	if e := c.Evidence(); len(e.History) != 1 || e.History[0].Splits[0].Records.Value != 5 {
		t.Errorf("kept: %+v, want the second snapshot", e.History)
	}
}

// manySplits is a status of one subtask that reads n splits, each n records far.
func manySplits(n int, records int64) *status.Job {
	s := job(time.Second, records)
	op := &s.Vertices[0].Subtasks[0].Operators[0]
	op.Splits = nil
	for i := range n {
		op.Splits = append(op.Splits, status.Split{
			ID: fmt.Sprintf("orders-%d", i), Topic: "orders", Partition: int32(i), Records: records,
			ActiveFor: time.Duration(records) * time.Second, LastRecordAt: began,
		})
	}
	return s
}

// TestSplitsMove: a split is compared with itself, wherever it was in the list before.
func TestSplitsMove(t *testing.T) {
	c := New(described, "v1")
	c.Add(manySplits(3, 1), began)
	s := manySplits(3, 2)
	splits := s.Vertices[0].Subtasks[0].Operators[0].Splits
	slices.Reverse(splits)
	splits[2].IdleFor = time.Second // that of partition 0: active for one second, idle for one
	c.Add(s, began.Add(time.Second))
	var got []int64
	for _, sp := range c.Evidence().History[1].Splits {
		got = append(got, sp.ActiveMillisPerSecond.Value)
	}
	if want := []int64{1000, 1000, 500}; !cmp.Equal(want, got) {
		t.Errorf("active %v ms/s, want %v", got, want)
	}
}

func BenchmarkAdd(b *testing.B) {
	const splits = 10_000
	c := New(described, "v1")
	first, second := manySplits(splits, 1), manySplits(splits, 2)
	at := began
	c.Add(first, at)
	for b.Loop() {
		at = at.Add(time.Second)
		first, second = second, first
		c.Add(first, at)
		c.Keep(func(when time.Time) bool { return when.Equal(at) })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/splits, "ns/split")
}

// TestSplitsWithoutTopic: "split-0" is no partition of a topic "split".
func TestSplitsWithoutTopic(t *testing.T) {
	s := job(time.Second, 3)
	s.Vertices[0].Subtasks[0].Operators[0].Splits = []status.Split{{ID: "split-0", Records: 3}}
	c := New(described, "v1")
	c.Add(s, began)
	e := c.Evidence()
	if got := e.History[0].Splits; len(got) != 1 || got[0].ID != "split-0" || got[0].Topic != "" {
		t.Errorf("splits %+v", got)
	}
	for _, o := range e.Operators {
		if o.Source != nil && len(o.Source.Topics) > 0 {
			t.Errorf("topics %q", o.Source.Topics)
		}
	}
	for _, sub := range e.History[0].Subtasks {
		for _, l := range sub.LateBySplit {
			if l.Topic != "" || l.Split != "orders-3" {
				t.Errorf("late records of %+v", l)
			}
		}
	}
}

// TestEndLost: an end that was known and is not any more is told from one that never was.
func TestEndLost(t *testing.T) {
	c := New(&graph.Description{Operators: []graph.OperatorDescription{{Name: "orders", Source: &graph.SourceDescription{}}}}, "")
	look := func(at time.Time, end int64) why.Split {
		c.Add(&status.Job{Vertices: []status.Vertex{{Subtasks: []status.Subtask{{Operators: []status.Operator{{Name: "orders", Splits: []status.Split{
			{ID: "orders-0", Topic: "orders", CurrentOffset: 3, EndOffset: end}}}}}}}}}, at)
		history := c.Evidence().History
		return history[len(history)-1].Splits[0]
	}
	for i, tt := range []struct {
		end  int64
		want bool
	}{{-1, false}, {3, false}, {-1, true}, {-1, true}, {3, false}} {
		if got := look(time.UnixMilli(int64(i)*1000), tt.end); got.EndLost != tt.want || got.EndOffset.OK != (tt.end >= 0) {
			t.Errorf("look %d: %+v", i, got)
		}
	}
}
