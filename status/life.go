package status

import "time"

// State is how a job or a subtask is, in Flink's words. Some are used for one of the two
// only.
type State string

const (
	// Created and Initializing: not all tasks are started yet.
	Created      State = "CREATED"
	Initializing State = "INITIALIZING"
	Running      State = "RUNNING"
	// Restarting: the job has failed and waits to run again.
	Restarting State = "RESTARTING"
	// Failing and Cancelling: some tasks have not ended yet. A subtask is Canceling.
	Failing    State = "FAILING"
	Cancelling State = "CANCELLING"
	Canceling  State = "CANCELING"
	// Finished, Failed and Canceled are the ends. A job that was stopped gracefully is
	// finished.
	Finished State = "FINISHED"
	Failed   State = "FAILED"
	Canceled State = "CANCELED"
)

// Ended reports whether nothing follows the state.
func (s State) Ended() bool { return s == Finished || s == Failed || s == Canceled }

// Life is the states that something went through.
type Life struct {
	State State
	// Since holds when each state that was entered began, for the last time.
	Since map[State]time.Time
}

// End returns when it ended, zero while it has not.
func (l Life) End() time.Time {
	if !l.State.Ended() {
		return time.Time{}
	}
	return l.Since[l.State]
}

// Failure is one failure of a job.
type Failure struct {
	At time.Time
	// Err says what failed, where, and what to do.
	Err error
	// Vertex and Subtask are where, Vertex is -1 if the failure is the job's own.
	Vertex, Subtask int
}
