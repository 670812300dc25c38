package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/window"
)

// TestStrategies: what eventtime writes of a strategy is read back.
func TestStrategies(t *testing.T) {
	bounded := eventtime.ForBoundedOutOfOrderness[int](20 * time.Second)
	off := why.Know[int64](0)
	tests := []struct {
		strategy eventtime.WatermarkStrategy[int]
		want     why.Strategy
	}{
		{bounded, why.Strategy{Kind: why.StrategyBounded, BoundMillis: why.Know[int64](20_000), IdlenessMillis: off, Timestamps: why.FromRecord}},
		{
			bounded.WithTimestampAssigner(func(v int, _ int64) int64 { return int64(v) }).WithIdleness(90 * time.Second),
			why.Strategy{Kind: why.StrategyBounded, BoundMillis: why.Know[int64](20_000), IdlenessMillis: why.Know[int64](90_000), Timestamps: why.FromPayload},
		},
		{
			eventtime.ForMonotonousTimestamps[int]().WithBrokerIdleness(time.Hour).WithMaxFutureSkew(5 * time.Minute),
			why.Strategy{Kind: why.StrategyMonotonous, BoundMillis: why.Know[int64](0), IdlenessMillis: why.Know[int64](3_600_000),
				MaxFutureMillis: why.Know[int64](300_000), Timestamps: why.FromRecord},
		},
		{
			bounded.WithWatermarkAlignment("a group, of two", 30*time.Second, time.Second),
			why.Strategy{Kind: why.StrategyBounded, BoundMillis: why.Know[int64](20_000), IdlenessMillis: off, Timestamps: why.FromRecord,
				Alignment: &why.Alignment{Group: "a group, of two", DriftMillis: why.Know[int64](30_000), UpdateMillis: why.Know[int64](1000)}},
		},
		{eventtime.ForRowWatermarks(func(int) (int64, bool) { return 0, false }), why.Strategy{Kind: why.StrategyRows, IdlenessMillis: off, Timestamps: why.FromPayload}},
		{eventtime.ForGenerator(func() eventtime.WatermarkGenerator[int] { return nil }), why.Strategy{Kind: why.StrategyCustom, IdlenessMillis: off, Timestamps: why.FromRecord}},
		{eventtime.NoWatermarks[int](), why.Strategy{Kind: why.StrategyNone}},
	}
	for _, test := range tests {
		got := strategyOf(&graph.WatermarkDescription{Strategy: test.strategy.String(), None: test.strategy.EmitsNothing()})
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.strategy, diff)
		}
	}
}

// TestWindows: what window writes of an assigner is read back.
func TestWindows(t *testing.T) {
	tests := []struct {
		assigner window.Assigner
		want     *why.Window
	}{
		{window.Tumbling(10 * time.Second), &why.Window{Kind: why.Tumbling, SizeMillis: 10_000}},
		{window.Tumbling(time.Hour).Offset(15 * time.Minute), &why.Window{Kind: why.Tumbling, SizeMillis: 3_600_000, OffsetMillis: 900_000}},
		{window.Sliding(time.Minute, 10*time.Second), &why.Window{Kind: why.Sliding, SizeMillis: 60_000, SlideMillis: 10_000}},
		{window.Cumulating(time.Hour, time.Minute), &why.Window{Kind: why.Sliding, SizeMillis: 3_600_000, SlideMillis: 60_000}},
		{window.Cumulating(365*24*time.Hour, 24*time.Hour), &why.Window{Kind: why.Sliding, SizeMillis: 365 * 86_400_000, SlideMillis: 86_400_000}},
		{window.Session(30 * time.Second), &why.Window{Kind: why.Session, GapMillis: 30_000}},
		{window.Global(), nil},
		{window.Days(1, time.UTC), nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, WindowOf(test.assigner.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.assigner, diff)
		}
	}
}

func TestOperators(t *testing.T) {
	strategy := &graph.WatermarkDescription{Strategy: "bounded-out-of-orderness 1s"}
	d := &graph.Description{Job: "j", Operators: []graph.OperatorDescription{
		{ID: 0, Name: "orders", Parallelism: 2, Source: &graph.SourceDescription{Splits: 3}, Watermarks: strategy},
		{ID: 1, Name: "rules", Vertex: 1, Parallelism: 1, Source: &graph.SourceDescription{Bounded: true, Splits: 1}},
		{ID: 2, Name: "Filter", Parallelism: 2, Inputs: []graph.InputDescription{{From: 0, Ship: "FORWARD"}}},
		{ID: 3, Name: "enrich", Vertex: 2, Parallelism: 2, Inputs: []graph.InputDescription{{From: 2, Ship: "HASH"}, {From: 1, Input: 1, Ship: "BROADCAST"}}},
		{ID: 4, Name: "enrich", Vertex: 3, Parallelism: 2, EventTime: true, Window: "window.Session(30s)", LatenessMillis: 5, Inputs: []graph.InputDescription{{From: 3, Ship: "HASH"}}},
		{ID: 5, Name: "timers", Vertex: 4, Parallelism: 2, EventTime: true, Inputs: []graph.InputDescription{{From: 4, Ship: "REBALANCE"}}},
		{ID: 6, Name: "alarm", Vertex: 5, Parallelism: 2, Timers: true, Inputs: []graph.InputDescription{{From: 5, Ship: "HASH"}}},
		{ID: 7, Name: "global", Vertex: 6, Parallelism: 2, Timers: true, Window: "window.Global()", NeverFires: true, Inputs: []graph.InputDescription{{From: 6, Ship: "HASH"}}},
		{ID: 8, Name: "pairs", Vertex: 7, Parallelism: 2, EventTime: true, Interval: true, Inputs: []graph.InputDescription{{From: 7, Ship: "HASH"}, {From: 0, Input: 1, Ship: "HASH"}}},
		{ID: 9, Name: "close", Vertex: 8, Parallelism: 2, EventTime: true, Window: "window.Tumbling(2s)", SilenceMillis: 5000, Inputs: []graph.InputDescription{{From: 8, Ship: "HASH"}}},
	}}
	var got []string
	for _, o := range Operators(d) {
		line := o.ID + " " + o.Vertex + " " + string(o.Kind)
		for _, in := range o.Inputs {
			line += " [" + string(in.Edges[0].Ship) + " " + in.Edges[0].From
			if in.Broadcast {
				line += " all"
			}
			line += "]"
		}
		if o.Source != nil {
			line += " " + string(o.Source.Strategy.Kind)
		}
		if o.Window != nil {
			line += " " + string(o.Window.Kind)
		}
		if o.NeverFires {
			line += " never"
		}
		if o.Interval {
			line += " interval"
		}
		if o.SilenceMillis > 0 {
			line += " silence " + duration(o.SilenceMillis)
		}
		got = append(got, line)
	}
	want := []string{
		"orders vertex 0 source bounded",
		"rules vertex 1 source none",
		"Filter vertex 0 filter [forward orders]",
		"enrich vertex 2 connect [hash Filter] [broadcast rules all]",
		"enrich#4 vertex 3 window [hash enrich] session",
		"timers vertex 4 timers [rebalance enrich#4]",
		"alarm vertex 5 maybe-timers [hash timers]",
		"global vertex 6 maybe-timers [hash alarm] never",
		"pairs vertex 7 join [hash global] [hash orders] interval",
		"close vertex 8 window [hash pairs] tumbling silence 5s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// job builds plans for the checks: names are IDs.
type job []why.Operator

func (j job) source(id string, parallelism int, s *why.Strategy) job {
	return append(j, why.Operator{ID: id, Name: id, Kind: why.KindSource, Parallelism: parallelism, Source: &why.Source{Strategy: s}})
}

func (j job) add(id string, kind why.OperatorKind, inputs ...string) job {
	o := why.Operator{ID: id, Name: id, Kind: kind, Parallelism: 1}
	for _, in := range inputs {
		input := why.Input{}
		for from := range strings.SplitSeq(in, "+") {
			ship := why.ShipHash
			if f, ok := strings.CutPrefix(from, "="); ok {
				from, ship = f, why.ShipForward
			}
			if f, ok := strings.CutPrefix(from, "*"); ok {
				from, ship, input.Broadcast = f, why.ShipBroadcast, true
			}
			input.Edges = append(input.Edges, why.Edge{From: from, Ship: ship})
		}
		o.Inputs = append(o.Inputs, input)
	}
	if kind == why.KindWindow {
		o.Window = &why.Window{Kind: why.Tumbling, SizeMillis: 60_000}
	}
	return append(j, o)
}

func (j job) strategy(s *why.Strategy) job {
	j[len(j)-1].Strategy = s
	return j
}

func TestCheck(t *testing.T) {
	bounded := func(bound, idle int64) *why.Strategy {
		return &why.Strategy{Kind: why.StrategyBounded, BoundMillis: why.Know(bound), IdlenessMillis: why.Know(idle)}
	}
	good, none := bounded(1000, 30_000), &why.Strategy{Kind: why.StrategyNone}
	aligned := *good
	aligned.Alignment = &why.Alignment{DriftMillis: why.Know[int64](500)}
	tests := []struct {
		name  string
		job   job
		facts Facts
		want  []string // code operator
	}{
		{"good", job{}.source("a", 2, good).add("w", why.KindWindow, "a"), Facts{Splits: map[string]int{"a": 2}}, nil},
		{"nothing known", job{}.source("a", 2, nil).add("w", why.KindWindow, "a"), Facts{}, nil},
		{"surplus subtasks", job{}.source("a", 8, bounded(0, 0)).add("w", why.KindWindow, "a"), Facts{Splits: map[string]int{"a": 1}}, []string{"over-parallel-source a"}},
		{"surplus subtasks that go idle", job{}.source("a", 8, good).add("w", why.KindWindow, "a"), Facts{Splits: map[string]int{"a": 3}}, nil},
		{"surplus subtasks of Flink", job{}.source("a", 8, nil).add("w", why.KindWindow, "a"), Facts{Splits: map[string]int{"a": 3}}, []string{"over-parallel-source a"}},
		{"no idleness", job{}.source("a", 1, bounded(0, 0)).add("m", why.KindPlain, "=a").add("w", why.KindWindow, "m"), Facts{}, []string{"no-idleness a"}},
		{"no idleness, one split", job{}.source("a", 1, bounded(0, 0)).add("w", why.KindWindow, "a"), Facts{Splits: map[string]int{"a": 1}}, nil},
		{"no idleness, nothing waits", job{}.source("a", 1, bounded(0, 0)).add("m", why.KindPlain, "=a"), Facts{}, nil},
		{"no strategy", job{}.source("a", 1, none).add("w", why.KindWindow, "a"), Facts{}, []string{"no-watermark-strategy w"}},
		{"no strategy, no window", job{}.source("a", 1, none).add("m", why.KindPlain, "a"), Facts{}, nil},
		{"idleness below the interval", job{}.source("a", 1, bounded(0, 300)).add("w", why.KindWindow, "a"), Facts{}, []string{"idleness-below-interval a"}},
		{"idleness without interval", job{}.source("a", 1, good).add("w", why.KindWindow, "a"), Facts{IntervalMillis: why.Know[int64](0)}, []string{"idleness-without-interval a"}},
		{"drift below the bound", job{}.source("a", 1, &aligned), Facts{}, []string{"alignment-below-bound a"}},
		{"behind the source", job{}.source("a", 1, none).add("s", why.KindAssign, "=a").strategy(good).add("w", why.KindWindow, "s"), Facts{}, []string{"strategy-after-source s"}},
		{"twice", job{}.source("a", 1, good).add("s", why.KindAssign, "=a").strategy(good).add("w", why.KindWindow, "s"), Facts{}, []string{"strategy-twice s"}},
		{"union", job{}.source("a", 1, good).source("b", 1, bounded(0, 0)).add("w", why.KindWindow, "a+b"), Facts{}, []string{"no-idleness b", "side-without-idleness w"}},
		{"connect without watermarks", job{}.source("a", 1, good).source("b", 1, none).add("c", why.KindConnect, "a", "b").add("w", why.KindWindow, "c"), Facts{},
			[]string{"side-input-without-watermarks c"}},
		{"connect that nothing waits for", job{}.source("a", 1, good).source("b", 1, none).add("c", why.KindConnect, "a", "b"), Facts{}, nil},
		{"broadcast without watermarks", job{}.source("a", 1, good).source("b", 1, none).add("c", why.KindTimers, "a", "*b"), Facts{}, []string{"broadcast-without-watermarks c"}},
		{"bound above the window", job{}.source("a", 1, bounded(61_000, 30_000)).add("w", why.KindWindow, "a"), Facts{}, []string{"bound-above-window w"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, w := range Check(test.job, test.facts) {
				got = append(got, w.Code+" "+w.Operator)
				if w.Message == "" || len(w.Fixes) == 0 {
					t.Errorf("%s says nothing, or no fix: %+v", w.Code, w)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFixesAreInTheWordsOfTheEngine: an idle timeout is set in another way in each.
func TestFixesAreInTheWordsOfTheEngine(t *testing.T) {
	operators := []why.Operator{{ID: "s", Name: "s", Kind: why.KindSource, Parallelism: 2, Source: &why.Source{}}}
	for engine, want := range map[why.EngineName]string{
		"": "add WithIdleness to", why.Lowwater: "add WithIdleness to", why.Flink: "add withIdleness to", why.FlinkSQL: "add the option scan.watermark.idle-timeout to",
	} {
		warnings := Check(operators, Facts{Engine: engine, Splits: map[string]int{"s": 1}})
		if len(warnings) != 1 || len(warnings[0].Fixes) != 2 || !strings.HasPrefix(warnings[0].Fixes[1], want) {
			t.Errorf("%q: %+v, want a fix that begins with %q", engine, warnings, want)
		}
	}
}
