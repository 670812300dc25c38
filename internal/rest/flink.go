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
	s.clusterRoutes(routes)
	s.jobRoutes(routes)
	s.vertexRoutes(routes)
}

func (s *Server) clusterRoutes(routes map[string]http.Handler) {
	for pattern, h := range map[string]handler{
		"GET /config":                     configOf,
		"GET /overview":                   s.clusterOverview,
		"GET /jobs":                       s.jobIDs,
		"GET /jobs/overview":              s.jobsOverview,
		"GET /jobs/metrics":               s.jobsMetrics,
		"GET /taskmanagers":               s.taskManagers,
		"GET /taskmanagers/metrics":       s.taskManagersMetrics,
		"GET /taskmanagers/{tm}":          s.taskManager,
		"GET /taskmanagers/{tm}/metrics":  s.taskManagerMetrics,
		"GET /jobmanager/config":          s.jobManagerConfig,
		"GET /jobmanager/environment":     environment,
		"GET /jobmanager/metrics":         s.jobManagerMetrics,
		"GET /applications/overview":      s.applications,
		"GET /datasets":                   noDataSets,
		"PATCH /jobs/{jid}":               s.cancelJob,
		"POST /applications/{jid}/cancel": s.cancelJob,
		"GET /jobs/{jid}/metrics":         s.jobMetrics,
	} {
		routes[pattern] = h
	}
}

func (s *Server) jobRoutes(routes map[string]http.Handler) {
	for pattern, f := range map[string]func(*observe.Observed, *http.Request) (any, error){
		"GET /jobs/{jid}":                                          jobOf,
		"GET /jobs/{jid}/plan":                                     jobPlan,
		"GET /jobs/{jid}/status":                                   jobStatus,
		"GET /jobs/{jid}/config":                                   jobConfig,
		"GET /jobs/{jid}/exceptions":                               s.jobExceptions,
		"GET /jobs/{jid}/accumulators":                             jobAccumulators,
		"GET /jobs/{jid}/execution-result":                         jobResult,
		"GET /jobs/{jid}/jobmanager/config":                        s.jobManagerConfigOfJob,
		"GET /jobs/{jid}/jobmanager/environment":                   environmentOfJob,
		"GET /jobs/{jid}/checkpoints":                              checkpoints,
		"GET /jobs/{jid}/checkpoints/config":                       checkpointsConfig,
		"GET /jobs/{jid}/checkpoints/details/{cid}":                checkpointDetails,
		"GET /jobs/{jid}/checkpoints/details/{cid}/subtasks/{vid}": checkpointSubtasks,
		"GET /jobs/{jid}/checkpoints/{rid}":                        s.checkpointStatus,
		"GET /jobs/{jid}/savepoints/{rid}":                         s.savepointStatus,
		"GET /jobs/{jid}/rescales/{what...}":                       rescales,
		"POST /jobs/{jid}/savepoints":                              s.triggerSavepoint,
		"POST /jobs/{jid}/checkpoints":                             s.triggerCheckpoint,
		"POST /jobs/{jid}/stop":                                    s.stopJob,
		"GET /applications/{jid}":                                  application,
		"GET /applications/{jid}/exceptions":                       applicationExceptions,
		"GET /applications/{jid}/jobmanager/config":                s.jobManagerConfigOfJob,
	} {
		routes[pattern] = s.ofJob(f)
	}
}

func (s *Server) vertexRoutes(routes map[string]http.Handler) {
	const vertex = "GET /jobs/{jid}/vertices/{vid}"
	for path, h := range map[string]handler{
		"/metrics":                    s.vertexMetrics,
		"/subtasks/metrics":           s.subtasksMetrics,
		"/subtasks/{subtask}/metrics": s.oneSubtaskMetrics,
		"/jm-operator-metrics":        noMetrics,
	} {
		routes[vertex+path] = h
	}
	for path, f := range map[string]func(at, *http.Request) (any, error){
		"":                       s.vertexDetails,
		"/subtasktimes":          s.subtaskTimes,
		"/taskmanagers":          s.vertexTaskManagers,
		"/accumulators":          vertexAccumulators,
		"/subtasks/accumulators": s.subtaskAccumulators,
		"/watermarks":            watermarks,
		"/backpressure":          backPressure,
		"/flamegraph":            flameGraph,
	} {
		routes[vertex+path] = s.ofVertex(f)
	}
	for path, f := range map[string]func(at, *http.Request) (any, error){
		"":                                 s.subtaskDetails,
		"/attempts/{attempt}":              s.subtaskDetails,
		"/attempts/{attempt}/accumulators": attemptAccumulators,
	} {
		routes[vertex+"/subtasks/{subtask}"+path] = s.ofVertex(func(a at, r *http.Request) (any, error) {
			a, err := subtaskOfRequest(a, r)
			if err != nil {
				return nil, err
			}
			return f(a, r)
		})
	}
}

// ofJob makes a handler of what answers about one job.
func (s *Server) ofJob(f func(*observe.Observed, *http.Request) (any, error)) handler {
	return func(r *http.Request) (any, error) {
		o, err := s.job(r)
		if err != nil {
			return nil, err
		}
		return f(o, r)
	}
}

// ofVertex makes a handler of what answers about one vertex.
func (s *Server) ofVertex(f func(at, *http.Request) (any, error)) handler {
	return s.ofJob(func(o *observe.Observed, r *http.Request) (any, error) {
		a, err := vertexOfRequest(o, r)
		if err != nil {
			return nil, err
		}
		return f(a, r)
	})
}
