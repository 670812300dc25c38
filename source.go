package lowwater

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
)

// FromSource adds a source. Every split has its own watermark generator, made by
// strategy, and the source's watermark is the smallest over its splits that are not
// idle (spec watermarks 5). name must not be empty. A nil source, and what the source or
// the strategy says is wrong with it, are build errors.
//
// Without an explicit Parallelism the source takes that of the environment, but no
// more subtasks than there are splits at the start. An explicit larger one is kept:
// as in Flink the surplus subtasks then hold the watermark back unless the
// strategy has WithIdleness, and a warning says so before the job starts.
func FromSource[T any](env *Environment, source connector.Source[T], strategy eventtime.WatermarkStrategy[T], name string) *DataStream[T] {
	if name == "" {
		env.fail("FromSource: the name must not be empty")
	}
	if err := strategy.Validate(); err != nil {
		env.fail("source %q: %w", name, err)
	}
	n := &graph.Node{
		Name:          name,
		WantsConsumer: true,
		Watermarks:    watermarkInfo(env, strategy),
		Source:        &graph.SourceInfo{Splits: -1, Alignment: alignmentInfo(strategy)},
		NewSource:     func() operator.Source { return operator.NewSource(source, strategy, DeadLetters.key()) },
	}
	if source == nil {
		env.fail("source %q: the source is nil", name)
	} else {
		if err := source.Validate(); err != nil {
			env.fail("source %q: %w", name, err)
		}
		n.Source.Bounded = source.Boundedness() == connector.Bounded
		n.Source.NewEnumerator = source.NewEnumerator
		n.Source.Codec, _ = source.(connector.SplitCodec)
		if d, ok := source.(connector.DeadLetterSource); ok && d.EmitsDeadLetters() {
			n.Source.DeadLetters = DeadLetters.key()
		}
	}
	env.addNode(n)
	return &DataStream[T]{env: env, from: []port{{node: n}}, node: n}
}

func alignmentInfo[T any](s eventtime.WatermarkStrategy[T]) *graph.AlignmentInfo {
	a, on := s.Alignment()
	if !on {
		return nil
	}
	return &graph.AlignmentInfo{Group: a.Group, MaxDrift: a.MaxDrift, Interval: a.UpdateInterval}
}

// FromSlice adds a bounded source of the given values, in order, in one subtask.
// The records have no timestamps: give them some with
// AssignTimestampsAndWatermarks. The slice must not change while the job runs, nor between
// a checkpoint and a run that goes on from it.
func FromSlice[T any](env *Environment, values []T) *DataStream[T] {
	s := FromSource(env, datagen.Slice(values), eventtime.NoWatermarks[T](), "Collection")
	s.node.Single = true
	return s
}
