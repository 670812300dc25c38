package why

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/test/scenarios"
)

// mutations take one means of evidence away each.
var mutations = []struct {
	name string
	take func(*Evidence)
}{
	{"nothing", func(*Evidence) {}},
	{"the engine", func(e *Evidence) {
		e.Means.Engine, e.Means.SplitGauges = false, false
		eachSnapshot(e, func(s *Snapshot) {
			s.Subtasks, s.Tasks = nil, nil
			for i := range s.Splits {
				withoutGauges(&s.Splits[i])
				s.Splits[i].Subtask, s.Splits[i].Unassigned = Known[int]{}, false
			}
		})
	}},
	{"gauges of splits", func(e *Evidence) {
		e.Means.SplitGauges = false
		eachSplit(e, withoutGauges)
	}},
	{"offsets from Kafka", func(e *Evidence) {
		e.Means.KafkaOffsets = false
		eachSplit(e, func(sp *Split) {
			sp.PositionOffset, sp.EndOffset, sp.Lag = Known[int64]{}, Known[int64]{}, Known[int64]{}
			sp.LastAppendMillis, sp.LastRecordMillis = Known[int64]{}, Known[int64]{}
			sp.Profile = nil
		})
	}},
	{"records from Kafka", func(e *Evidence) {
		e.Means.KafkaRecords = false
		eachSplit(e, func(sp *Split) { sp.LastPayloadMillis, sp.Profile = Known[int64]{}, nil })
	}},
	{"all of Kafka", func(e *Evidence) {
		e.Means.KafkaOffsets, e.Means.KafkaRecords = false, false
		eachSplit(e, func(sp *Split) {
			*sp = Split{
				Source: sp.Source, Topic: sp.Topic, Partition: sp.Partition, Subtask: sp.Subtask, Watermark: sp.Watermark, State: sp.State,
				Records: sp.Records, LastReadMillis: sp.LastReadMillis, MaxEventMillis: sp.MaxEventMillis, PausedMillisPerSecond: sp.PausedMillisPerSecond,
			}
		})
	}},
	{"load of tasks", func(e *Evidence) { eachSnapshot(e, func(s *Snapshot) { s.Tasks = nil }) }},
	{"the past", func(e *Evidence) { e.History = e.History[max(len(e.History)-1, 0):] }},
	{"strategies", func(e *Evidence) {
		for i := range e.Operators {
			e.Operators[i].Strategy = nil
			if src := e.Operators[i].Source; src != nil {
				src.Strategy = nil
			}
		}
	}},
	{"windows", func(e *Evidence) {
		for i := range e.Operators {
			e.Operators[i].Window = nil
		}
	}},
	{"the start", func(e *Evidence) { e.StartedMillis, e.WatermarkIntervalMillis = Known[int64]{}, Known[int64]{} }},
	{"counters", func(e *Evidence) {
		eachSnapshot(e, func(s *Snapshot) {
			for i := range s.Subtasks {
				s.Subtasks[i].RecordsIn, s.Subtasks[i].RecordsOut = Known[int64]{}, Known[int64]{}
				s.Subtasks[i].OpenWindows = Known[int64]{}
			}
		})
	}},
}

func eachSnapshot(e *Evidence, do func(*Snapshot)) {
	for i := range e.History {
		do(&e.History[i])
	}
}

func eachSplit(e *Evidence, do func(*Split)) {
	eachSnapshot(e, func(s *Snapshot) {
		for i := range s.Splits {
			do(&s.Splits[i])
		}
	})
}

func withoutGauges(sp *Split) {
	sp.Watermark, sp.State, sp.Records = Known[int64]{}, Known[SplitState]{}, Known[int64]{}
	sp.LastReadMillis, sp.MaxEventMillis, sp.PausedMillisPerSecond = Known[int64]{}, Known[int64]{}, Known[int64]{}
}

// TestLessEvidence takes one means of evidence away from each scenario. The verdict must
// stay, become one that is less exact, or say that it is not sure; never one that is
// wrong, and never an alarm on a healthy job.
func TestLessEvidence(t *testing.T) {
	same, honest := 0, 0
	for _, s := range allScenarios(t) {
		for _, m := range mutations {
			for _, history := range []bool{false, true} {
				e := evidenceOf(t, s, history)
				m.take(e)
				d := Diagnose(e)
				verdict, ok := honestly(d, s)
				if !ok {
					t.Errorf("%s without %s: %s\n%v", s.Name, m.name, verdict, d)
				}
				if verdict == "same" {
					same++
					continue
				}
				honest++
				if testing.Verbose() {
					t.Logf("%s without %s: %s: %s", s.Name, m.name, verdict, d.Answer().Answer)
				}
			}
		}
	}
	t.Logf("%d verdicts stay, %d say that they lack evidence", same, honest)
}

// honestly judges the answer of a diagnosis with less evidence.
func honestly(d *Diagnosis, s *scenarios.Scenario) (verdict string, ok bool) {
	a, want := d.Answer(), &s.Expected.Verdict
	may := func(c Code) bool { return string(c) == want.Cause || slices.Contains(s.Expected.Accept, string(c)) }
	switch {
	case want.Severity == "none":
		return "same", a.Severity == Fine
	case may(a.Code):
		return "same", true
	case slices.ContainsFunc(a.Unless, func(u Unless) bool { return may(u.Code) }):
		return "not sure", true
	case slices.Contains(s.Expected.Reject, string(a.Code)):
		return "rejected: " + string(a.Code), false
	case a.Code == NotEnoughEvidence && a.Severity != Fine:
		return "not enough", true
	case a.Severity == Fine:
		return "nothing", len(d.Blind) > 0
	}
	return "other: " + string(a.Code), false
}

// TestLittleEvidence takes several means away at once, at random. A verdict may then be
// any that is honest; never one that the file rejects, and no alarm on a healthy job.
func TestLittleEvidence(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("LOWWATER_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("LOWWATER_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := allScenarios(t)
	for _, v := range healthyVariants() {
		all = append(all, v.scenario(t, means[0].Means))
	}
	for _, s := range all {
		for range 20 {
			e := evidenceOf(t, s, random.IntN(2) == 0)
			var taken []string
			for _, m := range mutations {
				if random.IntN(4) == 0 {
					m.take(e)
					taken = append(taken, m.name)
				}
			}
			blur(e, random, random.IntN(4)*10)
			d := Diagnose(e)
			if verdict, ok := honestly(d, s); !ok && (s.Expected.Verdict.Severity == "none" || strings.HasPrefix(verdict, "rejected")) {
				t.Errorf("%s without %v: %s\n%v", s.Name, taken, verdict, d)
			}
		}
	}
}

// TestTornEvidence gives rules what a collector that is cut off in the middle would: parts
// of the graph, subtasks and splits that do not belong together. They must come to an
// end with an answer.
func TestTornEvidence(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for _, s := range allScenarios(t) {
		for range 50 {
			e := evidenceOf(t, s, false)
			tear(e, random)
			if d := Diagnose(e); len(d.Findings) == 0 || d.String() == "" {
				t.Errorf("%s: no answer", s.Name)
			}
			Hold(e, "")
		}
	}
}

func tear(e *Evidence, random *rand.Rand) {
	some := func() bool { return random.IntN(4) == 0 }
	e.Operators = slices.DeleteFunc(e.Operators, func(Operator) bool { return some() })
	for i := range e.Operators {
		o := &e.Operators[i]
		if some() {
			o.Inputs = nil
		}
		if some() {
			o.Source, o.Window, o.Strategy = nil, nil, nil
		}
		if some() {
			o.Parallelism = random.IntN(3)
		}
		if some() && len(e.Operators) > 1 { // perhaps even a loop
			o.Inputs = append(o.Inputs, Input{Edges: []Edge{{e.Operators[random.IntN(len(e.Operators))].ID, ShipForward}}})
		}
	}
	eachSnapshot(e, func(s *Snapshot) {
		s.Subtasks = slices.DeleteFunc(s.Subtasks, func(Subtask) bool { return some() })
		s.Splits = slices.DeleteFunc(s.Splits, func(Split) bool { return some() })
		if len(s.Splits) > 0 && some() {
			s.Splits = append(s.Splits, s.Splits[0])
			s.Splits[0].Source = "nobody"
		}
	})
	if some() {
		e.History = nil
	}
	blur(e, random, 20)
}

// blur makes single values unknown, so many in a hundred.
func blur(e *Evidence, random *rand.Rand, percent int) {
	lose := func(values ...*Known[int64]) {
		for _, v := range values {
			if random.IntN(100) < percent {
				*v = Known[int64]{}
			}
		}
	}
	eachSnapshot(e, func(s *Snapshot) {
		for i := range s.Subtasks {
			b := &s.Subtasks[i]
			lose(&b.InputWatermark, &b.OutputWatermark, &b.RecordsIn, &b.RecordsOut, &b.LateDropped, &b.OpenWindows)
		}
		for i := range s.Splits {
			sp := &s.Splits[i]
			lose(&sp.Watermark, &sp.Records, &sp.LastReadMillis, &sp.MaxEventMillis, &sp.PositionOffset, &sp.EndOffset, &sp.Lag,
				&sp.LastAppendMillis, &sp.LastRecordMillis, &sp.LastPayloadMillis)
		}
		for i := range s.Tasks {
			lose(&s.Tasks[i].BusyMillis, &s.Tasks[i].BackPressuredMillis, &s.Tasks[i].IdleMillis)
		}
	})
}
