package flink

import (
	"cmp"
	"slices"

	"github.com/lowwater/lowwater/internal/why"
)

// snapshot puts metrics together.
type snapshot struct {
	operators []why.Operator
	// byName finds operators by vertex and by the name that their metrics have.
	byName   map[vertexName]*why.Operator
	subtasks map[place]*why.Subtask
	splits   map[splitPlace]*why.Split
	tasks    map[vertexTask]*why.Task
	taskIn   map[vertexTask]why.Known[int64]
	pending  map[place]int64
	emitLags map[string]int64
	// sends are the operators that others are behind.
	sends map[string]bool
}

type vertexName struct{ vertex, name string }

type place struct {
	operator string
	subtask  int
}

type splitPlace struct {
	place
	topic     string
	partition int32
}

type vertexTask struct {
	vertex  string
	subtask int
}

func newSnapshot(operators []why.Operator) *snapshot {
	s := &snapshot{
		operators: operators, byName: map[vertexName]*why.Operator{}, subtasks: map[place]*why.Subtask{},
		splits: map[splitPlace]*why.Split{}, tasks: map[vertexTask]*why.Task{}, taskIn: map[vertexTask]why.Known[int64]{},
		pending: map[place]int64{}, emitLags: map[string]int64{}, sends: map[string]bool{},
	}
	for i := range operators {
		o := &operators[i]
		name := o.Name
		if o.Kind == why.KindSource {
			name = sourcePrefix + name
		}
		// Of two operators of one name in a chain only one has metrics.
		s.byName[vertexName{o.Vertex, filtered(name)}] = o
		for _, in := range o.Inputs {
			for _, edge := range in.Edges {
				s.sends[edge.From] = true
			}
		}
		for subtask := range o.Parallelism {
			s.subtasks[place{o.ID, subtask}] = &why.Subtask{Operator: o.ID, Index: subtask}
		}
	}
	return s
}

// add takes metrics of a vertex.
func (s *snapshot) add(vertex string, metrics []metric) {
	for _, m := range metrics {
		id, ok := parseMetricID(m.ID)
		n, number := m.integer()
		if !ok || !number {
			continue
		}
		if id.operator == "" {
			s.addTask(vertexTask{vertex, id.subtask}, id.metric, n)
			continue
		}
		o := s.byName[vertexName{vertex, id.operator}]
		if o == nil || s.subtasks[place{o.ID, id.subtask}] == nil {
			continue
		}
		s.addOperator(place{o.ID, id.subtask}, id.metric, n)
	}
}

func (s *snapshot) addTask(at vertexTask, name string, n int64) {
	t := s.tasks[at]
	if t == nil {
		t = &why.Task{Vertex: at.vertex, Subtask: at.subtask}
		s.tasks[at] = t
	}
	switch name {
	case "currentInputWatermark":
		s.taskIn[at] = why.Know(n)
	case "busyTimeMsPerSecond":
		t.BusyMillis = why.Know(n)
	case "backPressuredTimeMsPerSecond":
		t.BackPressuredMillis = why.Know(n)
	case "idleTimeMsPerSecond":
		t.IdleMillis = why.Know(n)
	}
}

func (s *snapshot) addOperator(at place, name string, n int64) {
	sub := s.subtasks[at]
	switch name {
	case "currentInputWatermark":
		sub.InputWatermark = why.Know(n)
	case "currentOutputWatermark":
		sub.OutputWatermark = why.Know(n)
	case "numRecordsIn":
		sub.RecordsIn = why.Know(n)
	case "numRecordsOut":
		sub.RecordsOut = why.Know(n)
	case "numLateRecordsDropped":
		sub.LateDropped = why.Know(n)
	case "pendingRecords":
		s.pending[at] = n
	case "currentEmitEventTimeLag":
		if least, ok := s.emitLags[at.operator]; n >= 0 && (!ok || n < least) { // -1: no record yet
			s.emitLags[at.operator] = n
		}
	default:
		if !addState(&sub.State, name, n) {
			s.addDetail(at, sub, name, n)
		}
	}
}

// addState takes a metric of state with a memory budget, which only jobs of ours have.
func addState(s *why.KeyedState, name string, n int64) bool {
	switch name {
	case "stateBudgetBytes":
		s.BudgetBytes = n
	case "stateMemoryBytes":
		s.MemoryBytes = n
	case "stateDiskBytes":
		s.DiskBytes = n
	case "stateSpilledEntries":
		s.SpilledEntries = n
	case "stateSpillReads":
		s.SpillReads = n
	case "stateSpillWrites":
		s.SpillWrites = n
	default:
		return false
	}
	return true
}

func (s *snapshot) addDetail(at place, sub *why.Subtask, name string, n int64) {
	if input, ok := inputNumber(name); ok {
		for len(sub.InputWatermarks) <= input {
			sub.InputWatermarks = append(sub.InputWatermarks, why.Known[int64]{})
		}
		sub.InputWatermarks[input] = why.Know(n)
		return
	}
	if topic, partition, ok := partitionOffset(name); ok {
		sp := s.split(at, topic, partition)
		if n < 0 { // nothing was read yet
			sp.LastReadMillis, sp.Records = why.Know(why.Never), why.Know[int64](0)
		} else {
			sp.PositionOffset = why.Know(n + 1)
		}
		return
	}
	id, gauge, ok := splitGauge(name)
	if !ok {
		return
	}
	topic, partition, ok := partitionOf(id)
	if !ok {
		return
	}
	sp := s.split(at, topic, partition)
	switch gauge {
	case "currentWatermark":
		sp.Watermark = why.Know(n)
	case "activeTimeMsPerSecond":
		sp.ActiveMillisPerSecond = why.Know(n)
	case "idleTimeMsPerSecond":
		sp.IdleMillisPerSecond = why.Know(n)
	case "pausedTimeMsPerSecond":
		sp.PausedMillisPerSecond = why.Know(n)
	}
}

func (s *snapshot) split(at place, topic string, partition int32) *why.Split {
	key := splitPlace{at, topic, partition}
	sp := s.splits[key]
	if sp == nil {
		sp = &why.Split{Source: at.operator, Topic: topic, Partition: partition, Subtask: why.Know(at.subtask)}
		s.splits[key] = sp
	}
	return sp
}

// finish derives what follows from several metrics.
func (s *snapshot) finish() why.Snapshot {
	var out why.Snapshot
	own := map[place][]*why.Split{}
	for key, sp := range s.splits {
		sp.State = stateOf(sp)
		own[key.place] = append(own[key.place], sp)
	}
	for at, splits := range own {
		s.finishSource(at, splits)
	}
	for i := range s.operators {
		o := &s.operators[i]
		head := i == 0 || s.operators[i-1].Vertex != o.Vertex
		for subtask := range o.Parallelism {
			sub := s.subtasks[place{o.ID, subtask}]
			if head && o.Kind != why.KindSource && !sub.InputWatermark.OK {
				sub.InputWatermark = s.taskIn[vertexTask{o.Vertex, subtask}]
			}
			if !s.sends[o.ID] {
				sub.OutputWatermark = why.Known[int64]{} // there is no output
			}
			out.Subtasks = append(out.Subtasks, *sub)
		}
	}
	for _, sp := range s.splits {
		out.Splits = append(out.Splits, *sp)
	}
	slices.SortFunc(out.Splits, func(a, b why.Split) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	for _, t := range s.tasks {
		out.Tasks = append(out.Tasks, *t)
	}
	slices.SortFunc(out.Tasks, func(a, b why.Task) int {
		return cmp.Or(cmp.Compare(a.Vertex, b.Vertex), cmp.Compare(a.Subtask, b.Subtask))
	})
	return out
}

// stateOf takes the state that a split was in for most of the last second.
func stateOf(sp *why.Split) why.Known[why.SplitState] {
	switch {
	case sp.IdleMillisPerSecond.Or(0) > 500:
		return why.Know(why.SplitIdle)
	case sp.PausedMillisPerSecond.Or(0) > 500:
		return why.Know(why.SplitPaused)
	case sp.ActiveMillisPerSecond.OK:
		return why.Know(why.SplitActive)
	}
	return why.Known[why.SplitState]{}
}

// finishSource completes a source subtask that has splits. What is pending is told for all
// of them together; 0, and that of a single split, are known.
func (s *snapshot) finishSource(at place, splits []*why.Split) {
	pending, known := s.pending[at]
	idle := len(splits) > 0
	for _, sp := range splits {
		if known && (pending == 0 || len(splits) == 1) {
			sp.Lag = why.Know(max(pending, 0))
		}
		idle = idle && sp.State.OK && sp.State.Value == why.SplitIdle
	}
	if idle {
		s.subtasks[at].Idle = why.Know(true)
	}
}
