package rest_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/rest/observe"
)

// ours are the metrics that Flink does not have.
var ours = []string{
	"KafkaSourceReader.topic.T.partition.P.records-lag", // Kafka's name; Flink flattens it to one per source
	"KafkaSourceReader.KafkaConsumer.records-lag-max",   // Flink has it as well, among Kafka's own
}

// scopes turns what a job is called into letters, so that ids of different jobs compare.
var scopes = []struct {
	name *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`^(\d+\.)?(Source__)?(KafkaSource-default_catalog_default_database_)?orders\.`), "SOURCE."},
	{regexp.MustCompile(`^(\d+\.)?(GlobalWindowAggregate\[\d+\]|count)\.`), "WINDOW."},
	{regexp.MustCompile(`^(\d+\.)?(Calc|LocalWindowAggregate)\[\d+\]\.`), "OTHER."},
	{regexp.MustCompile(`^(\d+\.)?(nowhere(\[\d+\]__Writer)?)\.`), "SINK."},
	{regexp.MustCompile(`^\d+\.`), ""},
	{regexp.MustCompile(`split\.orders(-\d+)?-\d+\.`), "split.S."},
	{regexp.MustCompile(`topic\.orders(-\d+)?\.partition\.\d+\.`), "topic.T.partition.P."},
}

func metricNames(t *testing.T, body any) (names []string) {
	t.Helper()
	for _, m := range body.([]any) {
		id := field(t, m, "id").(string)
		for _, s := range scopes {
			id = s.name.ReplaceAllString(id, s.as)
		}
		names = append(names, id)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sinkOutput is what Flink's sinks count if they write anywhere, other than that of the
// recordings.
var sinkOutput = regexp.MustCompile(`^SINK\.num(Records|Bytes)Out`)

// TestMetricNames: each metric is one of Flink's, under the same scope and name, and
// those that Flink's users look at are all there.
func TestMetricNames(t *testing.T) {
	all := recordings(t)
	base, _ := countingJob(t)
	jid := field(t, request(t, "GET", base+"/jobs", "").body, "jobs", 0, "id").(string)
	tests := []struct {
		recording, path string
		want            []string
	}{
		{"metrics-vertex-source", "/jobs/" + jid + "/vertices/" + observe.OperatorID("orders") + "/metrics", []string{
			"busyTimeMsPerSecond", "backPressuredTimeMsPerSecond", "numRecordsOutPerSecond", "SOURCE.numRecordsIn", "SOURCE.numRecordsInPerSecond", "SOURCE.watermarkLag",
			"SOURCE.currentEmitEventTimeLag", "SOURCE.sourceIdleTime", "SOURCE.pendingRecords", "SOURCE.currentOutputWatermark", "SOURCE.split.S.watermark.currentWatermark",
			"SOURCE.split.S.watermark.idleTimeMsPerSecond", "SOURCE.KafkaSourceReader.topic.T.partition.P.currentOffset", "SOURCE.KafkaSourceReader.topic.T.partition.P.committedOffset",
		}},
		{"metrics-vertex", "/jobs/" + jid + "/vertices/" + observe.OperatorID("count") + "/metrics", []string{
			"currentInputWatermark", "WINDOW.currentInputWatermark", "WINDOW.numLateRecordsDropped", "SINK.numRecordsIn", "accumulateBusyTimeMs", "isBackPressured",
		}},
		{"metrics-job", "/jobs/" + jid + "/metrics", []string{"uptime", "downtime", "numRestarts", "restartingTime", "runningTime"}},
		{"metrics-jobmanager", "/jobmanager/metrics", []string{"numRunningJobs", "taskSlotsTotal", "taskSlotsAvailable", "Status.JVM.Memory.Heap.Used"}},
		{"metrics-taskmanagers", "/taskmanagers/metrics", []string{"Status.JVM.GarbageCollector.All.Time", "Status.JVM.Threads.Count"}},
	}
	for _, test := range tests {
		got, flink := metricNames(t, request(t, "GET", base+test.path, "").body), metricNames(t, all[test.recording].Body)
		for _, name := range got {
			plain := name[strings.IndexByte(name, '.')+1:]
			if !slices.Contains(flink, name) && !slices.Contains(ours, plain) && !sinkOutput.MatchString(name) {
				t.Errorf("%s: Flink has no metric %s", test.recording, name)
			}
		}
		for _, name := range test.want {
			if !slices.Contains(got, name) {
				t.Errorf("%s: no metric %s in %v", test.recording, name, got)
			}
		}
	}
}

// value asks for one metric.
func value(t *testing.T, base, path, id string) string {
	t.Helper()
	a := request(t, "GET", base+path+"?get="+id, "")
	if len(a.body.([]any)) == 0 {
		t.Fatalf("no metric %s at %s", id, path)
	}
	return field(t, a.body, 0, "value").(string)
}

// TestMetricValues reads what is known of a job that has counted what it was given.
func TestMetricValues(t *testing.T) {
	base, _ := countingJob(t)
	jid := field(t, request(t, "GET", base+"/jobs", "").body, "jobs", 0, "id").(string)
	source := "/jobs/" + jid + "/vertices/" + observe.OperatorID("orders")
	windows := "/jobs/" + jid + "/vertices/" + observe.OperatorID("count")
	owner := func(partition int) string {
		for subtask := range 2 {
			id := fmt.Sprintf("%d.Source__orders.KafkaSourceReader.topic.orders.partition.%d.currentOffset", subtask, partition)
			if a := request(t, "GET", base+source+"/metrics?get="+id, ""); len(a.body.([]any)) == 1 {
				return fmt.Sprint(subtask)
			}
		}
		t.Fatalf("nobody reads partition %d", partition)
		return ""
	}
	tests := []struct{ path, id, want string }{
		{source + "/metrics", owner(0) + ".Source__orders.KafkaSourceReader.topic.orders.partition.0.currentOffset", "20"},
		{source + "/metrics", owner(2) + ".Source__orders.KafkaSourceReader.topic.orders.partition.2.currentOffset", "-1"},
		{source + "/metrics", owner(2) + ".Source__orders.KafkaSourceReader.topic.orders.partition.2.committedOffset", "-1"},
		{source + "/metrics", owner(1) + ".Source__orders.split.orders-1.watermark.currentWatermark", "19499"},
		{source + "/metrics", owner(2) + ".Source__orders.split.orders-2.watermark.currentWatermark", "-9223372036854775808"},
		{source + "/metrics", owner(0) + ".Source__orders.pendingRecords", "0"},
		{windows + "/metrics", "0.currentInputWatermark", "19499"},
		{windows + "/subtasks/1/metrics", "count.currentInputWatermark", "19499"},
		{windows + "/watermarks", "", ""},
		{"/jobs/" + jid + "/metrics", "numRestarts", "0"},
		{"/jobmanager/metrics", "taskSlotsTotal", "2"},
	}
	for _, test := range tests {
		if test.id == "" {
			got := request(t, "GET", base+test.path, "").body
			if n := len(got.([]any)); n != 2 || field(t, got, 1, "id") != "1.currentInputWatermark" || field(t, got, 1, "value") != "19499" {
				t.Errorf("watermarks: %v", got)
			}
			continue
		}
		if got := value(t, base, test.path, test.id); got != test.want {
			t.Errorf("%s at %s: %s, want %s", test.id, test.path, got, test.want)
		}
	}
	sums := request(t, "GET", base+windows+"/subtasks/metrics?get=count.numRecordsIn,count.numLateRecordsDropped,currentInputWatermark&agg=sum,min,skew", "").body
	if in, late := field(t, sums, 0, "sum"), field(t, sums, 1, "sum"); in != 41.0 || late != 1.0 {
		t.Errorf("%v records at the windows, %v of them late; want 41 and 1", in, late)
	}
	if low := field(t, sums, 2, "min"); low != 19499.0 {
		t.Errorf("the smallest watermark is %v", low)
	}
	if m := sums.([]any)[0].(map[string]any); len(m) != 4 {
		t.Errorf("asked for sum, min and skew: %v", m)
	}
	one := request(t, "GET", base+windows+"/subtasks/metrics?get=count.numRecordsIn&subtasks=1", "").body
	if _, ok := one.([]any)[0].(map[string]any)["avg"]; !ok || field(t, one, 0, "min") != field(t, one, 0, "max") {
		t.Errorf("of one subtask: %v", one)
	}
}

func TestJavaDouble(t *testing.T) {
	tests := map[float64]string{
		0: "0.0", 1: "1.0", -1: "-1.0", 0.5: "0.5", 999.99: "999.99", 1e7: "1.0E7", 12345678.5: "1.23456785E7", 0.001: "0.001", 0.00025: "2.5E-4",
		math.Inf(1): "Infinity", math.Inf(-1): "-Infinity", math.MinInt64: "-9.223372036854776E18",
	}
	for f, want := range tests {
		if got := observe.JavaDouble(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := observe.JavaDouble(math.NaN()); got != "NaN" {
		t.Error(got)
	}
}
