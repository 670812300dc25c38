//go:build synctests

package scenarios

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// builder turns a scenario's job into one of the public API.
type builder struct {
	env     *lowwater.Environment
	results *collector
	streams map[string]*lowwater.DataStream[event]
	// parallelism is by id of source and operator.
	parallelism map[string]int
}

func (b *builder) add(id string, s *lowwater.DataStream[event], parallelism int) {
	b.streams[id], b.parallelism[id] = s, parallelism
}

func (b *builder) source(s *Source, from *replaySource) {
	stream := lowwater.FromSource(b.env, from, strategyOf(s.Strategy, s.Alignment), s.ID).Parallelism(s.Parallelism)
	b.add(s.ID, stream, s.Parallelism)
}

// strategyOf returns a scenario's strategy. Behind a source there is no alignment.
func strategyOf(s *Strategy, a *Alignment) eventtime.WatermarkStrategy[event] {
	if s == nil {
		return eventtime.NoWatermarks[event]()
	}
	var strategy eventtime.WatermarkStrategy[event]
	switch s.Kind {
	case Bounded:
		strategy = eventtime.ForBoundedOutOfOrderness[event](millis(s.DelayMillis))
	case Monotonous:
		strategy = eventtime.ForMonotonousTimestamps[event]()
	case WallClock:
		strategy = eventtime.ForGenerator(func() eventtime.WatermarkGenerator[event] { return wallClock{s.DelayMillis} })
	}
	if s.Timestamp != FromKafka {
		factor := max(s.Multiply, 1)
		strategy = strategy.WithTimestampAssigner(func(e event, _ int64) int64 { return e.Time * factor })
	}
	if s.IdlenessMillis > 0 {
		strategy = strategy.WithIdleness(millis(s.IdlenessMillis))
	}
	if a != nil {
		strategy = strategy.WithWatermarkAlignment(a.Group, millis(a.DriftMillis), millis(a.UpdateMillis))
	}
	return strategy
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// wallClock is a generator that follows the wall clock.
type wallClock struct{ delayMillis int64 }

func (wallClock) OnEvent(event, int64, eventtime.WatermarkOutput) {}

func (g wallClock) OnPeriodicEmit(out eventtime.WatermarkOutput) {
	out.EmitWatermark(time.Now().UnixMilli() - g.delayMillis)
}

func (b *builder) operator(o *Operator) {
	in, parallelism := b.input(o.Inputs[0])
	switch o.Kind {
	case Window:
		b.window(o, in)
	case Assign:
		b.assign(o, in, parallelism)
	case Connect:
		b.connect(o)
	case Filter:
		b.after(o, in, parallelism, func(e event) bool {
			return !slices.Contains(o.DropPartitions, e.Partition) && !slices.Contains(o.DropKeys, e.Key)
		})
	case Forward:
		b.after(o, in, parallelism, func(event) bool { return true })
	}
}

// input returns the union of streams and their parallelism, 0 if they differ.
func (b *builder) input(ids Input) (*lowwater.DataStream[event], int) {
	parallelism := b.parallelism[ids[0]]
	var others []*lowwater.DataStream[event]
	for _, id := range ids[1:] {
		others = append(others, b.streams[id])
		if b.parallelism[id] != parallelism {
			parallelism = 0
		}
	}
	if len(others) == 0 {
		return b.streams[ids[0]], parallelism
	}
	return b.streams[ids[0]].Union(others...), parallelism
}

// after adds a filter, forward from its input where that is possible.
func (b *builder) after(o *Operator, in *lowwater.DataStream[event], parallelism int, keep func(event) bool) {
	out := in.Filter(keep).Name(o.ID)
	b.add(o.ID, out, b.place(o, out, parallelism))
}

// place sets the parallelism of an operator: its own, or that of its input, so that
// each subtask has the records of one subtask before it.
func (b *builder) place(o *Operator, out *lowwater.DataStream[event], input int) int {
	p := max(o.Parallelism, 1)
	if o.Parallelism == 0 && input > 0 {
		p = input
	}
	out.Parallelism(p)
	return p
}

// assign adds a strategy behind the source. A routing by key is one operator for
// each subtask, which sees the keys routed to it, and their union: that has the
// same generators, with the same records, and the same channels behind them as one
// operator whose partitioner is the routing.
func (b *builder) assign(o *Operator, in *lowwater.DataStream[event], parallelism int) {
	strategy := strategyOf(o.Strategy, nil)
	if len(o.Routing) == 0 {
		out := in.AssignTimestampsAndWatermarks(strategy).Name(o.ID)
		b.add(o.ID, out, b.place(o, out, parallelism))
		return
	}
	subtasks := max(o.Parallelism, 1)
	for _, subtask := range o.Routing {
		subtasks = max(subtasks, subtask+1)
	}
	var parts []*lowwater.DataStream[event]
	for subtask := range subtasks {
		routed := in.Filter(func(e event) bool { return b.results.route(o, e.Key) == subtask })
		parts = append(parts, routed.AssignTimestampsAndWatermarks(strategy).Name(o.ID).Parallelism(1))
	}
	b.add(o.ID, parts[0].Union(parts[1:]...), subtasks)
}

// connect adds an operator with two inputs that passes on the records of both.
func (b *builder) connect(o *Operator) {
	var in [2]*lowwater.DataStream[event]
	for i := range in {
		in[i], _ = b.input(o.Inputs[i])
		if slices.Contains(o.Broadcast, i) {
			in[i] = in[i].Broadcast()
		}
	}
	pass := func(e event) event { return e }
	out := in[0].Connect(in[1]).Map(pass, pass).Name(o.ID)
	b.add(o.ID, out, b.place(o, out, 0))
}

var lateTag = lowwater.NewOutputTag[event]("late")

func (b *builder) window(o *Operator, in *lowwater.DataStream[event]) {
	fired := in.KeyBy(func(e event) string { return e.Key }).
		Window(assignerOf(o)).
		AllowedLateness(millis(o.AllowedLatenessMillis)).
		SideOutputLate(lateTag).
		Aggregate(lowwater.Count[event]()).
		Name(o.ID)
	if o.Parallelism > 0 {
		fired.Parallelism(o.Parallelism)
	}
	fired.SinkFunc(func(_ context.Context, p window.Pane[string, int64]) error {
		b.results.fire(o.ID, p)
		return nil
	})
	fired.SideOutput(lateTag).SinkFunc(func(_ context.Context, e event) error {
		b.results.late(e)
		return nil
	})
}

func assignerOf(o *Operator) window.Assigner {
	switch o.Type {
	case Tumbling:
		return window.Tumbling(millis(o.SizeMillis)).Offset(millis(o.OffsetMillis))
	case Sliding:
		return window.Sliding(millis(o.SizeMillis), millis(o.SlideMillis)).Offset(millis(o.OffsetMillis))
	default:
		return window.Session(millis(o.GapMillis))
	}
}

// collector gathers what comes out of a job.
type collector struct {
	start time.Time // of the job

	mu        sync.Mutex
	windows   []FiredWindow
	lateBy    map[string]map[int32]int64
	lateTotal int64
	unrouted  map[string]bool
}

func (c *collector) fire(operator string, p window.Pane[string, int64]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.windows = append(c.windows, FiredWindow{
		Operator: operator, Key: p.Key, Start: p.Window.Start, End: p.Window.End, Count: p.Value,
		FiredAtMillis: (time.Since(c.start) + early).Milliseconds(),
	})
}

func (c *collector) late(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lateTotal++
	if c.lateBy[e.Topic] == nil {
		c.lateBy[e.Topic] = map[int32]int64{}
	}
	c.lateBy[e.Topic][e.Partition]++
}

// route returns the subtask of a key and remembers keys that have none.
func (c *collector) route(o *Operator, key string) int {
	if subtask, ok := o.Routing[key]; ok {
		return subtask
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unrouted[key] = true
	return -1
}

// results returns what came out, of which what fired after end was open then.
func (c *collector) results(s *Scenario, watermarks map[string]Instant) *Results {
	r := &Results{LateTotal: c.lateTotal, LateByPartition: c.lateBy, OpenWindows: map[string]int64{}, Watermark: watermarks}
	for i := range s.Job.Operators {
		if o := &s.Job.Operators[i]; o.Kind == Window {
			r.OpenWindows[o.ID] = 0
		}
	}
	for _, w := range c.windows {
		if w.FiredAtMillis <= s.DurationMillis {
			r.Windows = append(r.Windows, w)
		} else {
			r.OpenWindows[w.Operator]++
		}
	}
	return r
}
