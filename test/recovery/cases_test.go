package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// calmTrial is a small job without faults.
func calmTrial(seed uint64) *trial {
	t := newTrial(seed)
	t.splits, t.events, t.batch, t.pace, t.slow, t.commitLater = 2, 300, 1, 100*time.Millisecond, 0, false
	t.faults.Store(0)
	return t
}

// environment is that of a trial's job with checkpoints.
func environment(address string, options ...lowwater.CheckpointOption) *lowwater.Environment {
	return lowwater.NewEnvironment(
		lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2), lowwater.WithMaxParallelism(16),
		lowwater.WithCheckpoints(address, time.Second, options...),
		lowwater.WithRestart(lowwater.FixedDelay{Attempts: 10, Delay: time.Second}),
	)
}

func start(t *testing.T, trial *trial, l *ledger, env *lowwater.Environment) *lowwater.Job {
	t.Helper()
	trial.job(env, l)
	j, err := env.Start(t.Context(), "case")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// finish waits for the job's end, and wants each result once.
func finish(t *testing.T, trial *trial, l *ledger, j *lowwater.Job) {
	t.Helper()
	if err := j.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(l.visible)
	if diff := cmp.Diff(trial.reference(), l.visible); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A job that goes on from a savepoint of another store numbers its checkpoints from there,
// so that it is known which output belongs to which.
func TestResumeFromAnotherStore(t *testing.T) {
	for name, option := range map[string]lowwater.CheckpointOption{"at once": lowwater.RetainCheckpoints(2), "later": lowwater.CommitOneCheckpointLater()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(1)
				l := newLedger(trial)
				j := start(t, trial, l, environment("mem://"+t.Name()+"-1", option))
				time.Sleep(20 * time.Second)
				path, err := j.StopWithSavepoint(t.Context(), "", false)
				if err != nil {
					t.Fatal(err)
				}
				if err := j.Wait(); err != nil {
					t.Fatal(err)
				}
				// It ends before it has taken as many checkpoints as the first.
				finish(t, trial, l, start(t, trial, l, environment("mem://"+t.Name()+"-2", option, lowwater.ResumeFrom(path))))
			})
		})
	}
}

// A savepoint that cannot be stored is the business of whoever asked for it.
func TestSavepointToNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(*lowwater.Job) (string, error){
		"savepoint": func(j *lowwater.Job) (string, error) { return j.Savepoint(context.Background(), file) },
		"stop":      func(j *lowwater.Job) (string, error) { return j.StopWithSavepoint(context.Background(), file, false) },
		"drain":     func(j *lowwater.Job) (string, error) { return j.StopWithSavepoint(context.Background(), file, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(2)
				l := newLedger(trial)
				j := start(t, trial, l, environment("mem://"+t.Name()))
				time.Sleep(5 * time.Second)
				for range 3 {
					if path, err := ask(j); err == nil {
						t.Errorf("stored in %s", path)
					}
				}
				finish(t, trial, l, j)
				if n := j.Status().Restarts; n > 0 {
					t.Errorf("%d restarts", n)
				}
			})
		})
	}
}

// brokenSource finds its splits as its enumerator says.
type brokenSource struct {
	*tickerSource
	enumerator func(ctx context.Context, e *tickerEnumerator) connector.Enumerator
}

func (s brokenSource) NewEnumerator(ctx context.Context, _ connector.SourceRuntime) (connector.Enumerator, error) {
	return s.enumerator(ctx, &tickerEnumerator{splits: s.trial.splits}), nil
}

// hangingEnumerator does not answer once it hangs.
type hangingEnumerator struct {
	*tickerEnumerator
	hangs bool
}

func (e *hangingEnumerator) Discover(ctx context.Context) ([]connector.Split, error) {
	if e.hangs {
		<-ctx.Done()
		return nil, fmt.Errorf("no broker: %w", ctx.Err())
	}
	return e.tickerEnumerator.Discover(ctx)
}

// A job that is cancelled while it is being restored has been cancelled, not failed.
func TestCancelWhileRestoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(3)
		trial.odds = 1
		enumerators := 0
		source := brokenSource{&tickerSource{trial}, func(_ context.Context, e *tickerEnumerator) connector.Enumerator {
			enumerators++
			return &hangingEnumerator{e, enumerators > 1}
		}}
		env := environment("mem://" + t.Name())
		trial.results(lowwater.FromSource(env, source, strategy(), "events").UID("events")).SinkTo(newLedger(trial)).UID("ledger")
		j, err := env.Start(t.Context(), "case")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		trial.faults.Store(1)
		time.Sleep(5 * time.Second)
		if s := j.Status().Life.State; s != status.Restarting {
			t.Fatalf("the job is %s", s)
		}
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
		if s := j.Status().Life.State; s != status.Canceled {
			t.Errorf("the job is %s", s)
		}
	})
}

// panickingEnumerator panics in the method that it is told.
type panickingEnumerator struct {
	*tickerEnumerator
	where *atomic.Value
}

func (e panickingEnumerator) panics(where string) {
	if e.where.CompareAndSwap(where, "") {
		panic("in " + where)
	}
}

func (e panickingEnumerator) SnapshotEnumerator() ([]byte, error) {
	e.panics("SnapshotEnumerator")
	return e.tickerEnumerator.SnapshotEnumerator()
}

func (e panickingEnumerator) RestoreEnumerator(data []byte) error {
	e.panics("RestoreEnumerator")
	return e.tickerEnumerator.RestoreEnumerator(data)
}

func (e panickingEnumerator) Owner(s connector.Split, parallelism int) int {
	e.panics("Owner")
	return e.tickerEnumerator.Owner(s, parallelism)
}

func (e panickingEnumerator) Close() error {
	e.panics("Close")
	return nil
}

// A panic in an enumerator ends the run, not the process.
func TestEnumeratorPanics(t *testing.T) {
	for _, where := range []string{"SnapshotEnumerator", "RestoreEnumerator", "Owner", "Close"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(4)
				trial.odds = 1
				l := newLedger(trial)
				var at atomic.Value
				source := brokenSource{&tickerSource{trial}, func(_ context.Context, e *tickerEnumerator) connector.Enumerator {
					return panickingEnumerator{e, &at}
				}}
				env := environment("mem://" + t.Name())
				trial.results(lowwater.FromSource(env, source, strategy(), "events").UID("events")).SinkTo(l).UID("ledger")
				j, err := env.Start(t.Context(), "case")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				at.Store(where)
				trial.faults.Store(1)
				finish(t, trial, l, j)
				if at.Load() != "" {
					t.Error("it has not panicked")
				}
			})
		})
	}
}

// A store without checkpoints is one to start anew with; what a job that started anew has
// not yet replaced is gone on from after it has ended.
func TestResumeLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(6)
		l := newLedger(trial)
		address := "mem://" + t.Name()
		j := start(t, trial, l, environment(address, lowwater.ResumeLatest()))
		time.Sleep(5 * time.Second)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		l = newLedger(trial)
		j = start(t, trial, l, environment(address, lowwater.StartFresh()))
		time.Sleep(5 * time.Second)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		finish(t, trial, l, start(t, trial, l, environment(address, lowwater.ResumeLatest())))
	})
}

func strategy() eventtime.WatermarkStrategy[event] {
	return eventtime.ForBoundedOutOfOrderness[event](jitter * time.Millisecond)
}

// A checkpoint that fails does not take an earlier one with it that is still under way.
func TestFailureBesideAnEarlierCheckpoint(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "chk-2"), nil, 0o600); err != nil { // where a folder is to be
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(7)
		trial.slow = time.Second // so that barriers take their time
		j := start(t, trial, newLedger(trial), environment(dir, lowwater.MaxConcurrentCheckpoints(2), lowwater.TolerableCheckpointFailures(1)))
		time.Sleep(20 * time.Second)
		records, _ := j.Checkpoints()
		if first, second := records.History[0], records.History[1]; first.State != status.CheckpointCompleted ||
			second.State != status.CheckpointFailed || !second.FailedAt.Before(first.LastAck) {
			t.Errorf("%+v\n%+v", first, second)
		}
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
	})
}
