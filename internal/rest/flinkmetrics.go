package rest

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// named is a metric by its id in the scope of a request.
type named struct {
	id    string
	value observe.Value
}

type metricID struct {
	ID    string  `json:"id"`
	Value *string `json:"value,omitempty"`
}

// chosen answers with the ids of metrics, or with the values of those that the request
// names. Of two with one id the last counts; ids that there are not are left out.
func chosen(list []named, r *http.Request) any {
	wanted := map[string]bool{}
	for _, get := range r.URL.Query()["get"] {
		for id := range strings.SplitSeq(get, ",") {
			wanted[id] = true
		}
	}
	out := []metricID{}
	place := map[string]int{}
	for _, m := range list {
		line := metricID{ID: m.id}
		if len(wanted) > 0 {
			if !wanted[m.id] {
				continue
			}
			value := m.value.String()
			line.Value = &value
		}
		if i, ok := place[m.id]; ok {
			out[i] = line
			continue
		}
		place[m.id] = len(out)
		out = append(out, line)
	}
	return out
}

func prefixed(prefix string, list []observe.Metric) []named {
	out := make([]named, 0, len(list))
	for _, m := range list {
		out = append(out, named{prefix + m.ID(), m.Value})
	}
	return out
}

// subtaskMetrics are those of a subtask, without its number.
func subtaskMetrics(r *observe.Reading, vertex, subtask int) []named {
	out := prefixed("", r.TaskMetrics(vertex, subtask))
	v := &r.Plan.Vertices[vertex]
	for i := range v.Operators {
		out = append(out, prefixed(v.Operators[i].ScopeName()+".", r.OperatorMetrics(vertex, subtask, i))...)
	}
	return out
}

// metricsVertex finds the vertex of a request for metrics; for one that there is not
// Flink answers with no metrics.
func (s *Server) metricsVertex(r *http.Request) (a at, found bool, err error) {
	id, err := pathID(r, "jid", "jobid")
	if err != nil {
		return at{}, false, err
	}
	if _, err := pathID(r, "vid", "vertexid"); err != nil {
		return at{}, false, err
	}
	o := s.jobs.Job(id)
	if o == nil {
		return at{}, false, nil
	}
	a, err = vertexOfRequest(o, r)
	return a, err == nil, nil
}

func (s *Server) vertexMetrics(r *http.Request) (any, error) {
	a, found, err := s.metricsVertex(r)
	if !found {
		return []metricID{}, err
	}
	var list []named
	for i := range a.status().Subtasks {
		for _, m := range subtaskMetrics(a.r, a.vertex, i) {
			list = append(list, named{strconv.Itoa(i) + "." + m.id, m.value})
		}
	}
	return chosen(list, r), nil
}

func (s *Server) oneSubtaskMetrics(r *http.Request) (any, error) {
	a, found, err := s.metricsVertex(r)
	if !found {
		return []metricID{}, err
	}
	n, err := strconv.Atoi(r.PathValue("subtask"))
	if err != nil || n < 0 {
		return nil, badPath("subtaskindex", r.PathValue("subtask"))
	}
	if n >= len(a.status().Subtasks) {
		return []metricID{}, nil
	}
	return chosen(subtaskMetrics(a.r, a.vertex, n), r), nil
}

func watermarks(a at, _ *http.Request) (any, error) {
	out := []metricID{}
	if a.plan().Kind == observe.KindSource {
		return out, nil
	}
	for i := range a.status().Subtasks {
		for _, m := range a.r.TaskMetrics(a.vertex, i) {
			if m.Name == "currentInputWatermark" {
				value := m.Value.String()
				out = append(out, metricID{strconv.Itoa(i) + "." + m.Name, &value})
			}
		}
	}
	return out, nil
}

// noMetrics answers where Flink has metrics of coordinators, of which there are none here.
func noMetrics(*http.Request) (any, error) { return []metricID{}, nil }

func (s *Server) jobMetrics(r *http.Request) (any, error) {
	id, err := pathID(r, "jid", "jobid")
	if err != nil {
		return nil, err
	}
	o := s.jobs.Job(id)
	if o == nil {
		return []metricID{}, nil
	}
	return chosen(prefixed("", o.JobMetrics(o.Read())), r), nil
}

func (s *Server) taskManagerMetrics(r *http.Request) (any, error) {
	if r.PathValue("tm") != s.worker {
		return []metricID{}, nil
	}
	return chosen(prefixed("", observe.ReadProcess().Metrics()), r), nil
}

func (s *Server) jobManagerMetrics(r *http.Request) (any, error) {
	list := prefixed("", observe.ReadProcess().Metrics())
	slots := int64(s.slots())
	list = append(list,
		named{"numRunningJobs", observe.Whole(int64(len(s.running())))},
		named{"numRegisteredTaskManagers", observe.Whole(1)},
		named{"taskSlotsTotal", observe.Whole(slots)},
		named{"taskSlotsAvailable", observe.Whole(0)},
	)
	return chosen(list, r), nil
}

// running returns the jobs that have not ended.
func (s *Server) running() []*observe.Observed {
	return slices.DeleteFunc(s.jobs.Jobs(), func(o *observe.Observed) bool { return o.Read().Status.Life.State.Ended() })
}

// slots is how many slots the running jobs use: each as many as its widest vertex.
func (s *Server) slots() (n int) {
	for _, o := range s.running() {
		n += o.Plan().Parallelism
	}
	return n
}

// aggregation is a number over several subtasks, jobs or workers.
type aggregation struct {
	ID   string   `json:"id"`
	Min  *float64 `json:"min,omitempty"`
	Max  *float64 `json:"max,omitempty"`
	Avg  *float64 `json:"avg,omitempty"`
	Sum  *float64 `json:"sum,omitempty"`
	Skew *float64 `json:"skew,omitempty"`
}

// aggregateMetrics answers with aggregations of the metrics of several scopes. Values
// that are no numbers do not take part.
func aggregateMetrics(scopes [][]named, r *http.Request) (any, error) {
	query := r.URL.Query()
	wanted := map[string]bool{}
	for _, agg := range query["agg"] {
		for name := range strings.SplitSeq(agg, ",") {
			if !slices.Contains([]string{"min", "max", "avg", "sum", "skew"}, strings.ToLower(name)) {
				return nil, badQuery("agg", name)
			}
			wanted[strings.ToLower(name)] = true
		}
	}
	var order []string
	values := map[string][]float64{}
	for _, scope := range scopes {
		seen := map[string]float64{}
		for _, m := range scope {
			if _, known := values[m.id]; !known {
				order = append(order, m.id)
				values[m.id] = nil
			}
			if n, ok := m.value.Number(); ok {
				seen[m.id] = n
			}
		}
		for id, n := range seen {
			values[id] = append(values[id], n)
		}
	}
	if query.Get("get") == "" {
		out := []metricID{}
		for _, id := range order {
			out = append(out, metricID{ID: id})
		}
		return out, nil
	}
	out := []aggregation{}
	for _, get := range query["get"] {
		for id := range strings.SplitSeq(get, ",") {
			if list := values[id]; len(list) > 0 {
				out = append(out, newAggregation(id, list, wanted))
			}
		}
	}
	return out, nil
}

func newAggregation(id string, values []float64, wanted map[string]bool) aggregation {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	avg := sum / float64(len(values))
	away := 0.0
	for _, v := range values {
		away += math.Abs(v - avg)
	}
	skew := 0.0
	if sum != 0 {
		skew = 100 * away / math.Abs(sum)
	}
	pick := func(name string, v float64) *float64 {
		if len(wanted) > 0 && !wanted[name] {
			return nil
		}
		return &v
	}
	return aggregation{
		ID: id, Min: pick("min", slices.Min(values)), Max: pick("max", slices.Max(values)),
		Avg: pick("avg", avg), Sum: pick("sum", sum), Skew: pick("skew", skew),
	}
}

func (s *Server) subtasksMetrics(r *http.Request) (any, error) {
	a, found, err := s.metricsVertex(r)
	if !found {
		return []metricID{}, err
	}
	numbers, err := ranges(r.URL.Query()["subtasks"], len(a.status().Subtasks))
	if err != nil {
		return nil, err
	}
	var scopes [][]named
	for _, i := range numbers {
		scopes = append(scopes, subtaskMetrics(a.r, a.vertex, i))
	}
	return aggregateMetrics(scopes, r)
}

// ranges reads numbers such as "0-2,5". Those that are not below n are left out; nothing
// given means all.
func ranges(texts []string, n int) ([]int, error) {
	var out []int
	for i := range n {
		in := len(texts) == 0
		for _, text := range texts {
			for part := range strings.SplitSeq(text, ",") {
				first, last, isRange := strings.Cut(part, "-")
				from, err := strconv.Atoi(first)
				if err != nil {
					return nil, badQuery("subtasks", text)
				}
				to := from
				if isRange {
					if to, err = strconv.Atoi(last); err != nil {
						return nil, badQuery("subtasks", text)
					}
				}
				in = in || from <= i && i <= to
			}
		}
		if in {
			out = append(out, i)
		}
	}
	return out, nil
}

func (s *Server) jobsMetrics(r *http.Request) (any, error) {
	wanted := listQuery(r, "jobs")
	for i, id := range wanted {
		if !isID(id) {
			return nil, badQuery("jobs", id)
		}
		wanted[i] = strings.ToLower(id)
	}
	var scopes [][]named
	for _, o := range s.jobs.Jobs() {
		reading := o.Read()
		if reading.Status.Life.State == status.Running && (len(wanted) == 0 || slices.Contains(wanted, o.ID)) {
			scopes = append(scopes, prefixed("", o.JobMetrics(reading)))
		}
	}
	return aggregateMetrics(scopes, r)
}

func (s *Server) taskManagersMetrics(r *http.Request) (any, error) {
	var scopes [][]named
	if wanted := listQuery(r, "taskmanagers"); len(wanted) == 0 || slices.Contains(wanted, s.worker) {
		scopes = append(scopes, prefixed("", observe.ReadProcess().Metrics()))
	}
	return aggregateMetrics(scopes, r)
}

func listQuery(r *http.Request, name string) (list []string) {
	for _, text := range r.URL.Query()[name] {
		list = append(list, strings.Split(text, ",")...)
	}
	return list
}
