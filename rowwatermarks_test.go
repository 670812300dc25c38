package lowwater_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// row is a record with a watermark of its own, unless that is negative.
type row struct{ at, watermark int64 }

func rowStrategy() eventtime.WatermarkStrategy[row] {
	return eventtime.ForRowWatermarks(func(r row) (int64, bool) { return r.watermark, r.watermark >= 0 }).
		WithTimestampAssigner(func(r row, _ int64) int64 { return r.at })
}

// Behind a source a row's watermark counts at once if it has grown by more than the
// interval, and exactly: the record at 1000 is late behind a watermark of 1999.
func TestRowWatermarksBehindTheSource(t *testing.T) {
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1), lowwater.WithAutoWatermarkInterval(500*time.Millisecond))
	late := lowwater.NewOutputTag[row]("late")
	var seen []int64
	counts := lowwater.FromSlice(env, []row{{1000, -1}, {2500, 400}, {2600, 1999}, {1000, 0}, {2700, 2400}}).
		AssignTimestampsAndWatermarks(rowStrategy()).
		Process(func(ctx *lowwater.ProcessContext, r row, out *lowwater.Collector[row]) error {
			seen = append(seen, ctx.CurrentWatermark())
			out.Emit(r)
			return nil
		}).
		WindowAll(window.Tumbling(time.Second)).SideOutputLate(late).Aggregate(lowwater.Count[row]())
	panes, lateRows := counts.Collect(), counts.SideOutput(late).Collect()
	if err := env.Execute(t.Context(), "rows"); err != nil {
		t.Fatal(err)
	}
	if want := []int64{eventtime.MinTimestamp, eventtime.MinTimestamp, eventtime.MinTimestamp, 1999, 1999}; !slices.Equal(seen, want) {
		t.Errorf("watermarks before the rows: %v, want %v", seen, want)
	}
	if got := fmt.Sprint(lateRows.Values()); got != "[{1000 0}]" {
		t.Errorf("late: %s, want the second row of 1000", got)
	}
	if got := panes.Values(); len(got) != 2 || got[0].Value != 1 || got[1].Value != 3 {
		t.Errorf("windows %v", got)
	}
}

// In a source the largest row watermark is emitted periodically.
func TestRowWatermarksInTheSource(t *testing.T) {
	g := rowStrategy().NewGenerator()
	out := &emitted{}
	g.OnPeriodicEmit(out)
	for _, r := range []row{{1, 50}, {2, -1}, {3, 20}} {
		g.OnEvent(r, r.at, out)
	}
	g.OnPeriodicEmit(out)
	if want := []int64{eventtime.MinTimestamp, 50}; !slices.Equal(out.watermarks, want) {
		t.Errorf("emitted %v, want %v", out.watermarks, want)
	}
	if err := eventtime.ForRowWatermarks[row](nil).Validate(); err == nil {
		t.Error("a nil function was accepted")
	}
}

type emitted struct{ watermarks []int64 }

func (e *emitted) EmitWatermark(t int64) { e.watermarks = append(e.watermarks, t) }
func (e *emitted) MarkIdle()             {}
func (e *emitted) MarkActive()           {}
