package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/status"
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

// Status reads the job's numbers. It may be called at any time, from any
// goroutine; numbers of different subtasks are not from exactly one instant.
func (j *Job) Status() status.Job {
	s := status.Job{Name: j.name, Started: j.started, Running: true}
	select {
	case <-j.done:
		s.Running = false
	default:
	}
	at := map[*graph.Vertex]int{}
	for i, v := range j.plan.Vertices {
		at[v] = i
		s.Vertices = append(s.Vertices, status.Vertex{Name: v.Name, Parallelism: v.Parallelism})
	}
	for _, t := range j.tasks {
		v := &s.Vertices[at[t.vertex]]
		v.Subtasks = append(v.Subtasks, j.subtaskStatus(t.numbers))
	}
	return s
}

func (j *Job) subtaskStatus(n *numbers) status.Subtask {
	s := status.Subtask{
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

func (j *Job) operatorStatus(o *metric.Operator) status.Operator {
	s := status.Operator{
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
		s.LateBySplit = append(s.LateBySplit, status.LateCount{Source: name.Source, Split: name.Split, Count: n})
	}
	slices.SortFunc(s.LateBySplit, func(a, b status.LateCount) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Split, b.Split))
	})
	for _, r := range o.Late.Latest() {
		name, _ := j.splits.Name(r.Origin.Split())
		s.LateSamples = append(s.LateSamples, status.LateSample{
			Timestamp: r.Timestamp, Watermark: r.Watermark, Key: r.Key,
			Source: name.Source, Split: name.Split, Offset: r.Origin.Offset(),
		})
	}
	for _, split := range o.Splits.All() {
		s.Splits = append(s.Splits, splitStatus(split))
	}
	return s
}

func splitStatus(m *metric.Split) status.Split {
	s := status.Split{
		ID:               m.ID,
		State:            status.SplitState(m.State.Value()),
		IdleBy:           status.IdleReason(m.IdleBy.Value()),
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
