package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowwater/lowwater/internal/exchange"
)

// MaxKeyGroups is the largest maximum parallelism, Flink's limit.
const MaxKeyGroups = 32768

// Vertex is a tree of nodes chained into one task per subtask. A record passes
// from node to node by a call; between vertices it passes a channel.
type Vertex struct {
	ID          int
	Name        string
	Parallelism int
	// Nodes are in topological order; the first is the head.
	Nodes []*Node
	// Chained are the edges inside the vertex.
	Chained []*Edge
	// Inputs are the network edges into the head, Outputs those that leave any
	// of the nodes.
	Inputs  []*NetworkEdge
	Outputs []*NetworkEdge
}

// Head is the node that reads the vertex's input, or the source.
func (v *Vertex) Head() *Node { return v.Nodes[0] }

// NetworkEdge is an edge between two vertices.
type NetworkEdge struct {
	*Edge
	FromVertex *Vertex
	ToVertex   *Vertex
	Writer     exchange.WriterFactory
}

// Targets returns the receiving subtasks that sender is connected to.
func (e *NetworkEdge) Targets(sender int) (first, n int) {
	if e.Partitioning == Forward {
		return sender, 1
	}
	return 0, e.ToVertex.Parallelism
}

// Plan is a job ready to deploy.
type Plan struct {
	Name     string
	Vertices []*Vertex
	Edges    []*NetworkEdge
}

// Plan resolves parallelism and partitioning, chains nodes and validates the
// whole. Sources must know their splits by now (SourceInfo.Splits).
func (g *Graph) Plan() (*Plan, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		g.resolveParallelism(n)
	}
	var errs []error
	for _, n := range g.Nodes {
		errs = append(errs, g.resolve(n))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		n.StateID() // from now on it is read by several goroutines
	}
	return g.chain(), nil
}

// Validate reports what is wrong with the graph whatever the outside looks like.
func (g *Graph) Validate() error {
	var errs []error
	if len(g.Nodes) == 0 {
		errs = append(errs, errors.New("the job has no operators: add a source and a sink before Execute"))
	}
	byUID := map[string]*Node{}
	for _, n := range g.Nodes {
		if n.explicit && (n.Parallelism < 1 || n.Parallelism > MaxKeyGroups) {
			errs = append(errs, n.errorf("parallelism %d: must be from 1 to %d", n.Parallelism, MaxKeyGroups))
		}
		if n.Single && n.Parallelism > 1 {
			errs = append(errs, n.errorf("parallelism %d: must be 1, this operator cannot run in parallel", n.Parallelism))
		}
		if n.UID == "" {
			continue
		}
		if other := byUID[n.UID]; other != nil {
			errs = append(errs, n.errorf("uid %q is already used by operator %q (%s): uids must be unique within a job",
				n.UID, other.Name, other.Where))
			continue
		}
		byUID[n.UID] = n
	}
	return errors.Join(append(errs, g.validateStateMemory())...)
}

// resolveParallelism gives an operator without a parallelism of its own the
// environment's, with exceptions: a source takes no more subtasks than get a
// split, and what follows a source by an automatic edge keeps the source's
// parallelism, so that it stays chained and in order. What asks for forward takes over
// the sender's.
func (g *Graph) resolveParallelism(n *Node) {
	if n.explicit {
		return
	}
	n.Parallelism = g.Parallelism
	switch s := n.Source; {
	case n.Single:
		n.Parallelism = 1
	case s != nil && s.Splits > 0:
		n.Parallelism = min(n.Parallelism, s.Splits)
		for n.Parallelism > 1 && s.empty(n.Parallelism) > 0 {
			n.Parallelism-- // several topics may meet in some subtasks and leave others out
		}
	case len(n.Inputs) == 1 && n.Inputs[0].Partitioning == Auto && n.Inputs[0].From.inheritable():
		n.Parallelism = n.Inputs[0].From.Parallelism
	case len(n.Inputs) > 0 && !slices.ContainsFunc(n.Inputs, func(e *Edge) bool { return e.Partitioning != Forward }):
		n.Parallelism = n.Inputs[0].From.Parallelism
	}
}

// inheritable reports whether n's parallelism comes from a source that did not set its
// own.
func (n *Node) inheritable() bool {
	for !n.explicit {
		if n.Source != nil {
			return true
		}
		if len(n.Inputs) != 1 || n.Inputs[0].Partitioning != Auto {
			return false
		}
		n = n.Inputs[0].From
	}
	return false
}

func (g *Graph) resolve(n *Node) error {
	if n.MaxParallelism == 0 {
		n.MaxParallelism = g.MaxParallelism
	}
	if n.MaxParallelism == 0 {
		n.MaxParallelism = defaultMaxParallelism(n.Parallelism)
	}
	if n.MaxParallelism < n.Parallelism || n.MaxParallelism > MaxKeyGroups {
		return n.errorf("max parallelism %d: must be from the parallelism (%d) to %d", n.MaxParallelism, n.Parallelism, MaxKeyGroups)
	}
	for _, e := range n.Inputs {
		same := e.From.Parallelism == n.Parallelism
		switch {
		case e.Partitioning == Auto && same:
			e.Partitioning = Forward
		case e.Partitioning == Auto:
			e.Partitioning = Rebalance
		case e.Partitioning == Forward && !same:
			return n.errorf("forward from %q: its parallelism is %d, this operator's %d: they must be equal; use Rebalance, or set one of them",
				e.From.Name, e.From.Parallelism, n.Parallelism)
		}
	}
	return nil
}

// chainable is Flink's rule: one input, over a forward edge, and neither side
// has chaining disabled.
func chainable(e *Edge) bool {
	return len(e.To.Inputs) == 1 && e.Partitioning == Forward &&
		!e.From.DisableChaining && !e.To.DisableChaining
}

func (g *Graph) chain() *Plan {
	plan := &Plan{Name: g.Name}
	of := map[*Node]*Vertex{}
	for _, n := range g.Nodes {
		if len(n.Inputs) == 1 && chainable(n.Inputs[0]) {
			v := of[n.Inputs[0].From]
			v.Nodes = append(v.Nodes, n)
			v.Chained = append(v.Chained, n.Inputs[0])
			of[n] = v
			continue
		}
		v := &Vertex{ID: len(plan.Vertices), Parallelism: n.Parallelism, Nodes: []*Node{n}}
		plan.Vertices = append(plan.Vertices, v)
		of[n] = v
	}
	for _, n := range g.Nodes {
		for _, e := range n.Inputs {
			if len(n.Inputs) == 1 && chainable(e) {
				continue
			}
			ne := &NetworkEdge{Edge: e, FromVertex: of[e.From], ToVertex: of[n]}
			ne.Writer = e.NewWriter(e.Partitioning, n.MaxParallelism)
			ne.FromVertex.Outputs = append(ne.FromVertex.Outputs, ne)
			ne.ToVertex.Inputs = append(ne.ToVertex.Inputs, ne)
			plan.Edges = append(plan.Edges, ne)
		}
	}
	for _, v := range plan.Vertices {
		v.Name = v.chainName(v.Head())
	}
	return plan
}

// chainName writes a chain as Flink does: "Source: a -> Map -> (Sink, Print)".
func (v *Vertex) chainName(n *Node) string {
	name := n.Name
	if n.Source != nil {
		name = "Source: " + name
	}
	var next []string
	for _, e := range v.Chained {
		if e.From == n {
			next = append(next, v.chainName(e.To))
		}
	}
	switch len(next) {
	case 0:
		return name
	case 1:
		return name + " -> " + next[0]
	default:
		return fmt.Sprintf("%s -> (%s)", name, strings.Join(next, ", "))
	}
}
