package recovery

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/checkpoint"
)

// A checkpoint that appears when another job has taken over and has gone on without it is not
// gone on from by a third one, which says so.
func TestLateCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(16)
		l := newLedger(trial)
		address := "mem://" + t.Name()
		tr := troubled(t, "commit", "manifest", nil)
		first := start(t, trial, l, environment(address))
		time.Sleep(5500 * time.Millisecond)
		tr.on.Store(true)
		time.Sleep(time.Second) // it has looked whether the store is its own, and sent the manifest off
		second := start(t, trial, l, environment(address, lowwater.ResumeLatest()))
		time.Sleep(500 * time.Millisecond)
		second.Cancel()
		if err := second.Wait(); err != nil {
			t.Fatal(err)
		}
		tr.end()
		if err := first.Wait(); !errors.Is(err, checkpoint.ErrTakenOver) {
			t.Errorf("the first one ends with %v", err)
		}
		var log bytes.Buffer
		third := start(t, trial, l, lowwater.NewEnvironment(
			lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), lowwater.WithParallelism(2), lowwater.WithMaxParallelism(16),
			lowwater.WithCheckpoints(address, time.Second, lowwater.ResumeLatest()),
		))
		before, _ := second.Checkpoints()
		records, _ := third.Checkpoints()
		if records.RestoredFrom.ID != before.RestoredFrom.ID {
			t.Errorf("the second one went on from %d, the third from %d", before.RestoredFrom.ID, records.RestoredFrom.ID)
		}
		finish(t, trial, l, third)
		if text := "a checkpoint is ignored"; !strings.Contains(log.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, &log)
		}
	})
}
