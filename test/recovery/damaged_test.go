package recovery

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
)

// When the newest checkpoint is damaged the one before is used, by name. What the newest
// one covered comes again, unless output waits for a second checkpoint.
func TestNewestCheckpointIsDamaged(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []lowwater.CheckpointOption
		repeats bool
	}{
		{"committed at once", nil, true},
		{"committed one checkpoint later", []lowwater.CheckpointOption{lowwater.CommitOneCheckpointLater()}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			bubble(t, func(t *testing.T, trial *trial) {
				trial.pace, trial.batch, trial.events = 100*time.Millisecond, 4, 600
				l := newLedger(trial)
				env := checkpointed(dir, tt.options...)
				trial.job(env, l)
				j, err := env.Start(t.Context(), "job")
				if err != nil {
					t.Fatal(err)
				}
				// Late enough that windows have fired between the last two checkpoints.
				for records, _ := j.Checkpoints(); records.Completed < 8; records, _ = j.Checkpoints() {
					<-time.After(100 * time.Millisecond)
				}
				j.Cancel()
				if err := j.Wait(); err != nil {
					t.Fatal(err)
				}
				newest := damageNewest(t, dir)

				var log bytes.Buffer
				env = lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), lowwater.WithParallelism(3),
					lowwater.WithCheckpoints(dir, time.Second, append(tt.options, lowwater.ResumeLatest())...))
				trial.job(env, l)
				runs(t, env)
				if !strings.Contains(log.String(), "damaged") || !strings.Contains(log.String(), newest) {
					t.Errorf("the log does not name the damaged checkpoint %s:\n%s", newest, &log)
				}
				slices.Sort(l.visible)
				want := trial.reference()
				if tt.repeats {
					if !slices.Equal(want, slices.Compact(slices.Clone(l.visible))) || len(l.visible) == len(want) {
						t.Errorf("%d results, want all %d and some of them twice", len(l.visible), len(want))
					}
					return
				}
				if diff := cmp.Diff(want, l.visible); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// damageNewest changes a byte of the newest checkpoint and returns its name.
func damageNewest(t *testing.T, dir string) (name string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(dir, "chk-*", "manifest"))
	if err != nil || len(manifests) < 2 {
		t.Fatalf("checkpoints %v, want at least two: %v", manifests, err)
	}
	slices.SortFunc(manifests, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	newest := manifests[len(manifests)-1]
	data, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 0x40
	if err := os.WriteFile(newest, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(filepath.Dir(newest))
}

// A restart within the process goes back as far as a start of the process would: to the
// checkpoint of an earlier run, if the only one of its own is damaged.
func TestOnlyOwnCheckpointIsDamaged(t *testing.T) {
	dir := t.TempDir()
	bubble(t, func(t *testing.T, trial *trial) {
		trial.pace, trial.batch, trial.events, trial.odds = 100*time.Millisecond, 4, 600, 1
		l := newLedger(trial)
		start := func(resume lowwater.CheckpointOption) *lowwater.Job {
			env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2),
				lowwater.WithCheckpoints(dir, 3*time.Second, resume, lowwater.CommitOneCheckpointLater()),
				lowwater.WithRestart(lowwater.FixedDelay{Attempts: 1, Delay: time.Second}))
			trial.job(env, l)
			j, err := env.Start(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		completes := func(j *lowwater.Job, n int64) {
			for records, _ := j.Checkpoints(); records.Completed < n; records, _ = j.Checkpoints() {
				<-time.After(100 * time.Millisecond)
			}
		}
		j := start(lowwater.StartFresh())
		completes(j, 2)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}

		j = start(lowwater.ResumeLatest())
		completes(j, 1)
		damageNewest(t, dir)
		trial.faults.Store(1)
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(l.visible)
		if diff := cmp.Diff(trial.reference(), l.visible); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if records, _ := j.Checkpoints(); records.Restored != 2 {
			t.Errorf("restored %d times, want 2", records.Restored)
		}
	})
}
