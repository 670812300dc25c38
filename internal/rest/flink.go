package rest

import (
	"net/http"
	"strings"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// planJSON is a plan in Flink's shape.
type planJSON struct {
	JID   string     `json:"jid"`
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Nodes []planNode `json:"nodes"`
}

type planNode struct {
	ID          string      `json:"id"`
	Parallelism int         `json:"parallelism"`
	Operator    string      `json:"operator"`
	Strategy    string      `json:"operator_strategy"`
	Description string      `json:"description"`
	Inputs      []planInput `json:"inputs,omitempty"`
	Properties  struct{}    `json:"optimizer_properties"`
}

type planInput struct {
	Num      int    `json:"num"`
	ID       string `json:"id"`
	Ship     string `json:"ship_strategy"`
	Exchange string `json:"exchange"`
}

// flinkPlan lists the vertices from the sinks up, as Flink does.
func flinkPlan(o *observe.Observed) planJSON {
	plan := o.Plan()
	out := planJSON{JID: o.ID, Name: plan.Name, Type: "STREAMING", Nodes: []planNode{}}
	for i := len(plan.Vertices) - 1; i >= 0; i-- {
		v := &plan.Vertices[i]
		node := planNode{ID: v.ID, Parallelism: v.Parallelism, Description: v.Description}
		for num, in := range v.Inputs {
			node.Inputs = append(node.Inputs, planInput{num, plan.Vertices[in.Vertex].ID, in.Ship, "pipelined_bounded"})
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out
}

func lower(s status.State) string { return strings.ToLower(string(s)) }

// flinkRoutes are Flink's monitoring REST.
func (s *Server) flinkRoutes(routes map[string]http.Handler) {
	routes["GET /jobs"] = handler(s.jobIDs)
	routes["GET /jobs/overview"] = handler(s.jobsOverview)
}
