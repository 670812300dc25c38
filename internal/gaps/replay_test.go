package gaps

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// moment is an append time and an event time.
type moment [2]int64

// dataOf is a topic that was read to its end.
func dataOf(partitions ...[]moment) *Data {
	d := &Data{Topic: "t"}
	for i, records := range partitions {
		p := &Partition{Number: int32(i), End: int64(len(records)), Next: int64(len(records))}
		for _, r := range records {
			p.add(r[0], r[1])
			d.Records++
		}
		d.Partitions = append(d.Partitions, p)
	}
	return d
}

const second = int64(1000)

func TestPartition(t *testing.T) {
	d := dataOf([]moment{{10, 8}, {12, 20}, {11, 5}, {40, 21}})
	p := d.Partitions[0]
	// The third append time is before the second: it counts as equal.
	if p.Gaps.Max() != 28 || p.Gaps.Count() != 3 || p.Gaps.Quantile(0.5) != 2 {
		t.Errorf("gaps %+v, want 2, 0, 28", p.Gaps.Quantiles())
	}
	if p.Disorder.Max() != 15 || p.Disorder.Count() != 4 {
		t.Errorf("disorder %+v, want 0, 0, 15, 0", p.Disorder.Quantiles())
	}
	if p.EventGaps.Max() != 12 || p.EventGaps.Count() != 2 {
		t.Errorf("event gaps %+v, want 12, 1", p.EventGaps.Quantiles())
	}
	if p.Future != 8 || p.Delay.Max() != 19 {
		t.Errorf("future %d, delay %d, want 8, 19", p.Future, p.Delay.Max())
	}
}

// every returns records that are appended at their event time.
func every(step, from, to int64) []moment {
	var records []moment
	for t := from; t < to; t += step {
		records = append(records, moment{t, t})
	}
	return records
}

func TestReplay(t *testing.T) {
	options := ReplayOptions{Window: 10 * time.Second, Interval: 200 * time.Millisecond}
	noIdle, idle5 := Choice{}, Choice{Idle: 5 * time.Second}
	tests := []struct {
		name   string
		data   *Data
		choice Choice
		want   Outcome
		waits  []int64 // p50 and max
	}{
		{
			name: "in order", data: dataOf(every(second, 0, 35*second)), choice: noIdle,
			want:  Outcome{Records: 35, Partitions: []PartitionOutcome{{}}},
			waits: []int64{0, 0}, // the record of 10 s is read before the periodic call of that moment
		},
		{
			name: "a bound delays by itself", data: dataOf(every(second, 0, 35*second)), choice: Choice{Bound: 2 * time.Second},
			want:  Outcome{Records: 35, Partitions: []PartitionOutcome{{}}},
			waits: []int64{2000, 2000},
		},
		{
			name: "late for its window", choice: noIdle,
			data: dataOf(append(every(second, 0, 12*second), moment{12 * second, 9 * second}, moment{13 * second, 10 * second})),
			// 9 s is in a window that has fired, 10 s is behind the watermark in one that has not.
			want:  Outcome{Records: 14, Behind: 2, Late: 1, Partitions: []PartitionOutcome{{Behind: 2, Late: 1}}},
			waits: []int64{0, 0},
		},
		{
			name: "an empty partition holds all", data: dataOf(every(second, 0, 35*second), nil), choice: noIdle,
			want: Outcome{Records: 35, Held: 3, HeldBy: []int32{1}, Partitions: []PartitionOutcome{{}, {Partition: 1}}},
		},
		{
			name: "an empty partition goes idle", data: dataOf(every(second, 0, 35*second), nil), choice: idle5,
			want:  Outcome{Records: 35, Partitions: []PartitionOutcome{{}, {Partition: 1, Idled: 1}}},
			waits: []int64{0, 0},
		},
		{
			name: "a quiet partition holds results back until it is idle", choice: idle5,
			// The last record is seen at 8 s, the countdown starts at 8.2 s and is over after 13.2 s.
			data:  dataOf(every(second, 0, 22*second), every(second, 0, 9*second)),
			want:  Outcome{Records: 31, Partitions: []PartitionOutcome{{}, {Partition: 1, Idled: 1}}},
			waits: []int64{0, 3400},
		},
		{
			name: "a partition comes back late, then catches up", choice: idle5,
			data: dataOf(every(second, 0, 42*second),
				append(every(second, 0, 5*second), moment{30 * second, 6 * second}, moment{31 * second, 7 * second}, moment{32 * second, 32*second + 500},
					moment{33 * second, 8 * second})),
			want: Outcome{
				Records: 51, Behind: 3, Late: 3,
				Partitions: []PartitionOutcome{{}, {Partition: 1, Behind: 3, Late: 3, Idled: 2, Returned: 1, ReturnedLate: 1, LateAfterIdle: 2}},
			},
			waits: []int64{0, 2000}, // while the partition is back and behind,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Replay(t.Context(), test.data, []Choice{test.choice}, options)
			if err != nil {
				t.Fatal(err)
			}
			test.want.Choice = test.choice
			if diff := cmp.Diff(test.want, got[0], cmpopts.IgnoreFields(Outcome{}, "Wait")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var waits []int64
			if w := &got[0].Wait; w.Count() > 0 {
				waits = []int64{w.Quantile(0.5), w.Max()}
			}
			for i, want := range test.waits {
				if len(waits) == 0 || waits[i] < want || waits[i] > want+want/32 {
					t.Fatalf("waits %v, want %v", waits, test.waits)
				}
			}
			if test.waits == nil && waits != nil {
				t.Errorf("waits %v, want no results", waits)
			}
		})
	}
}

// TestProbesLeftOutChangeNothing: the outcome is that of a replay that makes every
// periodic call.
func TestProbesLeftOutChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 20_000))
		partitions := make([][]moment, rapid.IntRange(1, 4).Draw(t, "partitions"))
		for i := range partitions {
			at := int64(0)
			for range rapid.IntRange(0, 15).Draw(t, "records") {
				at += gap.Draw(t, "gap")
				partitions[i] = append(partitions[i], moment{at, at - rapid.Int64Range(-500, 8000).Draw(t, "delay")})
			}
		}
		d := dataOf(partitions...)
		c := Choice{
			Bound: time.Duration(rapid.Int64Range(0, 3000).Draw(t, "bound")) * time.Millisecond,
			Idle:  time.Duration(rapid.SampledFrom([]int64{0, 1, 150, 200, 1000, 5000}).Draw(t, "idle")) * time.Millisecond,
		}
		o := ReplayOptions{Window: time.Second, Interval: 200 * time.Millisecond}
		want := replayStepwise(t, d, c, o)
		got, err := replay(t.Context(), d, c, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Histogram{})); diff != "" {
			t.Fatalf("(-every call made +some left out):\n%s", diff)
		}
	})
}

// replayStepwise lets time pass from one periodic call to the next, so that none can be
// left out.
func replayStepwise(t *rapid.T, d *Data, c Choice, o ReplayOptions) Outcome {
	r, err := newReplayer(d, c, o)
	if err != nil {
		t.Fatal(err)
	}
	until := func(now int64) {
		for r.probe < now {
			before := r.probe
			if err := r.tick(r.probe + 1); err != nil {
				t.Fatal(err)
			}
			if r.probe != before+r.interval {
				t.Fatalf("a call was left out: %d after %d", r.probe, before)
			}
		}
	}
	for m := newMerge(d.Partitions); m.head() != nil; m.advance() {
		until(m.head().appendTime)
		if err := r.record(m.head()); err != nil {
			t.Fatal(err)
		}
	}
	until(d.horizon() + 1)
	r.end(d)
	return r.outcome
}

// TestHorizon: a partition that was not read to its end limits what is replayed.
func TestHorizon(t *testing.T) {
	d := dataOf(every(second, 0, 100*second), every(second, 0, 20*second), nil)
	if got := d.horizon(); got != 99*second {
		t.Errorf("horizon %d, want %d", got, 99*second)
	}
	d.Partitions[1].End++
	if got := d.horizon(); got != 19*second {
		t.Errorf("horizon with a partition cut short: %d, want %d", got, 19*second)
	}
	outcomes, err := Replay(t.Context(), d, []Choice{{}}, ReplayOptions{Window: time.Second, Interval: time.Second})
	if err != nil || outcomes[0].Records != 40 {
		t.Errorf("replayed %d records, %v, want 40", outcomes[0].Records, err)
	}
}

func TestReplayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Replay(ctx, dataOf(every(1, 0, 10)), []Choice{{}}, ReplayOptions{Window: time.Second, Interval: time.Second}); err == nil {
		t.Error("no error")
	}
}

func TestGrid(t *testing.T) {
	d := dataOf(every(second, 0, 100*second), every(40*second, 0, 400*second))
	if diff := cmp.Diff([]time.Duration{0}, Bounds(d)); diff != "" {
		t.Errorf("bounds of records in order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{0, time.Minute}, Idles(d)); diff != "" {
		t.Errorf("idle timeouts (-want +got):\n%s", diff)
	}
	want := []Choice{{0, 0}, {0, time.Minute}, {time.Second, 0}, {time.Second, time.Minute}}
	if diff := cmp.Diff(want, Choices([]time.Duration{time.Second, 0, time.Second}, []time.Duration{time.Minute, 0})); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
	for millis, want := range map[int64]time.Duration{0: 0, 1: time.Millisecond, 61_000: 2 * time.Minute, 8 * 24 * 3600_000: 14 * 24 * time.Hour} {
		if got := roundUp(millis); got != want {
			t.Errorf("%d ms rounded up: %v, want %v", millis, got, want)
		}
	}
}

func TestRecommend(t *testing.T) {
	outcome := func(bound, idle time.Duration, late, waitMillis int64, held int, returnedLate int64) Outcome {
		o := Outcome{Choice: Choice{bound, idle}, Records: 1000, Late: late, Held: held, Partitions: []PartitionOutcome{{ReturnedLate: returnedLate}}}
		o.Wait.Add(waitMillis)
		return o
	}
	tests := []struct {
		name     string
		outcomes []Outcome
		want     int
	}{
		{"none", nil, -1},
		{"the soonest of those that lose little", []Outcome{outcome(0, 0, 100, 1, 0, 0), outcome(2, 0, 1, 5000, 0, 0), outcome(3, 0, 0, 60000, 0, 0)}, 1},
		{"losing less for little more wait", []Outcome{outcome(1, 0, 2, 5000, 0, 0), outcome(2, 0, 0, 6000, 0, 0)}, 1},
		{"one that holds nothing back", []Outcome{outcome(0, 0, 0, 1, 7, 0), outcome(0, 1, 1, 9000, 0, 0)}, 1},
		{"no late returns", []Outcome{outcome(0, 1, 1, 1, 0, 1), outcome(0, 2, 1, 9000, 0, 0)}, 1},
		{"the longer timeout of equals", []Outcome{outcome(0, 0, 0, 1, 0, 0), outcome(0, 5, 0, 1, 0, 0)}, 1},
		{"the least loss if all lose much", []Outcome{outcome(0, 0, 500, 1, 0, 0), outcome(9, 0, 100, 90000, 0, 0)}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Recommend(test.outcomes, 0.005); got != test.want {
				t.Errorf("recommends %d, want %d", got, test.want)
			}
		})
	}
}

// TestUnfit: data that tell nothing are not a reason to recommend something.
func TestUnfit(t *testing.T) {
	unread := dataOf(every(second, 100*second, 300*second), nil)
	unread.Partitions[1].End = 5
	unusable := dataOf(nil, nil)
	unusable.Records, unusable.Partitions[0].Unreadable = 7, 7
	var unstamped []moment
	for _, m := range every(second, 100*second, 300*second) {
		unstamped = append(unstamped, moment{-1, m[1]})
	}
	outlier := every(second, 100*second, 300*second)
	outlier[50][1] += 400 * 24 * 3600 * second
	wrong := func(of func(i int, m *moment)) *Data {
		records := every(second, base, base+200*second)
		for i := range records {
			of(i, &records[i])
		}
		return dataOf(records)
	}
	tests := []struct {
		name string
		data *Data
		want string
	}{
		{
			"microseconds", wrong(func(_ int, m *moment) { m[1] *= 1000 }),
			"200 of 200 event times are of more than 20 years before they were appended, or of a year after, as if they were in microseconds (--unit)",
		},
		{
			"seconds", wrong(func(_ int, m *moment) { m[1] /= 1000 }),
			"200 of 200 event times are of more than 20 years before they were appended, or of a year after, as if they were in seconds (--unit)",
		},
		{"some that mean nothing", wrong(func(i int, m *moment) {
			if i%20 == 3 {
				m[1] = []int64{math.MaxInt64, math.MinInt64, 0}[i%3]
			}
		}), "10 of 200 event times are of more than 20 years before they were appended, or of a year after"},
		{"nothing", dataOf(nil), "there are no records"},
		{"no event times", unusable, "no record has a usable event time"},
		{"no Kafka timestamps", dataOf(unstamped), "the records have no Kafka timestamps: when they were appended is not known"},
		{"a partition that was not begun", unread, "no record was appended before all partitions were read that far"},
		{"one record", dataOf([]moment{{100 * second, 100 * second}}), "no window of 1m ended within the data"},
		{"one that was appended in 1970", wrong(func(i int, m *moment) { m[0] *= int64(min(i, 1)) }), ""},
		{"a record far ahead", dataOf(outlier, every(second, 100*second, 300*second)), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := ReplayOptions{Window: time.Minute, Interval: 200 * time.Millisecond}
			var outcomes []Outcome
			if test.data.Records > 0 {
				var err error
				if outcomes, err = Replay(t.Context(), test.data, Choices(Bounds(test.data), Idles(test.data)), options); err != nil {
					t.Fatal(err)
				}
			}
			r := NewReport(test.data, options, outcomes, 0.001)
			if r.unfit != test.want || (r.Best() == nil) != (test.want != "") {
				t.Errorf("unfit %q, want %q; best %v", r.unfit, test.want, r.Best())
			}
			if best := r.Best(); best != nil && (best.Bound > time.Hour || best.Idle > longest) {
				t.Errorf("%v, with which nothing has a result", best.Choice)
			}
			var text, page strings.Builder
			if err := errors.Join(r.Text(&text), r.HTML(&page)); err != nil {
				t.Fatal(err)
			}
			if test.want != "" && (!strings.Contains(strings.Join(strings.Fields(text.String()), " "), "Nothing is recommended: "+test.want+".") || strings.Contains(text.String(), "00:00:00Z") ||
				!strings.Contains(page.String(), test.want)) {
				t.Errorf("text:\n%s", &text)
			}
		})
	}
}
