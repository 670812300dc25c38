//go:build synctests

package lowwatertest_test

import (
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/lowwatertest"
	"github.com/lowwater/lowwater/window"
)

type Visit struct{ Page string }

func TestVisitsWhileAPartitionIsQuiet(t *testing.T) {
	lowwatertest.Run(t, func(t *testing.T, k *lowwatertest.Kafka) {
		k.CreateTopic("visits", 2)
		env := lowwatertest.NewEnvironment(t)
		source := kafka.NewSource(json.Value[Visit](), k.SourceOptions(kafka.Topics("visits"))...)
		strategy := eventtime.ForMonotonousTimestamps[Visit]().WithIdleness(time.Minute)
		panes := lowwater.FromSource(env, source, strategy, "visits").
			KeyBy(func(v Visit) string { return v.Page }).
			Window(window.Sliding(10*time.Minute, 5*time.Minute)).
			Aggregate(lowwater.Count[Visit]()).
			Collect()
		k.Start(env)

		for range 12 * 60 { // a night in which only partition 0 has visitors, one a minute
			k.Produce("visits", lowwatertest.JSON(0, Visit{"/"}))
			k.Wait(time.Minute)
		}
		if got := len(panes.Values()); got != 143 {
			t.Errorf("%d windows fired, want one every five minutes", got)
		}
		if last := panes.Values()[142]; last.Value != 10 {
			t.Errorf("%v: %d visits, want 10", last.Window, last.Value)
		}
	})
}
