package recovery

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/checkpoint"
)

// rarely returns an environment in which at most one checkpoint is taken between the
// savepoints of these tests.
func rarely(address string, options ...lowwater.CheckpointOption) *lowwater.Environment {
	return lowwater.NewEnvironment(
		lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2), lowwater.WithMaxParallelism(16),
		lowwater.WithCheckpoints(address, 10*time.Second, options...),
		lowwater.WithRestart(lowwater.FixedDelay{Attempts: 2, Delay: time.Second}),
	)
}

// savepoint takes one into a directory, and wants nothing to become visible by it.
func savepoint(t *testing.T, l *ledger, j *lowwater.Job, target string) (path string) {
	t.Helper()
	before := l.shown()
	path, err := j.Savepoint(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(500 * time.Millisecond)
	if after := l.shown(); after != before {
		t.Errorf("%d results have become visible by savepoint %s", after-before, path)
	}
	return path
}

// faultIn has the job fail once, soon, and returns the checkpoint that it is restored from.
func faultIn(t *testing.T, trial *trial, j *lowwater.Job) (path string) {
	t.Helper()
	before, _ := j.Checkpoints()
	trial.faults.Store(1)
	<-time.After(5 * time.Second)
	records, _ := j.Checkpoints()
	if records.Restored != before.Restored+1 {
		t.Fatalf("restored %d times, want %d", records.Restored, before.Restored+1)
	}
	return records.RestoredFrom.Path
}

// A savepoint that does not end the job commits nothing, so it does not matter whether the
// job goes on from it or from the checkpoint before.
func TestFailureBehindASavepoint(t *testing.T) {
	for name, option := range map[string]lowwater.CheckpointOption{"at once": lowwater.RetainCheckpoints(2), "later": lowwater.CommitOneCheckpointLater()} {
		for _, target := range []string{"elsewhere", "own"} {
			t.Run(target+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					trial := calmTrial(1)
					trial.odds = 1
					l := newLedger(trial)
					address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
					j := start(t, trial, l, rarely(address, option))
					time.Sleep(17 * time.Second)
					to, want := "", "savepoint-2"
					if target == "elsewhere" {
						to, want = address+"-elsewhere", "chk-1"
					}
					savepoint(t, l, j, to)
					if from := faultIn(t, trial, j); !strings.Contains(from, want) {
						t.Errorf("restored from %s, want %s", from, want)
					}
					finish(t, trial, l, j)
				})
			})
		}
	}
}

// With CommitOneCheckpointLater the checkpoint before a damaged one is that before a
// savepoint between them, too.
func TestDamageBehindASavepoint(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(1)
		trial.odds = 1
		l := newLedger(trial)
		j := start(t, trial, l, rarely(dir, lowwater.CommitOneCheckpointLater()))
		time.Sleep(17 * time.Second)
		savepoint(t, l, j, "mem://"+t.Name())
		for records, _ := j.Checkpoints(); records.Completed < 3; records, _ = j.Checkpoints() {
			time.Sleep(100 * time.Millisecond)
		}
		damageNewest(t, dir)
		if from := faultIn(t, trial, j); !strings.HasSuffix(from, "chk-1") {
			t.Errorf("restored from %s, want chk-1", from)
		}
		finish(t, trial, l, j)
	})
}

// A savepoint holds what it has prepared: a run that is restored from it commits that.
func TestResumeFromASavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(1)
		l := newLedger(trial)
		address := "mem://" + t.Name()
		j := start(t, trial, l, rarely(address))
		time.Sleep(17 * time.Second)
		path := savepoint(t, l, j, address+"-elsewhere")
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		finish(t, trial, l, start(t, trial, l, rarely(address, lowwater.ResumeFrom(path))))
	})
}

// A job that was stopped with a savepoint in another directory has made visible what that
// covers, so that is the latest to go on from, until there is a checkpoint after it.
func TestResumeLatestOfASavepointElsewhere(t *testing.T) {
	for name, option := range map[string]lowwater.CheckpointOption{"at once": lowwater.RetainCheckpoints(2), "later": lowwater.CommitOneCheckpointLater()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(1)
				l := newLedger(trial)
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				run := func(ends func(*lowwater.Job)) (from string) {
					j := start(t, trial, l, rarely(address, option, lowwater.ResumeLatest()))
					if records, _ := j.Checkpoints(); records.RestoredFrom != nil {
						from = records.RestoredFrom.Path
					}
					ends(j)
					if err := j.Wait(); err != nil {
						t.Fatal(err)
					}
					return from
				}
				var path string
				run(func(j *lowwater.Job) {
					time.Sleep(17 * time.Second)
					var err error
					if path, err = j.StopWithSavepoint(t.Context(), address+"-elsewhere", false); err != nil {
						t.Fatal(err)
					}
				})
				from := run(func(j *lowwater.Job) { // ends before its first checkpoint
					time.Sleep(2 * time.Second)
					j.Cancel()
				})
				if name == "at once" && from != path { // else there is a checkpoint of the same state
					t.Errorf("went on from %s, want %s", from, path)
				}
				if from := run(func(j *lowwater.Job) {
					time.Sleep(11 * time.Second)
					j.Cancel()
				}); name == "at once" && from != path {
					t.Errorf("went on from %s, want %s", from, path)
				}
				if from := run(func(*lowwater.Job) {}); !strings.Contains(from, address+"/chk-") {
					t.Errorf("went on from %s, want a checkpoint of its own", from)
				}
				finish(t, trial, l, start(t, trial, l, rarely(address, lowwater.ResumeLatest())))
			})
		})
	}
}

// A savepoint is its owner's to remove. A run that has gone on from one and has no checkpoint
// since is not restored from an older one, whose results are visible already.
func TestSavepointIsRemoved(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(1)
		trial.odds = 1
		l := newLedger(trial)
		j := start(t, trial, l, rarely(dir))
		time.Sleep(17 * time.Second)
		path := savepoint(t, l, j, "")
		if from := faultIn(t, trial, j); from != path {
			t.Errorf("restored from %s, want %s", from, path)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		trial.faults.Store(1)
		if err := j.Wait(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "ResumeFrom") {
			t.Errorf("got %v, want an error that names %s", err, path)
		}
	})
}

// undecidedSink fails to commit once.
type undecidedSink struct {
	*ledger
	fail *atomic.Bool
}

func (s undecidedSink) NewWriter(ctx context.Context, rt connector.WriterRuntime) (connector.Writer[string], error) {
	w, err := s.ledger.NewWriter(ctx, rt)
	return undecidedWriter{w.(*ledgerWriter), s.fail}, err
}

type undecidedWriter struct {
	*ledgerWriter
	fail *atomic.Bool
}

func (w undecidedWriter) Commit(ctx context.Context, prepared []byte) error {
	if w.fail.CompareAndSwap(true, false) {
		return errors.New("no broker")
	}
	return w.ledgerWriter.Commit(ctx, prepared)
}

// A job that fails behind the savepoint that is to stop it, and goes on from it, has not been
// stopped, and whoever asked is told where the savepoint is.
func TestStopWithSavepointIsNotCommitted(t *testing.T) {
	for _, target := range []string{"", "elsewhere"} {
		t.Run("to "+target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(1)
				l := newLedger(trial)
				var fail atomic.Bool
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				env := rarely(address)
				trial.results(lowwater.FromSource(env, &tickerSource{trial}, strategy(), "events").UID("events")).SinkTo(undecidedSink{l, &fail}).UID("ledger")
				j, err := env.Start(t.Context(), "case")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(17 * time.Second)
				fail.Store(true)
				to := ""
				if target != "" {
					to = address + "-" + target
				}
				path, err := j.StopWithSavepoint(t.Context(), to, false)
				if err == nil || !strings.Contains(err.Error(), "no broker") || path == "" || !strings.Contains(err.Error(), path) {
					t.Errorf("got %q, %v, want a path and an error that has it", path, err)
				}
				time.Sleep(5 * time.Second)
				if records, _ := j.Checkpoints(); records.RestoredFrom == nil || records.RestoredFrom.Path != path {
					t.Errorf("restored from %+v, want %s", records.RestoredFrom, path)
				}
				finish(t, trial, l, j)
			})
		})
	}
}

// The checkpoint that a run was told to resume from is what it is restored from until it has
// enough of its own, however many newer ones of the runs before there are.
func TestResumedFromIsRetained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(1)
		trial.odds = 1
		l := newLedger(trial)
		address := "mem://" + t.Name()
		j := start(t, trial, l, environment(address))
		time.Sleep(10500 * time.Millisecond)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		path := address + "/chk-8"
		j = start(t, trial, l, lowwater.NewEnvironment(
			lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2), lowwater.WithMaxParallelism(16),
			lowwater.WithCheckpoints(address, 0, lowwater.ResumeFrom(path), lowwater.RetainCheckpoints(2)),
			lowwater.WithRestart(lowwater.FixedDelay{Attempts: 1, Delay: time.Second})))
		time.Sleep(3 * time.Second)
		if _, err := j.Savepoint(t.Context(), address+"-elsewhere"); err != nil { // old ones are removed
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if from := faultIn(t, trial, j); from != path {
			t.Errorf("restored from %s, want %s", from, path)
		}
		for range 2 {
			if _, err := j.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		store, err := checkpoint.View(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		var left []int64
		infos, err := store.List()
		for _, info := range infos {
			left = append(left, info.ID)
		}
		if err != nil || !slices.Equal(left, []int64{13, 12}) {
			t.Errorf("left are %v, %v", left, err)
		}
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
	})
}
