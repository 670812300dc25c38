package recovery

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/status"
)

// A drained job fires its windows, with what it has read, and makes them visible once.
func TestDrain(t *testing.T) {
	for name, option := range map[string]lowwater.CheckpointOption{
		"aligned": lowwater.RetainCheckpoints(2), "later": lowwater.CommitOneCheckpointLater(), "unaligned": lowwater.AlignedCheckpointTimeout(time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(8)
				trial.splits, trial.pace, trial.batch, trial.slow = 1, 50*time.Millisecond, 10, 10*time.Millisecond
				l := newLedger(trial)
				j := start(t, trial, l, environment("mem://"+t.Name(), option))
				time.Sleep(900 * time.Millisecond)
				if _, err := j.StopWithSavepoint(t.Context(), "", true); err != nil {
					t.Fatal(err)
				}
				if err := j.Wait(); err != nil {
					t.Fatal(err)
				}
				var read int64
				for _, s := range j.Status().Vertices[0].Subtasks {
					read += s.Operators[0].RecordsOut
				}
				if read == 0 || read == int64(trial.splits)*trial.events {
					t.Fatalf("%d records read", read)
				}
				trial.events = read / int64(trial.splits)
				slices.Sort(l.visible)
				if diff := cmp.Diff(trial.reference(), l.visible); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// A job that waits to be restarted ends at once, whatever ends it. One that is stopped has
// not finished: what it had under way comes out with the next run only.
func TestEndWhileWaitingForARestart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		end   func(*lowwater.Job)
		err   string
		state status.State
	}{
		{"stop", (*lowwater.Job).Stop, "stopped while it waited to be restarted", status.Failed},
		{"cancel", (*lowwater.Job).Cancel, "", status.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(9)
				trial.odds = 1
				l := newLedger(trial)
				env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithCheckpoints("mem://"+t.Name(), time.Second), lowwater.WithParallelism(2),
					lowwater.WithMaxParallelism(16), lowwater.WithRestart(lowwater.FixedDelay{Attempts: 1, Delay: time.Hour}))
				j := start(t, trial, l, env)
				time.Sleep(5 * time.Second)
				trial.faults.Store(1)
				time.Sleep(5 * time.Second)
				for _, ask := range []func() (string, error){
					func() (string, error) { return j.Checkpoint(t.Context()) },
					func() (string, error) { return j.StopWithSavepoint(t.Context(), "", false) },
				} {
					if path, err := ask(); err == nil {
						t.Errorf("stored in %s", path)
					}
				}
				before := time.Now()
				tt.end(j)
				if err := j.Wait(); (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				if s := j.Status().Life.State; s != tt.state {
					t.Errorf("the job is %s, want %s", s, tt.state)
				}
				if took := time.Since(before); took > time.Second {
					t.Errorf("it took %v", took)
				}
				finish(t, trial, l, start(t, trial, l, environment("mem://"+t.Name(), lowwater.ResumeLatest())))
			})
		})
	}
}

// Checkpoints that cannot be published, or not even begun, are done without as long as
// that is tolerated, also at the end.
func TestStoreThatFailsNowAndThen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"chk-3/manifest.part", "chk-6/manifest.part", "chk-7/manifest.part", "chk-30/manifest.part"} { // folders where files are to be
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"chk-10", "chk-11", "chk-31"} { // and the other way round
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(10)
		l := newLedger(trial)
		j := start(t, trial, l, environment(dir, lowwater.TolerableCheckpointFailures(2)))
		finish(t, trial, l, j)
		records, _ := j.Checkpoints()
		var failed []int64
		for _, c := range records.History {
			if c.State == status.CheckpointFailed {
				failed = append(failed, c.ID)
			}
		}
		if want := []int64{3, 6, 7, 10, 11, 30, 31}; !slices.Equal(failed, want) || j.Status().Restarts > 0 {
			t.Errorf("failed are %v, want %v; %d restarts", failed, want, j.Status().Restarts)
		}
	})
}
