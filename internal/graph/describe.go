package graph

import "slices"

// DescriptionVersion is the version of the JSON form of a Description. A new field does
// not change it; a field that goes or changes its meaning does.
const DescriptionVersion = 1

// Description is a planned graph as data, for tools that look at a job before it runs. It
// is exported as JSON.
type Description struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
	// WatermarkIntervalMillis is the auto-watermark interval; 0 is off.
	WatermarkIntervalMillis int64                 `json:"watermark_interval_ms"`
	Operators               []OperatorDescription `json:"operators"`
	Warnings                []WarningDescription  `json:"warnings"`
}

// OperatorDescription is one node. ID is its place among the operators, which are in
// topological order.
type OperatorDescription struct {
	ID             int                `json:"id"`
	Name           string             `json:"name"`
	UID            string             `json:"uid,omitempty"`
	Where          string             `json:"where,omitempty"`
	Vertex         int                `json:"vertex"`
	Parallelism    int                `json:"parallelism"`
	MaxParallelism int                `json:"max_parallelism"`
	Inputs         []InputDescription `json:"inputs,omitempty"`
	Source         *SourceDescription `json:"source,omitempty"`
	// EventTime is set on operators that wait for watermarks.
	EventTime bool `json:"event_time,omitempty"`
	// Timers is set on operators with functions that may register event-time timers: whether
	// they wait is known when they run.
	Timers bool `json:"timers,omitempty"`
	// Interval is set on interval joins.
	Interval bool `json:"interval_join,omitempty"`
	// Watermarks describes the strategy of a source or of an operator that assigns
	// timestamps.
	Watermarks *WatermarkDescription `json:"watermarks,omitempty"`
	// StateMemoryBytes is what the keyed state of each subtask may take in memory before it
	// goes to disk, 0 for no limit.
	StateMemoryBytes int64 `json:"state_memory_bytes,omitempty"`
	// Window is the Go expression of a window operator's assigner.
	Window         string `json:"window,omitempty"`
	LatenessMillis int64  `json:"allowed_lateness_ms,omitempty"`
	// SilenceMillis is after how long without records windows close by themselves.
	SilenceMillis int64 `json:"close_after_silence_ms,omitempty"`
	// NeverFires is set on windows that nothing ever fires.
	NeverFires bool `json:"never_fires,omitempty"`
}

// InputDescription is an edge into a logical input.
type InputDescription struct {
	From  int    `json:"from"`
	Input int    `json:"input"`
	Ship  string `json:"ship"`
	// Output is the id of a side output.
	Output string `json:"output,omitempty"`
}

// SourceDescription is what is known of a source. Splits is -1 while nobody has looked;
// Empty is the number of subtasks that get none.
type SourceDescription struct {
	Bounded bool `json:"bounded"`
	Splits  int  `json:"splits"`
	Empty   int  `json:"empty_subtasks"`
}

// WatermarkDescription is a watermark strategy in the words of eventtime's String.
type WatermarkDescription struct {
	Strategy string `json:"strategy"`
	None     bool   `json:"none,omitempty"`
}

// WarningDescription is a finding of the plan checks.
type WarningDescription struct {
	Code     string   `json:"code"`
	Operator string   `json:"operator"`
	Where    string   `json:"where,omitempty"`
	Message  string   `json:"message"`
	Fixes    []string `json:"fixes"`
}

// Describe plans the graph, runs the checks, and describes both. The graph is left as it
// was, so that it can be planned again when the sources know their splits.
func (g *Graph) Describe() (*Description, error) {
	defer g.unplanned()()
	plan, err := g.Plan()
	if err != nil {
		return nil, err
	}
	return DescribePlan(g, plan), nil
}

// unplanned remembers what Plan decides, and returns a function that undoes it.
func (g *Graph) unplanned() (restore func()) {
	type decision struct {
		parallelism, maxParallelism int
		inputs                      []Partitioning
	}
	before := make([]decision, len(g.Nodes))
	for i, n := range g.Nodes {
		before[i] = decision{parallelism: n.Parallelism, maxParallelism: n.MaxParallelism}
		for _, e := range n.Inputs {
			before[i].inputs = append(before[i].inputs, e.Partitioning)
		}
	}
	return func() {
		for i, n := range g.Nodes {
			n.Parallelism, n.MaxParallelism = before[i].parallelism, before[i].maxParallelism
			for k, e := range n.Inputs {
				e.Partitioning = before[i].inputs[k]
			}
		}
	}
}

// DescribePlan describes a graph that has been planned.
func DescribePlan(g *Graph, plan *Plan) *Description {
	d := &Description{Version: DescriptionVersion, Job: g.Name, Warnings: []WarningDescription{}}
	vertex := map[*Node]int{}
	for _, v := range plan.Vertices {
		for _, n := range v.Nodes {
			vertex[n] = v.ID
		}
	}
	for _, n := range g.Nodes {
		o := OperatorDescription{
			ID: n.ID, Name: n.Name, UID: n.UID, Where: n.Where, Vertex: vertex[n], Parallelism: n.Parallelism, MaxParallelism: n.MaxParallelism,
			EventTime: n.EventTime, Timers: n.Timers, Interval: n.Interval, Window: n.Assigner, LatenessMillis: n.Lateness.Milliseconds(),
			SilenceMillis: n.Silence.Milliseconds(), NeverFires: n.NeverFires,
		}
		if n.KeepsState {
			o.StateMemoryBytes = g.StatePerSubtask()
		}
		for _, e := range n.Inputs {
			o.Inputs = append(o.Inputs, InputDescription{From: e.From.ID, Input: e.Input, Ship: e.Partitioning.String(), Output: e.Output})
		}
		if s := n.Source; s != nil {
			o.Source = &SourceDescription{Bounded: s.Bounded, Splits: s.Splits}
			if s.Splits >= 0 {
				o.Source.Empty = s.empty(n.Parallelism)
			}
		}
		if w := n.Watermarks; w != nil {
			o.Watermarks = &WatermarkDescription{Strategy: w.Description, None: w.None}
		}
		d.Operators = append(d.Operators, o)
	}
	for _, w := range g.Check() {
		d.Warnings = append(d.Warnings, WarningDescription{w.Code, w.Operator, w.Where, w.Message, slices.Clone(w.Fixes)})
	}
	return d
}
