package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/plan"
)

// largestPlan bounds a plan that is read.
const largestPlan = 16 << 20

type explainCommand struct {
	Plan      string `arg:"" optional:"" placeholder:"PLAN.json" help:"A plan that Environment.Plan has written; - is standard input."`
	URL       string `name:"url" placeholder:"URL" help:"Explain a running job by its REST interface instead."`
	Job       string `placeholder:"ID|NAME" help:"The job there; may be left out if only one runs."`
	TokenFile string `name:"token-file" placeholder:"FILE" help:"Send the bearer token in this file."`
	CA        string `name:"ca" placeholder:"FILE" help:"Trust the certificates in this PEM file."`
	JSON      bool   `name:"json" help:"Print JSON."`
}

// Help is what `lowwater explain --help` adds.
func (*explainCommand) Help() string {
	return `Says what in a job's plan will surprise its author, before any record flows:
subtasks without a partition, windows without watermarks, sides of joins and unions
that can hold the others, strategies in the wrong place, numbers that do not fit.
What is not known, such as the strategies of a Flink job, is not judged.

    lowwater explain plan.json
    lowwater explain --url http://jobmanager:8081 --job orders

Exit codes: 0 no warnings, 1 warnings, 2 could not look.`
}

// Validate is called by kong.
func (c *explainCommand) Validate() error {
	if (c.Plan == "") == (c.URL == "") {
		return errors.New("give a plan (a file or -), or --url")
	}
	return nil
}

// explained is a plan with what is to say about it.
type explained struct {
	Job       string         `json:"job"`
	Operators []why.Operator `json:"-"`
	// stateBytes is what keyed state may take in each subtask, by the ids of operators that
	// have a limit.
	stateBytes map[string]int64
	Warnings   []plan.Warning `json:"warnings"`
	Unseen     []string       `json:"could_not_see,omitempty"`
}

// Run explains.
func (c *explainCommand) Run(stdout io.Writer) error { return blind(c.run(stdout)) }

func (c *explainCommand) run(stdout io.Writer) error {
	var e *explained
	var err error
	if c.URL != "" {
		e, err = c.running()
	} else {
		e, err = readPlan(c.Plan)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(e)
	} else {
		err = e.write(stdout)
	}
	if err == nil && len(e.Warnings) > 0 {
		return &exitError{code: exitFindings}
	}
	return err
}

// readPlan reads a plan of ours.
func readPlan(name string) (*explained, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	var d graph.Description
	decoder := json.NewDecoder(io.LimitReader(in, largestPlan))
	if err := decoder.Decode(&d); err != nil {
		return nil, fmt.Errorf("%s is not a plan: %w", name, err)
	}
	if d.Version != graph.DescriptionVersion {
		return nil, fmt.Errorf("%s: version %d of the plan's form; this lowwater knows %d", name, d.Version, graph.DescriptionVersion)
	}
	for i, o := range d.Operators {
		if o.Parallelism < 0 || o.Parallelism > graph.MaxKeyGroups {
			return nil, fmt.Errorf("%s is not a plan: operator %d (%q) has parallelism %d: must be at most %d", name, i, o.Name, o.Parallelism, graph.MaxKeyGroups)
		}
		if o.ID != i || slices.ContainsFunc(o.Inputs, func(in graph.InputDescription) bool {
			return in.From < 0 || in.From >= i || in.Input < 0 || in.Input > i
		}) {
			return nil, fmt.Errorf("%s is not a plan: operator %d (%q) is out of order, or has an input that is not before it", name, i, o.Name)
		}
	}
	return explainPlan(&d), nil
}

// explainPlan joins what the plan's own checks found with what is seen here. Where both
// have a code for an operator, the plan's says more.
func explainPlan(d *graph.Description) *explained {
	e := &explained{Job: d.Job, Operators: plan.Operators(d), Warnings: []plan.Warning{}, stateBytes: map[string]int64{}}
	facts := plan.Facts{IntervalMillis: why.Know(d.WatermarkIntervalMillis), Splits: map[string]int{}, Where: map[string]string{}}
	for i, o := range d.Operators {
		id := e.Operators[i].ID
		facts.Where[id] = o.Where
		if o.StateMemoryBytes > 0 {
			e.stateBytes[id] = o.StateMemoryBytes
		}
		if o.Source != nil && o.Source.Splits >= 0 {
			facts.Splits[id] = o.Source.Splits
		}
	}
	for _, w := range d.Warnings {
		e.Warnings = append(e.Warnings, plan.Warning(w))
	}
	e.check(facts)
	return e
}

// check adds what is seen here to the warnings there are.
func (e *explained) check(facts plan.Facts) {
	known := map[[2]string]bool{}
	for _, w := range e.Warnings {
		known[[2]string{w.Code, w.Operator}] = true
	}
	for _, w := range plan.Check(e.Operators, facts) {
		if !known[[2]string{w.Code, w.Operator}] {
			e.Warnings = append(e.Warnings, w)
		}
	}
}

// running explains the plan of a job on a cluster.
func (c *explainCommand) running() (*explained, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := whyCommand{clusterFlags: clusterFlags{URL: c.URL, Job: c.Job, TokenFile: c.TokenFile, CA: c.CA}}
	o, err := w.observer(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	if err := o.job.Look(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", o.client, err)
	}
	own, told, err := o.job.Warnings(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.client, err)
	}
	evidence := o.job.Evidence()
	e := &explained{Job: evidence.Job, Operators: evidence.Operators, Warnings: []plan.Warning{}, Unseen: slices.Clone(o.job.Unseen())}
	facts := plan.Facts{Engine: evidence.Engine.Name, IntervalMillis: evidence.WatermarkIntervalMillis, Splits: map[string]int{}}
	for _, s := range evidence.History[0].Splits {
		facts.Splits[s.Source]++
	}
	e.Warnings = append(e.Warnings, own...)
	e.check(facts)
	if slices.ContainsFunc(e.Operators, func(o why.Operator) bool { return strategyOf(&o) == "strategy unknown" }) {
		unseen := "Watermark strategies are not in the answers of the server, and not judged."
		if told {
			unseen = "Watermark strategies are not in the answers of the server: of those, there are only the warnings that it had at the start of the job."
		}
		e.Unseen = append(e.Unseen, unseen)
	}
	return e, nil
}

func (e *explained) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", cmp.Or(oneLine(e.Job), "job"))
	for _, o := range e.Operators {
		line := describeOperator(&o)
		if n := e.stateBytes[o.ID]; n > 0 {
			line += fmt.Sprintf(", keyed state beyond %.4g MiB a subtask on disk", float64(n)/(1<<20))
		}
		fmt.Fprintf(&b, "  %s\n", oneLine(line))
	}
	if len(e.Operators) == 0 {
		b.WriteString("  no operators\n")
	}
	b.WriteByte('\n')
	if len(e.Warnings) == 0 {
		b.WriteString("No warnings.\n")
	}
	for _, warning := range e.Warnings {
		where := ""
		if warning.Where != "" {
			where = " (" + warning.Where + ")"
		}
		for _, line := range wrap("", fmt.Sprintf("%s: %s%s: %s", warning.Code, warning.Operator, where, warning.Message)) {
			b.WriteString(line + "\n")
		}
		for i, fix := range warning.Fixes {
			lead := "fix: "
			if i > 0 {
				lead = "or: "
			}
			for _, line := range wrap("  ", lead+fix) {
				b.WriteString(line + "\n")
			}
		}
		b.WriteByte('\n')
	}
	for _, unseen := range e.Unseen {
		for _, line := range wrap("", unseen) {
			b.WriteString(line + "\n")
		}
	}
	return writePlain(w, b.String())
}

// writePlain writes text that holds what others chose, without what would steer a terminal.
func writePlain(w io.Writer, text string) error {
	_, err := io.WriteString(w, why.Plain(text))
	return err
}

// oneLine writes a name in one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// describeOperator is an operator in a line.
func describeOperator(o *why.Operator) string {
	line := fmt.Sprintf("%s %s, parallelism %d", o.Kind, o.Name, o.Parallelism)
	for i, in := range o.Inputs {
		var from []string
		for _, edge := range in.Edges {
			from = append(from, strings.TrimSpace(string(edge.Ship)+" from "+edge.From))
		}
		lead := ", "
		if len(o.Inputs) > 1 {
			lead = fmt.Sprintf(", input %d ", i)
		}
		line += lead + strings.Join(from, " and ")
	}
	if s := strategyOf(o); s != "" {
		line += ", " + s
	}
	return line
}

// strategyOf says how an operator makes watermarks, if it does.
func strategyOf(o *why.Operator) string {
	s := o.Strategy
	if o.Source != nil {
		s = o.Source.Strategy
	}
	switch {
	case o.Kind != why.KindSource && o.Kind != why.KindAssign:
		return ""
	case s == nil:
		return "strategy unknown"
	case s.Kind == why.StrategyNone:
		return "no watermarks"
	}
	text := "watermarks " + string(s.Kind)
	if s.BoundMillis.OK && s.Kind == why.StrategyBounded {
		text += fmt.Sprintf(" %d ms", s.BoundMillis.Value)
	}
	if idle := s.IdlenessMillis; idle.OK && idle.Value > 0 {
		text += fmt.Sprintf(", idle after %d ms", idle.Value)
	} else if idle.OK {
		text += ", no idleness"
	}
	return text
}
