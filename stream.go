package lowwater

import (
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
)

// DataStream is a stream of T within a job. Its methods add operators to the job;
// the stream itself is a value that may be used any number of times: each use gets all
// records. Name, UID, Parallelism and DisableChaining change the operator that the stream
// comes from and return the stream.
type DataStream[T any] struct {
	env *Environment
	// from are the outputs that the stream's records come from: one, or several
	// for a union.
	from []port
	// partitioning is how the next operator gets its records.
	partitioning graph.Partitioning
	// partitioner decides if partitioning is graph.Custom.
	partitioner func(value T, subtasks int) int
	// node is what Name, UID and the like apply to, nil if that is unclear.
	node *graph.Node
}

// port is one output of a node; output is the id of a side output or empty.
type port struct {
	node   *graph.Node
	output string
}

// Map applies f to every record. Timestamps stay as they are.
func (s *DataStream[T]) Map[R any](f func(T) R) *DataStream[R] {
	if f == nil {
		s.env.fail("Map: the function is nil")
	}
	return withoutSides(addOperator[T, R](s, "Map", func() operator.Operator { return operator.NewMap(f) }))
}

// Filter keeps the records for which keep returns true. Timestamps stay as they are.
func (s *DataStream[T]) Filter(keep func(T) bool) *DataStream[T] {
	if keep == nil {
		s.env.fail("Filter: the function is nil")
	}
	return withoutSides(addOperator[T, T](s, "Filter", func() operator.Operator { return operator.NewFilter(keep) }))
}

// FlatMap calls f for every record; f passes any number of results to emit, which it
// must not keep. Results have the record's timestamp.
func (s *DataStream[T]) FlatMap[R any](f func(value T, emit func(R))) *DataStream[R] {
	if f == nil {
		s.env.fail("FlatMap: the function is nil")
	}
	return withoutSides(addOperator[T, R](s, "FlatMap", func() operator.Operator { return operator.NewFlatMap(f) }))
}

// Process calls f for every record. f may emit, write side outputs, look at
// timestamp and watermark, and fail: its error fails the job. All subtasks call the same f.
func (s *DataStream[T]) Process[R any](f ProcessFunction[T, R]) *DataStream[R] {
	if f == nil {
		s.env.fail("Process: the function is nil")
	}
	return addOperator[T, R](s, "Process", func() operator.Operator {
		return operator.NewProcess(func(e *operator.Element, emitter *operator.Emitter[R]) func(T) error {
			ctx := &ProcessContext{element: e}
			out := &Collector[R]{element: e, emitter: emitter}
			return func(v T) error { return f(ctx, v, out) }
		})
	})
}

// AssignTimestampsAndWatermarks gives the records new timestamps and makes
// watermarks from them, behind the source: one generator per subtask. Watermarks and
// idleness from upstream end here, except the final watermark (spec watermarks 7).
// WithWatermarkAlignment and WithBrokerIdleness are build errors here. A strategy in the
// source itself is better where the source has several splits per subtask: behind it, one
// split that lags or is read in bursts makes the others' records late.
func (s *DataStream[T]) AssignTimestampsAndWatermarks(strategy eventtime.WatermarkStrategy[T]) *DataStream[T] {
	if err := strategy.Validate(); err != nil {
		s.env.fail("AssignTimestampsAndWatermarks: %w", err)
	}
	if _, on := strategy.Alignment(); on {
		s.env.fail("AssignTimestampsAndWatermarks: WithWatermarkAlignment stops sources from reading, so it works in a source's strategy only")
	}
	if strategy.BrokerIdleness() > 0 {
		s.env.fail("AssignTimestampsAndWatermarks: WithBrokerIdleness is about the splits of a source, so it works in a source's strategy only")
	}
	out := addOperator[T, T](s, "Timestamps/Watermarks", func() operator.Operator {
		return operator.NewTimestamps(strategy)
	})
	out.node.Watermarks = watermarkInfo(s.env, strategy)
	return withoutSides(out)
}

// KeyBy partitions the stream: all records with the same key go to the same subtask.
// K may be a string, a bool, an integer, a floating-point number, or a struct or array of
// these; other keys are a build error. The key group of a key, and so its subtask, is that
// of the same key in Flink (spec windows 5.1). key must always return the same key for the
// same record.
func (s *DataStream[T]) KeyBy[K comparable](key func(T) K) *KeyedStream[K, T] {
	return newKeyedStream(s, key)
}

// Union merges streams of the same type. There is no order between their records. The
// union's watermark is the smallest of its inputs that are not idle (spec watermarks 1).
func (s *DataStream[T]) Union(others ...*DataStream[T]) *DataStream[T] {
	u := &DataStream[T]{env: s.env}
	for _, o := range append([]*DataStream[T]{s}, others...) {
		switch {
		case o == nil:
			s.env.fail("Union: a stream is nil")
		case o.env != s.env:
			s.env.fail("Union: the streams belong to different environments")
		case o.partitioning != graph.Auto:
			s.env.fail("Union: %v has no effect before Union: apply it to the union", o.partitioning)
		default:
			u.from = append(u.from, o.from...)
		}
	}
	return u
}

// Rebalance deals records to the next operator's subtasks in turn. Like every partitioning,
// it is a build error before an operator that partitions by itself, such as KeyBy.
func (s *DataStream[T]) Rebalance() *DataStream[T] { return s.partitioned(graph.Rebalance) }

// Broadcast sends every record to every subtask of the next operator.
func (s *DataStream[T]) Broadcast() *DataStream[T] { return s.partitioned(graph.Broadcast) }

// Forward sends records to the subtask of the same number of the next operator, whose
// parallelism must be equal; it takes over this stream's unless it sets its own.
// Without it the engine forwards where it can and rebalances otherwise.
func (s *DataStream[T]) Forward() *DataStream[T] { return s.partitioned(graph.Forward) }

func (s *DataStream[T]) partitioned(p graph.Partitioning) *DataStream[T] {
	return &DataStream[T]{env: s.env, from: s.from, partitioning: p}
}

// SideOutput returns what the stream's operator sent to a side output, with the watermarks
// of the operator. A tag that the operator is known not to emit to is a build error, and so
// is a stream that does not come from an operator: a union or a partitioning.
func (s *DataStream[T]) SideOutput[X any](tag OutputTag[X]) *DataStream[X] {
	out := &DataStream[X]{env: s.env}
	n := s.configured("SideOutput")
	if err := tag.validate(); err != nil {
		s.env.fail("SideOutput: %w", err)
	}
	switch {
	case n == nil:
	case n.KnownSides && !slices.Contains(n.Sides, tag.key()):
		s.env.fail("SideOutput(%v): operator %q has no such side output: ask the operator that emits it, "+
			"or give a windowed stream SideOutputLate with this tag", tag, n.Name)
	default:
		out.from = []port{{n, tag.key()}}
	}
	return out
}

// Name sets the name of the stream's operator in plans, metrics and errors. It must not be
// empty.
func (s *DataStream[T]) Name(name string) *DataStream[T] {
	setName(s.env, s.configured("Name"), name)
	return s
}

// UID identifies the operator's state over versions of the job. It must be unique within
// the job and not empty. Without one the state is found by the operator's place in the job,
// which any change before it changes: give one to every operator with state of a job that
// is to be upgraded.
func (s *DataStream[T]) UID(uid string) *DataStream[T] {
	setUID(s.env, s.configured("UID"), uid)
	return s
}

// Parallelism sets the number of subtasks of the stream's operator, from 1 to 32768, and
// for keyed operators at most the number of key groups. The default is that of the
// environment, or, for an operator that is chained to a source, the source's.
func (s *DataStream[T]) Parallelism(n int) *DataStream[T] {
	setParallelism(s.configured("Parallelism"), n)
	return s
}

// DisableChaining gives the stream's operator a task of its own: it runs in a goroutine
// beside those before and behind it instead of being called by them.
func (s *DataStream[T]) DisableChaining() *DataStream[T] {
	if n := s.configured("DisableChaining"); n != nil {
		n.DisableChaining = true
	}
	return s
}

// configured returns the node that a setting applies to.
func (s *DataStream[T]) configured(method string) *graph.Node {
	if s.node == nil {
		s.env.fail("%s: applies to an operator, but this stream is a union, a side output or a partitioning of others", method)
	}
	return s.node
}

func setName(env *Environment, n *graph.Node, name string) {
	switch {
	case name == "":
		env.fail("Name: must not be empty")
	case n != nil:
		n.Name = name
	}
}

func setUID(env *Environment, n *graph.Node, uid string) {
	switch {
	case uid == "":
		env.fail("UID: must not be empty")
	case n != nil:
		n.UID = uid
	}
}

func setParallelism(n *graph.Node, p int) {
	if n != nil {
		n.SetParallelism(p)
	}
}

// addOperator adds a one-input operator with records of type R behind s.
func addOperator[T, R any](s *DataStream[T], name string, make func() operator.Operator) *DataStream[R] {
	n := s.env.addNode(&graph.Node{Name: name, NewOperator: make, WantsConsumer: true})
	connect(s, n, 0)
	return &DataStream[R]{env: s.env, from: []port{{node: n}}, node: n}
}

// withoutSides notes that the stream's operator has no side outputs.
func withoutSides[T any](s *DataStream[T]) *DataStream[T] {
	s.node.KnownSides = true
	return s
}

// connect makes s an input of n.
func connect[T any](s *DataStream[T], n *graph.Node, input int) {
	for _, p := range s.from {
		e := plainEdge[T](p, n, input, s.partitioning)
		if s.partitioning == graph.Custom {
			e.NewWriter = func(graph.Partitioning, int) exchange.WriterFactory { return exchange.Custom(s.partitioner) }
		}
		s.env.graph.Connect(e)
	}
}

func plainEdge[T any](from port, to *graph.Node, input int, p graph.Partitioning) *graph.Edge {
	return &graph.Edge{
		From: from.node, Output: from.output, To: to, Input: input,
		Partitioning: p, NewWriter: newWriter[T], Copy: copier[T](),
		NewStore: func(int) (exchange.Store, error) { return exchange.NewStore[T]() },
	}
}

// newWriter builds the partitioner of an unkeyed edge.
func newWriter[T any](p graph.Partitioning, _ int) exchange.WriterFactory {
	switch p {
	case graph.Forward:
		return exchange.Forward[T]()
	case graph.Broadcast:
		return exchange.Broadcast[T]()
	default:
		return exchange.Rebalance[T]()
	}
}

func copier[T any]() func(exchange.Payload) exchange.Payload {
	pool := connector.NewPool[T]()
	return func(p exchange.Payload) exchange.Payload {
		in := p.(*connector.Batch[T])
		out := pool.Get()
		out.AppendRange(in, 0, in.Len())
		return out
	}
}

func watermarkInfo[T any](env *Environment, s eventtime.WatermarkStrategy[T]) *graph.WatermarkInfo {
	return &graph.WatermarkInfo{
		Description: s.String(),
		None:        s.EmitsNothing(),
		Idleness:    s.Idleness() > 0 || s.BrokerIdleness() > 0,
		NoProbes:    env.options.WatermarkInterval == 0,
	}
}
