package why

import "fmt"

// lateness is the late records of a target. What it does with them is the same for all: it
// drops them, or aside tells that they go to a side output.
type lateness struct {
	aside        bool
	total, grown Known[int64]
	in, inGrown  Known[int64]
	bySplit      []LateCount
	samples      []LateSample
}

func (v *view) latenessOf(o *Operator) lateness {
	var l lateness
	l.total, l.grown = v.grown(o.ID, func(s *Subtask) Known[int64] { return s.LateDropped })
	if l.total.Or(0) == 0 {
		if total, grown := v.grown(o.ID, func(s *Subtask) Known[int64] { return s.LateOutput }); total.Or(0) > 0 {
			l.aside, l.total, l.grown = true, total, grown
		}
	}
	l.in, l.inGrown = v.grown(o.ID, func(s *Subtask) Known[int64] { return s.RecordsIn })
	for _, s := range v.subs[o.ID] {
		l.bySplit = append(l.bySplit, s.LateBySplit...)
		l.samples = append(l.samples, s.LateSamples...)
	}
	return l
}

// losing reports whether the target finds a part of its records late that is worth telling,
// now or before.
func (t *target) losing() bool {
	l := &t.late
	if l.growing() {
		return l.grown.Value*1000 >= l.inGrown.Or(0)
	}
	return l.lost()
}

// lost reports whether at least one record in a hundred was late.
func (l *lateness) lost() bool {
	return l.total.OK && l.total.Value > 0 && l.total.Value*100 >= l.in.Or(0)
}

// growing reports whether records are late now.
func (l *lateness) growing() bool { return l.grown.OK && l.grown.Value > 0 }

// all reports whether practically every record is late.
func (l *lateness) all() bool {
	if l.grown.OK && l.inGrown.OK && l.inGrown.Value > 0 {
		return l.grown.Value*100 >= l.inGrown.Value*95
	}
	return l.total.OK && l.in.OK && l.in.Value > 0 && l.total.Value*100 >= l.in.Value*95
}

// lateSinceMillis estimates when records began to be late, from their rate now.
func (t *target) lateSinceMillis() Known[int64] {
	l := &t.late
	if !l.growing() || t.v.spanMillis <= 0 {
		return Known[int64]{}
	}
	lasted := l.total.Value * t.v.spanMillis / l.grown.Value
	return Know(max(t.v.now.AtMillis-lasted, t.v.now.AtMillis-t.v.upMillis()))
}

// severity says what late records do to results. Those in a side output are not lost, but if
// it is practically all of them, results lack them.
func (l *lateness) severity() Severity {
	switch {
	case !l.aside:
		return Loss
	case l.all():
		return WrongResult
	}
	return Fine
}

// worse returns the severity of late records, or of what else they come with.
func (l *lateness) worse(s Severity) Severity {
	if late := l.severity(); late.rank() < s.rank() {
		return late
	}
	return s
}

// drops says what the target does with records that are late.
func (l *lateness) drops(records string) string {
	if l.aside {
		return "sends " + records + " to its side output as late"
	}
	return "drops " + records + " as late"
}

// dropped says what the target has done with its late records, and how many there were.
func (l *lateness) dropped() string {
	n := count(l.total.Value, "record")
	if l.aside {
		return "has sent " + n + " to its side output as late"
	}
	return "has dropped " + n + " as late"
}

const (
	lateDropped = "late_dropped"
	lateOutput  = "late_side_output"
)

// addLate adds the numbers of late records.
func (f *Finding) addLate(t *target) {
	l := &t.late
	if !l.total.OK {
		return
	}
	name := lateDropped
	if l.aside {
		name = lateOutput
	}
	f.Numbers = append(f.Numbers, Number{name, l.total.Value})
	s := quoted(t.v.nameOf(t.op.ID)) + " " + l.dropped()
	if l.grown.OK {
		s += fmt.Sprintf(", %d in the last %s", l.grown.Value, duration(t.v.spanMillis))
	}
	if l.in.OK {
		s += fmt.Sprintf(", of %d", l.in.Value)
	}
	f.Why = append(f.Why, s+".")
	if l.aside {
		f.Why = append(f.Why, "They are not lost: the side output has them.")
	}
}

// fewLate tells of late records that are too few to look for their cause.
func fewLate(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		l := &t.late
		if l.total.Or(0) <= 0 || t.losing() {
			continue
		}
		f := Finding{
			Code: NotEnoughEvidence, Severity: Fine,
			Culprit: Culprit{Operator: t.op.ID},
			Answer:  fmt.Sprintf("%s %s%s", t.title(), l.dropped(), shareOf(l.total, l.in)),
		}
		if l.growing() {
			f.Answer += fmt.Sprintf(", %d of them in the last %s%s", l.grown.Value, duration(v.spanMillis), shareOf(l.grown, l.inGrown))
		}
		f.Answer += ". That is few enough to be meant."
		f.addLate(t)
		if n := l.in.Or(0); n > 0 {
			f.Numbers = append(f.Numbers, Number{"late_ppm", int64(float64(l.total.Value) * 1e6 / float64(n))})
		}
		found = append(found, f)
	}
	return found
}

// shareOf writes the share of late records, nothing if it is unknown.
func shareOf(late, in Known[int64]) string {
	if !late.OK || in.Or(0) <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2g %%)", float64(late.Value)*100/float64(in.Value))
}

// aside reports whether a finding is of late records that went to a side output.
func (f *Finding) aside() bool {
	_, ok := f.Number(lateOutput)
	return ok
}
