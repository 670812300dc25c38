package flink

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/lowwater/lowwater/internal/why"
)

// detail is /jobs/:id.
type detail struct {
	Name       string
	State      string
	EndMillis  int64 `json:"end-time"`
	Now        int64
	Timestamps map[string]int64
	Vertices   []vertex
	Plan       struct{ Nodes []node }
}

type vertex struct {
	ID          string
	Name        string
	Parallelism int
	StartTime   int64 `json:"start-time"`
}

type node struct {
	ID          string
	Parallelism int
	Description string
	Inputs      []struct {
		ID           string
		Num          int
		ShipStrategy string `json:"ship_strategy"`
	}
}

const (
	// maxParallelism is the largest that an operator can have, in Flink and here.
	maxParallelism = 1 << 15
	// maxSubtasks bounds how many subtasks of operators are looked at: far more than a
	// cluster can answer for.
	maxSubtasks = 1 << 20
)

// check refuses a plan that no job has, before memory is taken for what it says.
func (d *detail) check() error {
	total := 0
	for _, n := range d.Plan.Nodes {
		if n.Parallelism < 0 || n.Parallelism > maxParallelism {
			return fmt.Errorf("the parallelism of vertex %s is %d: must be at most %d", n.ID, n.Parallelism, maxParallelism)
		}
		total += n.Parallelism * (1 + strings.Count(n.Description, "<br/>"))
	}
	if total > maxSubtasks {
		return fmt.Errorf("the plan has %d subtasks of operators: at most %d are looked at", total, maxSubtasks)
	}
	return nil
}

// chained is one operator of a vertex, by the description of its chain.
type chained struct {
	name string
	// text describes it; often, but not always, it is the name.
	text   string
	parent int // index in the chain, -1 for the head
}

// sourcePrefix is what Flink puts before the names of sources.
const sourcePrefix = "Source: "

// operators translates the plan. Those of one vertex follow each other, and vertices are
// ordered from the sources on.
func operators(d *detail) []why.Operator {
	names := map[string]string{}
	for _, v := range d.Vertices {
		names[v.ID] = v.Name
	}
	chains := map[string][]chained{}
	ids := map[string][]string{}
	used := map[string]int{}
	nodes := inOrder(d.Plan.Nodes)
	for _, n := range nodes {
		chain := chainOf(n.Description, names[n.ID])
		chains[n.ID] = chain
		for _, c := range chain {
			ids[n.ID] = append(ids[n.ID], unique(strings.TrimPrefix(c.name, sourcePrefix), used))
		}
	}
	var all []why.Operator
	for _, n := range nodes {
		for i, c := range chains[n.ID] {
			o := describe(c)
			o.ID, o.Vertex, o.Parallelism = ids[n.ID][i], n.ID, n.Parallelism
			o.Name = strings.TrimPrefix(c.name, sourcePrefix)
			switch {
			case c.parent >= 0:
				o.Inputs = []why.Input{{Edges: []why.Edge{{From: ids[n.ID][c.parent], Ship: why.ShipForward}}}}
			default:
				o.Inputs = inputs(n, o.Kind, ids)
				if len(o.Inputs) > 1 && o.Kind == why.KindPlain {
					o.Kind = why.KindConnect
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// unique returns a name that no other operator has.
func unique(name string, used map[string]int) string {
	used[name]++
	if n := used[name]; n > 1 {
		return unique(name+"#"+strconv.Itoa(n), used)
	}
	return name
}

// inOrder sorts vertices topologically, sources first; Flink lists sinks first.
func inOrder(nodes []node) []node {
	byID := map[string]node{}
	for _, n := range nodes {
		byID[n.ID] = n
	}
	var sorted []node
	seen := map[string]bool{}
	var visit func(node)
	visit = func(n node) {
		if seen[n.ID] {
			return
		}
		seen[n.ID] = true
		for _, in := range n.Inputs {
			if before, ok := byID[in.ID]; ok {
				visit(before)
			}
		}
		sorted = append(sorted, n)
	}
	for _, n := range nodes {
		visit(n)
	}
	return sorted
}

// inputs are the edges into the head of a vertex. REST does not tell a union from an
// operator with several inputs; a window has one.
func inputs(n node, kind why.OperatorKind, ids map[string][]string) []why.Input {
	var all []why.Input
	for _, in := range n.Inputs {
		from := ids[in.ID]
		if len(from) == 0 {
			continue
		}
		edge := why.Edge{From: from[len(from)-1], Ship: shipOf(in.ShipStrategy)}
		if kind == why.KindWindow && len(all) > 0 {
			all[0].Edges = append(all[0].Edges, edge)
			continue
		}
		all = append(all, why.Input{Edges: []why.Edge{edge}, Broadcast: edge.Ship == why.ShipBroadcast})
	}
	return all
}

func shipOf(strategy string) why.Ship {
	switch strategy {
	case "FORWARD":
		return why.ShipForward
	case "HASH", "GLOBAL", "CUSTOM":
		return why.ShipHash
	case "REBALANCE", "SHUFFLE", "ADAPTIVE":
		return why.ShipRebalance
	case "RESCALE":
		return why.ShipRescale
	case "BROADCAST":
		return why.ShipBroadcast
	}
	return ""
}

var (
	treeBranch   = regexp.MustCompile(`^((?:   |:  )*)(?:\+- |:- )?`)
	vertexPrefix = regexp.MustCompile(`^\[vertex-\d+\]`)
	sqlLine      = regexp.MustCompile(`^\[(\d+)\]:(\w+)`)
)

// chainOf reads the description of a chain, a tree of lines, and takes the names from the
// vertex's: "a -> (b, c -> d)". Where the two do not fit together, the lines are the names.
func chainOf(description, vertexName string) []chained {
	var chain []chained
	var at []int // the last line of each depth
	for line := range strings.SplitSeq(description, "<br/>") {
		line = html.UnescapeString(line)
		if strings.TrimSpace(line) == "" {
			continue
		}
		prefix := treeBranch.FindString(line)
		depth := len(prefix) / 3
		c := chained{text: line[len(prefix):], parent: -1}
		c.name = nameOf(c.text)
		depth = min(depth, len(at))
		if depth > 0 {
			c.parent = at[depth-1]
		}
		at = append(at[:depth], len(chain))
		chain = append(chain, c)
	}
	names := chainNames(vertexPrefix.ReplaceAllString(vertexName, ""))
	if len(chain) == 1 && len(names) > 1 && strings.Contains(chain[0].text, " -> ") {
		return cascade(names) // pipeline.vertex-description-mode: CASCADING
	}
	if len(names) == len(chain) {
		for i := range chain {
			chain[i].name = names[i]
		}
	}
	return chain
}

// cascade is a chain of which only the names are known.
func cascade(names []string) []chained {
	var chain []chained
	for i, n := range names {
		chain = append(chain, chained{name: n, text: n, parent: i - 1})
	}
	return chain
}

// nameOf returns the name that the operator of a line has in metrics: SQL's
// "[5]:Calc(select=…)" is Calc[5].
func nameOf(text string) string {
	if m := sqlLine.FindStringSubmatch(text); m != nil {
		return m[2] + "[" + m[1] + "]"
	}
	return text
}

// chainNames splits the name of a vertex into those of its operators, in the order of the
// tree.
func chainNames(name string) []string {
	var names []string
	for {
		head, rest, more := strings.Cut(name, " -> ")
		names = append(names, head)
		if !more {
			return names
		}
		if inner, ok := strings.CutPrefix(rest, "("); ok && strings.HasSuffix(inner, ")") {
			for _, branch := range splitBranches(strings.TrimSuffix(inner, ")")) {
				names = append(names, chainNames(branch)...)
			}
			return names
		}
		name = rest
	}
}

// splitBranches splits at the commas outside of brackets.
func splitBranches(s string) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 && strings.HasPrefix(s[i:], ", ") {
				parts = append(parts, s[from:i])
				from = i + 2
			}
		}
	}
	return append(parts, s[from:])
}
