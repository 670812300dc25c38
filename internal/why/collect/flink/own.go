package flink

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/plan"
)

// Report returns the diagnosis that the server of a job of ours makes: it has looked since
// the start of the job, and knows the strategies. It is nil where there is none, such as on
// a Flink cluster. Of a job that does not run there is no diagnosis: that is an ErrNoJob.
func (c *Collector) Report(ctx context.Context) (*why.Report, error) {
	var report why.Report
	if found, err := c.ask(ctx, "why", &report); err != nil || !found || len(report.Findings) == 0 {
		return nil, err
	}
	if report.Cause == why.JobEnded || report.Cause == why.JobNotRunning {
		return nil, &notRunning{report.Findings[0].Answer}
	}
	return &report, nil
}

// Warnings returns what the checks of the plan of a job of ours have found, and whether its
// server tells that.
func (c *Collector) Warnings(ctx context.Context) (warnings []plan.Warning, told bool, err error) {
	var answer struct {
		Warnings []plan.Warning
	}
	if told, err = c.ask(ctx, "plan", &answer); err != nil || !told {
		return nil, false, err
	}
	for i := range answer.Warnings {
		w := &answer.Warnings[i]
		w.Operator = strings.TrimPrefix(w.Operator, sourcePrefix)
	}
	return answer.Warnings, true, nil
}

// Standing is since when a split has had its watermark.
type Standing struct {
	Vertex    string `json:"vertex"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// SinceMillis is nil if that is not known.
	SinceMillis *int64 `json:"watermarkSinceMs"`
}

// Standing returns since when the splits of a job of ours have had their watermarks; none on a
// Flink cluster.
func (c *Collector) Standing(ctx context.Context) ([]Standing, error) {
	var answer struct{ Splits []Standing }
	_, err := c.ask(ctx, "splits", &answer)
	return answer.Splits, err
}

// ask asks a server of ours about the job, and reports whether it knows.
func (c *Collector) ask(ctx context.Context, what string, into any) (bool, error) {
	if c.identify(ctx) != nil || c.own == nil {
		return false, nil // Look says that it is not known whether the server knows
	}
	err := c.client.get(ctx, "/lowwater/jobs/"+c.job.ID+"/"+what, "", into)
	var answer *AnswerError
	if isNotFound(err) || errors.As(err, &answer) && answer.Status == http.StatusNotImplemented {
		return false, nil
	}
	return err == nil, err
}

// ownJob is what a job of ours tells beside what Flink would.
type ownJob struct {
	// waits are the operators that wait for event time.
	waits map[vertexName]bool
	// topics are the true names by those in metrics.
	topics map[string]string
}

// identify asks whether the server is one of ours, unless that is known. An error says that
// it is not, and that it is to be asked again.
func (c *Collector) identify(ctx context.Context) error {
	if c.identified {
		return nil
	}
	own, err := c.client.ownJob(ctx, c.job)
	if err != nil {
		return err
	}
	c.own, c.identified = own, true
	return nil
}

// ownJob asks a server of ours about a job. It is nil if there is no such path: that is what
// a Flink cluster answers. Any other failure may be one of ours that is busy.
func (c *Client) ownJob(ctx context.Context, job Job) (*ownJob, error) {
	var graph struct {
		Vertices []struct {
			ID        string
			Operators []struct {
				Name      string
				EventTime bool
			}
		}
	}
	if err := c.get(ctx, "/lowwater/jobs/"+job.ID+"/graph", "", &graph); err != nil {
		if isNotFound(err) {
			err = nil
		}
		return nil, err
	}
	own := &ownJob{waits: map[vertexName]bool{}, topics: map[string]string{}}
	for _, v := range graph.Vertices {
		for _, o := range v.Operators {
			own.waits[vertexName{v.ID, o.Name}] = o.EventTime
		}
	}
	var splits struct {
		Splits []struct{ Topic string }
	}
	if err := c.get(ctx, "/lowwater/jobs/"+job.ID+"/splits", "", &splits); err != nil && !isNotFound(err) {
		return nil, err
	}
	for _, s := range splits.Splits {
		own.topics[filtered(s.Topic)] = s.Topic
	}
	return own, nil
}

// complete tells the operators that wait for event time from others, whatever their
// authors have named them.
func (j *ownJob) complete(operators []why.Operator) {
	for i := range operators {
		o := &operators[i]
		if !j.waits[vertexName{o.Vertex, o.Name}] || o.Kind != why.KindPlain && o.Kind != why.KindConnect {
			continue
		}
		o.Kind = why.KindWindow
		if len(o.Inputs) > 1 {
			o.Kind = why.KindJoin
		}
	}
}

// rename gives splits the true names of their topics.
func (j *ownJob) rename(s *why.Snapshot) {
	for i := range s.Splits {
		if name := j.topics[s.Splits[i].Topic]; name != "" {
			s.Splits[i].Topic = name
		}
	}
}
