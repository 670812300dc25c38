package observe

import (
	"math"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// Subtask is the numbers of a subtask as a whole. Times are in milliseconds of each second.
type Subtask struct {
	Busy, Idle, SoftBackPressured, HardBackPressured float64
	RecordsIn, RecordsOut                            int64
	RecordsInPerSecond, RecordsOutPerSecond          float64
	LateDropped                                      int64
	// State sums up the operators that have a memory budget for theirs.
	State                                     status.KeyedState
	SpillReadsPerSecond, SpillWritesPerSecond float64
	// InputWatermark is that of the head operator; sources have none.
	InputWatermark int64
	// OutputWatermark is what goes to other vertices, or else what has reached the end of
	// the chain.
	OutputWatermark int64
	// OutputIdle says that the subtask has told those behind it that it is idle.
	OutputIdle bool
}

// BackPressured is the time of both kinds.
func (s Subtask) BackPressured() float64 { return min(1000, s.SoftBackPressured+s.HardBackPressured) }

// Subtask sums up one subtask.
func (r *Reading) Subtask(vertex, subtask int) Subtask {
	v := &r.Plan.Vertices[vertex]
	now := &r.Status.Vertices[vertex].Subtasks[subtask]
	before := &r.before.job.Vertices[vertex].Subtasks[subtask]
	s := Subtask{
		Busy:              r.millisPerSecond(now.Busy, before.Busy),
		Idle:              r.millisPerSecond(now.Idle, before.Idle),
		SoftBackPressured: r.millisPerSecond(now.SoftBackPressured, before.SoftBackPressured),
		HardBackPressured: r.millisPerSecond(now.HardBackPressured, before.HardBackPressured),
		RecordsIn:         now.Operators[0].RecordsIn,
		RecordsOut:        v.recordsOut(now),
		InputWatermark:    now.Operators[0].CurrentInputWatermark,
	}
	s.RecordsInPerSecond = r.perSecond(s.RecordsIn, before.Operators[0].RecordsIn)
	s.RecordsOutPerSecond = r.perSecond(s.RecordsOut, v.recordsOut(before))
	for i := range now.Operators {
		s.LateDropped += now.Operators[i].LateRecordsDropped
		r.addState(&s, &now.Operators[i].State, &before.Operators[i].State)
	}
	s.OutputWatermark, s.OutputIdle = v.output(now)
	return s
}

func (r *Reading) addState(s *Subtask, now, before *status.KeyedState) {
	s.State.BudgetBytes += now.BudgetBytes
	s.State.MemoryBytes += now.MemoryBytes
	s.State.DiskBytes += now.DiskBytes
	s.State.SpilledEntries += now.SpilledEntries
	s.State.SpillReads += now.SpillReads
	s.State.SpillWrites += now.SpillWrites
	s.SpillReadsPerSecond += r.perSecond(now.SpillReads, before.SpillReads)
	s.SpillWritesPerSecond += r.perSecond(now.SpillWrites, before.SpillWrites)
}

// recordsOut counts what leaves the vertex.
func (v *Vertex) recordsOut(s *status.Subtask) (n int64) {
	for i, o := range v.Operators {
		if o.Sends {
			n += s.Operators[i].RecordsOut
		}
	}
	return n
}

// output returns the watermark at the way out of a vertex, and whether it is idle.
func (v *Vertex) output(s *status.Subtask) (watermark int64, idle bool) {
	watermark, idle = eventtime.MaxTimestamp, true
	sends := false
	for i, o := range v.Operators {
		if o.Sends {
			sends = true
			watermark = min(watermark, s.Operators[i].CurrentOutputWatermark)
			idle = idle && s.Operators[i].Idle
		}
	}
	if sends {
		return watermark, idle
	}
	last := &s.Operators[len(s.Operators)-1]
	if v.Operators[len(v.Operators)-1].Kind == KindSource {
		return last.CurrentOutputWatermark, last.Idle
	}
	return last.CurrentInputWatermark, s.Operators[0].Idle
}

// eventTime is how far a subtask's event time is: what a source has sent, and what the
// others were sent.
func (v *Vertex) eventTime(s *status.Subtask) int64 {
	if v.Operators[0].Kind == KindSource {
		watermark, _ := v.output(s)
		return watermark
	}
	return s.Operators[0].CurrentInputWatermark
}

// LowWatermark returns the smallest event time of a vertex's subtasks. Idle subtasks of a
// source do not count, unless all are.
func (r *Reading) LowWatermark(vertex int) int64 {
	v := &r.Plan.Vertices[vertex]
	lowest, idle := int64(math.MaxInt64), int64(math.MaxInt64)
	for i := range r.Status.Vertices[vertex].Subtasks {
		s := &r.Status.Vertices[vertex].Subtasks[i]
		if _, isIdle := v.output(s); isIdle && v.Kind == KindSource {
			idle = min(idle, v.eventTime(s))
		} else {
			lowest = min(lowest, v.eventTime(s))
		}
	}
	if lowest == math.MaxInt64 {
		return idle
	}
	return lowest
}
