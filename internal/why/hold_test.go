package why

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/test/scenarios"
)

func TestHold(t *testing.T) {
	w := func(offset int64) Known[int64] { return Know(int64(variantStart) + offset) }
	tests := []struct {
		name   string
		topics []scenarios.Topic
		job    scenarios.Job
		ask    string
		want   Path
	}{
		{
			name:   "the slower partition of the slower subtask",
			topics: []scenarios.Topic{topic("a", 4, steady(0, 1000), shifted(steady(1, 1000), -3000), steady(2, 1000), steady(3, 1000))},
			job:    job(from("a", "a", 2, bounded(0, 0)), tumbling("w", minute, "a")),
			want: Path{
				Operator: "w", WatermarkMillis: w(5*minute - 3000 - 900 - 1), Exact: true,
				Links:  []Link{{0, "a", 1, w(5*minute - 3000 - 900 - 1)}},
				Splits: []SplitRef{{"", "a", 1, w(5*minute - 3000 - 900 - 1)}},
			},
		},
		{
			name:   "an input of a connect without a strategy",
			topics: []scenarios.Topic{topic("a", 1, steady(0, 1000)), topic("rules", 1)},
			job: job(from("a", "a", 1, bounded(0, 0)), from("rules", "rules", 1, nil),
				scenarios.Operator{ID: "c", Kind: scenarios.Connect, Inputs: []scenarios.Input{{"a"}, {"rules"}}}, tumbling("w", minute, "c")),
			want: Path{
				Operator: "w", WatermarkMillis: Know(MinTime), Exact: true,
				Links:  []Link{{0, "c", WholeOperator, Know(MinTime)}, {1, "rules", 0, Know(MinTime)}},
				Splits: []SplitRef{{"", "rules", 0, Know(MinTime)}},
			},
		},
		{
			name:   "an idle partition does not hold",
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), until(steady(1, 1000), minute))},
			job:    job(from("a", "a", 2, bounded(0, 10_000)), tumbling("w", minute, "a")),
			ask:    "w",
			want: Path{
				Operator: "w", WatermarkMillis: w(5*minute - 1), Exact: true,
				Links:  []Link{{0, "a", 0, w(5*minute - 1)}},
				Splits: []SplitRef{{"", "a", 0, w(5*minute - 1)}},
			},
		},
		{
			name:   "all are idle",
			topics: []scenarios.Topic{topic("a", 2, until(steady(0, 1000), 2*minute), until(steady(1, 1000), minute))},
			job:    job(from("a", "a", 1, bounded(0, 10_000)), tumbling("w", minute, "a")),
			want: Path{
				Operator: "w", WatermarkMillis: w(2*minute - 1001), AllIdle: true,
				Links:  []Link{{0, "a", 0, w(2*minute - 1001)}},
				Splits: []SplitRef{{"", "a", 0, w(2*minute - 1001)}, {"", "a", 1, w(59*1000 + 100 - 1)}},
			},
		},
		{
			name:   "a generator behind the source",
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000))},
			job: job(from("a", "a", 1, nil), scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Inputs: []scenarios.Input{{"a"}}, Strategy: bounded(0, 0)},
				tumbling("w", minute, "stamp")),
			want: Path{
				Operator: "w", WatermarkMillis: w(5*minute - 1),
				Links:  []Link{{0, "stamp", 0, w(5*minute - 1)}, {0, "a", 0, Know(MinTime)}},
				Splits: []SplitRef{{"", "a", 0, Know(MinTime)}, {"", "a", 1, Know(MinTime)}},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := variant{name: test.name, at: 5 * minute, topics: test.topics, job: test.job}
			got, ok := Hold(evidenceOf(t, v.scenario(t, means[0].Means), false), test.ask)
			if !ok {
				t.Fatal("no path")
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldOfNothing(t *testing.T) {
	if p, ok := Hold(&Evidence{}, ""); ok {
		t.Errorf("a path through a job without operators: %+v", p)
	}
	if p, ok := Hold(healthyEvidence(t), "no-such-operator"); ok {
		t.Errorf("a path from an operator that is not there: %+v", p)
	}
}

// wideEvidence is of a job with n subtasks and 4n partitions.
func wideEvidence(n int) *Evidence {
	e := &Evidence{
		AtMillis: variantStart + 10*minute, StartedMillis: Know[int64](variantStart), WatermarkIntervalMillis: Know[int64](200),
		Operators: []Operator{
			{ID: "s", Kind: KindSource, Parallelism: n, Source: &Source{Topics: []string{"t"}, Strategy: &Strategy{Kind: StrategyBounded, BoundMillis: Know[int64](1000), IdlenessMillis: Know[int64](0)}}},
			{ID: "m", Kind: KindPlain, Parallelism: n, Inputs: []Input{{Edges: []Edge{{"s", ShipRebalance}}}}},
			{ID: "w", Kind: KindWindow, Parallelism: n, Window: &Window{Kind: Tumbling, SizeMillis: minute}, Inputs: []Input{{Edges: []Edge{{"m", ShipHash}}}}},
		},
	}
	for _, at := range []int64{9 * minute, 10 * minute} {
		s := Snapshot{AtMillis: variantStart + at}
		for i := range n {
			wm := Know(s.AtMillis - 2000)
			s.Subtasks = append(s.Subtasks,
				Subtask{Operator: "s", Index: i, OutputWatermark: wm, RecordsOut: Know(at)},
				Subtask{Operator: "m", Index: i, InputWatermark: wm, OutputWatermark: wm, RecordsIn: Know(at), RecordsOut: Know(at)},
				Subtask{Operator: "w", Index: i, InputWatermark: wm, RecordsIn: Know(at), LateDropped: Know[int64](0)})
			for k := range 4 {
				s.Splits = append(s.Splits, Split{
					Source: "s", Topic: "t", Partition: int32(4*i + k), Subtask: Know(i), Watermark: wm, State: Know(SplitActive), Records: Know(at / 4),
					LastReadMillis: Know(s.AtMillis - 500), MaxEventMillis: Know(s.AtMillis - 1000), PositionOffset: Know(at / 4), EndOffset: Know(at / 4),
				})
			}
		}
		e.History = append(e.History, s)
	}
	return e
}

func BenchmarkHold(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("subtasks=", n), func(b *testing.B) {
			e := wideEvidence(n)
			for b.Loop() {
				Hold(e, "")
			}
		})
	}
}

func BenchmarkDiagnose(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("subtasks=", n), func(b *testing.B) {
			e := wideEvidence(n)
			for b.Loop() {
				if d := Diagnose(e); d.Answer().Code != None {
					b.Fatal(d)
				}
			}
		})
	}
}
