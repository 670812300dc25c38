package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/why"
)

// Warning is something in a plan that will surprise its author, by its stable code.
type Warning struct {
	Code     string   `json:"code"`
	Operator string   `json:"operator"`
	Where    string   `json:"where,omitempty"` // file and line, if the plan tells
	Message  string   `json:"message"`
	Fixes    []string `json:"fixes,omitempty"`
}

// Facts are what a plan alone does not tell.
type Facts struct {
	// Engine is whose words fixes are in; empty is ours.
	Engine why.EngineName
	// IntervalMillis is the auto-watermark interval; unknown counts as 200.
	IntervalMillis why.Known[int64]
	// Splits is the number of splits by source, where known.
	Splits map[string]int
	// Where is the file and line by operator, where known.
	Where map[string]string
}

// Check looks for what can be seen before any record flows. Strategies that are not known
// are not judged.
func Check(operators []why.Operator, f Facts) []Warning {
	c := &checker{f: f, byID: map[string]*why.Operator{}}
	for i := range operators {
		c.byID[operators[i].ID] = &operators[i]
	}
	for i := range operators {
		o := &operators[i]
		switch o.Kind {
		case why.KindSource:
			c.surplus(o)
			c.strategy(o, o.Source.Strategy)
			c.quietSplits(o)
		case why.KindAssign:
			c.strategy(o, o.Strategy)
			c.assigner(o)
		}
		if len(o.Inputs) > 1 || len(o.Inputs) == 1 && len(o.Inputs[0].Edges) > 1 {
			c.sides(o)
		}
		if waits(o.Kind) {
			c.waiting(o)
		}
	}
	return c.warnings
}

func waits(k why.OperatorKind) bool {
	return k == why.KindWindow || k == why.KindJoin || k == why.KindTimers
}

type checker struct {
	f        Facts
	byID     map[string]*why.Operator
	warnings []Warning
}

// idleness is what sets an idle timeout.
func (c *checker) idleness() string {
	switch c.f.Engine {
	case why.Flink:
		return "withIdleness"
	case why.FlinkSQL:
		return "the option scan.watermark.idle-timeout"
	}
	return "WithIdleness"
}

func (c *checker) warn(code string, o *why.Operator, message string, fixes ...string) {
	c.warnings = append(c.warnings, Warning{Code: code, Operator: o.Name, Where: c.f.Where[o.ID], Message: message, Fixes: fixes})
}

// maker is what makes the watermarks on a way to an operator: a source or an assigner.
type maker struct {
	op       *why.Operator
	strategy *why.Strategy // nil if unknown
}

func (m maker) none() bool    { return m.strategy != nil && m.strategy.Kind == why.StrategyNone }
func (m maker) bounded() bool { return m.op.Source != nil && m.op.Source.Bounded.Or(false) }

// withoutIdleness reports whether the maker is known to wait for silent splits for ever.
func (m maker) withoutIdleness() bool {
	return m.strategy != nil && m.strategy.Kind != why.StrategyNone && m.strategy.IdlenessMillis == why.Know[int64](0) && !m.bounded()
}

// makers returns what makes the watermarks that come over an edge.
func (c *checker) makers(from string, seen map[string]bool) []maker {
	o := c.byID[from]
	if o == nil || seen[from] {
		return nil
	}
	seen[from] = true
	switch o.Kind {
	case why.KindSource:
		return []maker{{o, o.Source.Strategy}}
	case why.KindAssign:
		return []maker{{o, o.Strategy}}
	}
	return c.makersOf(o.Inputs, seen)
}

func (c *checker) makersOf(inputs []why.Input, seen map[string]bool) []maker {
	var all []maker
	for _, in := range inputs {
		for _, edge := range in.Edges {
			all = append(all, c.makers(edge.From, seen)...)
		}
	}
	return all
}

// surplus: a subtask without a split holds the watermark for ever (spec watermarks 5.13).
func (c *checker) surplus(o *why.Operator) {
	splits, ok := c.f.Splits[o.ID]
	if !ok || splits < 0 || splits >= o.Parallelism || o.Source.Bounded.Or(false) {
		return
	}
	if s := o.Source.Strategy; s != nil && s.IdlenessMillis.Or(0) > 0 {
		return
	}
	c.warn("over-parallel-source", o, fmt.Sprintf("parallelism %d, but only %d splits: subtasks without a split never send a watermark, so nothing behind this source fires.",
		o.Parallelism, splits), fmt.Sprintf("lower the source's parallelism to %d", max(splits, 1)), "add "+c.idleness()+" to its strategy")
}

// strategy looks at the numbers of a strategy.
func (c *checker) strategy(o *why.Operator, s *why.Strategy) {
	if s == nil {
		return
	}
	interval := c.f.IntervalMillis.Or(200)
	idle := s.IdlenessMillis.Or(0)
	switch {
	case idle > 0 && interval == 0:
		c.warn("idleness-without-interval", o, "its strategy has idleness, but the auto-watermark interval is 0, so idleness is never detected.",
			"set the auto-watermark interval to more than 0")
	case idle > 0 && idle < 3*interval:
		c.warn("idleness-below-interval", o, fmt.Sprintf("its idle timeout is %s, but idleness is only looked at every %s: it takes from %s to %s after the last record, "+
			"and a pause between two fetches is enough for it.", duration(idle), duration(interval), duration(idle+interval), duration(idle+3*interval)),
			"set an idle timeout of some seconds at least")
	}
	if s.Alignment != nil && s.Alignment.DriftMillis.OK && s.Alignment.DriftMillis.Value < s.BoundMillis.Or(0) {
		c.warn("alignment-below-bound", o, fmt.Sprintf("its alignment drift of %s is smaller than its bound of %s: disorder alone can pause it.",
			duration(s.Alignment.DriftMillis.Value), duration(s.BoundMillis.Value)), "raise the drift above the bound")
	}
}

// quietSplits: one silent split of several holds all.
func (c *checker) quietSplits(o *why.Operator) {
	m := maker{o, o.Source.Strategy}
	splits, known := c.f.Splits[o.ID]
	if !m.withoutIdleness() || known && splits <= 1 || !c.reachesWaiting(o.ID, map[string]bool{}) {
		return
	}
	c.warn("no-idleness", o, "its strategy has no idle timeout: one partition that falls silent stops everything behind it, until it has a record again.",
		"add "+c.idleness()+"; lowwater gaps finds a timeout that fits the topic")
}

// reachesWaiting reports whether an operator behind id waits for event time.
func (c *checker) reachesWaiting(id string, seen map[string]bool) bool {
	if seen[id] {
		return false
	}
	seen[id] = true
	for _, o := range c.byID {
		reached := slices.ContainsFunc(o.Inputs, func(in why.Input) bool {
			return slices.ContainsFunc(in.Edges, func(e why.Edge) bool { return e.From == id })
		})
		if reached && (waits(o.Kind) || c.reachesWaiting(o.ID, seen)) {
			return true
		}
	}
	return false
}

// assigner: watermarks made behind the source are made per subtask, not per split, and cut
// off the idleness of the source (spec watermarks 7.2, 7.5).
func (c *checker) assigner(o *why.Operator) {
	var shuffled bool
	for _, in := range o.Inputs {
		for _, e := range in.Edges {
			shuffled = shuffled || e.Ship != why.ShipForward
		}
	}
	for _, m := range c.makersOf(o.Inputs, map[string]bool{}) {
		if m.op.Kind != why.KindSource || m.bounded() {
			continue
		}
		if s := m.strategy; s != nil && s.Kind != why.StrategyNone {
			c.warn("strategy-twice", o, fmt.Sprintf("it replaces the watermarks that source %q makes, and what that says about idleness.", m.op.Name), "leave one of the two out, preferably this")
			return
		}
	}
	message := "it makes watermarks for all splits of a subtask together: what one split is read ahead of another makes the other's records late."
	if shuffled {
		message = "it makes watermarks behind a shuffle, where the order of the splits is lost: records of a split that is read later are late."
	}
	c.warn("strategy-after-source", o, message, "give the strategy to the source, so that watermarks are made per split")
}

// sides: of an operator with several inputs, or of a union, each side can hold the others.
func (c *checker) sides(o *why.Operator) {
	type side struct {
		makers    []maker
		broadcast bool
	}
	var sides []side
	for _, in := range o.Inputs {
		for _, e := range in.Edges {
			sides = append(sides, side{c.makers(e.From, map[string]bool{}), in.Broadcast})
		}
	}
	waiting := waits(o.Kind) || c.reachesWaiting(o.ID, map[string]bool{})
	if !waiting {
		return
	}
	for i, s := range sides {
		for _, m := range s.makers {
			switch {
			case m.none() && !m.bounded() && s.broadcast:
				c.warn("broadcast-without-watermarks", o, fmt.Sprintf("its broadcast side, %q, has no watermarks, so the watermark of this operator never leaves the beginning.", m.op.Name),
					"give the broadcast side a strategy whose watermark is always ahead, such as one that emits the largest timestamp at once, or idleness")
			case m.none() && !m.bounded() && len(sides) > 1 && slices.ContainsFunc(sides, func(other side) bool {
				return slices.ContainsFunc(other.makers, func(m maker) bool { return !m.none() })
			}):
				c.warn("side-input-without-watermarks", o, fmt.Sprintf("its side %d, %q, has no watermarks, so the watermark of this operator never leaves the beginning.", i, m.op.Name),
					"give that side a watermark strategy")
			case m.withoutIdleness() && len(sides) > 1:
				c.warn("side-without-idleness", o, fmt.Sprintf("its side %d, %q, has no idle timeout: when it is silent it holds the others back.", i, m.op.Name),
					"add "+c.idleness()+" to that side's strategy")
			}
		}
	}
}

// waiting looks at what an operator that waits for event time gets.
func (c *checker) waiting(o *why.Operator) {
	makers := c.makersOf(o.Inputs, map[string]bool{})
	all := len(makers) > 0
	for _, m := range makers {
		all = all && m.none() && !m.bounded()
		c.bound(o, m)
	}
	if all {
		var names []string
		for _, m := range makers {
			names = append(names, fmt.Sprintf("%q", m.op.Name))
		}
		verb := "make"
		if len(names) == 1 {
			verb = "makes"
		}
		c.warn("no-watermark-strategy", o, fmt.Sprintf("it waits for watermarks, but %s %s none: nothing ever fires.", strings.Join(names, ", "), verb),
			"give the source a watermark strategy", "use processing-time windows")
	}
}

// bound: a bound that is longer than the windows decides alone when results come.
func (c *checker) bound(o *why.Operator, m maker) {
	if o.Window == nil || m.strategy == nil || !m.strategy.BoundMillis.OK {
		return
	}
	length := max(o.Window.SizeMillis, o.Window.GapMillis)
	if bound := m.strategy.BoundMillis.Value; bound > length {
		c.warn("bound-above-window", o, fmt.Sprintf("the bound of %q, %s, is longer than the window, %s: every result waits %s, and several windows are open at all times.",
			m.op.Name, duration(bound), duration(length), duration(bound)), "lower the bound; lowwater gaps finds one that fits the topic", "make the window longer")
	}
}

func duration(millis int64) string { return (time.Duration(millis) * time.Millisecond).String() }
