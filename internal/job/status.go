package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/metric"
)

// numbers is what one subtask measures.
type numbers struct {
	task metric.Task
	// operators are in the order of the vertex's nodes.
	operators []*metric.Operator
}

func newNumbers(v *graph.Vertex) *numbers {
	n := &numbers{}
	for _, node := range v.Nodes {
		n.operators = append(n.operators, metric.NewOperator(node.Name, node.UID))
	}
	return n
}

// Status is what a job looks like at one moment.
type Status struct {
	Name     string
	Started  time.Time
	Running  bool
	Vertices []VertexStatus
}

// VertexStatus is one vertex of the plan.
type VertexStatus struct {
	Name        string
	Parallelism int
	Subtasks    []SubtaskStatus
}

// SubtaskStatus is one subtask: where its time went since it started, and its
// operators from the head on.
type SubtaskStatus struct {
	Busy, Idle, SoftBackPressured, HardBackPressured time.Duration
	Operators                                        []OperatorStatus
}

// OperatorStatus is one operator in one subtask. Watermarks are in milliseconds;
// eventtime.MinTimestamp means none yet.
type OperatorStatus struct {
	Name                   string
	UID                    string
	RecordsIn              int64
	RecordsOut             int64
	CurrentInputWatermark  int64
	CurrentOutputWatermark int64
	// Idle says that the operator has announced to those behind it that it is idle, so
	// that its watermark does not hold theirs back.
	Idle               bool
	LateRecords        int64
	LateRecordsDropped int64
	// LateBySplit counts late records by the split they were read from, LateSamples
	// are the latest of them, oldest first.
	LateBySplit []LateCount
	LateSamples []LateSample
	// Drops are the records that were not passed on, by reason; Future those too far
	// ahead of the wall clock to move the watermark.
	Future metric.Sample
	Drops  map[string]metric.Sample
	Splits []SplitStatus
}

// LateCount is the late records of one split; its names are empty if the split is
// unknown.
type LateCount struct {
	Source string
	Split  string
	Count  int64
}

// LateSample is one late record. Times are in milliseconds.
type LateSample struct {
	Timestamp int64
	Watermark int64
	Key       string
	Source    string
	Split     string
	Offset    int64
}

// Behind returns how far the record was behind the watermark.
func (s LateSample) Behind() time.Duration {
	return time.Duration(s.Watermark-s.Timestamp) * time.Millisecond
}

// SplitStatus is one split of a source subtask.
type SplitStatus struct {
	ID               string
	State            metric.SplitState
	IdleBy           metric.IdleReason
	Records          int64
	CurrentWatermark int64
	// CurrentOffset is the next offset to read, EndOffset the split's end as last
	// heard; -1 while unknown.
	CurrentOffset int64
	EndOffset     int64
	// LastRecordAt is zero if the split has had no record.
	LastRecordAt time.Time
	// LastEventTime is the largest event time seen.
	LastEventTime int64
	// Future is the records too far ahead of the wall clock to move the watermark.
	Future metric.Sample
}

// Status reads the job's numbers. It may be called at any time, from any
// goroutine; numbers of different subtasks are not from exactly one instant.
func (j *Job) Status() Status {
	s := Status{Name: j.name, Started: j.started, Running: true}
	select {
	case <-j.done:
		s.Running = false
	default:
	}
	at := map[*graph.Vertex]int{}
	for i, v := range j.plan.Vertices {
		at[v] = i
		s.Vertices = append(s.Vertices, VertexStatus{Name: v.Name, Parallelism: v.Parallelism})
	}
	for _, t := range j.tasks {
		v := &s.Vertices[at[t.vertex]]
		v.Subtasks = append(v.Subtasks, j.subtaskStatus(t.numbers))
	}
	return s
}

func (j *Job) subtaskStatus(n *numbers) SubtaskStatus {
	s := SubtaskStatus{
		Busy:              n.task.Busy.Total(),
		Idle:              n.task.Idle.Total(),
		SoftBackPressured: n.task.SoftBackPressured.Total(),
		HardBackPressured: n.task.HardBackPressured.Total(),
	}
	for _, o := range n.operators {
		s.Operators = append(s.Operators, j.operatorStatus(o))
	}
	return s
}

func (j *Job) operatorStatus(o *metric.Operator) OperatorStatus {
	s := OperatorStatus{
		Name:                   o.Name,
		UID:                    o.UID,
		RecordsIn:              o.NumRecordsIn.Value(),
		RecordsOut:             o.NumRecordsOut.Value(),
		CurrentInputWatermark:  o.CurrentInputWatermark.Value(),
		CurrentOutputWatermark: o.CurrentOutputWatermark.Value(),
		Idle:                   o.OutputIdle.Value() == 1,
		LateRecords:            o.NumLateRecords.Value(),
		LateRecordsDropped:     o.NumLateRecordsDropped.Value(),
		Drops:                  o.Drops(),
		Future:                 o.Future.Value(),
	}
	for split, n := range o.Late.BySplit() {
		name, _ := j.splits.Name(split)
		s.LateBySplit = append(s.LateBySplit, LateCount{name.Source, name.Split, n})
	}
	slices.SortFunc(s.LateBySplit, func(a, b LateCount) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Split, b.Split))
	})
	for _, r := range o.Late.Latest() {
		name, _ := j.splits.Name(r.Origin.Split())
		s.LateSamples = append(s.LateSamples, LateSample{
			r.Timestamp, r.Watermark, r.Key, name.Source, name.Split, r.Origin.Offset(),
		})
	}
	for _, split := range o.Splits.All() {
		s.Splits = append(s.Splits, splitStatus(split))
	}
	return s
}

func splitStatus(m *metric.Split) SplitStatus {
	s := SplitStatus{
		ID:               m.ID,
		State:            metric.SplitState(m.State.Value()),
		IdleBy:           metric.IdleReason(m.IdleBy.Value()),
		Future:           m.Future.Value(),
		Records:          m.NumRecordsIn.Value(),
		CurrentWatermark: m.CurrentWatermark.Value(),
		CurrentOffset:    m.CurrentOffset.Value(),
		EndOffset:        m.EndOffset.Value(),
		LastEventTime:    m.LastEventTime.Value(),
	}
	if at := m.LastRecordAt.Value(); at != 0 {
		s.LastRecordAt = time.UnixMilli(at)
	}
	return s
}
