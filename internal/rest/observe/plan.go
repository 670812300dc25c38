package observe

import (
	"fmt"
	"html"
	"strings"

	"github.com/lowwater/lowwater/internal/graph"
)

// Kind is a rough class of operators and vertices, for display.
type Kind string

const (
	KindSource  Kind = "source"
	KindSink    Kind = "sink"
	KindWindow  Kind = "window" // waits for event time, or is a window of processing time
	KindProcess Kind = "process"
)

// Plan is what a job runs, with the names and ids that Flink would give.
type Plan struct {
	Name string
	// Parallelism is the largest of all vertices.
	Parallelism int
	Vertices    []Vertex
	Warnings    []graph.Warning
	// Description is what diagnosis needs of the graph, nil if it is not known.
	Description *graph.Description
}

// Vertex is one vertex of a plan: a chain of operators.
type Vertex struct {
	// ID is 32 hexadecimal digits: that of the head operator.
	ID   string
	Name string
	// Description is the chain as a tree, lines separated by "<br/>", as Flink writes it.
	Description                 string
	Kind                        Kind
	Parallelism, MaxParallelism int
	Operators                   []Operator
	Inputs                      []Input
}

// Operator is one operator of a vertex.
type Operator struct {
	// ID is what Flink derives from the same uid. Without a uid it depends on the
	// operator's place in the job.
	ID   string
	Name string
	UID  string
	Kind Kind
	// EventTime says that the operator waits for watermarks: windows of processing time do not.
	EventTime bool
	// Where is the file and line of the call that made it.
	Where string
	// Sends says that an edge to another vertex begins here.
	Sends bool
}

// Input is one edge into a vertex.
type Input struct {
	// Vertex is the sender's place in the plan, Operator the place in its chain.
	Vertex, Operator int
	// Ship is Flink's word for how records are distributed.
	Ship string
	// Input is the logical input of the receiver.
	Input int
}

// NewPlan describes a planned graph.
func NewPlan(g *graph.Graph, p *graph.Plan, warnings []graph.Warning) *Plan {
	plan := &Plan{Name: p.Name, Warnings: warnings, Description: graph.DescribePlan(g, p)}
	for _, v := range p.Vertices {
		plan.Parallelism = max(plan.Parallelism, v.Parallelism)
		plan.Vertices = append(plan.Vertices, newVertex(v))
	}
	return plan
}

func newVertex(v *graph.Vertex) Vertex {
	out := Vertex{
		Name:           v.Name,
		Description:    describe(v, v.Head(), ""),
		Kind:           KindProcess,
		Parallelism:    v.Parallelism,
		MaxParallelism: v.Head().MaxParallelism,
	}
	place := map[*graph.Node]int{}
	for i, n := range v.Nodes {
		place[n] = i
		out.Operators = append(out.Operators, newOperator(n))
	}
	for _, e := range v.Outputs {
		out.Operators[place[e.From]].Sends = true
	}
	out.ID = out.Operators[0].ID
	out.Kind = vertexKind(out.Operators)
	for _, e := range v.Inputs {
		from := 0
		for i, n := range e.FromVertex.Nodes {
			if n == e.From {
				from = i
			}
		}
		out.Inputs = append(out.Inputs, Input{Vertex: e.FromVertex.ID, Operator: from, Ship: e.Partitioning.String(), Input: e.Input})
	}
	return out
}

func newOperator(n *graph.Node) Operator {
	o := Operator{Name: displayName(n), UID: n.UID, Kind: KindProcess, EventTime: n.EventTime, Where: n.Where}
	switch {
	case n.Source != nil:
		o.Kind = KindSource
	case n.EventTime || n.Assigner != "":
		o.Kind = KindWindow
	case !n.WantsConsumer:
		o.Kind = KindSink
	}
	if n.UID != "" {
		o.ID = OperatorID(n.UID)
	} else {
		o.ID = OperatorID(fmt.Sprintf("lowwater: operator %d: %s", n.ID, n.Name))
	}
	return o
}

// displayName is the operator's name in metrics. Flink's sources carry a prefix.
func displayName(n *graph.Node) string {
	if n.Source != nil {
		return "Source: " + n.Name
	}
	return n.Name
}

// vertexKind is that of the head of a source, else of what is most telling in the chain.
func vertexKind(operators []Operator) Kind {
	if operators[0].Kind == KindSource {
		return KindSource
	}
	kind := operators[0].Kind
	for _, o := range operators {
		if o.Kind == KindWindow {
			return KindWindow
		}
	}
	return kind
}

// describe draws a chain from n on as Flink's plan does.
func describe(v *graph.Vertex, n *graph.Node, indent string) string {
	var b strings.Builder
	b.WriteString(html.EscapeString(displayName(n)))
	b.WriteString("<br/>")
	var next []*graph.Node
	for _, e := range v.Chained {
		if e.From == n {
			next = append(next, e.To)
		}
	}
	for i, to := range next {
		branch, below := ":- ", ":  "
		if i == len(next)-1 {
			branch, below = "+- ", "   "
		}
		b.WriteString(indent + branch + describe(v, to, indent+below))
	}
	return b.String()
}
