//go:build flink

package flinkwhy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/why"
)

// settled is how long jobs run before they are judged: the rules give them half a minute
// to start, and a silence as long to be one.
const settled = 50 * time.Second

// trouble is a job that is wrong in a known way, and what is to be said of it.
type trouble struct {
	name string
	// topics are read together; their names are those of this run.
	topics []string
	args   map[string]string
	cause  why.Code
	// What the answer must say; empty is not compared.
	topic      string
	partitions []int32
	subtasks   []int
	fix        why.FixCode
	// needle must be in the text or in the code of the fix.
	needle string
}

var troubles = []trouble{
	{
		name: "quiet-partition", topics: []string{"quiet"}, args: map[string]string{"parallelism": "2"},
		cause: why.QuietPartition, topic: "quiet", partitions: []int32{2}, fix: why.SetIdleness, needle: "withIdleness",
	},
	{
		name: "over-parallel", topics: []string{"steady"}, args: map[string]string{"parallelism": "8"},
		cause: why.OverParallelSource, topic: "steady", fix: why.LowerSourceParallelism, needle: "setParallelism(3)",
	},
	{
		name: "rare-union", topics: []string{"steady", "rare"},
		cause: why.QuietInput, topic: "rare", fix: why.SetIdleness,
	},
	{
		name: "no-data", topics: []string{"empty"},
		cause: why.AllInputsQuiet, topic: "empty",
	},
	{
		name: "seconds", topics: []string{"seconds"},
		cause: why.TimestampsInSeconds, topic: "seconds", fix: why.ConvertUnit,
	},
	{
		name: "future", topics: []string{"future"},
		cause: why.FutureTimestamp, topic: "future", partitions: []int32{0}, fix: why.BoundFutureTimestamps,
	},
	{
		name: "idle", topics: []string{"quiet"}, args: map[string]string{"idle": "5000"},
		cause: why.None,
	},
	{
		name: "after-source", topics: []string{"skewed"}, args: map[string]string{"strategy": "after"},
		cause: why.StrategyAfterSource, topic: "skewed", fix: why.MoveStrategyToSource,
	},
	{
		name: "no-strategy", topics: []string{"steady"}, args: map[string]string{"strategy": "none"},
		cause: why.NoWatermarkStrategy, topic: "steady", fix: why.AddStrategy,
	},
	{
		name: "side-input", topics: []string{"steady", "other"}, args: map[string]string{"connect": "1", "without": "other"},
		cause: why.SideInputWithout, topic: "other", fix: why.StrategyOnSideInput,
	},
	{
		name: "small-bound", topics: []string{"shuffled"}, args: map[string]string{"bound": "0", "window": "1000"},
		cause: why.BoundTooSmall, topic: "shuffled", fix: why.RaiseBound,
	},
	{
		name: "healthy", topics: []string{"steady"},
		cause: why.None,
	},
}

func TestTroubles(t *testing.T) {
	command := build(t)
	c := newCluster(t)
	c.createTopics()
	stop := c.feed()
	defer stop()
	for _, tr := range troubles {
		args := map[string]string{}
		for key, value := range tr.args {
			if key == "without" {
				value = c.topic(value)
			}
			args[key] = value
		}
		var topics []string
		for _, name := range tr.topics {
			topics = append(topics, c.topic(name))
		}
		args["topics"] = strings.Join(topics, ",")
		c.submit(tr.name+"-"+c.run, args)
	}
	if c.gateway != "" {
		c.submitSQL()
	}
	<-time.After(settled)
	t.Run("jobs", func(t *testing.T) {
		for _, tr := range troubles {
			t.Run(tr.name, func(t *testing.T) {
				t.Parallel()
				tr.check(t, c, c.why(t, command, tr.name+"-"+c.run, "--brokers", c.brokers, "--timestamp-field", "t"))
			})
		}
		t.Run("without Kafka", func(t *testing.T) {
			t.Parallel()
			tr := troubles[0]
			tr.topic = "" // Flink mangles it
			tr.check(t, c, c.why(t, command, tr.name+"-"+c.run))
		})
		if c.gateway == "" {
			return
		}
		t.Run("SQL", func(t *testing.T) {
			t.Parallel()
			tr := trouble{cause: why.QuietPartition, topic: "quiet", partitions: []int32{2}, fix: why.SetIdleness, needle: "scan.watermark.idle-timeout"}
			tr.check(t, c, c.why(t, command, "sql-"+c.run, "--brokers", c.brokers))
		})
	})
}

func (tr *trouble) check(t *testing.T, c *cluster, r answer) {
	t.Helper()
	if r.Cause != tr.cause {
		t.Fatalf("the cause is %s, want %s\n%s", r.Cause, tr.cause, r.text)
	}
	want := 1
	if r.Severity == why.Fine {
		want = 0
	}
	if r.exitCode != want {
		t.Errorf("exit code %d, want %d", r.exitCode, want)
	}
	f := r.Findings[0]
	if tr.topic != "" && f.Culprit.Topic != c.topic(tr.topic) {
		t.Errorf("the topic is %q, want %q", f.Culprit.Topic, c.topic(tr.topic))
	}
	if tr.partitions != nil && !cmp.Equal(f.Culprit.Partitions, tr.partitions) {
		t.Errorf("the partitions are %v, want %v", f.Culprit.Partitions, tr.partitions)
	}
	if tr.fix != "" && (len(f.Fixes) == 0 || f.Fixes[0].Code != tr.fix) {
		t.Errorf("the fixes are %+v, want %s first", f.Fixes, tr.fix)
	}
	if !strings.Contains(r.text, tr.needle) {
		t.Errorf("the answer lacks %q", tr.needle)
	}
	if t.Failed() {
		t.Log(r.text)
	}
}

// answer is what the command said.
type answer struct {
	why.Report
	exitCode int
	text     string
}

// why runs the command.
func (c *cluster) why(t *testing.T, command, job string, args ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, append([]string{"why", "--url", c.rest, "--job", job, "--json", "--for=15s", "--timeout=30s"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	a := answer{exitCode: cmd.ProcessState.ExitCode(), text: stdout.String()}
	if err := json.Unmarshal(stdout.Bytes(), &a.Report); err != nil || len(a.Findings) == 0 {
		t.Fatalf("exit code %d, no report: %v\n%s%s", a.exitCode, err, &stdout, &stderr)
	}
	return a
}

// build builds the command.
func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lowwater")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "../../cmd/lowwater").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	return file
}

func (c *cluster) createTopics() {
	for name, partitions := range map[string]int32{
		"steady": 3, "quiet": 3, "rare": 1, "empty": 2, "seconds": 1, "future": 1, "skewed": 2, "other": 1, "shuffled": 1,
	} {
		c.createTopic(name, partitions)
	}
}

// feed writes to all topics ten times a second until it is stopped.
func (c *cluster) feed() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for i := int64(0); ; i++ {
			c.write(i, time.Now().UnixMilli())
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// write is one round of records.
func (c *cluster) write(i, now int64) {
	key := fmt.Sprintf("k%d", i%5)
	for p := range int32(3) {
		c.send("steady", p, now, key)
		if p < 2 || i < 20 {
			c.send("quiet", p, now, key)
		}
	}
	if i < 20 {
		c.send("rare", 0, now, key)
	}
	c.send("other", 0, now, key)
	c.send("seconds", 0, now/1000, key)
	if i == 100 {
		c.send("future", 0, now+24*time.Hour.Milliseconds(), key)
	}
	c.send("future", 0, now, key)
	c.send("skewed", 0, now, key)
	c.send("skewed", 1, now-time.Minute.Milliseconds(), key) // a minute behind the other partition
	behind := int64(0)
	if i%3 == 0 {
		behind = 4000
	}
	c.send("shuffled", 0, now-behind, key)
}

// submitSQL starts a job of SQL over the topic with the quiet partition.
func (c *cluster) submitSQL() {
	c.sql(
		"CREATE TABLE `q` (`line` STRING, `at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR `at` AS `at` - INTERVAL '1' SECOND) "+
			"WITH ('connector'='kafka','topic'='"+c.topic("quiet")+"','properties.bootstrap.servers'='"+c.brokers+"','format'='raw','scan.startup.mode'='earliest-offset')",
		"CREATE TABLE `out` (`window_end` TIMESTAMP(3), `n` BIGINT) WITH ('connector'='blackhole')",
		"SET 'pipeline.name' = 'sql-"+c.run+"'",
		"INSERT INTO `out` SELECT `window_end`, COUNT(*) FROM TUMBLE(TABLE `q`, DESCRIPTOR(`at`), INTERVAL '5' SECOND) GROUP BY `window_start`, `window_end`",
	)
}
