package observe

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// TestOperatorID compares with what Flink gives to the first source of every job without
// uids: the hash of a zero for itself, and of another for an operator chained to it.
func TestOperatorID(t *testing.T) {
	for text, want := range map[string]string{
		"\x00\x00\x00\x00":                 "bc764cd8ddf7a0cff126f51c16239658",
		"\x00\x00\x00\x00\x00\x00\x00\x00": "cbc357ccb763df2852fee8c4fc7d55f2",
		"":                                 "00000000000000000000000000000000",
		"hello":                            "029bbd41b3a7d8cb191dae486a901e5b",
		"The quick brown fox jumps over the lazy dog": "6c1b07bc7bbc4be347939ac4a93c437a",
	} {
		if got := OperatorID(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// oneVertex is a plan and the status of a job of one source with a subtask that reads
// splits at a watermark.
func oneVertex(splits int, watermark int64) (*Plan, *status.Job) {
	plan := &Plan{Vertices: []Vertex{{ID: "v", Name: "Source: s", Kind: KindSource, Operators: []Operator{{Kind: KindSource, Sends: true}}}}}
	op := status.Operator{CurrentOutputWatermark: watermark}
	for i := range splits {
		op.Splits = append(op.Splits, status.Split{ID: fmt.Sprint("s-", i), CurrentWatermark: watermark})
	}
	return plan, &status.Job{Vertices: []status.Vertex{{Subtasks: []status.Subtask{{Operators: []status.Operator{op}}}}}}
}

// TestHistoryIsBounded: with many splits points move apart instead of growing in number, and
// an hour is kept.
func TestHistoryIsBounded(t *testing.T) {
	h := newHistory()
	h.limit = 10_000
	begin := time.UnixMilli(1_800_000_000_000)
	const splits = 99
	for i := range 3 * 3600 {
		plan, job := oneVertex(splits, int64(i))
		h.record(begin.Add(time.Duration(i)*time.Second), plan, job)
		if h.points > h.limit {
			t.Fatalf("%d points after %d s, want at most %d", h.points, i, h.limit)
		}
	}
	got := h.read(time.Time{})
	if len(got.Series) != splits+1 || got.Interval != 64*time.Second {
		t.Fatalf("%d series, a point each %v", len(got.Series), got.Interval)
	}
	for _, s := range got.Series {
		first, last := s.Points[0], s.Points[len(s.Points)-1]
		if span := last.At.Sub(first.At); span < historySpan-2*got.Interval || span > historySpan+historySpan/10+got.Interval {
			t.Fatalf("%s goes back %v", s.Name, span)
		}
		for _, p := range s.Points {
			if want := int64(p.At.Sub(begin).Seconds()); p.Watermark != want {
				t.Fatalf("%s at %v: watermark %d, want %d", s.Name, p.At, p.Watermark, want)
			}
		}
	}
}

// TestHistoryOfSplits: splits come and go, and come back.
func TestHistoryOfSplits(t *testing.T) {
	h := newHistory()
	begin := time.UnixMilli(1_800_000_000_000)
	for i, splits := range []int{1, 2, 1, 2} {
		plan, job := oneVertex(splits, int64(10+i))
		h.record(begin.Add(time.Duration(i)*time.Second), plan, job)
	}
	var got []string
	for _, s := range h.read(begin).Series {
		for _, p := range s.Points {
			got = append(got, fmt.Sprintf("%s %d: %d", s.Name, p.At.Sub(begin)/time.Second, p.Watermark))
		}
	}
	want := []string{
		"Source: s (0) 1: 11", "Source: s (0) 2: 12", "Source: s (0) 3: 13",
		"s-0 1: 11", "s-0 2: 12", "s-0 3: 13",
		"s-1 1: 11", fmt.Sprintf("s-1 2: %d", int64(eventtime.MinTimestamp)), "s-1 3: 13",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at, ok := h.since(seriesKey{0, 0, "s-1"}, 13); !ok || !at.Equal(begin.Add(3*time.Second)) {
		t.Errorf("since %v, %t", at, ok)
	}
	if _, ok := h.since(seriesKey{0, 0, "s-1"}, 99); ok {
		t.Error("a watermark that was not seen")
	}
}

// counting is a job that counts 10 records a second and is busy for 300 ms of each.
type counting struct {
	plan    *Plan
	started time.Time
	done    chan struct{}
}

func (c *counting) Status() status.Job {
	_, job := oneVertex(1, 0)
	elapsed := time.Since(c.started)
	s := &job.Vertices[0].Subtasks[0]
	s.Operators[0].RecordsIn = int64(elapsed.Seconds() * 10)
	s.Busy, s.Idle = elapsed*3/10, elapsed*7/10
	job.Life = status.Life{State: status.Running}
	select {
	case <-c.done:
		job.Life.State = status.Finished
	default:
	}
	return *job
}
func (c *counting) Plan() *Plan                { return c.plan }
func (c *counting) Failures() []status.Failure { return nil }
func (c *counting) Config() Config             { return Config{} }
func (c *counting) Done() <-chan struct{}      { return c.done }
func (c *counting) Cancel()                    {}
func (c *counting) Stop()                      {}
func (c *counting) Checkpoints() Checkpoints   { return nil }

// TestRates: per-second values are averages over the last seconds, and zero at the end.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, _ := oneVertex(1, 0)
		job := &counting{plan: plan, started: time.Now(), done: make(chan struct{})}
		r := NewRegistry()
		defer r.Close()
		o := r.Add(job)
		<-time.After(10*time.Second + 500*time.Millisecond)
		reading := o.Read()
		s := reading.Subtask(0, 0)
		if s.RecordsInPerSecond < 9.5 || s.RecordsInPerSecond > 10.5 || s.Busy < 299 || s.Busy > 301 || s.Idle < 699 || s.Idle > 701 {
			t.Errorf("%v records/s, busy %v, idle %v ms/s; want 10, 300, 700", s.RecordsInPerSecond, s.Busy, s.Idle)
		}
		if over := reading.At.Sub(reading.before.at); over < RateSpan || over > RateSpan+2*SampleInterval {
			t.Errorf("averages over %v, want %v or little more", over, RateSpan)
		}
		if again := o.Read(); again != reading {
			t.Error("read again at the same moment")
		}
		version, changed := r.Version()
		close(job.done)
		<-changed
		if now, _ := r.Version(); now <= version {
			t.Errorf("version %d after %d", now, version)
		}
		<-time.After(time.Second)
		if s := o.Read().Subtask(0, 0); s.RecordsInPerSecond != 0 || s.Busy != 0 {
			t.Errorf("after the end %v records/s, busy %v", s.RecordsInPerSecond, s.Busy)
		}
	})
}

// TestEndedJobsAreForgotten: the registry keeps the latest, and all that run.
func TestEndedJobsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, _ := oneVertex(0, 0)
		r := NewRegistry()
		defer r.Close()
		running := r.Add(&counting{plan: plan, started: time.Now(), done: make(chan struct{})})
		var last *Observed
		for range maxEnded + 5 {
			done := make(chan struct{})
			close(done)
			last = r.Add(&counting{plan: plan, started: time.Now(), done: done})
		}
		synctest.Wait()
		if n := len(r.Jobs()); n != maxEnded+1 {
			t.Errorf("%d jobs, want %d", n, maxEnded+1)
		}
		if r.Job(running.ID) == nil || r.Job(last.ID) == nil {
			t.Error("a running job or the last one is forgotten")
		}
	})
}

// BenchmarkManySplits is one look of the sampler at a job with 10,000 splits, and one scrape.
func BenchmarkManySplits(b *testing.B) {
	plan, job := oneVertex(10_000, 7)
	b.Run("sample", func(b *testing.B) {
		h := newHistory()
		at := time.UnixMilli(1_800_000_000_000)
		for b.Loop() {
			at = at.Add(time.Minute)
			h.record(at, plan, job)
		}
	})
	b.Run("metrics", func(b *testing.B) {
		r := &Reading{At: time.Now(), Plan: plan, Status: *job, before: sample{time.Now().Add(-5 * time.Second), *job}}
		for b.Loop() {
			if n := len(r.OperatorMetrics(0, 0, 0)); n < 70_000 {
				b.Fatal(n)
			}
		}
	})
}
