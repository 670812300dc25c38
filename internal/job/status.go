package job

import (
	"cmp"
	"slices"
	"time"

	"github.com/lowwater/lowwater/eventtime"
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
	inputs := 0
	for _, e := range v.Inputs {
		inputs = max(inputs, e.Input+1)
	}
	if inputs > 1 {
		watermarks := make([]metric.Gauge, inputs)
		for i := range watermarks {
			watermarks[i].Set(eventtime.MinTimestamp)
		}
		n.operators[0].InputWatermarks = watermarks
	}
	return n
}

// Status reads the job's numbers. It may be called at any time, from any
// goroutine; numbers of different subtasks are not from exactly one instant.
func (j *Job) Status() status.Job {
	s := status.Job{Name: j.name, Started: j.started, Running: true, Life: j.life.read(), Restarts: j.restarts.Load()}
	select {
	case <-j.done:
		s.Running = false
	default:
	}
	r := j.current.Load()
	at := map[*graph.Vertex]int{}
	for i, v := range r.plan.Vertices {
		at[v] = i
		s.Vertices = append(s.Vertices, status.Vertex{Name: v.Name, Parallelism: v.Parallelism})
	}
	for _, t := range r.tasks {
		v := &s.Vertices[at[t.vertex]]
		v.Subtasks = append(v.Subtasks, r.subtaskStatus(t))
	}
	return s
}

func (r *run) subtaskStatus(t *runningTask) status.Subtask {
	n := t.numbers
	s := status.Subtask{
		Life:              t.life.read(),
		Busy:              n.task.Busy.Total(),
		Idle:              n.task.Idle.Total(),
		SoftBackPressured: n.task.SoftBackPressured.Total(),
		HardBackPressured: n.task.HardBackPressured.Total(),
	}
	for _, o := range n.operators {
		s.Operators = append(s.Operators, r.operatorStatus(o))
	}
	if t.isSource {
		s.Operators[0].Source = sourceStatus(&n.operators[0].Source)
	}
	return s
}

func (r *run) operatorStatus(o *metric.Operator) status.Operator {
	s := status.Operator{
		Name:                   o.Name,
		UID:                    o.UID,
		RecordsIn:              o.NumRecordsIn.Value(),
		RecordsOut:             o.NumRecordsOut.Value(),
		BytesIn:                o.NumBytesIn.Value(),
		BytesOut:               o.NumBytesOut.Value(),
		CurrentInputWatermark:  o.CurrentInputWatermark.Value(),
		CurrentOutputWatermark: o.CurrentOutputWatermark.Value(),
		Idle:                   o.OutputIdle.Value() == 1,
		LateRecords:            o.NumLateRecords.Value(),
		LateRecordsDropped:     o.NumLateRecordsDropped.Value(),
		Drops:                  o.Drops(),
		Future:                 o.Future.Value(),
		EventTimers:            status.EventTimers{Registered: o.EventTimers.Registered.Value() == 1, Next: o.EventTimers.Next.Value()},
		State: status.KeyedState{
			BudgetBytes:    o.State.BudgetBytes.Value(),
			MemoryBytes:    o.State.MemoryBytes.Value(),
			SpilledEntries: o.State.SpilledEntries.Value(),
			DiskBytes:      o.State.DiskBytes.Value(),
			SpillReads:     o.State.SpillReads.Value(),
			SpillWrites:    o.State.SpillWrites.Value(),
		},
	}
	for i := range o.InputWatermarks {
		s.InputWatermarks = append(s.InputWatermarks, o.InputWatermarks[i].Value())
	}
	for split, n := range o.Late.BySplit() {
		name, _ := r.splits.Name(split)
		s.LateBySplit = append(s.LateBySplit, status.LateCount{Source: name.Source, Split: name.Split, Count: n})
	}
	slices.SortFunc(s.LateBySplit, func(a, b status.LateCount) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Split, b.Split))
	})
	for _, late := range o.Late.Latest() {
		name, _ := r.splits.Name(late.Origin.Split())
		s.LateSamples = append(s.LateSamples, status.LateSample{
			Timestamp: late.Timestamp, Watermark: late.Watermark, Key: late.Key,
			Source: name.Source, Split: name.Split, Offset: late.Origin.Offset(),
		})
	}
	splits, positions := o.Splits.All(), o.Splits.Positions()
	for _, split := range splits {
		at, ok := positions[split.ID]
		if !ok {
			at = metric.NoPosition
		}
		s.Splits = append(s.Splits, splitStatus(split, at))
	}
	return s
}

func sourceStatus(m *metric.Source) *status.Source {
	now := time.Now().UnixMilli()
	s := &status.Source{Idle: time.Duration(m.IdleTime(now)) * time.Millisecond}
	if lag, ok := m.WatermarkLag(now); ok {
		s.WatermarkLagMillis = &lag
	}
	if lag := m.EmitEventTimeLag(now); lag != -1 {
		s.EventTimeLagMillis = &lag
	}
	if drift, ok := m.AlignmentDrift(); ok {
		s.AlignmentDriftMillis = &drift
	}
	return s
}

// splitStatus puts together what the subtask has counted and what its reader says. The
// subtask notes its position before it passes records on, the reader afterwards.
func splitStatus(m *metric.Split, at metric.Position) status.Split {
	s := status.Split{
		ID:               m.ID,
		Topic:            m.Topic,
		Partition:        m.Partition,
		StateSince:       time.UnixMilli(m.StateSince.Value()),
		ActiveFor:        m.TimeIn(status.SplitActive),
		IdleFor:          m.TimeIn(status.SplitIdle),
		PausedFor:        m.TimeIn(status.SplitPaused),
		CommittedOffset:  at.Committed,
		State:            status.SplitState(m.State.Value()),
		IdleBy:           status.IdleReason(m.IdleBy.Value()),
		Future:           m.Future.Value(),
		Records:          m.NumRecordsIn.Value(),
		CurrentWatermark: m.CurrentWatermark.Value(),
		CurrentOffset:    max(m.CurrentOffset.Value(), at.Next),
		EndOffset:        at.End,
		LastEventTime:    m.LastEventTime.Value(),
		LongestPause:     time.Duration(m.LongestPause.Value()) * time.Millisecond,
	}
	switch {
	case s.State == status.SplitFinished:
		s.EndOffset = s.CurrentOffset
	case s.EndOffset >= 0:
		s.EndOffset = max(s.EndOffset, s.CurrentOffset) // which may be newer
	}
	if at := m.LastRecordAt.Value(); at != 0 {
		s.LastRecordAt = time.UnixMilli(at)
	}
	return s
}
