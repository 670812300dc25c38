package why

import (
	"maps"
	"slices"
)

// Report is a diagnosis for machines. The names of its members are stable; docs/why.md
// describes them. Event times and numbers that end in _ms are milliseconds.
type Report struct {
	Job      string          `json:"job"`
	AtMillis int64           `json:"at_ms"`
	Cause    Code            `json:"cause"` // of the first finding
	Severity Severity        `json:"severity"`
	Findings []FindingReport `json:"findings"`
	Blind    []string        `json:"could_not_see,omitempty"`
}

// FindingReport is a Finding for machines.
type FindingReport struct {
	Code         Code             `json:"code"`
	Severity     Severity         `json:"severity"`
	Likely       bool             `json:"likely"` // not sure: see Unless
	Answer       string           `json:"answer"`
	Culprit      CulpritReport    `json:"culprit"`
	Why          []string         `json:"why,omitempty"`
	Numbers      map[string]int64 `json:"numbers,omitempty"`
	RuledOut     []RuledOutReport `json:"ruled_out,omitempty"`
	Unless       []UnlessReport   `json:"unless,omitempty"`
	Fixes        []FixReport      `json:"fixes,omitempty"`
	Then         []Code           `json:"then,omitempty"`
	Consequences []Code           `json:"explains,omitempty"`
}

// CulpritReport is a Culprit for machines.
type CulpritReport struct {
	Source     string   `json:"source,omitempty"`
	Topic      string   `json:"topic,omitempty"`
	Partitions []int32  `json:"partitions,omitempty"`
	Subtasks   []int    `json:"subtasks,omitempty"`
	Operator   string   `json:"operator,omitempty"`
	Key        string   `json:"key,omitempty"`
	Input      *int     `json:"input,omitempty"`
	Paused     []string `json:"paused,omitempty"`
}

// RuledOutReport is a RuledOut for machines.
type RuledOutReport struct {
	Code    Code   `json:"code"`
	Because string `json:"because"`
}

// UnlessReport is an Unless for machines.
type UnlessReport struct {
	Code  Code   `json:"code"`
	Needs string `json:"needs"`
}

// FixReport is a Fix for machines.
type FixReport struct {
	Code  FixCode `json:"code"`
	Do    string  `json:"do"`
	Go    string  `json:"go,omitempty"`
	Java  string  `json:"java,omitempty"`
	SQL   string  `json:"sql,omitempty"`
	Costs string  `json:"costs"`
}

// Report returns the diagnosis for machines.
func (d *Diagnosis) Report() Report {
	r := Report{
		Job: d.Job, AtMillis: d.AtMillis, Cause: d.Answer().Code, Severity: d.Answer().Severity,
		Findings: []FindingReport{}, Blind: slices.Concat(d.Blind, d.Failed),
	}
	for i := range d.Findings {
		r.Findings = append(r.Findings, d.Findings[i].report())
	}
	return r
}

// Diagnosis returns the diagnosis that a report is of, for an engine. The numbers are in the
// order of their names.
func (r *Report) Diagnosis(engine Engine) *Diagnosis {
	d := &Diagnosis{Job: r.Job, AtMillis: r.AtMillis, Engine: engine, Blind: r.Blind}
	for i := range r.Findings {
		d.Findings = append(d.Findings, r.Findings[i].finding())
	}
	return d
}

func (r *FindingReport) finding() Finding {
	c := &r.Culprit
	f := Finding{
		Code: r.Code, Severity: r.Severity, Answer: r.Answer, Why: r.Why,
		Culprit: Culprit{Source: c.Source, Topic: c.Topic, Partitions: c.Partitions, Subtasks: c.Subtasks, Operator: c.Operator, Key: c.Key, Paused: c.Paused},
		Then:    r.Then, Consequences: r.Consequences,
	}
	if c.Input != nil {
		f.Culprit.Input = Know(*c.Input)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Numbers)) {
		f.Numbers = append(f.Numbers, Number{name, r.Numbers[name]})
	}
	for _, x := range r.RuledOut {
		f.RuledOut = append(f.RuledOut, RuledOut(x))
	}
	for _, x := range r.Unless {
		f.Unless = append(f.Unless, Unless(x))
	}
	for _, x := range r.Fixes {
		f.Fixes = append(f.Fixes, Fix(x))
	}
	return f
}

func (f *Finding) report() FindingReport {
	c := &f.Culprit
	r := FindingReport{
		Code: f.Code, Severity: f.Severity, Likely: len(f.Unless) > 0, Answer: f.Answer, Why: slices.Clone(f.Why),
		Culprit: CulpritReport{Source: c.Source, Topic: c.Topic, Partitions: c.Partitions, Subtasks: c.Subtasks, Operator: c.Operator, Key: c.Key, Paused: c.Paused},
		Then:    f.Then, Consequences: f.Consequences,
	}
	if c.Input.OK {
		r.Culprit.Input = &c.Input.Value
	}
	if len(f.Numbers) > 0 {
		r.Numbers = map[string]int64{}
	}
	for _, n := range f.Numbers {
		r.Numbers[n.Name] = n.Value
	}
	for _, x := range f.RuledOut {
		r.RuledOut = append(r.RuledOut, RuledOutReport(x))
	}
	for _, x := range f.Unless {
		r.Unless = append(r.Unless, UnlessReport(x))
	}
	for _, x := range f.Fixes {
		r.Fixes = append(r.Fixes, FixReport(x))
	}
	return r
}
