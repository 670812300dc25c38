package gaps

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/internal/kafkatest"
)

func options(c *kafkatest.Cluster) []kgo.Opt {
	return append(c.Options(), kgo.SeedBrokers(c.Brokers()...))
}

const base = int64(1_700_000_000_000)

func TestRead(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 3)
	c.Produce(t, "orders",
		kafkatest.Text(0, base+10, "", `{"ts":1700000000}`), kafkatest.Text(0, base+5, "", `{"ts":1700000002}`),
		kafkatest.Text(0, base+20, "", `no JSON`), kafkatest.Text(2, base+30, "", `{"ts":1699999999}`))
	// A transaction's marker is the last offset of partition 2.
	tx := c.Client(t, kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	kafkatest.ProduceWith(t, tx, "orders", kafkatest.Text(2, base+40, "", `{"ts":1700000040}`))
	if err := tx.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	field, err := NewField("ts", Seconds)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(t.Context(), options(c), ReadOptions{Topic: "orders", Field: field})
	if err != nil {
		t.Fatal(err)
	}
	type partition struct {
		Number                                int32
		Records, Unreadable                   int64
		Next, End                             int64
		FirstAppend, LastAppend, Event, Disor int64
	}
	var got []partition
	for _, p := range d.Partitions {
		got = append(got, partition{p.Number, p.Records, p.Unreadable, p.Next, p.End, p.FirstAppend, p.LastAppend, p.MaxEvent, p.Disorder.Max()})
	}
	want := []partition{
		{0, 2, 1, 3, 3, base + 10, base + 10, base + 2000, 0},
		{1, 0, 0, 0, 0, 0, 0, 0, 0},
		{2, 2, 0, 3, 3, base + 30, base + 40, base + 40_000, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("partitions (-want +got):\n%s", diff)
	}
	if d.Records != 5 || d.Stopped != "" || d.LogAppendTime || d.Field != "ts" {
		t.Errorf("read %d records, stopped %q, log append time %t, field %q", d.Records, d.Stopped, d.LogAppendTime, d.Field)
	}
	if s := d.Partitions[0].UnreadableSample; !strings.Contains(s, "offset 2: ts:") {
		t.Errorf("sample of the unreadable record: %q", s)
	}
}

func TestReadSince(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 2)
	c.Produce(t, "orders", kafkatest.Text(0, base, "", "a"), kafkatest.Text(0, base+10, "", "b"), kafkatest.Text(0, base+20, "", "c"), kafkatest.Text(1, base, "", "d"))
	d, err := Read(t.Context(), options(c), ReadOptions{Topic: "orders", Since: time.UnixMilli(base + 10)})
	if err != nil {
		t.Fatal(err)
	}
	if d.Records != 2 || d.Partitions[0].FirstAppend != base+10 || d.Partitions[1].Records != 0 {
		t.Errorf("read %d records from %d on, want 2 from %d on", d.Records, d.Partitions[0].FirstAppend, base+10)
	}
}

func TestReadLimits(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	var records []kafkatest.Record
	for i := range 100 {
		records = append(records, kafkatest.Text(0, base+int64(i), "", "0123456789"))
	}
	c.Produce(t, "orders", records...)
	tests := []struct {
		name    string
		options ReadOptions
		records int64
		stopped string
	}{
		{"all", ReadOptions{Records: 100}, 100, ""},
		{"records", ReadOptions{Records: 30}, 30, "the limit of 30 records was reached"},
		{"bytes", ReadOptions{Bytes: 95}, 10, "the limit of 95 bytes was reached"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.options.Topic = "orders"
			d, err := Read(t.Context(), options(c), test.options)
			if err != nil {
				t.Fatal(err)
			}
			if d.Records != test.records || d.Stopped != test.stopped || d.Partitions[0].Next != test.records {
				t.Errorf("read %d records to offset %d, stopped %q, want %d, %q", d.Records, d.Partitions[0].Next, d.Stopped, test.records, test.stopped)
			}
		})
	}
	t.Run("interrupt", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, err := Read(ctx, options(c), ReadOptions{Topic: "orders", Progress: func(int64, int64) { cancel() }})
		if err != nil {
			t.Fatal(err)
		}
		if d.Records != 100 || d.Stopped != "" {
			t.Errorf("read %d, stopped %q: an interrupt after the last record changes nothing", d.Records, d.Stopped)
		}
	})
	t.Run("interrupt before anything", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Read(ctx, options(c), ReadOptions{Topic: "orders"}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("unknown topic", func(t *testing.T) {
		_, err := Read(t.Context(), options(c), ReadOptions{Topic: "nonsense"})
		if err == nil || err.Error() != `topic "nonsense" does not exist` {
			t.Errorf("error %v", err)
		}
	})
}

// report is that of a topic with a quiet partition, a late one, and an empty one.
func report(t *testing.T) *Report {
	t.Helper()
	late := every(second, base, base+100*second)
	for i := range late {
		if i%10 == 3 {
			late[i][1] -= 1500
		}
	}
	quiet := append(every(second, base, base+20*second), moment{base + 90*second, base + 90*second})
	d := dataOf(late, quiet, nil)
	o := ReplayOptions{Window: 10 * time.Second, Interval: 200 * time.Millisecond}
	outcomes, err := Replay(t.Context(), d, Choices(Bounds(d), Idles(d)), o)
	if err != nil {
		t.Fatal(err)
	}
	return NewReport(d, o, outcomes, 0.001)
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := report(t).Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"t: 121 records of 3 partitions, appended 2023-11-14 22:13:20Z to 2023-11-14 22:14:59Z",
		"note: no records in partitions [2]: without idleness they hold the watermark for ever",
		"          0      100       1s     1s     1s          0s  500ms  500ms  500ms     22:14:59",
		"          1       21       1s  1m11s  1m11s          0s     0s     0s     0s     22:14:50",
		"  bound  idleness  late  share  wait p50",
		"Recommended: bound 0s, idleness 1s. It loses no record",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("the text lacks %q:\n%s", want, &b)
		}
	}
	for line := range strings.Lines(b.String()) {
		if limit := 100; len(line) > limit || len(line) > 81 && !strings.HasPrefix(line, " ") {
			t.Errorf("a line is too long: %q", line)
		}
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	r := report(t)
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got jsonReport
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Records != 121 || len(got.Partitions) != 3 || len(got.Outcomes) != len(r.outcomes) || got.Recommended == nil ||
		got.Recommended.IdleMillis != r.Best().Idle.Milliseconds() || got.Partitions[0].Disorder.MaxMillis != 500 {
		t.Errorf("JSON:\n%s", &b)
	}
}

func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := report(t).HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>Gaps of t</title>", "idleness 1s", "partition 1", "1m11s", "prefers-color-scheme: dark", "<rect class=\"bar\""} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"http://", "https://", "<script", "ZgotmplZ", "NaN"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestManyPartitions: a chart shows those with the largest values, in order.
func TestManyPartitions(t *testing.T) {
	var partitions [][]moment
	for i := range 40 {
		partitions = append(partitions, every(int64(1+(i*7)%40), base, base+500))
	}
	d := dataOf(partitions...)
	r := NewReport(d, ReplayOptions{}, nil, 0)
	c := r.chart("", "", func(p *Partition) *Histogram { return &p.Gaps })
	if len(c.Rows) != chartRows || c.Omitted != 40-chartRows {
		t.Fatalf("%d rows, %d left out", len(c.Rows), c.Omitted)
	}
	var numbers []int
	for _, row := range c.Rows {
		var n int
		if _, err := fmt.Sscanf(row.Label, "partition %d", &n); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
		if d.Partitions[n].Gaps.Max() <= 40-chartRows {
			t.Errorf("partition %d is shown, whose largest gap is %d", n, d.Partitions[n].Gaps.Max())
		}
	}
	if !slices.IsSorted(numbers) {
		t.Errorf("rows %v are not in order", numbers)
	}
}

func TestUnitSuspicion(t *testing.T) {
	for want, events := range map[string]int64{
		"": base, "seconds": base / 1000, "microseconds": base * 1000, "nanoseconds": base * 1_000_000,
	} {
		d := dataOf([]moment{{base, events}})
		if got := d.unitSuspicion(); got != want {
			t.Errorf("event times of %d: %q, want %q", events, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "15ms": 15 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "59.9s": 59_900 * time.Millisecond, "2m": 2 * time.Minute,
		"1m5s": 65 * time.Second, "10h": 10 * time.Hour, "2h5m": 2*time.Hour + 5*time.Minute + 3*time.Second, "3d2h": 74 * time.Hour, "7d": 168 * time.Hour,
		"-1m": -time.Minute,
	} {
		if got := format(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for want, m := range map[string]int64{"20d1h": 20*24*3600*second + 3600*second, "292471208 years": math.MaxInt64, "300 years": 300 * yearMillis} {
		if got := formatMillis(m); got != want {
			t.Errorf("%d ms: %q, want %q", m, got, want)
		}
	}
	for want, share := range map[string]float64{"0%": 0, "<0.001%": 1e-9, "0.12%": 0.0012345, "12.3%": 0.1234} {
		if got := percent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// TestReadNothing: of a topic without records nothing is known.
func TestReadNothing(t *testing.T) {
	c := kafkatest.Start(t)
	c.CreateTopic(t, "orders", 1)
	d, err := Read(t.Context(), options(c), ReadOptions{Topic: "orders"})
	if err != nil || d.LogAppendTime || d.Records != 0 {
		t.Errorf("%v; log append time %t, %d records", err, d.LogAppendTime, d.Records)
	}
}

// TestOneUnreadable: the note of a single record is in the singular.
func TestOneUnreadable(t *testing.T) {
	d := dataOf(every(second, base, base+500*second))
	d.Partitions[0].Unreadable = 1
	if notes := strings.Join(NewReport(d, ReplayOptions{}, nil, 0).Notes, "\n"); !strings.Contains(notes, "partition 0: 1 record without") {
		t.Error(notes)
	}
}
