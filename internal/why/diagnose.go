package why

import (
	"cmp"
	"fmt"
	"slices"
)

// rule finds causes of one kind.
type rule func(*view) []Finding

// rules are all of them. They are independent of each other: what explains what is decided
// on their findings.
var rules = []rule{
	wrongUnit, missing, timezone, future, noAssigner,
	withoutStrategy, overParallel, filtered, droppedInOperator, maxLeak,
	aligned, quietInputs, standStill,
	wallClock, idleBlocked, idleTooShort, afterSource, disorder,
	stuckReaders, reading, skewed, byDesign, windows, fewLate,
}

// Diagnose finds what holds event time back, lets it run ahead or loses records, and what
// to change. It is a pure function of the evidence.
func Diagnose(e *Evidence) *Diagnosis {
	v := newView(e)
	d := &Diagnosis{Job: e.Job, AtMillis: e.AtMillis, Engine: e.Engine, Blind: blind(v)}
	for _, r := range rules {
		d.Findings = append(d.Findings, r(v)...)
	}
	d.Findings = v.explain(merge(d.Findings))
	if !slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Severity != Fine }) {
		d.Findings = append(d.Findings, unexplained(v)...)
	}
	slices.SortStableFunc(d.Findings, before)
	if len(d.Findings) == 0 || d.Findings[0].Severity == Fine && !d.Findings[0].answers() {
		d.Findings = slices.Insert(d.Findings, 0, nothing(v))
	}
	return d
}

// answers reports whether a finding without harm is the answer all the same: it tells why
// nothing has come out, or why records have come out of a side output.
func (f *Finding) answers() bool {
	c := f.Code
	return c == WindowNotDue || c == SessionNeverGaps || c == DelayByDesign || c == AllInputsQuiet || c == TimestampsStandStill || f.aside() && c != NotEnoughEvidence
}

// before orders findings: the worse first, then the order of the registry.
func before(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(order(a.Code), order(b.Code)),
		cmp.Compare(len(a.Unless), len(b.Unless)))
}

// merge drops findings that say the same as one before: several windows behind one source
// show the same trouble.
func merge(all []Finding) []Finding {
	var kept []Finding
	for _, f := range all {
		same := func(k Finding) bool {
			return k.Code == f.Code && k.Culprit.Source == f.Culprit.Source && k.Culprit.Operator == f.Culprit.Operator &&
				slices.Equal(k.Culprit.Partitions, f.Culprit.Partitions)
		}
		if !slices.ContainsFunc(kept, same) {
			kept = append(kept, f)
		}
	}
	return kept
}

// explain removes the findings that others explain, and names them as their consequences.
func (v *view) explain(all []Finding) []Finding {
	explained := make([]bool, len(all))
	for i := range all {
		for j := range all {
			if i == j || explained[j] || explained[i] || !v.explains(&all[i], &all[j]) {
				continue
			}
			explained[j] = true
			all[i].addConsequence(all[j].Code)
		}
	}
	var kept []Finding
	for i, f := range all {
		if !explained[i] {
			kept = append(kept, f)
		}
	}
	return kept
}

func (f *Finding) addConsequence(c Code) {
	if c != f.Code && c != NotEnoughEvidence && c != WindowNotDue && !slices.Contains(f.Consequences, c) && !slices.Contains(f.Then, c) {
		f.Consequences = append(f.Consequences, c)
	}
}

// explains reports whether b is only what a leads to.
func (v *view) explains(a, b *Finding) bool {
	if a.Severity == Fine && !(a.aside() && b.aside()) || !slices.Contains(entryOf(a.Code).explains, b.Code) {
		return false
	}
	if b.Severity.rank() < a.Severity.rank() && len(a.Unless) > 0 && len(b.Unless) == 0 {
		return false // what is sure and worse is not explained by a guess
	}
	if (a.Code == TimestampsTooFine || a.Code == FutureTimestamp || a.Code == TimestampsMissing) && b.Severity == Stall && len(b.Unless) == 0 &&
		len(a.Culprit.Partitions) > 0 && len(b.Culprit.Partitions) > 0 && (a.Culprit.Source != b.Culprit.Source || disjoint(a.Culprit.Partitions, b.Culprit.Partitions)) {
		return false // what is ahead, or comes from elsewhere, does not hold others back
	}
	return v.related(a, b)
}

func disjoint(a, b []int32) bool {
	return !slices.ContainsFunc(a, func(p int32) bool { return slices.Contains(b, p) })
}

// related reports whether two findings concern one another: the same source, or an operator
// that both feed.
func (v *view) related(a, b *Finding) bool {
	if a.Culprit.Source == b.Culprit.Source || a.Culprit.Source == "" || b.Culprit.Source == "" {
		return true
	}
	for _, t := range v.targets() {
		in := func(id string) bool {
			return slices.ContainsFunc(t.feeds, func(f feed) bool { return f.src.op.ID == id })
		}
		if in(a.Culprit.Source) && in(b.Culprit.Source) {
			return true
		}
	}
	return false
}

// distance says how far something is behind, or ahead of, what follows.
func distance(behind int64) string {
	if behind < 0 {
		return duration(-behind) + " ahead of"
	}
	return duration(behind) + " behind"
}

// blind says what could not be seen.
func blind(v *view) []string {
	var all []string
	m := v.e.Means
	if !m.Engine {
		all = append(all, "No watermarks of the job: whether a window waits cannot be told.")
	}
	if v.past == nil {
		all = append(all, "One look only: what stands still cannot be told from what moves. Look again after 30 s.")
	} else if v.spanMillis < patienceMillis {
		all = append(all, "The looks were "+duration(v.spanMillis)+" apart: that a reader has stopped takes "+duration(patienceMillis)+" to tell.")
	}
	if !m.SplitGauges {
		all = append(all, "No gauges of single splits (Flink from 2.1 on): which partition of a subtask holds is inferred.")
	}
	kafka := slices.ContainsFunc(v.sources, (*source).kafka)
	// A job may tell how much is still to be read, too.
	if kafka && !m.KafkaOffsets && !slices.ContainsFunc(v.now.Splits, func(sp Split) bool { return sp.lag().OK }) {
		all = append(all, "No offsets from Kafka: a silent partition and a reader that stopped look the same.")
	}
	if kafka && !m.KafkaRecords {
		all = append(all, "No records from Kafka: units, time zones and the disorder of timestamps are inferred from watermarks.")
	}
	for _, s := range v.sources {
		if s.misreads {
			all = append(all, fmt.Sprintf("The times in payloads of topic %s: they are %s, which the job converts by its watermarks, and were not read as such. Read them with --unit %s.",
				s.topic(nil), s.misread.name, s.misread.short))
		}
		if s.gen.strategy == nil && s.gen.place != genNone {
			all = append(all, "The watermark strategy of source "+quoted(v.nameOf(s.op.ID))+" is unknown: bound and idle timeout are inferred.")
		}
	}
	return all
}
