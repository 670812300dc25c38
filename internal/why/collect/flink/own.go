package flink

import (
	"context"
	"strings"

	"github.com/lowwater/lowwater/internal/why"
)

// ownJob is what a job of ours tells beside what Flink would.
type ownJob struct {
	// kinds are those of operators, by their names.
	kinds map[string]string
	// topics are the true names by those in metrics.
	topics map[string]string
}

// ownJob asks whether the server is one of ours; nil is a Flink cluster.
func (c *Client) ownJob(ctx context.Context, job Job) *ownJob {
	var graph struct {
		Vertices []struct {
			Operators []struct{ Name, Kind string }
		}
	}
	if err := c.get(ctx, "/lowwater/jobs/"+job.ID+"/graph", "", &graph); err != nil {
		return nil
	}
	own := &ownJob{kinds: map[string]string{}, topics: map[string]string{}}
	for _, v := range graph.Vertices {
		for _, o := range v.Operators {
			own.kinds[strings.TrimPrefix(o.Name, sourcePrefix)] = o.Kind
		}
	}
	var splits struct {
		Splits []struct{ Topic string }
	}
	if err := c.get(ctx, "/lowwater/jobs/"+job.ID+"/splits", "", &splits); err == nil {
		for _, s := range splits.Splits {
			own.topics[filtered(s.Topic)] = s.Topic
		}
	}
	return own
}

// complete tells the operators that wait for event time from others, whatever their
// authors have named them.
func (j *ownJob) complete(operators []why.Operator) {
	for i := range operators {
		o := &operators[i]
		if j.kinds[o.Name] != "window" || o.Kind != why.KindPlain && o.Kind != why.KindConnect {
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
