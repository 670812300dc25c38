package recovery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/status"
)

// trouble is what an operation of a store hangs in, or fails with, from one moment to
// another.
type trouble struct {
	operation, file string
	err             error

	on   atomic.Bool
	over chan struct{}
	hit  atomic.Int64
}

// troubled returns a trouble of the store mem://name.
func troubled(t *testing.T, operation, file string, err error) *trouble {
	tr := &trouble{operation: operation, file: file, err: err, over: make(chan struct{})}
	name := strings.ReplaceAll(t.Name(), "/", "-")
	checkpoint.DisturbMem(name, tr.disturb)
	t.Cleanup(func() { checkpoint.DisturbMem(name, nil) })
	return tr
}

func (tr *trouble) disturb(operation, file string) error {
	if !tr.on.Load() || operation != tr.operation || !strings.Contains(file, tr.file) {
		return nil
	}
	tr.hit.Add(1)
	if tr.err != nil {
		return tr.err
	}
	<-tr.over
	return nil
}

func (tr *trouble) end() {
	tr.on.Store(false)
	close(tr.over)
}

// A store that hangs holds up nothing but checkpoints: they fail, records go on, requests are
// answered, no output becomes visible that is not safe, and when it answers again
// checkpoints go on.
func TestStoreHangs(t *testing.T) {
	for _, hung := range []struct{ name, operation, file string }{
		{"begin", "open", "manifest"}, {"publish", "commit", "manifest"}, {"snapshot", "commit", ".seg"},
	} {
		t.Run(hung.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(11)
				l := newLedger(trial)
				tr := troubled(t, hung.operation, hung.file, nil)
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				j := start(t, trial, l, environment(address,
					lowwater.CheckpointTimeout(2*time.Second), lowwater.TolerableCheckpointFailures(100)))
				time.Sleep(5500 * time.Millisecond)
				tr.on.Store(true)
				time.Sleep(2 * time.Second)
				visible, before := l.shown(), readBy(j)
				began := time.Now()
				if path, err := j.Checkpoint(t.Context()); err == nil {
					t.Errorf("stored in %s", path)
				} else if took := time.Since(began); took > 5*time.Second {
					t.Errorf("answered after %v", took)
				}
				time.Sleep(5 * time.Second)
				if readBy(j) == before {
					t.Error("the job has not got on")
				}
				if l.shown() != visible {
					t.Error("output is visible that no checkpoint covers")
				}
				records, _ := j.Checkpoints()
				last := records.History[len(records.History)-2]
				why := "store " + address + "/, which does not answer"
				if hung.name == "snapshot" {
					why = "is still being written"
				}
				if last.State != status.CheckpointFailed || !strings.Contains(last.Failure, why) {
					t.Errorf("failed with %q", last.Failure)
				}
				if tr.hit.Load() == 0 {
					t.Error("nothing has hung")
				}
				completed := records.Completed
				tr.end()
				time.Sleep(5 * time.Second)
				if records, _ := j.Checkpoints(); records.Completed < completed+3 {
					t.Errorf("%d checkpoints have completed since", records.Completed-completed)
				}
				finish(t, trial, l, j)
				if n := j.Status().Restarts; n > 0 {
					t.Errorf("%d restarts", n)
				}
			})
		})
	}
}

// readBy returns how many records the sources have read.
func readBy(j *lowwater.Job) (n int64) {
	for _, s := range j.Status().Vertices[0].Subtasks {
		n += s.Operators[0].RecordsOut
	}
	return n
}

// Old checkpoints that cannot be removed hold up nothing at all.
func TestRemovalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(12)
		l := newLedger(trial)
		tr := troubled(t, "remove", "chk-2/", nil) // the next to be removed
		j := start(t, trial, l, environment("mem://"+t.Name(), lowwater.RetainCheckpoints(2)))
		time.Sleep(3500 * time.Millisecond)
		tr.on.Store(true)
		time.Sleep(10 * time.Second)
		if records, _ := j.Checkpoints(); records.Completed < 12 || records.Failed > 0 || tr.hit.Load() == 0 {
			t.Errorf("%d have completed, %d failed, %d removals hang", records.Completed, records.Failed, tr.hit.Load())
		}
		tr.end()
		finish(t, trial, l, j)
		store, err := checkpoint.View(t.Context(), "mem://"+t.Name())
		if err != nil {
			t.Fatal(err)
		}
		if infos, err := store.List(); err != nil || len(infos) != 2 {
			t.Errorf("left are %v, %v", infos, err)
		}
	})
}

// A job that is cancelled while the store hangs ends when the store answers, and says so:
// what is published later than the next run begins would not fit that.
func TestCancelWhileStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(13)
		l := newLedger(trial)
		tr := troubled(t, "commit", "manifest", nil)
		var log bytes.Buffer
		env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), lowwater.WithParallelism(2), lowwater.WithMaxParallelism(16),
			lowwater.WithCheckpoints("mem://"+t.Name(), time.Second))
		j := start(t, trial, l, env)
		time.Sleep(5500 * time.Millisecond)
		tr.on.Store(true)
		time.Sleep(5 * time.Second)
		j.Cancel()
		time.Sleep(time.Minute)
		select {
		case <-j.Done():
			t.Error("it has ended before the outcome is known")
		default:
		}
		tr.end()
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
		if text := "waits for the checkpoint store"; !strings.Contains(log.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, &log)
		}
		// The one that hung has been stored, and is gone on from.
		finish(t, trial, l, start(t, trial, l, environment("mem://"+t.Name(), lowwater.ResumeLatest())))
	})
}

// A checkpoint that is stored after its timeout is one to go on from.
func TestStoredAfterTheTimeout(t *testing.T) {
	for name, option := range map[string]lowwater.CheckpointOption{"at once": lowwater.RetainCheckpoints(2), "later": lowwater.CommitOneCheckpointLater()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(14)
				l := newLedger(trial)
				tr := troubled(t, "commit", "manifest", nil)
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				j := start(t, trial, l, environment(address, option,
					lowwater.CheckpointTimeout(2*time.Second), lowwater.TolerableCheckpointFailures(100)))
				time.Sleep(10500 * time.Millisecond)
				tr.on.Store(true)
				time.Sleep(3 * time.Second)
				tr.end()
				j.Cancel()
				if err := j.Wait(); err != nil {
					t.Fatal(err)
				}
				records, _ := j.Checkpoints()
				i := slices.IndexFunc(records.History, func(c status.Checkpoint) bool { return c.State == status.CheckpointFailed })
				late := records.History[i].ID
				j = start(t, trial, l, environment(address, option, lowwater.ResumeLatest()))
				records, _ = j.Checkpoints()
				if from := records.RestoredFrom; from == nil || from.ID < late {
					t.Errorf("restored from %+v, want at least %d", from, late)
				}
				finish(t, trial, l, j)
			})
		})
	}
}

// The run fails when more checkpoints in a row than tolerated have not been published.
func TestStoreHangsLongerThanTolerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(15)
		tr := troubled(t, "commit", "manifest", nil)
		env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2), lowwater.WithRestart(nil),
			lowwater.WithCheckpoints("mem://"+t.Name(), time.Second, lowwater.CheckpointTimeout(2*time.Second), lowwater.TolerableCheckpointFailures(1)))
		j := start(t, trial, newLedger(trial), env)
		tr.on.Store(true)
		time.Sleep(10 * time.Second)
		if s := j.Status().Life.State; s != status.Failing {
			t.Errorf("the job is %s", s)
		}
		tr.end()
		if err := j.Wait(); err == nil || !strings.Contains(err.Error(), "does not answer (2 failed in a row, 1 are tolerated)") {
			t.Errorf("got %v", err)
		}
	})
}

var errDisk = errors.New("no space left on device")

// A savepoint that fails when input has ended for it, past what is tolerated, has the job go
// on from its last checkpoint. Whoever asked is told.
func TestStopWithSavepointThatFails(t *testing.T) {
	for _, tt := range []struct {
		name, operation, file string
		drain                 bool
		tolerable             int
		says                  string
	}{
		{"not written", "commit", ".seg", false, 0, "from its last checkpoint"},
		{"not published", "commit", "manifest", false, 2, "3 failed in a row"},
		{"drained", "commit", "manifest", true, 0, "from its last checkpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(16)
				l := newLedger(trial)
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				tr := troubled(t, tt.operation, tt.file, errDisk)
				j := start(t, trial, l, environment(address, lowwater.TolerableCheckpointFailures(tt.tolerable)))
				time.Sleep(5500 * time.Millisecond)
				tr.on.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				path, err := j.StopWithSavepoint(ctx, "", tt.drain)
				tr.on.Store(false)
				if err == nil || !errors.Is(err, errDisk) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %q, %v", path, err)
				}
				finish(t, trial, l, j)
				if n := j.Status().Restarts; n != 1 {
					t.Errorf("%d restarts, want 1", n)
				}
			})
		})
	}
}

// One that cannot be begun, although its directory was good a moment ago, leaves the job
// alone.
func TestStopWithSavepointThatCannotBegin(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(17)
		l := newLedger(trial)
		tr := troubled(t, "commit", ".seg", nil)
		j := start(t, trial, l, environment("mem://"+t.Name()))
		time.Sleep(5500 * time.Millisecond)
		tr.on.Store(true)
		time.Sleep(time.Second) // a checkpoint is under way, which the savepoint waits for
		told := make(chan error, 1)
		go func() {
			_, err := j.StopWithSavepoint(t.Context(), target, false)
			told <- err
		}()
		time.Sleep(time.Second)
		if err := errors.Join(os.RemoveAll(target), os.WriteFile(target, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		j.Stop() // refused at first, because the job is ending
		tr.end()
		if err := <-told; err == nil || !strings.Contains(err.Error(), "the job goes on") || !strings.Contains(err.Error(), target) {
			t.Errorf("got %v", err)
		}
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
		if n := j.Status().Restarts; n > 0 {
			t.Errorf("%d restarts", n)
		}
		finish(t, trial, l, start(t, trial, l, environment("mem://"+t.Name(), lowwater.ResumeLatest())))
	})
}

// One retained checkpoint is not enough to go on from the one before the newest.
func TestRetainOneAndCommitLater(t *testing.T) {
	bubble(t, func(t *testing.T, trial *trial) {
		env := checkpointed("mem://"+t.Name(), lowwater.RetainCheckpoints(1), lowwater.CommitOneCheckpointLater())
		trial.job(env, newLedger(trial))
		fails(t, env, "RetainCheckpoints(1)", "CommitOneCheckpointLater", "at least 2")
	})
}
