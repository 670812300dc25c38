package lowwater_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// TestPlan: a plan says what there is before the start, and leaves the environment as it
// was.
func TestPlan(t *testing.T) {
	env := newEnv(lowwater.WithParallelism(3), lowwater.WithAutoWatermarkInterval(100*time.Millisecond))
	s := from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}}, bounded(2*time.Second).WithIdleness(time.Minute)).UID("source")
	s.KeyBy(keyOf).Window(window.Sliding(10*time.Second, 5*time.Second)).AllowedLateness(time.Second).
		Aggregate(lowwater.Count[event]()).Name("counts").Collect()

	first, err := env.Plan("orders")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version   int
		Job       string
		Interval  int `json:"watermark_interval_ms"`
		Operators []struct {
			Name       string
			Watermarks struct{ Strategy string }
			Window     string
			Lateness   int `json:"allowed_lateness_ms"`
			Inputs     []struct {
				From int
				Ship string
			}
		}
	}
	if err := json.Unmarshal(first, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || got.Job != "orders" || got.Interval != 100 || len(got.Operators) != 3 {
		t.Fatalf("plan:\n%s", first)
	}
	source, counts := got.Operators[0], got.Operators[1]
	if !strings.Contains(source.Watermarks.Strategy, "bounded-out-of-orderness 2s") || !strings.Contains(source.Watermarks.Strategy, "idleness 1m") {
		t.Errorf("strategy %q", source.Watermarks.Strategy)
	}
	if counts.Name != "counts" || counts.Window != "window.Sliding(10s, 5s)" || counts.Lateness != 1000 || counts.Inputs[0].Ship != "HASH" {
		t.Errorf("window %+v", counts)
	}
	second, err := env.Plan("orders")
	if err != nil || !cmp.Equal(first, second) {
		t.Errorf("a second plan differs: %v\n%s", err, cmp.Diff(string(first), string(second)))
	}
	if err := env.Execute(t.Context(), "orders"); err != nil {
		t.Errorf("the job does not run after it was planned: %v", err)
	}
}

// quietFunction registers no timers.
type quietFunction struct {
	lowwater.KeyedBase[string, event]
}

func (quietFunction) ProcessElement(*lowwater.KeyedContext[string], event, *lowwater.Collector[event]) error {
	return nil
}

// TestPlanSaysWhatWaits: which operators wait for event time, which may do so, and which
// come out by themselves or not at all.
func TestPlanSaysWhatWaits(t *testing.T) {
	env := newEnv()
	keyed := from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}}, bounded(time.Second)).KeyBy(keyOf)
	keyed.Process[event](func() quietFunction { return quietFunction{} }).Name("function").Collect()
	keyed.IntervalJoin(keyed).Between(0, time.Second).Process(func(_ *lowwater.IntervalJoinContext, a, _ event, out *lowwater.Collector[event]) error {
		out.Emit(a)
		return nil
	}).Name("join").Collect()
	keyed.Window(window.Global()).Trigger(window.ContinuousEventTimeTrigger(time.Second)).Aggregate(lowwater.Count[event]()).Name("global").Collect()
	keyed.Window(window.Tumbling(time.Second)).Trigger(window.NeverTrigger()).Aggregate(lowwater.Count[event]()).Name("never").Collect()
	keyed.Window(window.Tumbling(time.Second)).CloseAfterSilence(5 * time.Second).Aggregate(lowwater.Count[event]()).Name("closing").Collect()
	text, err := env.Plan("waits")
	if err != nil {
		t.Fatal(err)
	}
	type operator struct {
		Name       string
		EventTime  bool `json:"event_time"`
		Timers     bool
		Interval   bool `json:"interval_join"`
		Silence    int  `json:"close_after_silence_ms"`
		NeverFires bool `json:"never_fires"`
	}
	var plan struct{ Operators []operator }
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	got := map[string]operator{}
	for _, o := range plan.Operators {
		got[o.Name] = o
	}
	for _, want := range []operator{
		{Name: "function", Timers: true},
		{Name: "join", EventTime: true, Interval: true},
		{Name: "global", Timers: true},
		{Name: "never", EventTime: true, NeverFires: true},
		{Name: "closing", EventTime: true, Silence: 5000},
	} {
		if got[want.Name] != want {
			t.Errorf("%+v, want %+v", got[want.Name], want)
		}
	}
}
