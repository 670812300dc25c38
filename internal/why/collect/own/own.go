package own

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/plan"
	"github.com/lowwater/lowwater/status"
)

// Collector puts the evidence on one job together. It is not safe for concurrent use.
type Collector struct {
	evidence why.Evidence
	// operators are the IDs by vertex and place in the chain.
	operators [][]string
	sources   map[string]string      // IDs by the name that late records give
	kafka     map[string]bool        // IDs of sources with splits of topics
	heard     map[splitOfSource]bool // whose ends were known once
	timers    map[string]bool        // IDs of operators that may have event-time timers
	sinks     map[string]bool        // IDs of operators that nothing is behind
	before    *status.Job            // what the last snapshot was made of
	beforeAt  time.Time
}

// splitOfSource names a split by the IDs of both.
type splitOfSource struct{ source, split string }

// New returns a collector for a job with that plan.
func New(d *graph.Description, version string) *Collector {
	c := &Collector{sources: map[string]string{}, kafka: map[string]bool{}, heard: map[splitOfSource]bool{}, sinks: map[string]bool{}, timers: map[string]bool{}, evidence: why.Evidence{
		Engine: why.Engine{Name: why.Lowwater, Version: version}, Job: d.Job,
		WatermarkIntervalMillis: why.Know(d.WatermarkIntervalMillis),
		Means:                   why.Means{Engine: true, SplitGauges: true},
		Operators:               plan.Operators(d),
	}}
	for i, o := range d.Operators {
		for len(c.operators) <= o.Vertex {
			c.operators = append(c.operators, nil)
		}
		id := c.evidence.Operators[i].ID
		c.operators[o.Vertex] = append(c.operators[o.Vertex], id)
		c.sinks[id] = true
		c.timers[id] = o.Timers || o.Interval
		for _, in := range o.Inputs {
			c.sinks[c.evidence.Operators[in.From].ID] = false
		}
		if o.Source != nil {
			c.sources[o.Name] = id
		}
	}
	return c
}

// Add adds a snapshot to those that are kept: the job's status at a time. The status must not
// change any more.
func (c *Collector) Add(s *status.Job, at time.Time) {
	now := c.look(&c.evidence, s, at)
	c.evidence.History = append(c.evidence.History, now)
	c.before, c.beforeAt = s, at
}

// Evidence returns what was seen so far. It stays the collector's until the next Add.
func (c *Collector) Evidence() *why.Evidence { return &c.evidence }

// Now returns evidence with the job's status at a time as the present, behind those of the
// kept snapshots that are not from before since. The status itself is not kept.
func (c *Collector) Now(s *status.Job, at, since time.Time) *why.Evidence {
	e := c.evidence
	now := c.look(&e, s, at)
	e.History = nil
	for _, kept := range c.evidence.History {
		if kept.AtMillis >= since.UnixMilli() && kept.AtMillis < now.AtMillis {
			e.History = append(e.History, kept)
		}
	}
	e.History = append(e.History, now)
	return &e
}

// Keep drops the snapshots of other times than those that keep is true for. It is called
// for each, oldest first.
func (c *Collector) Keep(keep func(at time.Time) bool) {
	c.evidence.History = slices.DeleteFunc(c.evidence.History, func(s why.Snapshot) bool {
		return !keep(time.UnixMilli(s.AtMillis))
	})
}

// look returns a snapshot of the status, and tells e what is true of the present only.
func (c *Collector) look(e *why.Evidence, s *status.Job, at time.Time) why.Snapshot {
	e.AtMillis, e.StartedMillis = at.UnixMilli(), why.Know(s.Started.UnixMilli())
	now := why.Snapshot{AtMillis: e.AtMillis}
	c.findTopics(s)
	for v := range s.Vertices {
		for i := range s.Vertices[v].Subtasks {
			c.addSubtask(&now, s, v, i, at)
		}
	}
	heard := len(now.Splits) > 0
	for _, sp := range now.Splits {
		if sp.Topic != "" {
			c.addTopic(sp)
		}
		heard = heard && sp.EndOffset.OK
	}
	e.Means.KafkaOffsets = heard // readers hear of ends when they fetch
	return now
}

// findTopics notes which sources read Kafka, before late records of theirs are read.
func (c *Collector) findTopics(s *status.Job) {
	for v := range min(len(s.Vertices), len(c.operators)) {
		for i := range s.Vertices[v].Subtasks {
			for k, o := range s.Vertices[v].Subtasks[i].Operators {
				if k < len(c.operators[v]) && len(o.Splits) > 0 && o.Splits[0].Topic != "" {
					c.kafka[c.operators[v][k]] = true
				}
			}
		}
	}
}

func (c *Collector) addSubtask(now *why.Snapshot, job *status.Job, vertex, index int, at time.Time) {
	if vertex >= len(c.operators) {
		return
	}
	s := &job.Vertices[vertex].Subtasks[index]
	var before *status.Subtask
	since := job.Started
	if b := c.before; b != nil && vertex < len(b.Vertices) && index < len(b.Vertices[vertex].Subtasks) {
		before, since = &b.Vertices[vertex].Subtasks[index], c.beforeAt
	}
	now.Tasks = append(now.Tasks, taskOf(vertex, index, s, before, at.Sub(since)))
	for i := range s.Operators {
		if i >= len(c.operators[vertex]) {
			return
		}
		id := c.operators[vertex][i]
		now.Subtasks = append(now.Subtasks, c.subtaskOf(id, index, &s.Operators[i]))
		earlier := splitsOf(before, i)
		for k := range s.Operators[i].Splits {
			sp := &s.Operators[i].Splits[k]
			out, name := splitOf(id, index, sp, earlier[sp.ID]), splitOfSource{id, sp.ID}
			if out.EndOffset.OK {
				c.heard[name] = true
			}
			out.EndLost = !out.EndOffset.OK && c.heard[name] && sp.State != status.SplitFinished
			now.Splits = append(now.Splits, out)
		}
	}
}

// perSecond is the share of a time in milliseconds per second. A counter that fell was
// started again.
func perSecond(spent, before, of time.Duration) why.Known[int64] {
	if before > spent {
		before = 0
	}
	if of <= 0 {
		return why.Known[int64]{}
	}
	return why.Know(min(int64(spent-before)*1000/int64(of), 1000))
}

func taskOf(vertex, index int, s, before *status.Subtask, span time.Duration) why.Task {
	if before == nil {
		before = &status.Subtask{}
	}
	return why.Task{
		Vertex: plan.VertexID(vertex), Subtask: index,
		BusyMillis:          perSecond(s.Busy, before.Busy, span),
		IdleMillis:          perSecond(s.Idle, before.Idle, span),
		BackPressuredMillis: perSecond(s.SoftBackPressured+s.HardBackPressured, before.SoftBackPressured+before.HardBackPressured, span),
	}
}

func (c *Collector) subtaskOf(id string, index int, o *status.Operator) why.Subtask {
	s := why.Subtask{
		Operator: id, Index: index,
		InputWatermark: why.Know(o.CurrentInputWatermark), Idle: why.Know(o.Idle),
		// A sink sends none.
		OutputWatermark: why.KnowIf(o.CurrentOutputWatermark, !c.sinks[id]),
		RecordsIn:       why.Know(o.RecordsIn), RecordsOut: why.Know(o.RecordsOut),
		LateDropped: why.Know(o.LateRecordsDropped), LateOutput: why.Know(o.LateRecords - o.LateRecordsDropped),
		State: why.KeyedState(o.State),
	}
	if c.timers[id] {
		s.EventTimers = why.Know(o.EventTimers.Registered)
		s.NextTimerMillis = why.KnowIf(o.EventTimers.Next, o.EventTimers.Registered)
	}
	for _, w := range o.InputWatermarks {
		s.InputWatermarks = append(s.InputWatermarks, why.Know(w))
	}
	for _, l := range o.LateBySplit {
		id, topic, partition := c.partitionOf(c.sources[l.Source], l.Split)
		s.LateBySplit = append(s.LateBySplit, why.LateCount{Source: c.sources[l.Source], Split: id, Topic: topic, Partition: partition, Count: l.Count})
	}
	for _, l := range o.LateSamples {
		id, topic, partition := c.partitionOf(c.sources[l.Source], l.Split)
		s.LateSamples = append(s.LateSamples, why.LateSample{
			EventMillis: l.Timestamp, WatermarkMillis: l.Watermark, Key: l.Key, Split: id, Topic: topic, Partition: partition, Offset: l.Offset,
		})
	}
	return s
}

// splitsOf returns the splits of an operator by their ids; s may be nil.
func splitsOf(s *status.Subtask, operator int) map[string]*status.Split {
	if s == nil || operator >= len(s.Operators) || len(s.Operators[operator].Splits) == 0 {
		return nil
	}
	splits := s.Operators[operator].Splits
	byID := make(map[string]*status.Split, len(splits))
	for i := range splits {
		byID[splits[i].ID] = &splits[i]
	}
	return byID
}

func splitOf(source string, subtask int, sp, before *status.Split) why.Split {
	id := sp.ID
	if sp.Topic != "" {
		id = ""
	}
	out := why.Split{
		Source: source, ID: id, Topic: sp.Topic, Partition: sp.Partition, Subtask: why.Know(subtask),
		Watermark: why.Know(sp.CurrentWatermark), State: why.Know(stateOf(sp.State)), Records: why.Know(sp.Records),
		LastReadMillis: why.Know(why.Never), MaxEventMillis: why.Know(why.MinTime), FutureRecords: why.Know(sp.Future.Count),
		PositionOffset: why.KnowIf(sp.CurrentOffset, sp.CurrentOffset >= 0), EndOffset: why.KnowIf(sp.EndOffset, sp.EndOffset >= 0),
	}
	if sp.Records > 0 {
		out.LongestPauseMillis = why.Know(sp.LongestPause.Milliseconds())
		out.LastReadMillis, out.MaxEventMillis = why.Know(sp.LastRecordAt.UnixMilli()), why.Know(sp.LastEventTime)
	}
	if before == nil {
		before = &status.Split{}
	}
	span := sp.ActiveFor + sp.IdleFor + sp.PausedFor - before.ActiveFor - before.IdleFor - before.PausedFor
	out.ActiveMillisPerSecond = perSecond(sp.ActiveFor, before.ActiveFor, span)
	out.IdleMillisPerSecond = perSecond(sp.IdleFor, before.IdleFor, span)
	out.PausedMillisPerSecond = perSecond(sp.PausedFor, before.PausedFor, span)
	return out
}

func stateOf(s status.SplitState) why.SplitState {
	switch s {
	case status.SplitIdle:
		return why.SplitIdle
	case status.SplitPaused:
		return why.SplitPaused
	case status.SplitFinished:
		return why.SplitFinished
	}
	return why.SplitActive
}

// partitionOf reads the ID of a split of a source: "orders-3" is a partition of Kafka where
// the source reads topic orders; all others keep their IDs.
func (c *Collector) partitionOf(source, split string) (id, topic string, partition int32) {
	if !c.kafka[source] {
		return split, "", 0
	}
	if i := strings.LastIndexByte(split, '-'); i >= 0 {
		if n, err := strconv.ParseInt(split[i+1:], 10, 32); err == nil && n >= 0 {
			return "", split[:i], int32(n)
		}
	}
	return split, "", 0
}

// addTopic notes what a source reads. Topics are in order.
func (c *Collector) addTopic(sp why.Split) {
	for i := range c.evidence.Operators {
		o := &c.evidence.Operators[i]
		if o.ID != sp.Source || o.Source == nil {
			continue
		}
		if at, known := slices.BinarySearch(o.Source.Topics, sp.Topic); !known {
			o.Source.Topics = slices.Insert(o.Source.Topics, at, sp.Topic)
		}
	}
}
