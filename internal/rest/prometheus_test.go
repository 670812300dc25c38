package rest_test

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/status"
)

// promtool runs Prometheus' own checker. Where it is missing, what it would have checked
// goes unchecked.
func promtool(t *testing.T, stdin string, args ...string) (output string, code int) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("NOT CHECKED: promtool is missing, so neither the alert nor the format of /metrics is tested: install it (Debian: apt-get install prometheus)")
	}
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// TestAlert runs the cases beside the alert.
func TestAlert(t *testing.T) {
	if out, code := promtool(t, "", "test", "rules", "../../deploy/prometheus/lowwater.rules.test.yml"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestPrometheusTellsSplitsApart: names that Flink's reporter would write alike are series
// of their own; others are written as Flink writes them.
func TestPrometheusTellsSplitsApart(t *testing.T) {
	server, base := listen(t, rest.Config{})
	job := newFakeJob(status.Running)
	var splits []status.Split
	for i, topic := range []string{"a.b", "a_b", "c.d"} {
		splits = append(splits, status.Split{ID: topic + "-0", Topic: topic, CurrentWatermark: int64(100 + i), EndOffset: -1})
	}
	job.status.Vertices[0].Subtasks[0].Operators = []status.Operator{{Splits: splits}}
	server.Jobs().Add(job)
	text := request(t, "GET", base+"/metrics", "").text
	for _, want := range []string{`split="a\.b-0"[^}]*} 100`, `split="a_b-0"[^}]*} 101`, `split="c_d_0"[^}]*} 102`} {
		if n := len(regexp.MustCompile(`operator_split_watermark_currentWatermark{[^}]*`+want).FindAllString(text, -1)); n != 1 {
			t.Errorf("%d series with %s, want 1", n, want)
		}
	}
	for _, want := range []string{`topic="a.b"`, `topic="a_b"`, `topic="c_d"`} {
		if n := len(regexp.MustCompile(`topic_partition_committedOffset{[^}]*`+regexp.QuoteMeta(want)).FindAllString(text, -1)); n != 1 {
			t.Errorf("%d series with %s, want 1", n, want)
		}
	}
}

var seriesLine = regexp.MustCompile(`^(flink_\w+)\{(.*)\} (\S+)$`)

// TestPrometheus compares names, labels and values with what Flink's reporter shows of such
// a job.
func TestPrometheus(t *testing.T) {
	base, _ := countingJob(t)
	text := request(t, "GET", base+"/metrics", "").text
	labels := map[string][]string{}
	values := map[string][]string{}
	label := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(text) {
		m := seriesLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		var names []string
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			names = append(names, l[1])
		}
		labels[m[1]] = names
		values[m[1]] = append(values[m[1]], m[3])
	}
	task := []string{"host", "job_id", "job_name", "subtask_index", "task_attempt_id", "task_attempt_num", "task_id", "task_name", "tm_id"}
	operator := append(slices.Clone(task), "operator_id", "operator_name")
	with := func(base []string, more ...string) []string {
		all := append(slices.Clone(base), more...)
		slices.Sort(all)
		return all
	}
	const prefix = "flink_taskmanager_job_task_"
	for name, want := range map[string][]string{
		prefix + "currentInputWatermark":                                      with(task),
		prefix + "busyTimeMsPerSecond":                                        with(task),
		prefix + "operator_currentInputWatermark":                             with(operator),
		prefix + "operator_currentOutputWatermark":                            with(operator),
		prefix + "operator_watermarkLag":                                      with(operator),
		prefix + "operator_pendingRecords":                                    with(operator),
		prefix + "operator_numLateRecordsDropped":                             with(operator),
		prefix + "operator_split_watermark_currentWatermark":                  with(operator, "split"),
		prefix + "operator_KafkaSourceReader_topic_partition_currentOffset":   with(operator, "topic", "partition"),
		prefix + "operator_KafkaSourceReader_topic_partition_committedOffset": with(operator, "topic", "partition"),
		"flink_jobmanager_job_uptime":                                         {"host", "job_id", "job_name"},
		"flink_jobmanager_numRunningJobs":                                     {"host"},
		"flink_taskmanager_Status_JVM_Memory_Heap_Used":                       {"host", "tm_id"},
	} {
		if diff := cmp.Diff(want, labels[name]); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", name, diff)
		}
	}
	for name, want := range map[string][]string{
		prefix + "currentInputWatermark":                     {"19499", "19499"},
		prefix + "operator_numLateRecordsDropped":            {"0", "1"},
		prefix + "operator_split_watermark_currentWatermark": {"-9.223372036854776e+18", "19499", "19499"},
	} {
		got := slices.Sorted(slices.Values(values[name]))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("values of %s (-want +got):\n%s", name, diff)
		}
	}
	if !strings.Contains(text, `task_name="Source:_orders"`) || !strings.Contains(text, `operator_name="count"`) || !strings.Contains(text, `split="orders_2"`) {
		t.Error("labels are not written as Flink's reporter writes them")
	}
	if strings.Contains(text, "lastCheckpoint") {
		t.Error("metrics of checkpoints of a job that takes none")
	}
	// Exit code 3 is about style: Flink's names are not what Prometheus recommends.
	if out, code := promtool(t, text, "check", "metrics"); code != 0 && code != 3 {
		t.Errorf("Prometheus cannot read the metrics: exit code %d\n%s", code, out)
	}
}
