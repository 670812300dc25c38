package why

import (
	"cmp"
	"slices"
)

// What counts as long where the job does not say so itself.
const (
	// moveSpanMillis is how far two snapshots must be apart to tell what moves.
	moveSpanMillis = 10_000
	// lookBackMillis is how far back the snapshot is that the present is compared with, if
	// there are so many.
	lookBackMillis = 60_000
	// startupMillis is the time after a start in which nothing is expected yet: splits are
	// assigned, connections made, first records read.
	startupMillis = 30_000
	// patienceMillis is how long a silence must last at least to be one.
	patienceMillis = 30_000
	// longestPatienceMillis is how long a silence may last for a partition that seldom has
	// records.
	longestPatienceMillis = 300_000
	defaultIntervalMillis = 200
)

// view is evidence with its indexes: the present, the past to compare it with, and who is
// connected to whom.
type view struct {
	e          *Evidence
	now, past  *Snapshot // past is nil if there is none to compare with
	spanMillis int64     // between them
	restarted  bool      // counters fell between two snapshots

	ops       map[string]*Operator
	consumers map[string][]string
	subs      map[string][]subtask // by operator, ordered by index
	tasks     map[string][]Task    // by vertex
	pastTasks map[string][]Task
	sources   []*source
	waiting   []*target // see targets
	outMemo   map[string]Known[int64]
}

// subtask is one subtask now and in the past.
type subtask struct {
	*Subtask
	past *Subtask // nil if unknown
}

func newView(e *Evidence) *view {
	v := &view{e: e, ops: map[string]*Operator{}, consumers: map[string][]string{}, subs: map[string][]subtask{},
		outMemo: map[string]Known[int64]{}}
	v.now = &Snapshot{AtMillis: e.AtMillis}
	if n := len(e.History); n > 0 {
		v.now = &e.History[n-1]
		v.past = v.pastOf(e.History[:n-1])
	}
	for i := range e.Operators {
		o := &e.Operators[i]
		v.ops[o.ID] = o
		for _, in := range o.Inputs {
			for _, edge := range in.Edges {
				v.consumers[edge.From] = append(v.consumers[edge.From], o.ID)
			}
		}
	}
	v.indexSubtasks()
	if v.past != nil {
		v.spanMillis = v.now.AtMillis - v.past.AtMillis
	}
	v.tasks = v.loadsOf()
	v.pastTasks = tasksOf(v.past)
	for i := range e.Operators {
		if o := &e.Operators[i]; o.Kind == KindSource {
			v.sources = append(v.sources, v.source(o))
		}
	}
	return v
}

// pastOf returns the snapshot to compare the present with: one about a minute ago, of
// the same attempt.
func (v *view) pastOf(history []Snapshot) *Snapshot {
	var chosen *Snapshot
	for i := range history[:max(len(history)-1, 0)] {
		v.restarted = v.restarted || countersFell(&history[i], &history[i+1])
	}
	for i := range slices.Backward(history) {
		s := &history[i]
		age := v.now.AtMillis - s.AtMillis
		if started := v.e.StartedMillis; started.OK && s.AtMillis < started.Value {
			v.restarted = true
			break
		}
		if age < moveSpanMillis {
			continue
		}
		if countersFell(s, v.now) {
			v.restarted = true
			break
		}
		chosen = s
		if age >= lookBackMillis {
			break
		}
	}
	return chosen
}

// countersFell reports whether a counter of an operator is smaller now: the job has
// started again.
func countersFell(past, now *Snapshot) bool {
	type place struct {
		operator string
		index    int
	}
	before := map[place]int64{}
	for _, s := range past.Subtasks {
		before[place{s.Operator, s.Index}] = max(s.RecordsOut.Or(0), s.RecordsIn.Or(0))
	}
	for _, s := range now.Subtasks {
		if max(s.RecordsOut.Or(0), s.RecordsIn.Or(0)) < before[place{s.Operator, s.Index}] &&
			(s.RecordsOut.OK || s.RecordsIn.OK) {
			return true
		}
	}
	return false
}

func (v *view) indexSubtasks() {
	for i := range v.now.Subtasks {
		s := &v.now.Subtasks[i]
		v.subs[s.Operator] = append(v.subs[s.Operator], subtask{Subtask: s})
	}
	for id, subs := range v.subs {
		slices.SortFunc(subs, func(a, b subtask) int { return cmp.Compare(a.Index, b.Index) })
		v.subs[id] = subs
	}
	if v.past == nil {
		return
	}
	for i := range v.past.Subtasks {
		p := &v.past.Subtasks[i]
		subs := v.subs[p.Operator]
		if at, ok := slices.BinarySearchFunc(subs, p.Index, func(s subtask, index int) int { return cmp.Compare(s.Index, index) }); ok {
			subs[at].past = p
		}
	}
}

func tasksOf(s *Snapshot) map[string][]Task {
	tasks := map[string][]Task{}
	if s != nil {
		for _, t := range s.Tasks {
			tasks[t.Vertex] = append(tasks[t.Vertex], t)
		}
	}
	return tasks
}

// upMillis returns how long the job has been running.
func (v *view) upMillis() int64 {
	if s := v.e.StartedMillis; s.OK {
		return v.now.AtMillis - s.Value
	}
	if n := len(v.e.History); n > 0 && !v.restarted {
		return v.now.AtMillis - v.e.History[0].AtMillis
	}
	return 0
}

// attemptMillis returns when the present attempt began, as far as that is known.
func (v *view) attemptMillis() int64 { return v.now.AtMillis - v.upMillis() }

// find returns a split in a snapshot, nil if it is not there.
func (s *Snapshot) find(sp *Split) *Split {
	for i := range s.Splits {
		if o := &s.Splits[i]; o.Source == sp.Source && o.ID == sp.ID && o.Topic == sp.Topic && o.Partition == sp.Partition {
			return o
		}
	}
	return nil
}

// starting reports whether the job has just started: nothing need have happened yet.
func (v *view) starting() bool { return v.upMillis() < startupMillis }

func (v *view) intervalMillis() int64 { return v.e.WatermarkIntervalMillis.Or(defaultIntervalMillis) }

// vertexOf returns the task that runs an operator.
func vertexOf(o *Operator) string { return cmp.Or(o.Vertex, o.ID) }

// nameOf returns what an operator is called.
func (v *view) nameOf(id string) string {
	if o := v.ops[id]; o != nil {
		return cmp.Or(o.Name, o.ID)
	}
	return id
}

// sum adds a counter over the subtasks of an operator, now and in the past; unknown if no
// subtask tells it.
func (v *view) sum(id string, of func(*Subtask) Known[int64]) (now, past Known[int64]) {
	for _, s := range v.subs[id] {
		if n := of(s.Subtask); n.OK {
			now = Know(now.Or(0) + n.Value)
		}
		if s.past == nil {
			continue
		}
		if n := of(s.past); n.OK {
			past = Know(past.Or(0) + n.Value)
		}
	}
	return now, past
}

// growth returns how much a counter grew between the snapshots.
func growth(now, past Known[int64]) Known[int64] {
	return KnowIf(now.Value-past.Value, now.OK && past.OK)
}

// in returns the input watermark of an operator: the smallest over its subtasks, now and
// in the past. Where nobody tells it, it follows from what is before it.
func (v *view) in(id string) (now, past Known[int64]) {
	for _, s := range v.subs[id] {
		now = lesser(now, inputOf(s.Subtask))
		if s.past != nil {
			past = lesser(past, inputOf(s.past))
		}
	}
	return now, past
}

// inputOf returns the input watermark of a subtask. Idle inputs do not count, so that of
// the task, if known, comes before those of its inputs.
func inputOf(s *Subtask) Known[int64] {
	if s.InputWatermark.OK {
		return s.InputWatermark
	}
	w := Known[int64]{}
	for _, in := range s.InputWatermarks {
		w = lesser(w, in)
	}
	return w
}

// lesser returns the smaller of two values, taking an unknown one for none.
func lesser(a, b Known[int64]) Known[int64] {
	if !b.OK || a.OK && a.Value <= b.Value {
		return a
	}
	return b
}

// greater is the opposite of lesser.
func greater(a, b Known[int64]) Known[int64] {
	if !b.OK || a.OK && a.Value >= b.Value {
		return a
	}
	return b
}

// load returns the largest share of time, in ms/s, of the subtasks of an operator's task.
func (v *view) load(o *Operator, of func(Task) Known[int64]) Known[int64] {
	most := Known[int64]{}
	for _, t := range v.tasks[vertexOf(o)] {
		most = greater(most, of(t))
	}
	return most
}

func busyOf(t Task) Known[int64]          { return t.BusyMillis }
func backPressuredOf(t Task) Known[int64] { return t.BackPressuredMillis }

// plus adds without running over the ends of time.
func plus(t, d int64) int64 {
	switch {
	case d > 0 && t > MaxTime-d:
		return MaxTime
	case d < 0 && t < MinTime-d:
		return MinTime
	}
	return t + d
}

// minus subtracts without running over the ends of time.
func minus(a, b int64) int64 {
	if b == MinTime {
		if a >= 0 {
			return MaxTime
		}
		return plus(plus(a, MaxTime), 1)
	}
	return plus(a, -b)
}
