package rest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// ioMetrics are the sums of a subtask or of several. Bytes are not counted: channels
// carry batches of values.
type ioMetrics struct {
	ReadBytes            int64   `json:"read-bytes"`
	ReadBytesComplete    bool    `json:"read-bytes-complete"`
	WriteBytes           int64   `json:"write-bytes"`
	WriteBytesComplete   bool    `json:"write-bytes-complete"`
	ReadRecords          int64   `json:"read-records"`
	ReadRecordsComplete  bool    `json:"read-records-complete"`
	WriteRecords         int64   `json:"write-records"`
	WriteRecordsComplete bool    `json:"write-records-complete"`
	BackPressured        int64   `json:"accumulated-backpressured-time"`
	Idle                 int64   `json:"accumulated-idle-time"`
	Busy                 float64 `json:"accumulated-busy-time"`
}

func subtaskIO(r *observe.Reading, vertex, subtask int) ioMetrics {
	s := r.Subtask(vertex, subtask)
	now := &r.Status.Vertices[vertex].Subtasks[subtask]
	return ioMetrics{
		ReadRecords: s.RecordsIn, ReadRecordsComplete: true, WriteRecords: s.RecordsOut, WriteRecordsComplete: true,
		BackPressured: (now.SoftBackPressured + now.HardBackPressured).Milliseconds(),
		Idle:          now.Idle.Milliseconds(), Busy: float64(now.Busy.Milliseconds()),
	}
}

func vertexIO(r *observe.Reading, vertex int) ioMetrics {
	sum := ioMetrics{ReadRecordsComplete: true, WriteRecordsComplete: true}
	for i := range r.Status.Vertices[vertex].Subtasks {
		s := subtaskIO(r, vertex, i)
		sum.ReadRecords += s.ReadRecords
		sum.WriteRecords += s.WriteRecords
		sum.BackPressured += s.BackPressured
		sum.Idle += s.Idle
		sum.Busy += s.Busy
	}
	return sum
}

type jobVertex struct {
	ID               string               `json:"id"`
	SlotSharingGroup string               `json:"slotSharingGroupId"`
	Name             string               `json:"name"`
	MaxParallelism   int                  `json:"maxParallelism"`
	Parallelism      int                  `json:"parallelism"`
	Status           status.State         `json:"status"`
	StartTime        int64                `json:"start-time"`
	EndTime          int64                `json:"end-time"`
	Duration         int64                `json:"duration"`
	Tasks            map[status.State]int `json:"tasks"`
	Metrics          ioMetrics            `json:"metrics"`
}

type jobDetails struct {
	JID              string                 `json:"jid"`
	Name             string                 `json:"name"`
	IsStoppable      bool                   `json:"isStoppable"`
	State            status.State           `json:"state"`
	JobType          string                 `json:"job-type"`
	SchedulerType    string                 `json:"schedulerType"`
	StartTime        int64                  `json:"start-time"`
	EndTime          int64                  `json:"end-time"`
	Duration         int64                  `json:"duration"`
	MaxParallelism   int                    `json:"maxParallelism"`
	Now              int64                  `json:"now"`
	Timestamps       map[status.State]int64 `json:"timestamps"`
	Vertices         []jobVertex            `json:"vertices"`
	StatusCounts     map[status.State]int   `json:"status-counts"`
	Plan             planJSON               `json:"plan"`
	PendingOperators int                    `json:"pending-operators"`
	ApplicationID    string                 `json:"application-id"`
}

func jobOf(o *observe.Observed, _ *http.Request) (any, error) {
	r := o.Read()
	life := r.Status.Life
	out := jobDetails{
		JID: o.ID, Name: r.Status.Name, State: life.State, JobType: "STREAMING", SchedulerType: schedulerType,
		StartTime: startOf(life), EndTime: endOf(life), Duration: durationOf(life, r.At),
		MaxParallelism: -1, Now: r.At.UnixMilli(), Timestamps: timestampsOf(life, jobStates),
		Vertices: []jobVertex{}, StatusCounts: countStates(), Plan: flinkPlan(o), ApplicationID: o.ID,
	}
	for i := range r.Plan.Vertices {
		p := &r.Plan.Vertices[i]
		v := &r.Status.Vertices[i]
		state := vertexState(v)
		span := vertexLife(v)
		out.StatusCounts[state]++
		out.Vertices = append(out.Vertices, jobVertex{
			ID: p.ID, SlotSharingGroup: observe.OperatorID("default"), Name: p.Name, MaxParallelism: p.MaxParallelism,
			Parallelism: p.Parallelism, Status: state, StartTime: startOf(span), EndTime: endOf(span),
			Duration: durationOf(span, r.At), Tasks: countStates(*v), Metrics: vertexIO(r, i),
		})
	}
	return out, nil
}

// vertexState sums up the states of subtasks by Flink's rule: the worst, then the earliest.
func vertexState(v *status.Vertex) status.State {
	counts := countStates(*v)
	for _, s := range []status.State{status.Failed, status.Canceling, status.Canceled} {
		if counts[s] > 0 {
			return s
		}
	}
	switch {
	case counts[status.Finished] == len(v.Subtasks):
		return status.Finished
	case counts[status.Running]+counts[status.Finished] == len(v.Subtasks):
		return status.Running
	default:
		return status.Created
	}
}

// vertexLife is from the first start of a subtask to the last end.
func vertexLife(v *status.Vertex) status.Life {
	life := status.Life{State: vertexState(v), Since: map[status.State]time.Time{}}
	for _, s := range v.Subtasks {
		for state, t := range s.Life.Since {
			at, ok := life.Since[state]
			if !ok || state.Ended() && t.After(at) || !state.Ended() && t.Before(at) {
				life.Since[state] = t
			}
		}
	}
	return life
}

func jobPlan(o *observe.Observed, _ *http.Request) (any, error) {
	return struct {
		Plan planJSON `json:"plan"`
	}{flinkPlan(o)}, nil
}

func jobStatus(o *observe.Observed, _ *http.Request) (any, error) {
	return struct {
		Status status.State `json:"status"`
	}{o.Read().Status.Life.State}, nil
}

type executionConfig struct {
	Restart     string            `json:"restart-strategy"`
	Parallelism int               `json:"job-parallelism"`
	ObjectReuse bool              `json:"object-reuse-mode"`
	User        map[string]string `json:"user-config"`
}

func jobConfig(o *observe.Observed, _ *http.Request) (any, error) {
	c := o.Config()
	return struct {
		JID    string          `json:"jid"`
		Name   string          `json:"name"`
		Config executionConfig `json:"execution-config"`
	}{o.ID, o.Plan().Name, executionConfig{c.RestartStrategy, c.Parallelism, true, map[string]string{}}}, nil
}

type exceptionJSON struct {
	Name         string            `json:"exceptionName"`
	StackTrace   string            `json:"stacktrace"`
	Timestamp    int64             `json:"timestamp"`
	TaskName     string            `json:"taskName,omitempty"`
	Endpoint     string            `json:"endpoint,omitempty"`
	TaskManager  string            `json:"taskManagerId,omitempty"`
	Labels       map[string]string `json:"failureLabels"`
	Concurrently []exceptionJSON   `json:"concurrentExceptions"`
}

// defaultExceptions is how many exceptions are shown if the client does not say.
const defaultExceptions = 20

func (s *Server) jobExceptions(o *observe.Observed, r *http.Request) (any, error) {
	limit, err := intQuery(r, "maxExceptions", defaultExceptions)
	if err != nil {
		return nil, err
	}
	failures := o.Failures()
	slices.Reverse(failures)
	entries := []exceptionJSON{}
	for _, f := range failures[:min(len(failures), limit)] {
		e := exceptionJSON{
			Name: exceptionName(f.Err), StackTrace: stackTrace(f.Err), Timestamp: f.At.UnixMilli(),
			Labels: map[string]string{}, Concurrently: []exceptionJSON{},
		}
		if f.Vertex >= 0 {
			v := &o.Plan().Vertices[f.Vertex]
			e.TaskName = fmt.Sprintf("%s (%d/%d)", v.Name, f.Subtask+1, v.Parallelism)
			e.Endpoint, e.TaskManager = s.Addr().String(), s.worker
		}
		entries = append(entries, e)
	}
	type history struct {
		Entries   []exceptionJSON `json:"entries"`
		Truncated bool            `json:"truncated"`
	}
	return struct {
		History history `json:"exceptionHistory"`
	}{history{entries, len(failures) > limit}}, nil
}

func jobAccumulators(*observe.Observed, *http.Request) (any, error) {
	return struct {
		Job        []string          `json:"job-accumulators"`
		User       []string          `json:"user-task-accumulators"`
		Serialized map[string]string `json:"serialized-user-task-accumulators"`
	}{[]string{}, []string{}, map[string]string{}}, nil
}

type progressJSON struct {
	ID string `json:"id"`
}

type executionResult struct {
	ID            string            `json:"id"`
	Name          string            `json:"name"`
	ApplicationID string            `json:"application-id"`
	Status        string            `json:"application-status"`
	Accumulators  map[string]string `json:"accumulator-results"`
	StartTime     int64             `json:"start-time"`
	EndTime       int64             `json:"end-time"`
	NetRuntime    int64             `json:"net-runtime"`
	FailureCause  *failureCause     `json:"failure-cause,omitempty"`
}

func jobResult(o *observe.Observed, _ *http.Request) (any, error) {
	type result struct {
		Status progressJSON     `json:"status"`
		Result *executionResult `json:"job-execution-result,omitempty"`
	}
	r := o.Read()
	life := r.Status.Life
	if !life.State.Ended() {
		return result{Status: progressJSON{"IN_PROGRESS"}}, nil
	}
	out := &executionResult{
		ID: o.ID, Name: r.Status.Name, ApplicationID: o.ID, Accumulators: map[string]string{},
		Status:    map[status.State]string{status.Finished: "SUCCEEDED", status.Failed: "FAILED", status.Canceled: "CANCELED"}[life.State],
		StartTime: startOf(life), EndTime: endOf(life), NetRuntime: durationOf(life, r.At),
	}
	if failures := o.Failures(); life.State == status.Failed && len(failures) > 0 {
		out.FailureCause = newFailureCause(failures[len(failures)-1].Err)
	}
	return result{progressJSON{"COMPLETED"}, out}, nil
}

// intQuery returns a query parameter that must be a whole number, not negative.
func intQuery(r *http.Request, name string, otherwise int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, badQuery(name, text)
	}
	return n, nil
}
