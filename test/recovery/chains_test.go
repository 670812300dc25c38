package recovery

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
)

// Event time goes on whatever becomes of the chains: an operator that was behind another in
// one task and has a task of its own now, the other way round, and with others taken away.
func TestEventTimeOfOtherChains(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after []int // parallelisms of the operators behind the source, which has 2
	}{
		{"chained before", []int{2, 2}, []int{2, 3}}, {"both chained before", []int{2, 2}, []int{1, 3}}, {"chained after", []int{3, 1}, []int{2, 2}},
		{"an operator is gone", []int{3, 2}, []int{2}}, {"a chained operator is gone", []int{2, 2}, []int{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, trial *trial) {
				trial.splits, trial.pace, trial.batch, trial.events = 4, 100*time.Millisecond, 4, 1000
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				run := func(parallelisms []int, resume lowwater.CheckpointOption) (least int64) {
					var mu sync.Mutex
					least = eventtime.MaxTimestamp
					env := checkpointed(address, resume)
					stream := lowwater.FromSource(env, &tickerSource{trial}, strategy(), "events").UID("events").Parallelism(2)
					for i, p := range parallelisms[1:] {
						stream = stream.Filter(func(event) bool { return true }).UID(fmt.Sprint("filter", i)).Parallelism(p)
					}
					stream.Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[string]) error {
						mu.Lock()
						defer mu.Unlock()
						least = min(least, ctx.CurrentWatermark())
						return nil
					}).UID("clock").Parallelism(parallelisms[0]).SinkTo(newLedger(trial)).UID("ledger").Parallelism(parallelisms[0])
					j, err := env.Start(t.Context(), "job")
					if err != nil {
						t.Fatal(err)
					}
					<-time.After(3500 * time.Millisecond)
					j.Cancel()
					if err := j.Wait(); err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					return least
				}
				if least := run(tt.before, lowwater.StartFresh()); least != eventtime.MinTimestamp {
					t.Errorf("the first run began at %d", least)
				}
				if least := run(tt.after, lowwater.ResumeLatest()); least <= eventtime.MinTimestamp || least == eventtime.MaxTimestamp {
					t.Errorf("the second run began at %d", least)
				}
			})
		})
	}
}
