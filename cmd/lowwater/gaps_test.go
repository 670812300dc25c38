package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// loopbackKafka is an embedded Kafka on a port, for commands that only get its address,
// with one topic. Records are appended at 100 ms steps; those of partition 2 end early.
func loopbackKafka(t *testing.T, topic string) (addr string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var records []*kgo.Record
	for i := range int64(3000) {
		at := 1_700_000_000_000 + i*100
		for p := range int32(3) {
			if p < 2 || i < 600 {
				records = append(records, &kgo.Record{
					Topic: topic, Partition: p, Timestamp: time.UnixMilli(at), Value: fmt.Appendf(nil, `{"meta":{"at":%d}}`, at/1000),
				})
			}
		}
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return cluster.ListenAddrs()[0]
}

func TestGaps(t *testing.T) {
	addr := loopbackKafka(t, "orders")
	page := t.TempDir() + "/gaps.html"
	run := func(want int, args ...string) (out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := cli(append([]string{"gaps", "--brokers", addr}, args...), &stdout, &stderr); code != want {
			t.Fatalf("lowwater gaps %v: exit code %d, want %d: %s", args, code, want, &stderr)
		}
		return stdout.String(), stderr.String()
	}

	out, errs := run(exitOK, "orders", "--timestamp-field=meta.at", "--unit=s", "--html", page)
	for _, want := range []string{
		"orders: 6600 records of 3 partitions",
		"Recommended: bound 0s, idleness 1s. It loses no record",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if errs != "" {
		t.Errorf("standard error, which is no terminal: %q", errs)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("Gaps of orders")) {
		t.Errorf("the page: %v\n%s", err, html)
	}

	out, _ = run(exitOK, "orders", "--json", "--bound=5s", "--idle=0s,30s", "--window=10s", "--max-records=5000")
	var report struct {
		Records  int64  `json:"records"`
		Stopped  string `json:"stopped"`
		Outcomes []struct {
			Bound int64 `json:"bound_ms"`
			Idle  int64 `json:"idleness_ms"`
		} `json:"outcomes"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Records != 5000 || report.Stopped == "" || len(report.Outcomes) != 2 || report.Outcomes[1].Idle != 30_000 {
		t.Errorf("report %+v", report)
	}

	if _, errs = run(exitFailed, "nonsense"); !strings.Contains(errs, `topic "nonsense" does not exist`) {
		t.Errorf("unknown topic: %q", errs)
	}
	run(exitFailed, "orders", "--html=/nowhere/gaps.html")
}

func TestGapsUsage(t *testing.T) {
	for _, args := range [][]string{
		{"gaps"},
		{"gaps", "orders"},
		{"gaps", "orders", "--brokers=b:1", "--unit=fortnights"},
		{"gaps", "orders", "--brokers=b:1", "--bound=-1s"},
		{"gaps", "orders", "--brokers=b:1", "--idle=1us"},
		{"gaps", "orders", "--brokers=b:1", "--window=0s"},
		{"gaps", "orders", "--brokers=b:1", "--since=yesterday"},
		{"gaps", "orders", "--brokers=b:1", "--late-share=2"},
		{"gaps", "orders", "--brokers=b:1", "--max-records=-1"},
		{"gaps", "orders", "--brokers=b:1", "--kafka-sasl=plain"},
		{"gaps", "orders", "--brokers=b:1", "--kafka-user=me"},
	} {
		var stdout, stderr bytes.Buffer
		if code := cli(args, &stdout, &stderr); code != exitUsage || stdout.Len() > 0 {
			t.Errorf("lowwater %v: exit code %d, want %d: %s", args, code, exitUsage, &stderr)
		}
	}
}

// TestSecretsStaySecret: what is in a password file appears in no message.
func TestSecretsStaySecret(t *testing.T) {
	file := t.TempDir() + "/password"
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"gaps", "orders", "--brokers=127.0.0.1:1", "--kafka-sasl=plain", "--kafka-user=me", "--kafka-password-file=" + file}
	if code := cli(args, &stdout, &stderr); code != exitFailed || strings.Contains(stdout.String()+stderr.String(), "hunter2") {
		t.Errorf("exit code %d; %s%s", code, &stdout, &stderr)
	}
}

// TestProgressBar: it is shown on a terminal only, and cleared.
func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	bar := &progressBar{w: &out, live: true}
	bar.show("reading", 0.5)
	bar.show("reading", 0.6) // too soon
	bar.clear()
	bar.clear()
	if want := "\r\x1b[K[###############...............]  50% reading\r\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	if bar := newProgressBar(stderrWriter{&out}); bar.live {
		t.Error("a buffer is taken for a terminal")
	}
}
