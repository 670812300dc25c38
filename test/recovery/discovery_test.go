package recovery

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
)

// endlessSource finds splits while it runs.
type endlessSource struct{ brokenSource }

func (endlessSource) Boundedness() connector.Boundedness { return connector.Unbounded }

// lateEnumerator finds one split with each call, which takes its time. From the call hangs
// on it does not answer.
type lateEnumerator struct {
	*tickerEnumerator
	takes time.Duration
	calls int
	hangs int
}

func (e *lateEnumerator) DiscoveryInterval() time.Duration { return 300 * time.Millisecond }

func (e *lateEnumerator) Discover(ctx context.Context) (splits []connector.Split, err error) {
	if e.calls++; e.calls == e.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	<-time.After(e.takes)
	if e.Found < e.splits {
		splits = append(splits, tickerSplit{Number: e.Found})
		e.Found++
	}
	return splits, nil
}

// startLate starts a job that passes the events of such a source on.
func startLate(t *testing.T, trial *trial, l *ledger, takes time.Duration, hangs int, options ...lowwater.CheckpointOption) *lowwater.Job {
	t.Helper()
	env := environment("mem://"+t.Name(), options...)
	source := endlessSource{brokenSource{&tickerSource{trial}, func(_ context.Context, e *tickerEnumerator) connector.Enumerator {
		return &lateEnumerator{e, takes, 0, hangs}
	}}}
	lowwater.FromSource(env, source, strategy(), "events").UID("events").Parallelism(1).
		Map(func(e event) string { return fmt.Sprint(e.Split, " ", e.N) }).UID("text").SinkTo(l).UID("ledger")
	j, err := env.Start(t.Context(), "case")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Checkpoints are taken while a connector that looks for splits gets no answer.
func TestDiscoveryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := calmTrial(20)
		j := startLate(t, trial, newLedger(trial), 0, 3)
		time.Sleep(10 * time.Second)
		if records, _ := j.Checkpoints(); records.Completed < 9 {
			t.Errorf("%d checkpoints have completed", records.Completed)
		}
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A split that is found while a checkpoint is taken is read once, wherever a restart falls.
func TestSplitsFoundBesideCheckpoints(t *testing.T) {
	for takes := range 12 {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trial := calmTrial(21)
				trial.splits, trial.events = 20, 1<<40
				l := newLedger(trial)
				resume := lowwater.StartFresh()
				for range 6 {
					j := startLate(t, trial, l, time.Duration(takes)*25*time.Millisecond, 0, resume)
					resume = lowwater.ResumeLatest()
					time.Sleep(1700 * time.Millisecond)
					j.Cancel()
					if err := j.Wait(); err != nil {
						t.Fatal(err)
					}
				}
				read := make([][]int64, trial.splits)
				for _, line := range l.visible {
					var split int
					var n int64
					if _, err := fmt.Sscan(line, &split, &n); err != nil {
						t.Fatal(err)
					}
					read[split] = append(read[split], n)
				}
				for split, events := range read {
					slices.Sort(events)
					for i, n := range events {
						if n != int64(i) {
							t.Fatalf("split %d: event %d, want %d", split, n, i)
						}
					}
				}
				if len(read[5]) == 0 {
					t.Errorf("read are %v", read)
				}
			})
		})
	}
}
