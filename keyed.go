package lowwater

import (
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator/windowed"
	"github.com/lowwater/lowwater/window"
)

// KeyedStream is a stream partitioned by key: all records of a key are in one subtask of
// the next operator, those of one sender in their order. Make it with DataStream.KeyBy.
type KeyedStream[K comparable, T any] struct {
	stream *DataStream[T]
	key    func(T) K
	hash   func(K) uint64
}

func newKeyedStream[K comparable, T any](s *DataStream[T], key func(T) K) *KeyedStream[K, T] {
	if key == nil {
		s.env.fail("KeyBy: the function is nil")
	}
	checkUnpartitioned(s, "KeyBy")
	hash, err := keyed.HasherFor[K]()
	if err != nil {
		s.env.fail("KeyBy: %w", err)
	}
	return &KeyedStream[K, T]{stream: s, key: key, hash: hash}
}

// checkUnpartitioned refuses a partitioning that the operator would ignore.
func checkUnpartitioned[T any](s *DataStream[T], method string) {
	if s.partitioning != graph.Auto {
		s.env.fail("%s: %v has no effect before %[1]s, which partitions by itself", method, s.partitioning)
	}
}

// connect makes s an input of n, partitioned by key.
func (s *KeyedStream[K, T]) connect(n *graph.Node, input int) {
	for _, p := range s.stream.from {
		s.stream.env.graph.Connect(keyedEdge(p, n, input, s.key, s.hash))
	}
}

func keyedEdge[K comparable, T any](from port, to *graph.Node, input int, key func(T) K, hash func(K) uint64) *graph.Edge {
	return &graph.Edge{
		From: from.node, Output: from.output, To: to, Input: input, Partitioning: graph.Hash,
		NewWriter: func(_ graph.Partitioning, maxParallelism int) exchange.WriterFactory {
			return exchange.Hash(key, hash, maxParallelism)
		},
		NewStore: func(maxParallelism int) (exchange.Store, error) {
			return exchange.NewKeyedStore(key, hash, maxParallelism)
		},
		Copy: copier[T](),
	}
}

// Window groups the records of each key into windows (spec windows 1). A wrong or nil
// assigner is a build error. A record without a timestamp fails the job in the event-time
// windows of all assigners but sessions (1.5).
func (s *KeyedStream[K, T]) Window(assigner window.Assigner) *WindowedStream[K, T] {
	return newWindowedStream(s, assigner)
}

// WindowBy is Window for windows that depend on the records' values, such as sessions with
// a gap of their own (window.DynamicSession).
func (s *KeyedStream[K, T]) WindowBy(assigner window.ElementAssigner[T]) *WindowedStream[K, T] {
	return &WindowedStream[K, T]{keyed: s, spec: windowed.Spec[K, T]{ElementAssigner: assigner}}
}

// CountWindow groups every n records of a key; n is at least 1. A last window with fewer
// never fires, not even at the end of the input (spec windows 1.9). There is no time in it:
// results have the timestamp eventtime.MaxTimestamp (2.4), and incomplete windows of keys
// that do not come again stay in memory.
func (s *KeyedStream[K, T]) CountWindow(n int64) *WindowedStream[K, T] {
	return s.Window(window.Global()).Trigger(window.PurgingTrigger(window.CountTrigger(n)))
}

// SlidingCountWindow groups the last n records of a key, or fewer while there are fewer, at
// every slide-th of them (spec windows 1.9). slide is at least 1 and n not negative.
// Timestamps and memory are as for CountWindow.
func (s *KeyedStream[K, T]) SlidingCountWindow(n, slide int64) *WindowedStream[K, T] {
	return s.Window(window.Global()).Trigger(window.CountTrigger(slide)).Evictor(window.CountEvictor[T](n))
}

// All is the key of streams that are windowed as a whole, by DataStream.WindowAll.
type All struct{}

// String returns "all".
func (All) String() string { return "all" }

// WindowAll groups all records of the stream into windows, in one subtask: Parallelism of
// the result must be 1.
func (s *DataStream[T]) WindowAll(assigner window.Assigner) *WindowedStream[All, T] {
	checkUnpartitioned(s, "WindowAll")
	whole := &KeyedStream[All, T]{
		stream: s,
		key:    func(T) All { return All{} },
		hash:   func(All) uint64 { return 0 },
	}
	w := newWindowedStream(whole, assigner)
	w.all = true
	return w
}
