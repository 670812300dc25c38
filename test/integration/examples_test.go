//go:build integration

package integration

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 3

// start of the events' time, far from any wall clock.
var epoch = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// jsonRecord is a record of the examples.
func jsonRecord(topic string, partition int, format string, args ...any) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: int32(partition), Value: fmt.Appendf(nil, format, args...)}
}

// write appends records, in order, each to its partition.
func write(t *testing.T, producer *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := producer.ProduceSync(opContext(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func newProducer(t *testing.T) *kgo.Client {
	t.Helper()
	return newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

// inWindow is the window of size that contains t, as it is printed.
func inWindow(t time.Time, size time.Duration) string {
	start := t.Truncate(size)
	const layout = "2006-01-02T15:04:05.999Z"
	return fmt.Sprintf("[%s, %s)", start.Format(layout), start.Add(size).Format(layout))
}

// sorted returns the lines without the number of the subtask that printed them.
func sorted(lines []string) []string {
	var list []string
	for _, l := range lines {
		if n, rest, ok := strings.Cut(l, "> "); ok {
			if _, err := strconv.Atoi(n); err == nil {
				l = rest
			}
		}
		list = append(list, l)
	}
	slices.Sort(list)
	return list
}

// ordersData is one order a second in every partition over 16 minutes, disordered by
// up to 19 s, which the job allows. windows are the lines that it must print: how
// many there are per type and window.
func ordersData(topic string) (records []*kgo.Record, windows map[string]int) {
	types := []string{"placed", "paid", "shipped", "returned"}
	windows = map[string]int{}
	for i := range 16 * 60 {
		for p := range partitions {
			at := epoch.Add(time.Duration(i)*time.Second - time.Duration(i*7%20)*time.Second)
			eventType := types[(i+p)%(len(types)-p%2)] // not the same for all partitions
			records = append(records, jsonRecord(topic, p, `{"id": "o-%d-%d", "eventType": %q, "placedAtMillis": %d, "more": [{}]}`,
				p, i, eventType, at.UnixMilli()))
			windows[eventType+" "+inWindow(at, 5*time.Minute)]++
		}
	}
	return records, windows
}

// TestOrdersBounded: at the end of its input the job prints every window, exactly.
func TestOrdersBounded(t *testing.T) {
	topic := newTopic(t, partitions, nil)
	records, windows := ordersData(topic)
	write(t, newProducer(t), records...)
	var want []string
	for w, n := range windows {
		want = append(want, fmt.Sprintf("%s %d", w, n))
	}
	slices.Sort(want)

	binary := build(t, "examples/orders")
	for _, parallelism := range []string{"1", "3", "8"} {
		t.Run("parallelism "+parallelism, func(t *testing.T) {
			p := start(t, binary, "--brokers", strings.Join(brokers(t), ","), "--topic", topic, "--group", topic, "--bounded", "--parallelism", parallelism)
			code, stdout, _ := p.end(t)
			if code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if diff := cmp.Diff(want, sorted(stdout)); diff != "" {
				t.Errorf("windows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrdersUnbounded: the windows that the watermark has passed are printed, and a
// stop prints no others.
func TestOrdersUnbounded(t *testing.T) {
	topic := newTopic(t, partitions, nil)
	records, windows := ordersData(topic)
	write(t, newProducer(t), records...)
	// The latest order is of 12:15:52 in all partitions, the watermark 20 s before.
	open := inWindow(epoch.Add(15*time.Minute), 5*time.Minute)
	var want []string
	for w, n := range windows {
		if !strings.HasSuffix(w, open) {
			want = append(want, fmt.Sprintf("%s %d", w, n))
		}
	}
	slices.Sort(want)

	p := start(t, build(t, "examples/orders"), "--brokers", strings.Join(brokers(t), ","), "--topic", topic, "--group", topic)
	p.await(t, "windows", func(stdout []string) bool { return len(stdout) >= len(want) })
	stdout, _ := p.stopGracefully(t)
	if diff := cmp.Diff(want, sorted(stdout)); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

// behaviorData is five seconds of events in every partition, and what the job must
// print of them.
func behaviorData(topic string) (records []*kgo.Record, windows map[string]int) {
	windows = map[string]int{}
	for i := range 50 {
		for p := range partitions {
			at := epoch.Add(time.Duration(i) * 100 * time.Millisecond)
			eventType := []string{"click", "view"}[(i/3+p)%2]
			records = append(records, jsonRecord(topic, p, `{"user": {"id": %d}, "eventType": %q, "eventTimeEpoch": %d}`, i, eventType, at.UnixMilli()))
			windows[eventType+" "+inWindow(at, time.Second)]++
		}
	}
	return records, windows
}

// heartbeat writes an event to every partition every half second until the test
// ends, each a second of event time after the one before.
func heartbeat(t *testing.T, topic string) {
	producer := newProducer(t)
	tick := time.NewTicker(500 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-t.Context().Done():
				return
			case <-tick.C:
			}
			for p := range partitions {
				at := epoch.Add(time.Minute + time.Duration(i)*time.Second)
				producer.Produce(t.Context(), jsonRecord(topic, p, `{"eventType": "heartbeat", "eventTimeEpoch": %d}`, at.UnixMilli()), nil)
			}
		}
	}()
	t.Cleanup(func() {
		tick.Stop()
		<-done
	})
}

var behaviorLine = regexp.MustCompile(`^((\w+) \[(\S+), (\S+)\)) count (\d+) watermark (\S+)$`)

// behaviorLines reads what the job printed: counts by key and window, and in all by
// key. Heartbeats are left out.
func behaviorLines(t *testing.T, stdout []string) (windows, keys map[string]int) {
	t.Helper()
	windows, keys = map[string]int{}, map[string]int{}
	for _, line := range sorted(stdout) {
		m := behaviorLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %q, want one like %v", line, behaviorLine)
		}
		if m[2] == "heartbeat" {
			continue
		}
		n, err := strconv.Atoi(m[5])
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := windows[m[1]]; twice {
			t.Errorf("%s fired twice", m[1])
		}
		windows[m[1]] = n
		keys[m[2]] += n
	}
	return windows, keys
}

// TestBehaviorIsSilent: with more subtasks than partitions and no idleness nothing
// comes out, although everything is read.
func TestBehaviorIsSilent(t *testing.T) {
	topic := newTopic(t, partitions, nil)
	records, _ := behaviorData(topic)
	write(t, newProducer(t), records...)
	heartbeat(t, topic)

	p := start(t, build(t, "examples/behavior"), "--brokers", strings.Join(brokers(t), ","), "--topic", topic, "--group", topic, "--parallelism", "8")
	// Positions are committed every five seconds: between two of them lie 25 watermarks.
	first := awaitCommit(t, topic, int64(len(records)))
	awaitCommit(t, topic, first+1)
	stdout, stderr := p.stopGracefully(t)
	if len(stdout) != 0 {
		t.Errorf("%d lines, want none:\n%s", len(stdout), strings.Join(stdout, "\n"))
	}
	if log := strings.Join(stderr, "\n"); !strings.Contains(log, "parallelism 8") || !strings.Contains(log, "3 splits") {
		t.Error("no warning that names 8 subtasks and 3 splits")
	}
}

// awaitCommit waits until the group of a topic's name has committed at least n records
// of it, and returns how many.
func awaitCommit(t *testing.T, topic string, n int64) (committed int64) {
	t.Helper()
	admin := kadm.NewClient(newClient(t))
	poll(t, fmt.Sprintf("%d records committed", n), func() bool {
		offsets, err := admin.FetchOffsets(opContext(t), topic)
		if kerr.IsRetriable(err) {
			return false // the broker has only begun to keep offsets
		}
		if err != nil {
			t.Fatal(err)
		}
		committed = 0
		offsets.Offsets().Each(func(o kadm.Offset) { committed += o.At })
		return committed >= n
	})
	return committed
}

// TestBehaviorFires: each of the three remedies lets the same job flow.
func TestBehaviorFires(t *testing.T) {
	topic := newTopic(t, partitions, nil)
	records, want := behaviorData(topic)
	write(t, newProducer(t), records...)
	heartbeat(t, topic)
	binary := build(t, "examples/behavior")
	total := map[string]int{}
	for w, n := range want {
		key, _, _ := strings.Cut(w, " ")
		total[key] += n
	}
	for name, args := range map[string][]string{
		"idleness":        {"--parallelism", "8", "--idleness", "10s"},
		"parallelism":     {"--parallelism", "3"},
		"processing time": {"--parallelism", "8", "--processing-time"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, binary, append(args, "--brokers", strings.Join(brokers(t), ","), "--topic", topic, "--group", topic)...)
			p.await(t, "all events in windows", func(stdout []string) bool {
				_, keys := behaviorLines(t, stdout)
				return keys["click"] >= total["click"] && keys["view"] >= total["view"]
			})
			stdout, _ := p.stopGracefully(t)
			windows, keys := behaviorLines(t, stdout)
			if !maps.Equal(keys, total) {
				t.Errorf("events in windows: %v, want %v", keys, total)
			}
			if name == "processing time" {
				return // in which window depends on when it was read
			}
			if diff := cmp.Diff(want, windows); diff != "" {
				t.Errorf("windows (-want +got):\n%s", diff)
			}
			checkWatermarks(t, stdout)
		})
	}
}

// checkWatermarks: a window fires when the watermark has reached its last millisecond.
func checkWatermarks(t *testing.T, stdout []string) {
	t.Helper()
	for _, line := range sorted(stdout) {
		m := behaviorLine.FindStringSubmatch(line)
		end, err := time.Parse(time.RFC3339, m[4])
		if err != nil {
			t.Fatal(err)
		}
		watermark, err := time.Parse(time.RFC3339, m[6])
		if err != nil || watermark.Before(end.Add(-time.Millisecond)) {
			t.Errorf("%s: the watermark is before the window's end (%v)", line, err)
		}
	}
}

// TestUnknownTopic: an error at the start, in one line that says what to do.
func TestUnknownTopic(t *testing.T) {
	topic := uniqueName(t)
	for _, pkg := range []string{"examples/orders", "examples/behavior"} {
		code, stdout, stderr := start(t, build(t, pkg), "--brokers", strings.Join(brokers(t), ","), "--topic", topic).end(t)
		if code != 1 || len(stdout) != 0 || len(stderr) != 1 || !strings.Contains(stderr[0], fmt.Sprintf("topic %q does not exist", topic)) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", pkg, code, stdout, stderr)
		}
	}
}

// TestMalformedJSON: the job ends, and its error names the place of the record.
func TestMalformedJSON(t *testing.T) {
	topic := newTopic(t, partitions, nil)
	write(t, newProducer(t),
		jsonRecord(topic, 1, `{"id": "o-1", "eventType": "placed", "placedAtMillis": %d}`, epoch.UnixMilli()),
		jsonRecord(topic, 1, `{"id": "o-2", "eventType": "placed", "placedAtMillis": "yesterday"}`))
	code, stdout, stderr := start(t, build(t, "examples/orders"), "--brokers", strings.Join(brokers(t), ","), "--topic", topic, "--group", topic, "--bounded").end(t)
	last := strings.Join(stderr, "\n")
	if code != 1 || len(stdout) != 0 {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	for _, part := range []string{topic + "-1@1", "placedAtMillis"} {
		if !strings.Contains(last, part) {
			t.Errorf("stderr %q, want it to contain %s", last, part)
		}
	}
}
