package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/status"
)

// partitions is a made-up job: a window of a second behind a source that reads three
// partitions, and when each partition had its last record, by the second.
type partitions struct {
	began   time.Time
	records [3]int64
	last    [3]time.Time
}

var partitionsPlan = &Plan{Description: &graph.Description{Job: "j", WatermarkIntervalMillis: 100, Operators: []graph.OperatorDescription{
	{ID: 0, Name: "orders", Parallelism: 1, Source: &graph.SourceDescription{Splits: 3}, Watermarks: &graph.WatermarkDescription{Strategy: "monotonous-timestamps"}},
	{ID: 1, Name: "counts", Vertex: 1, Parallelism: 1, EventTime: true, Window: "window.Tumbling(1s)", Inputs: []graph.InputDescription{{From: 0, Ship: "HASH"}}},
}}}

func (p *partitions) read(partition int, at time.Time) {
	p.records[partition]++
	p.last[partition] = at
}

func (p *partitions) status(at time.Time) status.Job {
	low := int64(eventtime.MaxTimestamp)
	var splits []status.Split
	n := int64(0)
	for i, last := range p.last {
		s := status.Split{
			ID: fmt.Sprint("orders-", i), Topic: "orders", Partition: int32(i), Records: p.records[i], CurrentOffset: p.records[i], EndOffset: p.records[i],
			ActiveFor: at.Sub(p.began), CurrentWatermark: eventtime.MinTimestamp, LastEventTime: eventtime.MinTimestamp,
		}
		if p.records[i] > 0 {
			s.LastRecordAt, s.LastEventTime, s.CurrentWatermark = last, last.UnixMilli(), last.UnixMilli()-1
		}
		low = min(low, s.CurrentWatermark)
		n += s.Records
		splits = append(splits, s)
	}
	return status.Job{Name: "j", Started: p.began, Vertices: []status.Vertex{
		{Subtasks: []status.Subtask{{Operators: []status.Operator{{
			Name: "orders", RecordsIn: n, RecordsOut: n, CurrentInputWatermark: eventtime.MinTimestamp, CurrentOutputWatermark: low, Splits: splits,
		}}}}},
		{Subtasks: []status.Subtask{{Operators: []status.Operator{{Name: "counts", RecordsIn: n, CurrentInputWatermark: low, CurrentOutputWatermark: low}}}}},
	}}
}

// judge plays a job second by second and returns what the diagnosis says in each.
func judge(t *testing.T, seconds int, reads func(partition, second int) bool) []why.Code {
	t.Helper()
	p := &partitions{began: time.UnixMilli(1_800_000_000_000)}
	d := newDiagnosis(partitionsPlan)
	var codes []why.Code
	for second := range seconds {
		at := p.began.Add(time.Duration(second) * time.Second)
		for i := range p.records {
			if reads(i, second) {
				p.read(i, at)
			}
		}
		d.add(sample{at, p.status(at)})
		later := at.Add(300 * time.Millisecond)
		codes = append(codes, why.Diagnose(d.evidence(&Reading{At: later, Status: p.status(later)})).Answer().Code)
		if n := len(d.collector.Evidence().History); n > int(evidenceSpan/evidenceInterval)+2 {
			t.Fatalf("%d snapshots after %d s", n, second)
		}
	}
	return codes
}

// TestStallIsSeen: whenever in the life of a job a partition stops, the diagnosis names it
// when it has been silent for as long as the rules want, goes on to do so, and takes it back
// when the partition has records again.
func TestStallIsSeen(t *testing.T) {
	const lasts = 200
	patience := int(stallPatience / time.Second)
	for _, begins := range []int{5, 31, 47, 63, 302, 1000} {
		t.Run(fmt.Sprint(begins), func(t *testing.T) {
			codes := judge(t, begins+lasts+100, func(partition, second int) bool {
				return partition != 2 || second < begins || second >= begins+lasts
			})
			for second, code := range codes {
				silent := second - (begins - 1)
				switch stalled := code == why.QuietPartition; {
				case stalled && (silent < patience || second >= begins+lasts):
					t.Fatalf("second %d: %s, %d s after the last record", second, code, silent)
				case !stalled && silent > patience+1 && second < begins+lasts:
					t.Fatalf("second %d: %s, %d s after the last record", second, code, silent)
				}
			}
		})
	}
}

// TestSlowJobsAreNotAccused: a watermark that goes on in steps is not one that stands still.
func TestSlowJobsAreNotAccused(t *testing.T) {
	for name, reads := range map[string]func(partition, second int) bool{
		"each second":          func(int, int) bool { return true },
		"every 20 s":           func(_, second int) bool { return second%20 == 0 },
		"one every 25 s":       func(partition, second int) bool { return partition != 1 || second%25 == 0 },
		"one every 45 s":       func(partition, second int) bool { return partition != 1 || second%45 == 0 },
		"one every 90 s":       func(partition, second int) bool { return partition != 1 || second%90 == 0 },
		"one at the other's 3": func(partition, second int) bool { return second%3 == partition },
	} {
		t.Run(name, func(t *testing.T) {
			for second, code := range judge(t, 900, reads) {
				// For the first minutes nobody knows how rare records are.
				if second > 300 && code != why.None {
					t.Fatalf("second %d: %s", second, code)
				}
			}
		})
	}
}

// TestStallOfOneOfTwo: an operator that stands still is compared with its own stall although
// another goes on.
func TestStallOfOneOfTwo(t *testing.T) {
	at := func(second int) time.Time {
		return time.UnixMilli(1_800_000_000_000).Add(time.Duration(second) * time.Second)
	}
	d := newDiagnosis(&Plan{Description: &graph.Description{Operators: []graph.OperatorDescription{
		{ID: 0, Name: "s", Parallelism: 1, Source: &graph.SourceDescription{}},
		{ID: 1, Name: "a", Vertex: 1, Parallelism: 1, EventTime: true, Window: "window.Tumbling(1s)", Inputs: []graph.InputDescription{{From: 0, Ship: "HASH"}}},
		{ID: 2, Name: "b", Vertex: 2, Parallelism: 1, EventTime: true, Window: "window.Tumbling(1s)", Inputs: []graph.InputDescription{{From: 0, Ship: "HASH"}}},
	}}})
	job := func(a, b int64) status.Job {
		window := func(w int64) status.Vertex {
			return status.Vertex{Subtasks: []status.Subtask{{Operators: []status.Operator{{CurrentInputWatermark: w}}}}}
		}
		return status.Job{Vertices: []status.Vertex{window(0), window(a), window(b)}}
	}
	for second := range 100 {
		d.add(sample{at(second), job(int64(second), min(int64(second), 52))})
	}
	r := &Reading{At: at(100), Status: job(100, 52)}
	if got := d.stalledSince(r); !got.Equal(at(52)) {
		t.Errorf("stalled since %v, want %v", got, at(52))
	}
	if got := d.evidence(r).History[0].AtMillis; got != at(52).UnixMilli() {
		t.Errorf("the first snapshot is of %v, want %v", time.UnixMilli(got), at(52))
	}
	r.Status = job(100, 53)
	if got := d.stalledSince(r); !got.IsZero() {
		t.Errorf("stalled since %v, but it has moved", got)
	}
}

// TestStandsSince: since when event time stands still is known beyond the snapshots.
func TestStandsSince(t *testing.T) {
	p := &partitions{began: time.UnixMilli(1_800_000_000_000)}
	d := newDiagnosis(partitionsPlan)
	var at time.Time
	for second := range 400 {
		at = p.began.Add(time.Duration(second) * time.Second)
		for i := range p.records {
			if second <= 20 {
				p.read(i, at)
			}
		}
		d.add(sample{at, p.status(at)})
	}
	e := d.evidence(&Reading{At: at, Status: p.status(at)})
	if want := p.began.Add(20 * time.Second).UnixMilli(); e.StandsSince["counts"] != want {
		t.Errorf("since %d, want %d", e.StandsSince["counts"], want)
	}
}

// TestHolderNamesSplitsByID: files, which have neither topic nor partition, are told apart
// although their watermarks are alike.
func TestHolderNamesSplitsByID(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	file := func(path string, watermark int64) status.Split {
		return status.Split{ID: path, CurrentWatermark: watermark, LastEventTime: watermark, CurrentOffset: -1, EndOffset: -1}
	}
	for name, splits := range map[string][]status.Split{
		"the first":          {file("/in/a", 1000), file("/in/b", 5000), file("/in/c", 5000)},
		"of the same":        {file("/in/a", 1000), file("/in/b", 1000), file("/in/c", 1000)},
		"not begun":          {file("/in/a", eventtime.MinTimestamp), file("/in/b", eventtime.MinTimestamp), file("/in/c", 7000)},
		"the last":           {file("/in/c", 5000), file("/in/b", 5000), file("/in/a", 1000)},
		"beside a partition": {{ID: "t-0", Topic: "t", CurrentWatermark: 5000}, file("/in/a", 1000)},
	} {
		low := int64(eventtime.MaxTimestamp)
		for _, s := range splits {
			low = min(low, s.CurrentWatermark)
		}
		source := status.Operator{Name: "orders", CurrentInputWatermark: eventtime.MinTimestamp, CurrentOutputWatermark: low, Splits: splits}
		windows := status.Operator{Name: "counts", CurrentInputWatermark: low, CurrentOutputWatermark: low}
		r := &Reading{At: at, Plan: &Plan{Description: partitionsPlan.Description, Vertices: []Vertex{
			{ID: "orders", Name: "orders", Kind: KindSource, Parallelism: 1, Operators: []Operator{{Name: "orders", Kind: KindSource, Sends: true}}},
			{ID: "counts", Name: "counts", Kind: KindWindow, Parallelism: 1, Operators: []Operator{{Name: "counts", Kind: KindWindow}}},
		}}, Status: status.Job{Name: "j", Started: at, Vertices: []status.Vertex{
			{Subtasks: []status.Subtask{{Operators: []status.Operator{source}}}}, {Subtasks: []status.Subtask{{Operators: []status.Operator{windows}}}},
		}}}
		o := &Observed{diagnosis: newDiagnosis(partitionsPlan), history: newHistory()}
		if h := o.Holder(r); h == nil || h.Split.ID != "/in/a" {
			t.Errorf("%s: held by %+v, want /in/a", name, h)
		}
	}
}

// TestRestoredSplit: a split that has a watermark had records before the job was started again,
// though none is counted in this attempt.
func TestRestoredSplit(t *testing.T) {
	for _, test := range []struct {
		watermark int64 // of the split without records
		want      string
	}{
		{1_799_999_940_000, "has no record since the job was started again and holds"},
		{eventtime.MinTimestamp, "has no record yet and holds"},
	} {
		p := &partitions{began: time.UnixMilli(1_800_000_000_000)}
		d := newDiagnosis(partitionsPlan)
		var got string
		for second := range 60 {
			at := p.began.Add(time.Duration(second) * time.Second)
			p.read(0, at)
			p.read(1, at)
			job := p.status(at)
			source, counts := &job.Vertices[0].Subtasks[0].Operators[0], &job.Vertices[1].Subtasks[0].Operators[0]
			source.Splits[2].CurrentWatermark, source.CurrentOutputWatermark, counts.CurrentInputWatermark = test.watermark, test.watermark, test.watermark
			if second < 59 {
				d.add(sample{at, job})
				continue
			}
			got = why.Diagnose(d.evidence(&Reading{At: at, Status: job})).Answer().Answer
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
