package rest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// at is a vertex of a job, or one of its subtasks, that a request is about.
type at struct {
	job     *observe.Observed
	r       *observe.Reading
	vertex  int
	subtask int
}

func (a at) plan() *observe.Vertex    { return &a.r.Plan.Vertices[a.vertex] }
func (a at) status() *status.Vertex   { return &a.r.Status.Vertices[a.vertex] }
func (a at) subtaskLife() status.Life { return a.status().Subtasks[a.subtask].Life }
func (a at) with(subtask int) at      { a.subtask = subtask; return a }
func (a at) attempt() int64           { return a.r.Status.Restarts }

// vertexOfRequest finds the vertex by its id.
func vertexOfRequest(o *observe.Observed, r *http.Request) (at, error) {
	id, err := pathID(r, "vid", "vertexid")
	if err != nil {
		return at{}, err
	}
	a := at{job: o, r: o.Read()}
	a.vertex = slices.IndexFunc(a.r.Plan.Vertices, func(v observe.Vertex) bool { return v.ID == id })
	if a.vertex < 0 {
		return at{}, notFound(notFoundException, "JobVertex %s not found", id)
	}
	return a, nil
}

// subtaskOfRequest finds the subtask by its number.
func subtaskOfRequest(a at, r *http.Request) (at, error) {
	text := r.PathValue("subtask")
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return at{}, badPath("subtaskindex", text)
	}
	if n >= len(a.status().Subtasks) {
		return at{}, notFound(handlerException, "Invalid subtask index for vertex %s", a.plan().ID)
	}
	return a.with(n), nil
}

type subtaskDetails struct {
	Subtask        int                    `json:"subtask"`
	Status         status.State           `json:"status"`
	Attempt        int64                  `json:"attempt"`
	Endpoint       string                 `json:"endpoint"`
	StartTime      int64                  `json:"start-time"`
	StartTimeAgain int64                  `json:"start_time"`
	EndTime        int64                  `json:"end-time"`
	Duration       int64                  `json:"duration"`
	Metrics        ioMetrics              `json:"metrics"`
	TaskManager    string                 `json:"taskmanager-id"`
	StatusDuration map[status.State]int64 `json:"status-duration"`
}

// livingStates are those that a subtask spends time in.
var livingStates = []status.State{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING"}

func (s *Server) subtaskOf(a at) subtaskDetails {
	life := a.subtaskLife()
	start := startOf(life)
	out := subtaskDetails{
		Subtask: a.subtask, Status: life.State, Attempt: a.attempt(), Endpoint: s.Addr().String(),
		StartTime: start, StartTimeAgain: start, EndTime: endOf(life), Duration: durationOf(life, a.r.At),
		Metrics: subtaskIO(a.r, a.vertex, a.subtask), TaskManager: s.worker, StatusDuration: map[status.State]int64{},
	}
	for _, state := range livingStates { // all but running pass in no time
		out.StatusDuration[state] = 0
	}
	if since, ok := life.Since[status.Running]; ok {
		until := a.r.At
		if end := life.End(); !end.IsZero() {
			until = end
		}
		out.StatusDuration[status.Running] = until.Sub(since).Milliseconds()
	}
	return out
}

// distribution is what Flink shows of a number over subtasks.
type distribution struct {
	Min    int64 `json:"min"`
	Max    int64 `json:"max"`
	Avg    int64 `json:"avg"`
	Sum    int64 `json:"sum"`
	Median int64 `json:"median"`
	P25    int64 `json:"p25"`
	P75    int64 `json:"p75"`
	P95    int64 `json:"p95"`
}

func distributionOf(n int, value func(i int) int64) distribution {
	values := make([]int64, n)
	var d distribution
	for i := range values {
		values[i] = value(i)
		d.Sum += values[i]
	}
	slices.Sort(values)
	at := func(q float64) int64 { return values[min(n-1, int(q*float64(n)))] }
	d.Min, d.Max, d.Avg = values[0], values[n-1], d.Sum/int64(n)
	d.Median, d.P25, d.P75, d.P95 = at(0.5), at(0.25), at(0.75), at(0.95)
	return d
}

type aggregated struct {
	Metrics        map[string]distribution       `json:"metrics"`
	StatusDuration map[status.State]distribution `json:"status-duration"`
}

func aggregate(subtasks []subtaskDetails) aggregated {
	over := func(f func(*subtaskDetails) int64) distribution {
		return distributionOf(len(subtasks), func(i int) int64 { return f(&subtasks[i]) })
	}
	out := aggregated{
		Metrics: map[string]distribution{
			"read-bytes":                     over(func(s *subtaskDetails) int64 { return s.Metrics.ReadBytes }),
			"write-bytes":                    over(func(s *subtaskDetails) int64 { return s.Metrics.WriteBytes }),
			"read-records":                   over(func(s *subtaskDetails) int64 { return s.Metrics.ReadRecords }),
			"write-records":                  over(func(s *subtaskDetails) int64 { return s.Metrics.WriteRecords }),
			"accumulated-backpressured-time": over(func(s *subtaskDetails) int64 { return s.Metrics.BackPressured }),
			"accumulated-idle-time":          over(func(s *subtaskDetails) int64 { return s.Metrics.Idle }),
			"accumulated-busy-time":          over(func(s *subtaskDetails) int64 { return int64(s.Metrics.Busy) }),
		},
		StatusDuration: map[status.State]distribution{},
	}
	for _, state := range livingStates {
		out.StatusDuration[state] = over(func(s *subtaskDetails) int64 { return s.StatusDuration[state] })
	}
	return out
}

func (s *Server) subtasksOf(a at) []subtaskDetails {
	var list []subtaskDetails
	for i := range a.status().Subtasks {
		list = append(list, s.subtaskOf(a.with(i)))
	}
	return list
}

func (s *Server) vertexDetails(a at, _ *http.Request) (any, error) {
	subtasks := s.subtasksOf(a)
	return struct {
		ID             string           `json:"id"`
		Name           string           `json:"name"`
		Parallelism    int              `json:"parallelism"`
		MaxParallelism int              `json:"maxParallelism"`
		Now            int64            `json:"now"`
		Subtasks       []subtaskDetails `json:"subtasks"`
		Aggregated     aggregated       `json:"aggregated"`
	}{a.plan().ID, a.plan().Name, a.plan().Parallelism, a.plan().MaxParallelism, a.r.At.UnixMilli(), subtasks, aggregate(subtasks)}, nil
}

func (s *Server) subtaskDetails(a at, r *http.Request) (any, error) {
	if text := r.PathValue("attempt"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, badPath("attempt", text)
		}
		if n != a.attempt() {
			return nil, notFound(notFoundException, "Could not find attempt %d of subtask %d of vertex %s", n, a.subtask, a.plan().ID)
		}
	}
	return s.subtaskOf(a), nil
}

func (s *Server) subtaskTimes(a at, _ *http.Request) (any, error) {
	type times struct {
		Subtask    int                    `json:"subtask"`
		Endpoint   string                 `json:"endpoint"`
		Duration   int64                  `json:"duration"`
		Timestamps map[status.State]int64 `json:"timestamps"`
	}
	out := struct {
		ID       string  `json:"id"`
		Name     string  `json:"name"`
		Now      int64   `json:"now"`
		Subtasks []times `json:"subtasks"`
	}{ID: a.plan().ID, Name: a.plan().Name, Now: a.r.At.UnixMilli()}
	for i, t := range a.status().Subtasks {
		out.Subtasks = append(out.Subtasks, times{i, s.Addr().String(), durationOf(t.Life, a.r.At), timestampsOf(t.Life, taskStates)})
	}
	return out, nil
}

func (s *Server) vertexTaskManagers(a at, _ *http.Request) (any, error) {
	type manager struct {
		Endpoint     string               `json:"endpoint"`
		Status       status.State         `json:"status"`
		StartTime    int64                `json:"start-time"`
		EndTime      int64                `json:"end-time"`
		Duration     int64                `json:"duration"`
		Metrics      ioMetrics            `json:"metrics"`
		StatusCounts map[status.State]int `json:"status-counts"`
		TaskManager  string               `json:"taskmanager-id"`
		Aggregated   aggregated           `json:"aggregated"`
	}
	life := vertexLife(a.status())
	return struct {
		ID       string    `json:"id"`
		Name     string    `json:"name"`
		Now      int64     `json:"now"`
		Managers []manager `json:"taskmanagers"`
	}{a.plan().ID, a.plan().Name, a.r.At.UnixMilli(), []manager{{
		s.Addr().String(), life.State, startOf(life), endOf(life), durationOf(life, a.r.At), vertexIO(a.r, a.vertex),
		countStates(*a.status()), s.worker, aggregate(s.subtasksOf(a)),
	}}}, nil
}

type accumulatorsJSON struct {
	ID   string   `json:"id"`
	User []string `json:"user-accumulators"`
}

func vertexAccumulators(a at, _ *http.Request) (any, error) {
	return accumulatorsJSON{a.plan().ID, []string{}}, nil
}

func (s *Server) subtaskAccumulators(a at, _ *http.Request) (any, error) {
	type line struct {
		Subtask  int      `json:"subtask"`
		Attempt  int64    `json:"attempt"`
		Endpoint string   `json:"endpoint"`
		User     []string `json:"user-accumulators"`
	}
	out := struct {
		ID          string `json:"id"`
		Parallelism int    `json:"parallelism"`
		Subtasks    []line `json:"subtasks"`
	}{ID: a.plan().ID, Parallelism: a.plan().Parallelism}
	for i := range a.status().Subtasks {
		out.Subtasks = append(out.Subtasks, line{i, a.attempt(), s.Addr().String(), []string{}})
	}
	return out, nil
}

func attemptAccumulators(a at, _ *http.Request) (any, error) {
	return struct {
		Subtask int      `json:"subtask"`
		Attempt int64    `json:"attempt"`
		ID      string   `json:"id"`
		User    []string `json:"user-accumulators"`
	}{a.subtask, a.attempt(), observe.AttemptID(a.job.ID, a.vertex, a.subtask, a.attempt()), []string{}}, nil
}

// flameGraph says that there is none, as Flink does when it is switched off.
func flameGraph(at, *http.Request) (any, error) {
	return struct {
		End int64 `json:"endTimestamp"`
	}{-3}, nil
}

type pressure struct {
	Subtask int     `json:"subtask"`
	Level   string  `json:"backpressureLevel"`
	Again   string  `json:"backpressure-level"`
	Ratio   float64 `json:"ratio"`
	Idle    float64 `json:"idleRatio"`
	Busy    float64 `json:"busyRatio"`
}

func backPressure(a at, _ *http.Request) (any, error) {
	out := struct {
		Status   string     `json:"status"`
		Level    string     `json:"backpressureLevel"`
		Again    string     `json:"backpressure-level"`
		End      int64      `json:"end-timestamp"`
		Subtasks []pressure `json:"subtasks"`
	}{Status: "ok", End: time.Now().UnixMilli()}
	worst := 0.0
	for i := range a.status().Subtasks {
		s := a.r.Subtask(a.vertex, i)
		ratio := s.BackPressured() / 1000
		worst = max(worst, ratio)
		out.Subtasks = append(out.Subtasks, pressure{i, level(ratio), level(ratio), ratio, s.Idle / 1000, s.Busy / 1000})
	}
	out.Level, out.Again = level(worst), level(worst)
	return out, nil
}

// level is Flink's word for a ratio of back pressure.
func level(ratio float64) string {
	switch {
	case ratio <= 0.1:
		return "ok"
	case ratio <= 0.5:
		return "low"
	default:
		return "high"
	}
}
