package why

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// scenarioDir has the scenario files of the repository.
const scenarioDir = "../../test/scenarios/testdata"

// loadScenarios reads the scenarios of a directory that have snapshots.
func loadScenarios(t *testing.T, dir string) []*scenarios.Scenario {
	t.Helper()
	all, err := scenarios.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s *scenarios.Scenario) bool { return len(s.Snapshots) == 0 })
}

// allScenarios reads those of the repository, variants, and what LOWWATER_SCENARIOS names.
func allScenarios(t *testing.T) []*scenarios.Scenario {
	t.Helper()
	all := loadScenarios(t, scenarioDir)
	if variants, _ := filepath.Glob("testdata/variants/*.json"); len(variants) > 0 {
		all = append(all, loadScenarios(t, "testdata/variants")...)
	}
	for dir := range strings.SplitSeq(os.Getenv("LOWWATER_SCENARIOS"), ":") {
		if dir != "" {
			all = append(all, loadScenarios(t, dir)...)
		}
	}
	return all
}

// evidenceOf turns the job and the snapshots of a scenario into evidence. With history
// it adds what a doctor who can read Kafka finds in the topics; snapshots alone do not
// have that.
func evidenceOf(t *testing.T, s *scenarios.Scenario, history bool) *Evidence {
	t.Helper()
	e := &Evidence{
		Job:                     s.Name,
		Engine:                  Engine{Name: Lowwater},
		AtMillis:                s.WallStartMillis + s.Expected.DiagnoseAtMillis,
		StartedMillis:           Know(s.WallStartMillis),
		WatermarkIntervalMillis: KnowIf(s.WatermarkIntervalMillis, s.WatermarkIntervalMillis > 0),
		Means: Means{
			Engine: s.Evidence.REST, SplitGauges: s.Evidence.SplitMetrics,
			KafkaOffsets: s.Evidence.KafkaAdmin, KafkaRecords: s.Evidence.KafkaSample,
		},
	}
	if s.Engine != nil {
		e.Engine = Engine{Name: EngineName(s.Engine.Name), Version: s.Engine.Version}
	}
	for i := range s.Job.Sources {
		e.Operators = append(e.Operators, sourceOf(&s.Job.Sources[i]))
	}
	for i := range s.Job.Operators {
		e.Operators = append(e.Operators, operatorOf(&s.Job.Operators[i], e.Operators))
	}
	for i := range s.Snapshots {
		if s.Snapshots[i].AtMillis <= s.Expected.DiagnoseAtMillis {
			e.History = append(e.History, snapshotOf(s, &s.Snapshots[i]))
		}
	}
	if history && s.Evidence.KafkaAdmin && s.Evidence.KafkaSample && len(e.History) > 0 {
		addProfiles(t, s, e)
	}
	return e
}

func sourceOf(s *scenarios.Source) Operator {
	return Operator{
		ID: s.ID, Kind: KindSource, Parallelism: max(s.Parallelism, 1),
		Source: &Source{Topics: []string{s.Topic}, Strategy: strategyOf(s.Strategy, s.Alignment)},
	}
}

func strategyOf(s *scenarios.Strategy, a *scenarios.Alignment) *Strategy {
	if s == nil {
		return &Strategy{Kind: StrategyNone, Timestamps: FromRecord}
	}
	out := &Strategy{
		BoundMillis: Know(s.DelayMillis), IdlenessMillis: Know(s.IdlenessMillis),
		Timestamps: FromPayload,
	}
	switch s.Kind {
	case scenarios.Bounded:
		out.Kind = StrategyBounded
	case scenarios.Monotonous:
		out.Kind = StrategyMonotonous
	case scenarios.WallClock:
		out.Kind = StrategyWallClock
	}
	if s.Timestamp == scenarios.FromKafka {
		out.Timestamps = FromRecord
	}
	if a != nil {
		out.Alignment = &Alignment{a.Group, Know(a.DriftMillis), Know(a.UpdateMillis)}
	}
	return out
}

func operatorOf(o *scenarios.Operator, before []Operator) Operator {
	out := Operator{ID: o.ID, Kind: KindPlain, Parallelism: max(o.Parallelism, 1)}
	ship := ShipHash
	switch o.Kind {
	case scenarios.Window:
		out.Kind = KindWindow
		out.Window = &Window{
			Kind: WindowKind(o.Type), SizeMillis: o.SizeMillis, SlideMillis: o.SlideMillis, OffsetMillis: o.OffsetMillis,
			GapMillis: o.GapMillis, LatenessMillis: o.AllowedLatenessMillis,
		}
	case scenarios.Assign:
		out.Kind, out.Strategy, ship = KindAssign, strategyOf(o.Strategy, nil), ShipForward
		if o.Partitioning == "hash" {
			ship = ShipHash
		}
	case scenarios.Connect:
		out.Kind = KindConnect
	case scenarios.Filter:
		out.Kind, ship = KindFilter, ShipForward
	case scenarios.Forward:
		ship = ShipForward
	}
	for i, in := range o.Inputs {
		input := Input{Broadcast: slices.Contains(o.Broadcast, i)}
		for _, id := range in {
			input.Edges = append(input.Edges, Edge{id, ship})
		}
		out.Inputs = append(out.Inputs, input)
	}
	if ship == ShipForward && o.Parallelism == 0 {
		for _, b := range before {
			if b.ID == out.Inputs[0].Edges[0].From {
				out.Parallelism = b.Parallelism
			}
		}
	}
	return out
}

func snapshotOf(s *scenarios.Scenario, in *scenarios.Snapshot) Snapshot {
	out := Snapshot{AtMillis: s.WallStartMillis + in.AtMillis}
	wall := func(offset *int64, known bool) Known[int64] {
		if offset == nil {
			return KnowIf(Never, known)
		}
		return Know(s.WallStartMillis + *offset)
	}
	for _, src := range s.Job.Sources {
		owner := map[int32]bool{}
		for _, sub := range in.Sources[src.ID] {
			out.Subtasks = append(out.Subtasks, Subtask{
				Operator: src.ID, Index: sub.Subtask, OutputWatermark: known(sub.OutputWatermark),
				RecordsOut: Know(sub.RecordsOut), Idle: KnowIf(sub.Status == "idle", sub.Status != ""),
			})
			for _, sp := range sub.Splits {
				owner[sp.Partition] = true
				out.Splits = append(out.Splits, Split{
					Source: src.ID, Topic: src.Topic, Partition: sp.Partition, Subtask: Know(sub.Subtask),
					Watermark: known(sp.Watermark), State: KnowIf(SplitState(sp.State), sp.State != ""),
					Records: knownInt(sp.Records), PausedMillisPerSecond: knownInt(sp.PausedMillis),
					LastReadMillis: wall(sp.LastReadAtMillis, sp.State != ""),
					MaxEventMillis: known(sp.MaxEventTime),
				})
			}
		}
		for _, k := range in.Kafka[src.Topic] {
			at := slices.IndexFunc(out.Splits, func(sp Split) bool { return sp.Source == src.ID && sp.Partition == k.Partition })
			if at < 0 {
				out.Splits = append(out.Splits, Split{Source: src.ID, Topic: src.Topic, Partition: k.Partition, Unassigned: len(owner) > 0})
				at = len(out.Splits) - 1
			}
			sp := &out.Splits[at]
			sp.PositionOffset, sp.EndOffset, sp.Lag = Know(k.Position), Know(k.EndOffset), Know(k.Lag)
			sp.LastAppendMillis = wall(k.LastAppendAtMillis, k.LastAppendAtMillis != nil || k.EndOffset == 0)
			sp.LastRecordMillis, sp.LastPayloadMillis = known(k.LastRecordTimestamp), known(k.LastPayloadTimestamp)
			if t := timeOf(sp.LastPayloadMillis); t.OK {
				sp.LastPayloadMillis = Know(t.Value * max(multiplier(s, src.ID), 1))
			}
		}
	}
	for id, o := range in.Operators {
		out.Subtasks = append(out.Subtasks, operatorNumbers(id, &o)...)
	}
	for _, k := range in.Tasks {
		out.Tasks = append(out.Tasks, Task{
			Vertex: k.Vertex, Subtask: k.Subtask,
			BusyMillis: Know(k.BusyMillis), BackPressuredMillis: Know(k.BackPressuredMillis), IdleMillis: Know(k.IdleMillis),
		})
	}
	return out
}

func operatorNumbers(id string, o *scenarios.OperatorNumbers) []Subtask {
	if len(o.Subtasks) > 0 {
		var all []Subtask
		for _, sub := range o.Subtasks {
			all = append(all, Subtask{
				Operator: id, Index: sub.Subtask, InputWatermark: known(sub.InputWatermark), OutputWatermark: known(sub.OutputWatermark),
				RecordsIn: knownInt(sub.RecordsIn), RecordsOut: knownInt(sub.RecordsOut), LateDropped: knownInt(sub.LateDropped),
				OpenWindows: knownInt(sub.OpenWindows), Idle: KnowIf(sub.Status == "idle", sub.Status != ""),
			})
		}
		return all
	}
	whole := Subtask{
		Operator: id, Index: WholeOperator, InputWatermark: known(o.InputWatermark), OutputWatermark: known(o.OutputWatermark),
		RecordsIn: knownInt(o.RecordsIn), RecordsOut: knownInt(o.RecordsOut), LateDropped: knownInt(o.LateDropped), OpenWindows: knownInt(o.OpenWindows),
	}
	for _, w := range o.InputWatermarks {
		whole.InputWatermarks = append(whole.InputWatermarks, Know(int64(w)))
	}
	return []Subtask{whole}
}

func known(t *scenarios.Instant) Known[int64] {
	if t == nil {
		return Known[int64]{}
	}
	return Know(int64(*t))
}

func knownInt(n *int64) Known[int64] {
	if n == nil {
		return Known[int64]{}
	}
	return Know(*n)
}

// addProfiles adds what reading the topics back would tell at the time of the diagnosis.
func addProfiles(t *testing.T, s *scenarios.Scenario, e *Evidence) {
	t.Helper()
	records, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	last := &e.History[len(e.History)-1]
	for i := range last.Splits {
		sp := &last.Splits[i]
		var own []scenarios.Record
		for _, r := range records {
			if r.Topic == sp.Topic && r.Partition == sp.Partition && r.AppendMillis <= s.Expected.DiagnoseAtMillis {
				own = append(own, r)
			}
		}
		if len(own) > 0 {
			sp.Profile = profileOf(own, s.WallStartMillis, multiplier(s, sp.Source))
		}
	}
}

// multiplier is what the job multiplies the times in payloads by; 0: it takes the Kafka
// timestamp.
func multiplier(s *scenarios.Scenario, source string) int64 {
	for _, src := range s.Job.Sources {
		if src.ID == source && src.Strategy != nil {
			if src.Strategy.Timestamp == scenarios.FromKafka {
				return 0
			}
			return max(src.Strategy.Multiply, 1)
		}
	}
	return 1
}

// profileOf summarizes records; a factor of 0 takes the Kafka timestamp for event time.
func profileOf(records []scenarios.Record, start, factor int64) *Profile {
	p := &Profile{Records: int64(len(records)), FirstAppendMillis: start + records[0].AppendMillis, LastAppendMillis: start + records[len(records)-1].AppendMillis}
	top, previous := MinTime, p.FirstAppendMillis
	keys := map[string][]int64{}
	youngest, oldest := MaxTime, MinTime
	for i, r := range records {
		at, event := start+r.AppendMillis, r.PayloadTime*factor
		if factor == 0 {
			event = r.KafkaMillis
		}
		if at > previous {
			p.Gaps = append(p.Gaps, Gap{previous, at})
		}
		previous = at
		if d := r.KafkaMillis - r.PayloadTime; r.KafkaMillis != -1 {
			p.PayloadBehindRecordMillis = max(p.PayloadBehindRecordMillis, d, -d)
		}
		if event > at+aheadMillis {
			p.AheadRecords++
			p.MaxAheadMillis = max(p.MaxAheadMillis, event-at)
			p.Ahead = append(p.Ahead, AheadRecord{int64(i), r.Key, event, at})
		} else {
			if top != MinTime {
				p.DisorderMillis = max(p.DisorderMillis, top-event)
			}
			top = max(top, event)
			youngest, oldest = min(youngest, at-event), max(oldest, at-event)
			p.DelaySpreadMillis = oldest - youngest
		}
		keys[r.Key] = append(keys[r.Key], event)
	}
	slices.SortFunc(p.Gaps, func(a, b Gap) int { return int(b.Millis() - a.Millis()) })
	p.Gaps = p.Gaps[:min(len(p.Gaps), 32)]
	if n := len(p.Ahead); n > 8 {
		p.Ahead = p.Ahead[n-8:]
	}
	for key, events := range keys {
		if len(events) < 10 {
			continue
		}
		slices.Sort(events)
		span := events[len(events)-1] - events[0]
		gap := top - events[len(events)-1]
		for i := range events[1:] {
			gap = max(gap, events[i+1]-events[i])
		}
		if !p.SteadiestGapMillis.OK || gap < p.SteadiestGapMillis.Value || gap == p.SteadiestGapMillis.Value && span > p.SteadiestSpanMillis {
			p.SteadiestGapMillis, p.SteadiestSpanMillis, p.SteadiestKey = Know(gap), span, key
		}
	}
	return p
}
