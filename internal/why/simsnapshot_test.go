package why

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/test/scenarios"
)

func instantOf(t int64) *scenarios.Instant { i := scenarios.Instant(t); return &i }

func ptr[T any](v T) *T { return &v }

// snapshot is what an observer sees, of what the scenario's evidence allows.
func (sim *simulation) snapshot(at int64) scenarios.Snapshot {
	out := scenarios.Snapshot{AtMillis: at}
	means := sim.s.Evidence
	if means.REST {
		out.Sources, out.Operators = map[string][]scenarios.SourceSubtask{}, map[string]scenarios.OperatorNumbers{}
		for _, src := range sim.sources {
			for _, sub := range src.subtasks {
				out.Sources[src.ID] = append(out.Sources[src.ID], sub.snapshot(means.SplitMetrics))
			}
		}
		for _, o := range sim.operators {
			out.Operators[o.ID] = o.snapshot()
		}
		sim.addTasks(&out)
	}
	if means.KafkaAdmin {
		out.Kafka = map[string][]scenarios.KafkaPartition{}
		for _, src := range sim.sources {
			for p := range int32(len(src.byPart)) {
				out.Kafka[src.Topic] = append(out.Kafka[src.Topic], sim.kafka(src, p))
			}
		}
	}
	return out
}

func (sub *simSubtask) snapshot(gauges bool) scenarios.SourceSubtask {
	out := scenarios.SourceSubtask{Subtask: sub.index, OutputWatermark: instantOf(sub.watermark), RecordsOut: sub.out}
	if gauges {
		out.Status = map[bool]string{false: "active", true: "idle"}[sub.idle]
	}
	for p := range int32(len(sub.source.byPart)) {
		sp := sub.source.byPart[p]
		if sp.sub != sub {
			continue
		}
		one := scenarios.SplitSnapshot{Partition: p}
		if gauges {
			one.Watermark, one.Records, one.LastReadAtMillis = instantOf(sp.Watermark()), ptr(sp.read), sp.lastRead
			one.State = map[status.SplitState]string{status.SplitActive: "active", status.SplitIdle: "idle", status.SplitPaused: "paused"}[sp.State()]
			if sub.progress.Blocked() {
				one.State = "paused"
			}
			if w := sub.source.Strategy; w != nil && w.Kind == scenarios.WallClock {
				one.Watermark = instantOf(sub.watermark)
			}
			if sp.read > 0 {
				one.MaxEventTime = instantOf(sp.top)
			}
		}
		out.Splits = append(out.Splits, one)
	}
	return out
}

func (o *simOperator) snapshot() scenarios.OperatorNumbers {
	var out scenarios.OperatorNumbers
	switch {
	case o.Kind == scenarios.Assign:
		for _, a := range o.assign {
			out.Subtasks = append(out.Subtasks, scenarios.OperatorSubtask{
				Subtask: a.index, RecordsIn: ptr(a.in), OutputWatermark: instantOf(a.watermark), Status: map[bool]string{false: "active", true: "idle"}[a.idle],
			})
		}
		return out
	case o.combine != nil:
		for _, w := range o.gauges {
			out.InputWatermarks = append(out.InputWatermarks, scenarios.Instant(w))
		}
	case o.Kind == scenarios.Filter || o.Kind == scenarios.Forward:
		out.RecordsIn, out.RecordsOut = ptr(o.inCount), ptr(o.emitted)
		return out
	default:
		out.InputWatermark = instantOf(o.in)
	}
	out.RecordsIn = ptr(o.inCount)
	if o.Kind == scenarios.Window {
		out.LateDropped = ptr(o.late)
		open := int64(0)
		for w := range o.windows {
			if !o.fired[w] {
				open++
			}
		}
		out.OpenWindows = ptr(open)
	} else {
		out.OutputWatermark = instantOf(o.out)
	}
	return out
}

func (sim *simulation) kafka(src *simSource, p int32) scenarios.KafkaPartition {
	all, sp := sim.appended[src.Topic][p], src.byPart[p]
	out := scenarios.KafkaPartition{Partition: p, EndOffset: int64(len(all)), Position: sp.read, Lag: int64(len(all)) - sp.read}
	if len(all) > 0 {
		last := all[len(all)-1]
		out.LastAppendAtMillis, out.LastRecordTimestamp = ptr(last.AppendMillis), instantOf(last.KafkaMillis)
		if sim.s.Evidence.KafkaSample {
			out.LastPayloadTimestamp = instantOf(last.PayloadTime)
		}
	}
	return out
}

func (sim *simulation) addTasks(out *scenarios.Snapshot) {
	for _, src := range sim.sources {
		for i := range src.subtasks {
			out.Tasks = append(out.Tasks, scenarios.TaskLoad{Vertex: src.ID, Subtask: i, BusyMillis: 40, IdleMillis: 960})
		}
	}
	for _, o := range sim.s.Job.Operators {
		out.Tasks = append(out.Tasks, scenarios.TaskLoad{Vertex: o.ID, BusyMillis: 60, IdleMillis: 940})
	}
}

// TestSimulation compares the snapshots of the simulation with those of the files.
func TestSimulation(t *testing.T) {
	for _, s := range loadScenarios(t, scenarioDir) {
		if s.Mode != scenarios.Replay {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			var at []int64
			for _, snap := range s.Snapshots {
				at = append(at, snap.AtMillis)
			}
			got := simulate(t, s, at...)
			if diff := gocmp.Diff(s.Snapshots, got, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(scenarios.TaskLoad{})); diff != "" {
				t.Errorf("snapshots (-file +simulation):\n%s", diff)
			}
		})
	}
}
