package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/test/chaos/input"
)

const (
	partitions = input.Partitions
	topicIn    = "in"
	topicOut   = "out"
)

// world is everything around the job.
type world struct {
	dir, checkpoints string
	proxy            *proxy
	job              *job
	producer         *producer
	results          int
	mounted          bool
}

func newWorld(ctx context.Context, dir string) (w *world, err error) {
	w = &world{dir: dir, checkpoints: filepath.Join(dir, "checkpoints")}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := os.MkdirAll(w.checkpoints, 0o700); err != nil {
		return w, err
	}
	// A disk of its own, so that it can be filled.
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "lowwater-chaos", w.checkpoints).CombinedOutput(); err != nil {
		return w, fmt.Errorf("mount a small disk for the checkpoints (root is needed): %w: %s", err, out)
	}
	w.mounted = true
	if w.proxy, err = newProxy(w.address(2), w.address(0)); err != nil {
		return w, err
	}
	if err := w.kafka("start"); err != nil {
		return w, err
	}
	if err := w.createTopics(ctx); err != nil {
		return w, err
	}
	if w.producer, err = startProducer(w.address(2)); err != nil {
		return w, err
	}
	if w.job, err = newJob(w); err != nil {
		return w, err
	}
	return w, w.job.start(2)
}

// address returns that of the broker (0) or of the proxy in front of it (2).
func (w *world) address(offset int) string { return fmt.Sprintf("127.0.0.1:%d", *port+offset) }

func (w *world) kafka(command string) error {
	cmd := exec.Command("test/cluster/kafka.sh", command, filepath.Join(w.dir, "kafka"), fmt.Sprint(*port))
	cmd.Env = append(os.Environ(), fmt.Sprintf("KAFKA_ADVERTISED_PORT=%d", *port+2), "KAFKA_HEAP=512m")
	log, err := os.OpenFile(filepath.Join(w.dir, "kafka.sh.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// A file, not a pipe: the broker keeps it open.
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kafka.sh %s: %w; see %s", command, err, log.Name())
	}
	return nil
}

func (w *world) createTopics(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(w.address(2)))
	if err != nil {
		return err
	}
	defer client.Close()
	for topic, n := range map[string]int32{topicIn: partitions, topicOut: 2} {
		if _, err := kadm.NewClient(client).CreateTopic(ctx, n, 1, nil, topic); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}

func (w *world) close() error {
	var errs []error
	if w.job != nil {
		errs = append(errs, w.job.close())
	}
	if w.producer != nil {
		w.producer.close()
	}
	if w.proxy != nil {
		errs = append(errs, w.kafka("stop"), w.proxy.close())
	}
	if w.mounted {
		if out, err := exec.Command("umount", w.checkpoints).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("umount %s: %w: %s", w.checkpoints, err, out))
		}
	}
	return errors.Join(errs...)
}

// verify ends the input and compares what came out with what should.
func (w *world) verify(ctx context.Context) error {
	n, err := w.producer.finish(*seed)
	if err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	want := input.Expected(*seed, n)
	slog.Info("chaos: waiting for the results", "records", n*partitions, "results", len(want))
	got, err := w.consume(ctx, want)
	if err != nil {
		return err
	}
	w.results = len(want)
	return compare(want, got)
}

// consume reads committed records until all that is wanted has come, and then for a
// while longer in which nothing more must come. It gives up when nothing comes.
func (w *world) consume(ctx context.Context, want map[string]int) (map[string]int, error) {
	const silence, after = 2 * time.Minute, 10 * time.Second
	client, err := kgo.NewClient(kgo.SeedBrokers(w.address(2)), kgo.ConsumeTopics(topicOut),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	got := map[string]int{}
	missing := len(want)
	for last := time.Now(); ; {
		limit := silence
		if missing == 0 {
			limit = after
		}
		if time.Since(last) > limit {
			return got, ctx.Err()
		}
		if err := w.job.ensure(); err != nil {
			return nil, err
		}
		poll, cancel := context.WithTimeout(ctx, time.Second)
		fetches := client.PollFetches(poll)
		cancel()
		fetches.EachRecord(func(r *kgo.Record) {
			line := string(r.Value)
			if strings.Contains(line, " "+input.FlushKey+" ") {
				return
			}
			last = time.Now()
			if got[line]++; got[line] == 1 && want[line] == 1 {
				missing--
			}
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// compare lists what differs, the first of each kind.
func compare(want, got map[string]int) error {
	var errs []error
	for _, c := range []struct {
		what string
		is   func(line string) bool
	}{
		{"missing", func(l string) bool { return got[l] == 0 }},
		{"more than once", func(l string) bool { return want[l] == 1 && got[l] > 1 }},
		{"wrong", func(l string) bool { return want[l] == 0 }},
	} {
		all := want
		if c.what == "wrong" {
			all = got
		}
		var lines []string
		for line := range all {
			if c.is(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			errs = append(errs, fmt.Errorf("%d results are %s, such as %q", len(lines), c.what, lines[:min(len(lines), 5)]))
		}
	}
	return errors.Join(errs...)
}

// copyTo forwards what a process says.
func copyTo(w io.Writer) io.Writer {
	if *verbose {
		return io.MultiWriter(w, os.Stderr)
	}
	return w
}
