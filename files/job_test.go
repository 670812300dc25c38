package files_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/files"
	"github.com/lowwater/lowwater/format"
	"github.com/lowwater/lowwater/window"
)

// total is what the job writes of a window.
type total struct {
	Key   int64 `json:"key" csv:"key" parquet:"key"`
	Start int64 `json:"start" csv:"start" parquet:"start"`
	Sum   int64 `json:"sum" csv:"sum" parquet:"sum"`
}

const (
	jobKeys   = 7
	jobWindow = 60 * time.Second
)

// totalsOf is the reference.
func totalsOf(all []rec) []total {
	sums := map[[2]int64]int64{}
	for _, r := range all {
		sums[[2]int64{r.N % jobKeys, r.N * 1000 / jobWindow.Milliseconds() * jobWindow.Milliseconds()}] += r.N
	}
	var totals []total
	for k, sum := range sums {
		totals = append(totals, total{k[0], k[1], sum})
	}
	return sorted(totals)
}

func sorted(totals []total) []total {
	slices.SortFunc(totals, func(a, b total) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return totals
}

// TestJob reads files, sums in windows and writes files, exactly once, though it panics
// twice.
func TestJob(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	const each, parts = 2000, 6
	for i := range int64(parts) {
		w := mustWriter(t, files.NewSink(filepath.Join(in, fmt.Sprint(i)), files.JSONLines[rec](), files.Compression(files.Codec(i%3))))
		check(t, w.Write(t.Context(), batchOf(recs(i*each, (i+1)*each))))
		check(t, w.Flush(t.Context()))
		check(t, w.Close())
	}
	var f format.File[total] = files.JSONLines[total]()
	var panics atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		env := lowwater.NewEnvironment(lowwater.WithParallelism(2), lowwater.WithLogger(slog.New(slog.DiscardHandler)),
			lowwater.WithCheckpoints(fmt.Sprint("mem://files-", rand.Uint64()), 500*time.Millisecond),
			lowwater.WithRestart(lowwater.FixedDelay{Attempts: 3, Delay: time.Second}))
		strategy := eventtime.ForMonotonousTimestamps[rec]().WithTimestampAssigner(func(r rec, _ int64) int64 { return r.N * 1000 })
		lowwater.FromSource(env, files.NewSource(in, files.JSONLines[rec]()), strategy, "in").
			Map(func(r rec) rec {
				time.Sleep(time.Millisecond) // of virtual time, so that there are checkpoints on the way
				if (r.N == 2*each+700 || r.N == 5*each-100) && panics.Add(1) <= 2 {
					panic("as planned")
				}
				return r
			}).
			KeyBy(func(r rec) int64 { return r.N % jobKeys }).
			Window(window.Tumbling(jobWindow)).
			Aggregate(window.Sum(func(r rec) int64 { return r.N })).
			Map(func(p window.Pane[int64, int64]) total { return total{p.Key, p.Window.Start, p.Value} }).
			SinkTo(files.NewSink(out, f, files.Delivery(connector.ExactlyOnce), files.BucketByTime("2006-01-02/15")))
		check(t, env.Execute(t.Context(), "files"))
	})
	if panics.Load() < 2 {
		t.Errorf("%d panics", panics.Load())
	}
	got := sorted(readAll(t, files.NewSource(out, f)))
	if diff := cmp.Diff(totalsOf(recs(0, each*parts)), got); diff != "" {
		t.Errorf("totals (-want +got):\n%.2000s", diff)
	}
	if _, hidden := tree(t, out); len(hidden) > 0 {
		t.Errorf("left behind: %q", hidden)
	}
}

// TestFilesNotBegunHoldEventTime: files whose names are in another order than their records
// give the same windows with any parallelism, and no record is late.
func TestFilesNotBegunHoldEventTime(t *testing.T) {
	in := t.TempDir()
	const each, parts = 3000, 5   // several batches a file
	for i := range int64(parts) { // the first file has the latest records
		w := mustWriter(t, files.NewSink(filepath.Join(in, fmt.Sprint(parts-i)), files.JSONLines[rec]()))
		check(t, w.Write(t.Context(), batchOf(recs(i*each, (i+1)*each))))
		check(t, w.Flush(t.Context()))
		check(t, w.Close())
	}
	late := lowwater.NewOutputTag[rec]("late")
	for _, parallelism := range []int{1, 2, parts} {
		synctest.Test(t, func(t *testing.T) {
			env := lowwater.NewEnvironment(lowwater.WithParallelism(parallelism), lowwater.WithLogger(slog.New(slog.DiscardHandler)))
			strategy := eventtime.ForMonotonousTimestamps[rec]().WithTimestampAssigner(func(r rec, _ int64) int64 { return r.N * 1000 })
			sums := lowwater.FromSource(env, files.NewSource(in, files.JSONLines[rec]()), strategy, "in").
				Map(func(r rec) rec {
					time.Sleep(time.Millisecond) // there are watermarks while a file is read
					return r
				}).
				KeyBy(func(r rec) int64 { return r.N % jobKeys }).
				Window(window.Tumbling(jobWindow)).
				SideOutputLate(late).
				Aggregate(window.Sum(func(r rec) int64 { return r.N }))
			got := sums.Map(func(p window.Pane[int64, int64]) total { return total{p.Key, p.Window.Start, p.Value} }).Collect()
			lost := sums.SideOutput(late).Collect()
			check(t, env.Execute(t.Context(), "files"))
			if diff := cmp.Diff(totalsOf(recs(0, each*parts)), sorted(got.Values())); diff != "" {
				t.Errorf("parallelism %d: totals (-want +got):\n%.2000s", parallelism, diff)
			}
			if n := len(lost.Values()); n > 0 {
				t.Errorf("parallelism %d: %d records are late", parallelism, n)
			}
		})
	}
}

// TestExactlyOnceNeedsCheckpoints: the job is refused before it runs.
func TestExactlyOnceNeedsCheckpoints(t *testing.T) {
	env := lowwater.NewEnvironment()
	lowwater.FromSlice(env, recs(0, 3)).SinkTo(files.NewSink(t.TempDir(), files.JSONLines[rec](), files.Delivery(connector.ExactlyOnce)))
	if err := env.Execute(t.Context(), "job"); err == nil || !strings.Contains(err.Error(), "WithCheckpoints") {
		t.Errorf("error %v", err)
	}
}
