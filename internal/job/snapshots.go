package job

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/task"
	"github.com/lowwater/lowwater/status"
)

// taskCheckpoints is the coordinator as one task sees it.
type taskCheckpoints struct {
	coordinator *coordinator
	task        *runningTask
}

// Begin implements task.Checkpoints.
func (t taskCheckpoints) Begin(b *exchange.Barrier) (task.Snapshot, error) {
	c := t.coordinator
	a := c.attempt(b.Checkpoint)
	if a == nil {
		return nil, nil
	}
	segment, err := a.store.Segment(t.task.vertex.StateID(), t.task.subtask)
	if err != nil {
		c.tell(acknowledged{id: b.Checkpoint, task: t.task, err: err})
		return nil, err
	}
	return &taskSnapshot{t, a, segment}, nil
}

// Decline implements task.Checkpoints.
func (t taskCheckpoints) Decline(b *exchange.Barrier, cause error) {
	t.coordinator.tell(acknowledged{id: b.Checkpoint, task: t.task, err: cause})
}

// Finished implements task.Checkpoints.
func (t taskCheckpoints) Finished() { t.coordinator.tell(taskFinished{t.task}) }

// taskSnapshot is one task's part of one checkpoint.
type taskSnapshot struct {
	taskCheckpoints
	attempt *attempt
	segment *checkpoint.Segment
}

// Context implements task.Snapshot.
func (s *taskSnapshot) Context() context.Context { return s.attempt.ctx }

// Writer implements task.Snapshot.
func (s *taskSnapshot) Writer(node int, later func(func(context.Context) error)) (snapshot.Writer, error) {
	n := s.task.vertex.Nodes[node]
	return s.segment.Operator(checkpoint.OperatorInfo{
		ID: n.StateID(), UID: n.UID, Name: n.Name,
		Subtask: s.task.subtask, Parallelism: n.Parallelism, MaxParallelism: n.MaxParallelism,
	}, later), nil
}

// Done implements task.Snapshot.
func (s *taskSnapshot) Done(err error, times task.Times) {
	done := acknowledged{id: s.attempt.barrier.Checkpoint, task: s.task, times: times}
	if err == nil {
		done.segment, err = s.segment.Finish()
	} else {
		s.segment.Abort()
	}
	done.err = err
	s.coordinator.tell(done)
}

// trigger gives the barrier to all sources, and returns what their enumerators knew then.
func (r *run) trigger(ctx context.Context, b *exchange.Barrier) (enumerators map[string][]byte, err error) {
	enumerators = map[string][]byte{}
	for _, s := range r.sources {
		state, err := s.trigger(ctx, r.tasksOf(s.node), b)
		if err != nil {
			return nil, err
		}
		if state != nil {
			enumerators[s.node.StateID()] = state
		}
	}
	return enumerators, nil
}

// trigger does so while no split can be on its way to a reader, so that a split is either in
// both parts of the checkpoint or in none.
func (s *sourceRun) trigger(ctx context.Context, tasks []*runningTask, b *exchange.Barrier) (state []byte, err error) {
	s.assigning.Lock()
	defer s.assigning.Unlock()
	if s.known.err != nil {
		return nil, s.known.err
	}
	for _, t := range tasks {
		if !t.task.Trigger(ctx, b) {
			return nil, context.Cause(ctx)
		}
	}
	return s.known.state, nil
}

// manifest describes a checkpoint of which all parts are written.
func (c *coordinator) manifest(a *attempt) checkpoint.Manifest {
	m := checkpoint.Manifest{
		Job: c.run.job.name, ID: a.barrier.Checkpoint, Kind: a.request.kind,
		Triggered: a.barrier.Triggered, Completed: time.Now(), Previous: a.previous, Version: version(),
	}
	for _, v := range c.run.plan.Vertices {
		for _, n := range v.Nodes {
			m.Operators = append(m.Operators, checkpoint.Operator{
				ID: n.StateID(), UID: n.UID, Name: n.Name, Parallelism: n.Parallelism, MaxParallelism: n.MaxParallelism,
				Enumerator: a.sources[n.StateID()],
			})
		}
	}
	return m
}

// report is a checkpoint that has just been triggered.
func (c *coordinator) report(q *request, b *exchange.Barrier) status.Checkpoint {
	s := status.Checkpoint{
		ID: b.Checkpoint, State: status.CheckpointInProgress, Triggered: b.Triggered,
		Savepoint: q.kind == checkpoint.KindSavepoint,
	}
	for _, v := range c.run.plan.Vertices {
		s.Vertices = append(s.Vertices, status.VertexCheckpoint{Subtasks: make([]status.SubtaskCheckpoint, v.Parallelism)})
	}
	return s
}

// acknowledged adds what one task did to the report.
func (a *attempt) acknowledged(e acknowledged) {
	s := &a.report.Vertices[e.task.vertex.ID].Subtasks[e.task.subtask]
	*s = status.SubtaskCheckpoint{
		Ack:        time.Now(),
		StartDelay: e.times.StartDelay, Alignment: e.times.Alignment, Sync: e.times.Sync, Async: e.times.Async,
		StateBytes: e.segment.StateSize(), WrittenBytes: e.segment.WrittenSize(),
		Unaligned: e.times.Overtaken, OvertakenRecords: e.times.OvertakenRecords,
	}
	a.report.LastAck = s.Ack
	a.report.StateBytes += s.StateBytes
	a.report.WrittenBytes += s.WrittenBytes
}

// failed is the report of an attempt that came to nothing.
func (a *attempt) failed(err error) status.Checkpoint {
	a.report.State, a.report.Failure, a.report.FailedAt = status.CheckpointFailed, err.Error(), time.Now()
	return a.report
}

// version is that of this module in the program, as far as the build knows it.
var version = sync.OnceValue(func() string {
	const module = "github.com/lowwater/lowwater"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "unknown"
})
