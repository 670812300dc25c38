// Command chaos runs a job as a process of its own on a real Kafka, and kills, stops,
// starves and cuts off everything it needs, again and again. Afterwards a reader of
// committed records must find exactly the results that a reference computes: none missing,
// none twice, none wrong.
//
// It is no test of performance. It needs Linux, root (for a small disk of its own) and
// what test/cluster/kafka.sh needs.
//
//	go run ./test/chaos -faults 200 -seed 7
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

var (
	faults  = flag.Int("faults", 200, "how many faults")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()%1_000_000), "the `number` that decides about faults and records")
	only    = flag.String("only", "", "the `kinds` of faults to use, separated by commas; all by default")
	port    = flag.Int("port", 29092, "the broker's `port`; the two above it are used, too")
	keep    = flag.String("dir", "", "`directory` for all files, which stay; a temporary one by default")
	verbose = flag.Bool("v", false, "show what the job and the broker say")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("chaos: failed", "seed", *seed, "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir := *keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "lowwater-chaos-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(dir)
			}
		}()
	}
	slog.Info("chaos: starting", "seed", *seed, "faults", *faults, "dir", dir)
	w, err := newWorld(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	began := time.Now()
	count, err := w.disturb(ctx)
	if err != nil {
		return err
	}
	if err := w.verify(ctx); err != nil {
		return err
	}
	var kinds []string
	for kind, n := range count {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(kinds)
	fmt.Printf("chaos: seed %d: %d faults (%s) in %v, %d records, %d results, each exactly once; %d checkpoints, the job started %d times, %d times by itself\n",
		*seed, *faults, strings.Join(kinds, ", "), time.Since(began).Round(time.Second), w.producer.perPartition()*partitions,
		w.results, w.newest(), w.job.starts, w.job.unexpected)
	return nil
}

// disturb applies faults one after the other. After each the job must show that it lives:
// with new checkpoints.
func (w *world) disturb(ctx context.Context) (map[string]int, error) {
	random := rand.New(rand.NewPCG(*seed, 1))
	kinds := faultKinds()
	if *only != "" {
		kinds = slices.DeleteFunc(kinds, func(f fault) bool { return !slices.Contains(strings.Split(*only, ","), f.name) })
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("there is no fault named %q", *only)
	}
	count := map[string]int{}
	for i := range *faults {
		if err := w.progress(ctx); err != nil {
			return nil, fmt.Errorf("before fault %d: %w", i+1, err)
		}
		if err := pause(ctx, time.Duration(random.IntN(1500))*time.Millisecond); err != nil {
			return nil, err
		}
		f := kinds[random.IntN(len(kinds))]
		slog.Info("chaos: fault", "number", i+1, "kind", f.name, "newest checkpoint", w.newest())
		if err := f.do(ctx, w, random); err != nil {
			return nil, fmt.Errorf("fault %d, %s: %w", i+1, f.name, err)
		}
		count[f.name]++
	}
	return count, w.progress(ctx)
}

// progress waits until three more checkpoints have completed: enough that output of before
// has become visible, and that there is one to lose.
func (w *world) progress(ctx context.Context) error {
	const limit = 3 * time.Minute
	want := w.newest() + 3
	deadline := time.Now().Add(limit)
	for w.newest() < want {
		if err := w.job.ensure(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no new checkpoint for %v, the newest is %d; the job says:\n%s", limit, w.newest(), w.job.tail())
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// newest returns the number of the newest checkpoint with a manifest.
func (w *world) newest() (newest int) {
	manifests, _ := filepath.Glob(filepath.Join(w.checkpoints, "chk-*", "manifest"))
	for _, m := range manifests {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(filepath.Dir(m)), "chk-%d", &n); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
