package rest

import (
	"net/http"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// Flink's words for the states of jobs and of subtasks.
var (
	jobStates = []status.State{"INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED",
		"RESTARTING", "SUSPENDED", "RECONCILING"}
	taskStates = []status.State{"CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED",
		"RECONCILING", "INITIALIZING"}
)

const schedulerType = "Default"

// start and end are a job's or a subtask's, -1 while there is none.
func startOf(l status.Life) int64 {
	var first time.Time
	for _, t := range l.Since {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	if first.IsZero() {
		return -1
	}
	return first.UnixMilli()
}

func endOf(l status.Life) int64 {
	if end := l.End(); !end.IsZero() {
		return end.UnixMilli()
	}
	return -1
}

// durationOf is how long it has lived so far, or did.
func durationOf(l status.Life, now time.Time) int64 {
	start, end := startOf(l), endOf(l)
	switch {
	case start < 0:
		return -1
	case end < 0:
		return now.UnixMilli() - start
	default:
		return end - start
	}
}

// timestampsOf says when each state was entered, 0 for those that were not.
func timestampsOf(l status.Life, states []status.State) map[status.State]int64 {
	out := make(map[status.State]int64, len(states))
	for _, s := range states {
		out[s] = 0
		if t, ok := l.Since[s]; ok {
			out[s] = t.UnixMilli()
		}
	}
	return out
}

type jobOverview struct {
	JID              string         `json:"jid"`
	Name             string         `json:"name"`
	StartTime        int64          `json:"start-time"`
	EndTime          int64          `json:"end-time"`
	Duration         int64          `json:"duration"`
	State            status.State   `json:"state"`
	LastModification int64          `json:"last-modification"`
	Tasks            map[string]int `json:"tasks"`
	JobType          string         `json:"jobType"`
	SchedulerType    string         `json:"schedulerType"`
	PendingOperators int            `json:"pending-operators"`
}

func overviewOf(o *observe.Observed) jobOverview {
	r := o.Read()
	life := r.Status.Life
	out := jobOverview{
		JID: o.ID, Name: r.Status.Name, StartTime: startOf(life), EndTime: endOf(life), Duration: durationOf(life, r.At),
		State: life.State, LastModification: lastChange(r), JobType: "STREAMING", SchedulerType: schedulerType,
		Tasks: map[string]int{"running": 0, "canceling": 0, "canceled": 0, "total": 0, "created": 0, "scheduled": 0,
			"deploying": 0, "reconciling": 0, "finished": 0, "initializing": 0, "failed": 0},
	}
	for state, n := range countStates(r.Status.Vertices...) {
		out.Tasks[lower(state)] += n
		out.Tasks["total"] += n
	}
	return out
}

// lastChange is when the job or one of its subtasks last went into another state.
func lastChange(r *observe.Reading) int64 {
	last := r.Status.Life.Since[r.Status.Life.State]
	for _, v := range r.Status.Vertices {
		for _, s := range v.Subtasks {
			if t := s.Life.Since[s.Life.State]; t.After(last) {
				last = t
			}
		}
	}
	return last.UnixMilli()
}

// countStates counts subtasks by state, with all of Flink's states.
func countStates(vertices ...status.Vertex) map[status.State]int {
	out := map[status.State]int{}
	for _, s := range taskStates {
		out[s] = 0
	}
	for _, v := range vertices {
		for _, s := range v.Subtasks {
			out[s.Life.State]++
		}
	}
	return out
}

type jobID struct {
	ID     string       `json:"id"`
	Status status.State `json:"status"`
}

func (s *Server) jobIDs(*http.Request) (any, error) {
	out := struct {
		Jobs []jobID `json:"jobs"`
	}{[]jobID{}}
	for _, o := range s.jobs.Jobs() {
		out.Jobs = append(out.Jobs, jobID{o.ID, o.Read().Status.Life.State})
	}
	return out, nil
}

func (s *Server) jobsOverview(*http.Request) (any, error) {
	out := struct {
		Jobs []jobOverview `json:"jobs"`
	}{[]jobOverview{}}
	for _, o := range s.jobs.Jobs() {
		out.Jobs = append(out.Jobs, overviewOf(o))
	}
	return out, nil
}
