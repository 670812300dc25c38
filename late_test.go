package lowwater_test

import (
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// TestLateOutputWithoutConsumerDrops: a late output that nobody reads is as good as none,
// and what is lost there counts as dropped.
func TestLateOutputWithoutConsumerDrops(t *testing.T) {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	s := clicks(env, of("a", 5000, 100, 200)...).
		Window(window.Tumbling(time.Second)).
		SideOutputLate(lowwater.NewOutputTag[click]("late")).
		Aggregate(lowwater.Count[click]()).Name("Count")
	s.Collect()
	job, err := env.Start(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	if count := operatorStatus(t, job, "Count"); count.LateRecords != 2 || count.LateRecordsDropped != 2 {
		t.Errorf("%d late records of which %d dropped, want 2 and 2", count.LateRecords, count.LateRecordsDropped)
	}
}
