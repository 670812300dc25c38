package recovery

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/status"
)

// A store that fails is named with what is wrong, and checkpoints go on when it is well again.
func TestStoreFails(t *testing.T) {
	for _, tt := range []struct{ name, operation, file string }{
		{"no file can be created", "create", ".seg"}, {"no file can be written", "commit", ".seg"}, {"nothing can be published", "commit", "manifest"},
		{"nothing can be begun", "open", "manifest"}, {"nothing can be removed", "remove", "chk-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(30)
				l := newLedger(trial)
				tr := troubled(t, tt.operation, tt.file, errDisk)
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				j := start(t, trial, l, environment(address, lowwater.TolerableCheckpointFailures(5)))
				time.Sleep(3500 * time.Millisecond)
				tr.on.Store(true)
				time.Sleep(4 * time.Second)
				tr.on.Store(false)
				time.Sleep(4 * time.Second)
				records, _ := j.Checkpoints()
				for _, c := range records.History {
					if c.State == status.CheckpointFailed && (!strings.Contains(c.Failure, errDisk.Error()) || !strings.Contains(c.Failure, "checkpoint ")) {
						t.Errorf("failed with %q", c.Failure)
					}
				}
				if failed := records.Failed >= 3; failed == (tt.operation == "remove") || records.Completed < 6 { // what is old is removed later
					t.Errorf("%d have failed, %d have completed", records.Failed, records.Completed)
				}
				finish(t, trial, l, j)
				if n := j.Status().Restarts; n > 0 {
					t.Errorf("%d restarts", n)
				}
			})
		})
	}
}

// A directory that is deleted while a job writes there is made anew.
func TestStoreIsDeleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(31)
		l := newLedger(trial)
		j := start(t, trial, l, environment(dir, lowwater.TolerableCheckpointFailures(1)))
		time.Sleep(3500 * time.Millisecond)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		if records, _ := j.Checkpoints(); records.Failed > 0 || records.Completed < 5 {
			t.Errorf("%d have failed, %d have completed", records.Failed, records.Completed)
		}
		finish(t, trial, l, start(t, trial, l, environment(dir, lowwater.ResumeLatest())))
	})
}

// A job whose checkpoints are gone when it fails says so, rather than begin without state.
func TestCheckpointsAreGoneAtARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(32)
		env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2),
			lowwater.WithRestart(lowwater.FixedDelay{Attempts: 2, Delay: time.Second}), lowwater.WithCheckpoints(dir, time.Second))
		j := start(t, trial, newLedger(trial), env)
		time.Sleep(3500 * time.Millisecond)
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil { // nothing can be stored, so the run fails
			t.Fatal(err)
		}
		if err := j.Wait(); err == nil || !strings.Contains(err.Error(), "are gone from "+dir) {
			t.Errorf("got %v", err)
		}
	})
}

// A checkpoint that a run has gone on from is removed when it is old, while the run goes on.
func TestRestoredCheckpointBecomesOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(33)
		l := newLedger(trial)
		address := "mem://" + t.Name()
		j := start(t, trial, l, environment(address))
		time.Sleep(3500 * time.Millisecond)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		j = start(t, trial, l, environment(address, lowwater.ResumeLatest(), lowwater.RetainCheckpoints(1)))
		time.Sleep(3500 * time.Millisecond)
		store, err := checkpoint.View(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if infos, err := store.List(); err != nil || len(infos) != 1 {
			t.Errorf("there are %v, %v", infos, err)
		}
		finish(t, trial, l, j)
	})
}

// A store that cannot be opened fails the start, by name.
func TestStoreCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T, trial *trial) {
		for _, dir := range []string{file, filepath.Join(file, "checkpoints")} {
			env := checkpointed(dir)
			trial.job(env, newLedger(trial))
			fails(t, env, "checkpoint", file)
		}
	})
}
