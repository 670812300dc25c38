package progress

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/eventtime"
)

// boundedOutput is an Output that checks each watermark against the splits of its source.
type boundedOutput struct {
	t      *rapid.T
	source *Source[int]
	last   int64
}

func (o *boundedOutput) Watermark(w int64) error {
	if w <= o.last {
		o.t.Fatalf("watermark %d after %d", w, o.last)
	}
	o.last = w
	for _, sp := range o.source.Splits() {
		if !sp.output.Idle() && sp.Watermark() < w {
			o.t.Fatalf("watermark %d although split %s, which is not idle, stands at %d", w, sp.ID(), sp.Watermark())
		}
	}
	return nil
}

func (o *boundedOutput) Status(bool) error { return nil }

// A split that is not idle bounds every watermark of its subtask, whatever happens.
func TestActiveSplitBoundsTheWatermark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		strategy := eventtime.ForBoundedOutOfOrderness[int](time.Duration(rapid.IntRange(0, 20).Draw(t, "bound")) * time.Millisecond)
		if rapid.Bool().Draw(t, "idleness") {
			strategy = strategy.WithIdleness(time.Duration(rapid.IntRange(1, 500).Draw(t, "timeout")) * time.Millisecond)
		}
		if rapid.Bool().Draw(t, "broker") {
			strategy = strategy.WithBrokerIdleness(time.Second)
		}
		out := &boundedOutput{t: t, last: minTime}
		source, err := NewSource(strategy, SourceConfig{}, 0, out)
		if err != nil {
			t.Fatal(err)
		}
		out.source = source
		now, added := int64(0), 0
		anySplit := func() *Split[int] {
			splits := source.Splits()
			if len(splits) == 0 {
				return nil
			}
			return splits[rapid.IntRange(0, len(splits)-1).Draw(t, "split")]
		}
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				added++
				_, err := source.AddSplit(fmt.Sprint("split-", added), now)
				check(err)
			},
			"release": func(t *rapid.T) {
				if sp := anySplit(); sp != nil {
					source.ReleaseSplit(sp)
				}
			},
			"record": func(t *rapid.T) {
				if sp := anySplit(); sp != nil {
					check(sp.OnEvent(0, rapid.Int64Range(0, 1000).Draw(t, "timestamp")))
				}
			},
			"periodic": func(t *rapid.T) {
				now += rapid.Int64Range(1, 400).Draw(t, "step")
				check(source.Periodic(now))
			},
			"emit": func(t *rapid.T) {
				if sp := anySplit(); sp != nil {
					check(sp.EmitWatermark(rapid.Int64Range(0, 1000).Draw(t, "watermark")))
				}
			},
			"idle": func(t *rapid.T) {
				if sp := anySplit(); sp != nil {
					check(sp.MarkIdle())
				}
			},
			"active": func(t *rapid.T) {
				if sp := anySplit(); sp != nil {
					check(sp.MarkActive())
				}
			},
			"quiet": func(t *rapid.T) {
				if sp := anySplit(); sp != nil && strategy.BrokerIdleness() > 0 {
					sp.SetQuiet(rapid.Bool().Draw(t, "quiet"))
				}
			},
			"pressure": func(t *rapid.T) {
				source.BackPressure(now, rapid.Bool().Draw(t, "hard"), rapid.Bool().Draw(t, "soft"))
			},
		})
	})
}
