package flink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/why"
)

// ErrNoJob is the error of looking for a job that the cluster does not run, or does not know,
// and of looking at one that has ended.
var ErrNoJob = errors.New("no job")

// notRunning is the error of a job that does not run. It is an ErrNoJob.
type notRunning struct{ text string }

func (e *notRunning) Error() string { return e.text }

// Is reports whether target is ErrNoJob.
func (*notRunning) Is(target error) bool { return target == ErrNoJob }

// notRunning says what has become of a job.
func (c *Client) notRunning(ctx context.Context, j Job) error {
	if j.State == "" {
		return fmt.Errorf("job %q: the answer does not say in what state it is: is this Flink's REST API?", j.Name)
	}
	if text := c.ownNotRunning(ctx, j); text != "" {
		return &notRunning{text}
	}
	since := ""
	if j.EndMillis > 0 {
		since = time.UnixMilli(j.EndMillis).UTC().Format(" since 2006-01-02 15:04:05 UTC")
	}
	return &notRunning{fmt.Sprintf("job %q is %s%s%s", j.Name, j.State, since, c.failure(ctx, j.ID))}
}

// ownNotRunning is what a server of ours says of a job that does not run, such as how often it
// was started again; empty on a Flink cluster.
func (c *Client) ownNotRunning(ctx context.Context, j Job) string {
	var report why.Report
	if err := c.get(ctx, "/lowwater/jobs/"+j.ID+"/why", "", &report); err != nil || report.Cause != why.JobNotRunning || len(report.Findings) == 0 {
		return ""
	}
	return report.Findings[0].Answer
}

// Job is a job as the cluster lists it.
type Job struct {
	ID    string `json:"jid"`
	Name  string `json:"name"`
	State string `json:"state"`
	// EndMillis is when the job ended; not positive before.
	EndMillis int64 `json:"end-time"`
}

// Running reports whether there is something to look at.
func (j Job) Running() bool { return j.State == "RUNNING" }

// Ended reports whether the job will not run again.
func (j Job) Ended() bool {
	return j.State == "FINISHED" || j.State == "CANCELED" || j.State == "FAILED"
}

// Jobs lists the jobs that the cluster knows of, ended ones included.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var answer struct{ Jobs []Job }
	if err := c.get(ctx, "/jobs/overview", "", &answer); err != nil {
		return nil, err
	}
	return answer.Jobs, nil
}

// Find returns the running job with an id, the beginning of one, or a name. An empty text
// stands for the only job that runs.
func (c *Client) Find(ctx context.Context, idOrName string) (Job, error) {
	all, err := c.Jobs(ctx)
	if err != nil {
		return Job{}, err
	}
	var running, found, ended, halted []Job
	for _, j := range all {
		match := idOrName == "" || j.Name == idOrName || j.ID == idOrName || len(idOrName) >= 4 && strings.HasPrefix(j.ID, idOrName)
		switch {
		case match && j.Running():
			found = append(found, j)
		case match && idOrName != "":
			ended = append(ended, j)
		}
		switch {
		case j.Running():
			running = append(running, j)
		case !j.Ended():
			halted = append(halted, j)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Job{}, fmt.Errorf("%d jobs run; say which: %s", len(found), listJobs(found))
	case len(ended) > 0:
		return Job{}, c.notRunning(ctx, ended[len(ended)-1])
	case len(running) == 0 && len(halted) > 0:
		return Job{}, c.notRunning(ctx, halted[len(halted)-1])
	case len(running) == 0:
		return Job{}, fmt.Errorf("%w runs", ErrNoJob)
	default:
		return Job{}, fmt.Errorf("%w %q; there are %s", ErrNoJob, idOrName, listJobs(running))
	}
}

// Successor returns a collector of the job that runs under the name of the one looked at, if
// a look has found that ended or unknown: a job that is started again has another id. The
// error says why there is none; it is that of the look if the job may still be there.
func (c *Collector) Successor(ctx context.Context, look error) (*Collector, error) {
	if !errors.Is(look, ErrNoJob) && !isNotFound(look) {
		return nil, look
	}
	job, err := c.client.Find(ctx, c.job.Name)
	switch {
	case err != nil:
		return nil, err
	case job.ID == c.job.ID:
		return nil, look
	}
	return c.client.Open(ctx, job)
}

// Job returns the job that is looked at.
func (c *Collector) Job() Job { return c.job }

// failure is the last exception of a job, as the end of a sentence.
func (c *Client) failure(ctx context.Context, id string) string {
	var answer struct {
		ExceptionHistory struct {
			Entries []struct{ Stacktrace string }
		}
	}
	if err := c.get(ctx, "/jobs/"+id+"/exceptions", "maxExceptions=1", &answer); err != nil || len(answer.ExceptionHistory.Entries) == 0 {
		return ""
	}
	stack := answer.ExceptionHistory.Entries[0].Stacktrace
	cause, _, _ := strings.Cut(stack, "\n")
	if i := strings.LastIndex(stack, "Caused by: "); i >= 0 {
		cause, _, _ = strings.Cut(stack[i+len("Caused by: "):], "\n")
	}
	return ": " + cause
}

func listJobs(jobs []Job) string {
	const most = 10
	var names []string
	for _, j := range jobs[:min(len(jobs), most)] {
		names = append(names, fmt.Sprintf("%q (%s)", j.Name, j.ID))
	}
	if n := len(jobs) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
