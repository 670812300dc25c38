package observe

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector shows the metrics of all running jobs to Prometheus, with the names and labels
// of Flink's own reporter. All are gauges, as there.
type Collector struct {
	jobs *Registry
	host string
	// worker is the id of this process as a TaskManager.
	worker string
}

// NewCollector returns the collector of a registry.
func NewCollector(jobs *Registry, host, worker string) *Collector {
	return &Collector{jobs, host, worker}
}

// Describe implements prometheus.Collector. It describes nothing: which metrics there are
// depends on the jobs.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	e := exposition{out: out, seen: map[string]bool{}}
	process := ReadProcess()
	manager := []Label{{"host", c.host}}
	worker := []Label{{"host", c.host}, {"tm_id", c.worker}}
	running := 0
	for _, o := range c.jobs.Jobs() {
		r := o.Read()
		if r.Status.Life.State.Ended() {
			continue
		}
		running++
		e.job(o, r, manager, worker)
	}
	e.emit("jobmanager", []Metric{{Name: "numRunningJobs", Value: Whole(int64(running))}}, manager)
	e.emit("jobmanager", process.Metrics(), manager)
	e.emit("taskmanager", process.Metrics(), worker)
}

// exposition is one answer to Prometheus.
type exposition struct {
	out chan<- prometheus.Metric
	// seen are the series given out: a second of the same name and labels would spoil
	// the whole answer.
	seen map[string]bool
}

func (e *exposition) job(o *Observed, r *Reading, manager, worker []Label) {
	job := []Label{{"job_id", o.ID}, {"job_name", r.Status.Name}}
	e.emit("jobmanager_job", o.JobMetrics(r), manager, job)
	for v := range r.Plan.Vertices {
		p := &r.Plan.Vertices[v]
		for i := range r.Status.Vertices[v].Subtasks {
			task := []Label{
				{"task_id", p.ID}, {"task_name", p.Name}, {"task_attempt_id", AttemptID(o.ID, v, i, r.Status.Restarts)},
				{"task_attempt_num", Whole(r.Status.Restarts).String()}, {"subtask_index", Whole(int64(i)).String()},
			}
			e.emit("taskmanager_job_task", r.TaskMetrics(v, i), worker, job, task)
			for op := range p.Operators {
				operator := []Label{{"operator_id", p.Operators[op].ID}, {"operator_name", p.Operators[op].Name}}
				e.emit("taskmanager_job_task_operator", r.OperatorMetrics(v, i, op), worker, job, task, operator)
			}
		}
	}
}

func (e *exposition) emit(scope string, list []Metric, labels ...[]Label) {
	var names, values []string
	for _, group := range labels {
		for _, l := range group {
			names, values = append(names, l.Name), append(values, clean(l.Value))
		}
	}
	series, alike := make([]exposed, len(list)), map[string]int{}
	for i, m := range list {
		series[i] = newExposed(scope, m, values, clean)
		alike[series[i].key]++
	}
	for i, m := range list {
		number, ok := m.Value.Number()
		if !ok || math.IsNaN(number) {
			continue
		}
		s := series[i]
		if alike[s.key] > 1 {
			s = newExposed(scope, m, values, asIs)
		}
		if e.seen[s.key] {
			continue
		}
		e.seen[s.key] = true
		allNames := names[:len(names):len(names)]
		for _, l := range m.Group.Labels {
			allNames = append(allNames, l.Name)
		}
		desc := prometheus.NewDesc(s.name, m.Name+" (scope: "+scope+")", allNames, nil)
		if metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, number, s.values...); err == nil {
			e.out <- metric
		}
	}
}

// exposed is what tells a number from all others.
type exposed struct {
	name   string
	values []string // of its labels
	key    string   // all of that
}

// newExposed returns the series of a metric whose scope has labels of these values. The
// values of its own labels, such as the names of splits, are written by write.
func newExposed(scope string, m Metric, values []string, write func(string) string) exposed {
	name := "flink_" + scope
	if m.Group.Logical != "" {
		name += "_" + m.Group.Logical
	}
	s := exposed{name: clean(name + "_" + m.Name), values: values[:len(values):len(values)]}
	for _, l := range m.Group.Labels {
		s.values = append(s.values, write(l.Value))
	}
	s.key = s.name + "\x00" + strings.Join(s.values, "\x00")
	return s
}

// asIs is for the labels of series that clean would make one, such as those of the topics
// a.b and a_b. Flink shows one of them.
func asIs(s string) string { return strings.ToValidUTF8(s, "_") }

// clean replaces what Flink's reporter replaces, in names and in the values of labels.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == ':', r == '_':
			return r
		default:
			return '_'
		}
	}, s)
}

// AttemptID is the id of one run of a subtask, in Flink's shape.
func AttemptID(jobID string, vertex, subtask int, attempt int64) string {
	return OperatorID(jobID+"/"+Whole(int64(vertex)).String()+"/"+Whole(int64(subtask)).String()) +
		"_" + Whole(int64(vertex)).String() + "_" + Whole(int64(subtask)).String() + "_" + Whole(attempt).String()
}
