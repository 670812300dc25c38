package why

import (
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// variantStart is the wall clock at the start of a variant: a Tuesday, 09:00 UTC.
const variantStart = 1_950_166_800_000

// variant is a scenario that is simulated for the diagnosis.
type variant struct {
	name   string
	at     int64 // of the diagnosis; the snapshot before it is a minute earlier
	topics []scenarios.Topic
	job    scenarios.Job
	want   scenarios.Verdict
	accept []string
	// tasks is the load of tasks by vertex, where it is not small.
	tasks map[string][2]int64 // busy, back-pressured
	// seen are its snapshots with all means.
	seen []scenarios.Snapshot
	// needs says which means it takes; without them another verdict is right.
	needs string
}

// steady is a partition with a record every so many milliseconds.
func steady(partition int32, every int64, keys ...string) scenarios.Series {
	if keys == nil {
		keys = []string{fmt.Sprint("k", partition)}
	}
	return scenarios.Series{
		Partition: partition, FromMillis: 1000 + 100*int64(partition), ToMillis: 100_000_000, EveryMillis: every,
		PayloadFirst: variantStart + 1000 + 100*int64(partition), PayloadStep: every, Keys: keys,
	}
}

func until(s scenarios.Series, to int64) scenarios.Series { s.ToMillis = to; return s }

// shifted moves the event times.
func shifted(s scenarios.Series, by int64) scenarios.Series { s.PayloadFirst += by; return s }

// scaled changes the unit of event times.
func scaled(s scenarios.Series, multiply, divide int64) scenarios.Series {
	s.PayloadFirst = s.PayloadFirst / divide * multiply
	s.PayloadStep = s.PayloadStep * multiply / divide
	return s
}

func readSlowly(s scenarios.Series, every int64) scenarios.Series {
	s.ReadFromMillis, s.ReadEveryMillis = ptr(s.FromMillis), ptr(every)
	return s
}

func topic(name string, partitions int32, series ...scenarios.Series) scenarios.Topic {
	return scenarios.Topic{Name: name, Partitions: partitions, Series: series}
}

func bounded(delay, idleness int64) *scenarios.Strategy {
	return &scenarios.Strategy{Kind: scenarios.Bounded, DelayMillis: delay, IdlenessMillis: idleness}
}

func from(id, topic string, parallelism int, s *scenarios.Strategy) scenarios.Source {
	return scenarios.Source{ID: id, Topic: topic, Parallelism: parallelism, Strategy: s}
}

func tumbling(id string, size int64, inputs ...string) scenarios.Operator {
	return scenarios.Operator{ID: id, Kind: scenarios.Window, Type: scenarios.Tumbling, SizeMillis: size, Inputs: []scenarios.Input{inputs}}
}

func job(parts ...any) scenarios.Job {
	var j scenarios.Job
	for _, p := range parts {
		switch p := p.(type) {
		case scenarios.Source:
			j.Sources = append(j.Sources, p)
		case scenarios.Operator:
			j.Operators = append(j.Operators, p)
		}
	}
	return j
}

func verdict(cause, severity string, c scenarios.Culprit, fix ...string) scenarios.Verdict {
	return scenarios.Verdict{Cause: cause, Severity: severity, Culprit: c, Fix: fix}
}

func facts(pairs ...any) map[string]jsontext.Value {
	m := map[string]jsontext.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = jsontext.Value(fmt.Sprint(pairs[i+1]))
	}
	return m
}

var healthy = verdict("none", "none", scenarios.Culprit{})

// means are what an observer may have.
var means = []struct {
	name string
	scenarios.Means
}{
	{"all", scenarios.Means{REST: true, SplitMetrics: true, KafkaAdmin: true, KafkaSample: true}},
	{"no gauges", scenarios.Means{REST: true, KafkaAdmin: true, KafkaSample: true}},
	{"no records", scenarios.Means{REST: true, SplitMetrics: true, KafkaAdmin: true}},
	{"offsets only", scenarios.Means{REST: true, KafkaAdmin: true}},
	{"gauges only", scenarios.Means{REST: true, SplitMetrics: true}},
	{"rest only", scenarios.Means{REST: true}},
}

// scenario simulates a variant for an observer.
func (v *variant) scenario(t *testing.T, m scenarios.Means) *scenarios.Scenario {
	t.Helper()
	s := &scenarios.Scenario{
		Name: v.name, Mode: scenarios.Replay, WallStartMillis: variantStart, DurationMillis: v.at + 60_000, WatermarkIntervalMillis: 200,
		Evidence: m, Topics: v.topics, Job: v.job,
		Expected: scenarios.Expected{DiagnoseAtMillis: v.at, Verdict: v.want, Accept: v.accept},
	}
	for i := range s.Topics {
		for j := range s.Topics[i].Series {
			s.Topics[i].Series[j].ToMillis = min(s.Topics[i].Series[j].ToMillis, v.at+60_000)
		}
	}
	at := []int64{v.at - 60_000, v.at}
	if at[0] <= 0 {
		at = at[1:]
	}
	if v.seen == nil {
		s.Evidence = scenarios.Means{REST: true, SplitMetrics: true, KafkaAdmin: true, KafkaSample: true}
		v.seen = simulate(t, s, at...)
		s.Evidence = m
	}
	for i := range v.seen {
		s.Snapshots = append(s.Snapshots, masked(&v.seen[i], m))
	}
	for i := range s.Snapshots {
		for j := range s.Snapshots[i].Tasks {
			task := &s.Snapshots[i].Tasks[j]
			if load, ok := v.tasks[task.Vertex]; ok {
				task.BusyMillis, task.BackPressuredMillis, task.IdleMillis = load[0], load[1], max(0, 1000-load[0]-load[1])
			}
		}
	}
	return s
}

// masked returns what an observer sees of a snapshot.
func masked(s *scenarios.Snapshot, m scenarios.Means) scenarios.Snapshot {
	out := scenarios.Snapshot{AtMillis: s.AtMillis}
	if m.REST {
		out.Operators, out.Tasks = s.Operators, slices.Clone(s.Tasks)
		out.Sources = map[string][]scenarios.SourceSubtask{}
		for id, subtasks := range s.Sources {
			for _, sub := range subtasks {
				if !m.SplitMetrics {
					sub.Status, sub.Splits = "", slices.Clone(sub.Splits)
					for i := range sub.Splits {
						sub.Splits[i] = scenarios.SplitSnapshot{Partition: sub.Splits[i].Partition}
					}
				}
				out.Sources[id] = append(out.Sources[id], sub)
			}
		}
	}
	if m.KafkaAdmin {
		out.Kafka = map[string][]scenarios.KafkaPartition{}
		for topic, partitions := range s.Kafka {
			for _, p := range partitions {
				if !m.KafkaSample {
					p.LastPayloadTimestamp = nil
				}
				out.Kafka[topic] = append(out.Kafka[topic], p)
			}
		}
	}
	return out
}

// TestVariants scores variants of the scenarios with all means and with fewer. With all of
// them the verdict must be right; with fewer it may say that it is not sure.
func TestVariants(t *testing.T) {
	got, of := 0, 0
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			for _, m := range means {
				s := v.scenario(t, m.Means)
				for _, history := range []bool{false, true} {
					d := Diagnose(evidenceOf(t, s, history))
					p := score(d, s)
					full := m.KafkaAdmin && m.KafkaSample && m.SplitMetrics
					if full {
						got, of = got+p.Points, of+p.Of
						if len(p.Missed) > 0 {
							t.Errorf("%s, topics %t: %d of %d: %s\n%v", m.name, history, p.Points, p.Of, strings.Join(p.Missed, "; "), d)
						}
						continue
					}
					if verdict, ok := honestly(d, s); !ok {
						t.Errorf("%s, topics %t: %s\n%v", m.name, history, verdict, d)
					} else if verdict == "nothing" && !strings.Contains(v.needs, "records") && (m.KafkaAdmin || m.SplitMetrics) {
						t.Errorf("%s, topics %t: sees nothing\n%v", m.name, history, d)
					}
				}
			}
		})
	}
	t.Logf("variants: %d of %d points", got, of)
}

// TestVariantNames: a name is given once.
func TestVariantNames(t *testing.T) {
	var names []string
	for _, v := range variants() {
		if slices.Contains(names, v.name) {
			t.Errorf("two variants are called %s", v.name)
		}
		names = append(names, v.name)
	}
}
