package plan

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/why"
)

// Operators translates a plan. An operator's ID is its name, with its number if another
// has the same.
func Operators(d *graph.Description) []why.Operator {
	ids := make([]string, len(d.Operators))
	used := map[string]bool{}
	for i, o := range d.Operators {
		ids[i] = o.Name
		if used[ids[i]] {
			ids[i] += "#" + strconv.Itoa(o.ID)
		}
		used[ids[i]] = true
	}
	var all []why.Operator
	for i, o := range d.Operators {
		all = append(all, why.Operator{
			ID: ids[i], Name: o.Name, Vertex: VertexID(o.Vertex), Kind: kindOf(&o), Parallelism: o.Parallelism,
			Inputs: inputsOf(&o, ids), NeverFires: o.NeverFires, SilenceMillis: o.SilenceMillis, Interval: o.Interval,
		})
		out := &all[i]
		strategy := strategyOf(o.Watermarks)
		switch out.Kind {
		case why.KindSource:
			out.Source = &why.Source{Strategy: strategy, Bounded: why.Know(o.Source.Bounded)}
			if strategy == nil {
				out.Source.Strategy = &why.Strategy{Kind: why.StrategyNone}
			}
		case why.KindAssign:
			out.Strategy = strategy
		case why.KindWindow:
			if out.Window = WindowOf(o.Window); out.Window != nil {
				out.Window.LatenessMillis = o.LatenessMillis
			}
		}
	}
	return all
}

// VertexID names a vertex in evidence.
func VertexID(vertex int) string { return "vertex " + strconv.Itoa(vertex) }

func kindOf(o *graph.OperatorDescription) why.OperatorKind {
	inputs := map[int]bool{}
	for _, in := range o.Inputs {
		inputs[in.Input] = true
	}
	switch {
	case o.Source != nil:
		return why.KindSource
	case o.Watermarks != nil:
		return why.KindAssign
	case o.EventTime && len(inputs) > 1:
		return why.KindJoin
	case o.EventTime && o.Window == "":
		return why.KindTimers
	case o.EventTime:
		return why.KindWindow
	case o.Timers:
		return why.KindMaybeTimers
	case len(inputs) > 1:
		return why.KindConnect
	case o.Name == "Filter":
		return why.KindFilter
	}
	return why.KindPlain
}

func inputsOf(o *graph.OperatorDescription, ids []string) []why.Input {
	var inputs []why.Input
	for _, e := range o.Inputs {
		for len(inputs) <= e.Input {
			inputs = append(inputs, why.Input{})
		}
		if e.From < 0 || e.From >= len(ids) {
			continue
		}
		in := &inputs[e.Input]
		in.Edges = append(in.Edges, why.Edge{From: ids[e.From], Ship: shipOf(e.Ship)})
		in.Broadcast = in.Broadcast || e.Ship == graph.Broadcast.String()
	}
	return inputs
}

func shipOf(partitioning string) why.Ship {
	switch partitioning {
	case graph.Forward.String():
		return why.ShipForward
	case graph.Rebalance.String():
		return why.ShipRebalance
	case graph.Broadcast.String():
		return why.ShipBroadcast
	case graph.Hash.String(), graph.Custom.String():
		return why.ShipHash
	}
	return ""
}

// strategyOf reads what eventtime's String writes, nil for no strategy.
func strategyOf(w *graph.WatermarkDescription) *why.Strategy {
	if w == nil {
		return nil
	}
	if w.None {
		return &why.Strategy{Kind: why.StrategyNone}
	}
	s := &why.Strategy{Kind: why.StrategyCustom, Timestamps: why.FromRecord, IdlenessMillis: why.Know[int64](0)}
	text := w.Strategy
	if m := alignment.FindStringSubmatchIndex(text); m != nil {
		s.Alignment = &why.Alignment{Group: text[m[2]:m[3]], DriftMillis: millis(text[m[4]:m[5]]), UpdateMillis: millis(text[m[6]:m[7]])}
		text = text[:m[0]]
	}
	for i, part := range strings.Split(text, ", ") {
		switch name, value, _ := strings.Cut(part, " "); {
		case i == 0 && name == "bounded-out-of-orderness":
			s.Kind, s.BoundMillis = why.StrategyBounded, millis(value)
		case i == 0 && name == "monotonous-timestamps":
			s.Kind, s.BoundMillis = why.StrategyMonotonous, why.Know[int64](0)
		case i == 0 && part == "row watermarks":
			s.Kind, s.Timestamps = why.StrategyRows, why.FromPayload
		case part == "timestamp assigner":
			s.Timestamps = why.FromPayload
		case name == "idleness":
			s.IdlenessMillis = millis(value)
		case strings.HasPrefix(part, "broker idleness "):
			s.IdlenessMillis = millis(strings.TrimPrefix(part, "broker idleness "))
		case strings.HasPrefix(part, "max future skew "):
			s.MaxFutureMillis = millis(strings.TrimPrefix(part, "max future skew "))
		}
	}
	return s
}

// alignment is at the end; a group's name may hold anything.
var alignment = regexp.MustCompile(`, alignment in group (.*) with drift (\S+) every (\S+)$`)

func millis(text string) why.Known[int64] {
	d, err := time.ParseDuration(text)
	return why.KnowIf(d.Milliseconds(), err == nil)
}

var windowExpr = regexp.MustCompile(`^window\.(\w+)\(([^)]*)\)(?:\.Offset\(([^)]*)\))?`)

// WindowOf reads the Go expression of an event-time assigner, nil if it is one of another
// kind.
func WindowOf(expr string) *why.Window {
	m := windowExpr.FindStringSubmatch(expr)
	if m == nil {
		return nil
	}
	var d []int64
	for part := range strings.SplitSeq(m[2], ",") {
		if v := millis(strings.TrimSpace(part)); v.OK {
			d = append(d, v.Value)
		}
	}
	w := &why.Window{OffsetMillis: millis(m[3]).Value}
	switch {
	case m[1] == "Tumbling" && len(d) == 1:
		w.Kind, w.SizeMillis = why.Tumbling, d[0]
	case (m[1] == "Sliding" || m[1] == "Cumulating") && len(d) == 2:
		w.Kind, w.SizeMillis, w.SlideMillis = why.Sliding, d[0], d[1]
	case m[1] == "Session" && len(d) == 1:
		w.Kind, w.GapMillis = why.Session, d[0]
	default:
		return nil
	}
	return w
}
