package why

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/test/scenarios"
)

// simulation runs the job of a scenario on the state machines of internal/progress, by
// the execution model of the scenarios' README, and takes snapshots. It makes variants of
// scenarios without an engine, and is compared with the snapshots of the files.
type simulation struct {
	t         *testing.T
	s         *scenarios.Scenario
	interval  int64
	now       int64 // wall clock
	sources   []*simSource
	operators map[string]*simOperator
	// consumers are the operators behind each node, with the input.
	consumers   map[string][]simInput
	appended    map[string]map[int32][]scenarios.Record
	coordinator *progress.Coordinator
}

type simInput struct {
	op    *simOperator
	input int
	base  int // the first channel of the node in the input
}

type simSource struct {
	*scenarios.Source
	subtasks  []*simSubtask
	byPart    map[int32]*simSplit
	alignment *progress.AlignedSource
}

type simSubtask struct {
	sim       *simulation
	source    *simSource
	index     int
	progress  *progress.Source[scenarios.Record]
	watermark int64
	idle      bool
	out       int64
}

type simSplit struct {
	*progress.Split[scenarios.Record]
	sub       *simSubtask
	partition int32
	waiting   []scenarios.Record
	read      int64
	top       int64
	lastRead  *int64
}

type simOperator struct {
	sim *simulation
	*scenarios.Operator
	valves  []*progress.Valve
	combine *progress.Combination
	gauges  []int64 // by input
	in, out int64   // watermarks
	inCount int64
	assign  []*simAssign
	windows map[simWindow]int64
	fired   map[simWindow]bool
	late    int64
	emitted int64
}

type simAssign struct {
	op        *simOperator
	index     int
	progress  *progress.TimestampsOperator[scenarios.Record]
	watermark int64
	idle      bool
	in        int64
}

type simWindow struct {
	key        string
	start, end int64
}

// simulate returns the snapshots of a scenario at times since its start.
func simulate(t *testing.T, s *scenarios.Scenario, at ...int64) []scenarios.Snapshot {
	t.Helper()
	sim := &simulation{
		t: t, s: s, interval: cmp.Or(s.WatermarkIntervalMillis, 200), now: s.WallStartMillis,
		operators: map[string]*simOperator{}, consumers: map[string][]simInput{}, appended: map[string]map[int32][]scenarios.Record{},
		coordinator: progress.NewCoordinator(),
	}
	sim.build()
	records, err := s.Records()
	sim.check(err)
	for _, topic := range s.Topics {
		sim.appended[topic.Name] = map[int32][]scenarios.Record{}
	}
	byRead := slices.Clone(records)
	slices.SortStableFunc(byRead, func(a, b scenarios.Record) int { return cmp.Compare(a.ReadMillis, b.ReadMillis) })
	var all []scenarios.Snapshot
	for tick := int64(0); len(at) > 0; tick += min(sim.interval, 100) {
		sim.now = s.WallStartMillis + tick
		for len(records) > 0 && records[0].AppendMillis <= tick {
			r := records[0]
			sim.appended[r.Topic][r.Partition] = append(sim.appended[r.Topic][r.Partition], r)
			records = records[1:]
		}
		for len(byRead) > 0 && byRead[0].ReadMillis <= tick {
			sim.arrive(byRead[0])
			byRead = byRead[1:]
		}
		sim.drain()
		if tick > 0 && tick%sim.interval == 0 {
			sim.probe()
		}
		if tick > 0 && tick%1000 == 0 {
			sim.align()
		}
		for len(at) > 0 && at[0] == tick {
			all = append(all, sim.snapshot(tick))
			at = at[1:]
		}
	}
	return all
}

func (sim *simulation) check(err error) {
	if err != nil {
		sim.t.Helper()
		sim.t.Fatalf("%s: %v", sim.s.Name, err)
	}
}

func eventStrategy(s *scenarios.Strategy, a *scenarios.Alignment) eventtime.WatermarkStrategy[scenarios.Record] {
	if s == nil {
		return eventtime.NoWatermarks[scenarios.Record]()
	}
	out := eventtime.ForBoundedOutOfOrderness[scenarios.Record](time.Duration(s.DelayMillis) * time.Millisecond)
	if s.IdlenessMillis > 0 {
		out = out.WithIdleness(time.Duration(s.IdlenessMillis) * time.Millisecond)
	}
	if a != nil {
		out = out.WithWatermarkAlignment(a.Group, time.Duration(a.DriftMillis)*time.Millisecond, time.Duration(a.UpdateMillis)*time.Millisecond)
	}
	return out
}

func eventOf(s *scenarios.Strategy, r scenarios.Record) int64 {
	if s == nil || s.Timestamp == scenarios.FromKafka {
		return r.KafkaMillis
	}
	return r.PayloadTime * max(s.Multiply, 1)
}

func (sim *simulation) build() {
	parallelism := map[string]int{}
	for i := range sim.s.Job.Sources {
		src := &simSource{Source: &sim.s.Job.Sources[i], byPart: map[int32]*simSplit{}}
		parallelism[src.ID] = src.Parallelism
		sim.sources = append(sim.sources, src)
	}
	for i := range sim.s.Job.Operators {
		o := &simOperator{sim: sim, Operator: &sim.s.Job.Operators[i], in: MinTime, out: MinTime, windows: map[simWindow]int64{}, fired: map[simWindow]bool{}}
		sim.operators[o.ID] = o
		p := max(o.Parallelism, 1)
		if o.Parallelism == 0 && (o.Kind == scenarios.Assign || o.Kind == scenarios.Filter || o.Kind == scenarios.Forward) {
			p = parallelism[o.Inputs[0][0]]
		}
		for input, nodes := range o.Inputs {
			base := 0
			for _, node := range nodes {
				sim.consumers[node] = append(sim.consumers[node], simInput{o, input, base})
				base += parallelism[node]
			}
			o.valves = append(o.valves, progress.NewValve(base, progress.Current, inputOutput{o, input}))
			o.gauges = append(o.gauges, MinTime)
		}
		parallelism[o.ID] = p
		if o.Kind != scenarios.Assign && o.Kind != scenarios.Filter && o.Kind != scenarios.Forward {
			parallelism[o.ID] = 1
		}
		if len(o.Inputs) > 1 {
			o.combine = progress.NewCombination(len(o.Inputs), operatorOutput{o})
		}
		if o.Kind == scenarios.Assign {
			for i := range p {
				a := &simAssign{op: o, index: i, watermark: MinTime}
				var err error
				a.progress, err = progress.NewTimestampsOperator(eventStrategy(o.Strategy, nil), sim.interval, false, sim.now, assignOutput{a})
				sim.check(err)
				o.assign = append(o.assign, a)
			}
		}
	}
	for _, src := range sim.sources {
		sim.buildSource(src)
	}
}

func (sim *simulation) buildSource(src *simSource) {
	if a := src.Alignment; a != nil {
		var err error
		src.alignment, err = sim.coordinator.Join(src.ID, a.Group, a.DriftMillis)
		sim.check(err)
	}
	for i := range src.Parallelism {
		sub := &simSubtask{sim: sim, source: src, index: i, watermark: MinTime}
		cfg := progress.SourceConfig{Pauser: noPauser{}, Report: func(w int64) { src.alignment.Report(i, w) }}
		var err error
		sub.progress, err = progress.NewSource(eventStrategy(src.Strategy, src.Alignment), cfg, sim.now, sourceOutput{sub})
		sim.check(err)
		src.subtasks = append(src.subtasks, sub)
	}
	for _, topic := range sim.s.Topics {
		if topic.Name != src.Topic {
			continue
		}
		for p := range topic.Partitions {
			sub := src.subtasks[int(p)%src.Parallelism]
			sp, err := sub.progress.AddSplit(fmt.Sprint(p), sim.now)
			sim.check(err)
			src.byPart[p] = &simSplit{Split: sp, sub: sub, partition: p, top: MinTime}
		}
	}
}

type noPauser struct{}

func (noPauser) PauseSplits([]string)  {}
func (noPauser) ResumeSplits([]string) {}

// arrive makes a record readable.
func (sim *simulation) arrive(r scenarios.Record) {
	for _, src := range sim.sources {
		if src.Topic == r.Topic {
			sp := src.byPart[r.Partition]
			sp.waiting = append(sp.waiting, r)
		}
	}
}

// drain reads what alignment allows, in the order of read times.
func (sim *simulation) drain() {
	for {
		var next *simSplit
		for _, src := range sim.sources {
			for _, p := range slices.Sorted(mapKeys(src.byPart)) {
				sp := src.byPart[p]
				if len(sp.waiting) == 0 || sp.Paused() || sp.sub.progress.Blocked() {
					continue
				}
				if next == nil || sp.waiting[0].ReadMillis < next.waiting[0].ReadMillis {
					next = sp
				}
			}
		}
		if next == nil {
			return
		}
		sim.read(next)
	}
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (sim *simulation) read(sp *simSplit) {
	r := sp.waiting[0]
	sp.waiting = sp.waiting[1:]
	sp.read++
	at := max(r.ReadMillis, 0)
	if sp.sub.source.Alignment != nil {
		at = sim.now - sim.s.WallStartMillis
	}
	sp.lastRead = &at
	event := eventOf(sp.sub.source.Strategy, r)
	sp.top = max(sp.top, event)
	sp.sub.out++
	sp.sub.progress.Tick(sim.now)
	sim.deliver(sp.sub.source.ID, sp.sub.index, r, event)
	sim.check(sp.OnEvent(r, event))
}

// deliver passes a record to the operators behind a node.
func (sim *simulation) deliver(node string, subtask int, r scenarios.Record, event int64) {
	for _, c := range sim.consumers[node] {
		c.op.record(subtask, r, event)
	}
}

func (o *simOperator) record(subtask int, r scenarios.Record, event int64) {
	o.inCount++
	switch o.Kind {
	case scenarios.Window:
		o.addToWindow(r.Key, event)
	case scenarios.Assign:
		if o.Partitioning == "hash" {
			subtask = o.Routing[r.Key]
		}
		a := o.assign[subtask]
		a.in++
		event = eventOf(o.Strategy, r)
		o.sim.deliver(o.ID, subtask, r, event)
		o.sim.check(a.progress.OnEvent(r, event))
	case scenarios.Filter:
		if slices.Contains(o.DropPartitions, r.Partition) || slices.Contains(o.DropKeys, r.Key) {
			return
		}
		fallthrough
	default:
		o.emitted++
		o.sim.deliver(o.ID, subtask, r, event)
	}
}

func (o *simOperator) addToWindow(key string, event int64) {
	windows := []simWindow{}
	floor := func(t, every int64) int64 { return t - ((t%every)+every)%every }
	switch o.Type {
	case scenarios.Tumbling:
		start := floor(event-o.OffsetMillis, o.SizeMillis) + o.OffsetMillis
		windows = append(windows, simWindow{key, start, start + o.SizeMillis})
	case scenarios.Sliding:
		for start := floor(event, o.SlideMillis); start > event-o.SizeMillis; start -= o.SlideMillis {
			windows = append(windows, simWindow{key, start, start + o.SizeMillis})
		}
	case scenarios.Session:
		w := simWindow{key, event, event + o.GapMillis}
		for other := range o.windows {
			if other.key == key && other.start <= w.end && w.start <= other.end {
				w.start, w.end = min(w.start, other.start), max(w.end, other.end)
			}
		}
		for other := range o.windows {
			if other.key == key && other.start >= w.start && other.end <= w.end {
				o.windows[w] += o.windows[other]
				if other != w {
					delete(o.windows, other)
				}
			}
		}
		windows = append(windows, w)
	}
	late := true
	for _, w := range windows {
		if w.end-1+o.AllowedLatenessMillis > o.in {
			late = false
			o.windows[w]++
		}
	}
	if late {
		o.late++
	}
}

func (o *simOperator) fire() {
	for w := range o.windows {
		if w.end-1 <= o.in && !o.fired[w] {
			o.fired[w] = true
			o.emitted++
		}
		if w.end-1+o.AllowedLatenessMillis <= o.in {
			delete(o.windows, w)
			delete(o.fired, w)
		}
	}
}

// Outputs.

type sourceOutput struct{ *simSubtask }

func (o sourceOutput) Watermark(t int64) error {
	o.watermark = t
	o.sim.watermark(o.source.ID, o.index, t)
	return nil
}

func (o sourceOutput) Status(idle bool) error {
	o.idle = idle
	o.sim.status(o.source.ID, o.index, idle)
	return nil
}

func (sim *simulation) watermark(node string, subtask int, t int64) {
	for _, c := range sim.consumers[node] {
		if c.op.Kind == scenarios.Filter || c.op.Kind == scenarios.Forward {
			sim.watermark(c.op.ID, subtask, t)
			c.op.out = t
			continue
		}
		sim.check(c.op.valves[c.input].Watermark(c.base+subtask, t))
	}
}

func (sim *simulation) status(node string, subtask int, idle bool) {
	for _, c := range sim.consumers[node] {
		if c.op.Kind == scenarios.Filter || c.op.Kind == scenarios.Forward {
			sim.status(c.op.ID, subtask, idle)
			continue
		}
		sim.check(c.op.valves[c.input].Status(c.base+subtask, idle))
	}
}

// inputOutput is what comes out of the valve of an input.
type inputOutput struct {
	o     *simOperator
	input int
}

func (in inputOutput) Watermark(t int64) error {
	in.o.gauges[in.input] = t
	if in.o.combine != nil {
		return in.o.combine.Input(in.input).Watermark(t)
	}
	return operatorOutput{in.o}.Watermark(t)
}

func (in inputOutput) Status(idle bool) error {
	if in.o.combine != nil {
		return in.o.combine.Input(in.input).Status(idle)
	}
	return operatorOutput{in.o}.Status(idle)
}

// operatorOutput is an operator's watermark, which it acts on and passes on.
type operatorOutput struct{ o *simOperator }

func (out operatorOutput) Watermark(t int64) error {
	o := out.o
	o.in = t
	switch o.Kind {
	case scenarios.Assign:
		return nil
	case scenarios.Window:
		o.fire()
	}
	o.out = t
	o.sim.watermark(o.ID, 0, t)
	return nil
}

func (out operatorOutput) Status(idle bool) error {
	if out.o.Kind != scenarios.Assign {
		out.o.sim.status(out.o.ID, 0, idle)
	}
	return nil
}

type assignOutput struct{ *simAssign }

func (a assignOutput) Watermark(t int64) error {
	a.watermark = t
	a.op.sim.watermark(a.op.ID, a.index, t)
	return nil
}

func (a assignOutput) Status(idle bool) error {
	a.idle = idle
	a.op.sim.status(a.op.ID, a.index, idle)
	return nil
}

func (sim *simulation) probe() {
	for _, src := range sim.sources {
		for _, sub := range src.subtasks {
			if s := src.Strategy; s != nil && s.Kind == scenarios.WallClock {
				sim.check(sourceOutput{sub}.Watermark(sim.now - s.DelayMillis))
				continue
			}
			sim.check(sub.progress.Periodic(sim.now))
		}
	}
	for _, o := range sim.s.Job.Operators {
		for _, a := range sim.operators[o.ID].assign {
			sim.check(a.progress.Periodic(sim.now))
		}
	}
}

func (sim *simulation) align() {
	for _, src := range sim.sources {
		if src.alignment == nil {
			continue
		}
		for _, sub := range src.subtasks {
			sim.check(sub.progress.Sample(sim.now))
		}
	}
	for _, src := range sim.sources {
		if src.alignment != nil {
			src.alignment.Announce(func(subtask int, limit int64) { sim.check(src.subtasks[subtask].progress.MaxAllowed(limit, sim.now)) })
		}
	}
	sim.drain()
}
