package lowwater

import (
	"iter"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/windowed"
	"github.com/lowwater/lowwater/window"
)

// Join pairs the records of two keyed streams that have the same key and share a window
// (spec windows 6.2). Records without a partner do not appear; see CoGroup for them.
func (s *KeyedStream[K, T]) Join[U any](other *KeyedStream[K, U]) *JoinedStreams[K, T, U] {
	return &JoinedStreams[K, T, U]{pairing(s, other, "Join")}
}

// CoGroup brings the records of two keyed streams that have the same key and share a
// window together, also where one stream has none (spec windows 6.2).
func (s *KeyedStream[K, T]) CoGroup[U any](other *KeyedStream[K, U]) *CoGroupedStreams[K, T, U] {
	return &CoGroupedStreams[K, T, U]{pairing(s, other, "CoGroup")}
}

// JoinedStreams is two keyed streams to be joined in windows.
type JoinedStreams[K comparable, T, U any] struct{ pair[K, T, U] }

// CoGroupedStreams is two keyed streams to be grouped in windows.
type CoGroupedStreams[K comparable, T, U any] struct{ pair[K, T, U] }

// JoinedWindows is two keyed streams in common windows. Records that are late for all of
// their windows are dropped and counted in numLateRecordsDropped.
type JoinedWindows[K comparable, T, U any] struct{ pair[K, T, U] }

// CoGroupedWindows is two keyed streams in common windows; see JoinedWindows.
type CoGroupedWindows[K comparable, T, U any] struct{ pair[K, T, U] }

// Window sets the windows. The watermark of both streams decides when they fire: the
// smaller one, idle inputs left out.
func (j *JoinedStreams[K, T, U]) Window(assigner window.Assigner) *JoinedWindows[K, T, U] {
	return &JoinedWindows[K, T, U]{j.in(assigner)}
}

// Window sets the windows; see JoinedStreams.Window.
func (c *CoGroupedStreams[K, T, U]) Window(assigner window.Assigner) *CoGroupedWindows[K, T, U] {
	return &CoGroupedWindows[K, T, U]{c.in(assigner)}
}

// AllowedLateness is as for WindowedStream: a window that fires again gives all its pairs
// again.
func (j JoinedWindows[K, T, U]) AllowedLateness(d time.Duration) *JoinedWindows[K, T, U] {
	j.pair = j.late(d)
	return &j
}

// AllowedLateness is as for WindowedStream.
func (c CoGroupedWindows[K, T, U]) AllowedLateness(d time.Duration) *CoGroupedWindows[K, T, U] {
	c.pair = c.late(d)
	return &c
}

// Apply emits f(left, right) for every pair of a window. A pair that shares several
// windows appears once for each. Results carry the window's last millisecond.
func (j *JoinedWindows[K, T, U]) Apply[R any](f func(left T, right U) R) *DataStream[R] {
	if f == nil {
		j.env.fail("Join: the function is nil")
	}
	results := addPairs(j.pair, "Join", func(_ *WindowContext[K], left []T, right []U, out *Collector[R]) error {
		for _, l := range left {
			for _, r := range right {
				out.Emit(f(l, r))
			}
		}
		return nil
	})
	if results.node != nil {
		results.node.KnownSides = true // f has no way to side outputs
	}
	return results
}

// CoGroupFunction sees all records of one key and window: those of the first stream and
// those of the second, in the order of their arrival. One of the slices may be empty.
// Both are valid during the call only. An error fails the job.
type CoGroupFunction[K comparable, T, U, R any] func(ctx *WindowContext[K], left []T, right []U, out *Collector[R]) error

// Apply calls f each time a window fires, with the results carrying the window's last
// millisecond.
func (c *CoGroupedWindows[K, T, U]) Apply[R any](f CoGroupFunction[K, T, U, R]) *DataStream[R] {
	if f == nil {
		c.env.fail("CoGroup: the function is nil")
	}
	return addPairs(c.pair, "CoGroup", f)
}

// pair is two keyed streams on their way into one window operator, as one stream of
// tagged records. It holds no streams of tagged records: such a stream of a stream's own
// type parameters would be an instantiation cycle.
type pair[K comparable, T, U any] struct {
	env      *Environment
	left     *KeyedStream[K, T]
	right    *KeyedStream[K, U]
	assigner window.Assigner
	lateness time.Duration
}

// either is a record of one of two streams. It is kept in windows, so its fields are
// exported to be stored in checkpoints.
type either[T, U any] struct {
	Left    T
	Right   U
	IsRight bool
}

func pairing[K comparable, T, U any](left *KeyedStream[K, T], right *KeyedStream[K, U], method string) pair[K, T, U] {
	env := left.stream.env
	if right == nil {
		env.fail("%s: the other stream is nil", method)
	} else if right.stream.env != env {
		env.fail("%s: the streams belong to different environments", method)
	}
	return pair[K, T, U]{env: env, left: left, right: right}
}

func (p pair[K, T, U]) in(assigner window.Assigner) pair[K, T, U] {
	p.assigner = assigner
	return p
}

func (p pair[K, T, U]) late(d time.Duration) pair[K, T, U] {
	p.lateness = d
	return p
}

func addPairs[K comparable, T, U, R any](p pair[K, T, U], name string, f CoGroupFunction[K, T, U, R]) *DataStream[R] {
	spec := windowed.Spec[K, either[T, U]]{Options: windowed.Options{Assigner: p.assigner}}
	var err error
	if spec.AllowedLateness, err = wholeMillis("AllowedLateness", p.lateness); err == nil {
		err = spec.Validate()
	}
	if err != nil {
		p.env.fail("%s: %w", name, err)
	}
	n := windowNode(spec, name)
	n.NewOperator = func() operator.Operator { return windowed.Process(spec, windowFunction(splitPairs(f))) }
	if p.right == nil {
		return &DataStream[R]{env: p.env}
	}
	left := tag(p.left.stream, "left", func(v T) either[T, U] { return either[T, U]{Left: v} })
	right := tag(p.right.stream, "right", func(v U) either[T, U] { return either[T, U]{Right: v, IsRight: true} })
	p.env.addNode(n)
	key := func(e either[T, U]) K {
		if e.IsRight {
			return p.right.key(e.Right)
		}
		return p.left.key(e.Left)
	}
	for _, from := range []port{left, right} {
		p.env.graph.Connect(keyedEdge(from, n, 0, key, p.left.hash))
	}
	return &DataStream[R]{env: p.env, from: []port{{node: n}}, node: n}
}

// tag adds a map to tagged records behind s.
func tag[T, E any](s *DataStream[T], side string, f func(T) E) port {
	n := s.env.addNode(&graph.Node{
		Name:          "Tag " + side,
		WantsConsumer: true,
		NewOperator:   func() operator.Operator { return operator.NewMap(f) },
	})
	connect(s, n, 0)
	return port{node: n}
}

// splitPairs gives f the two sides of a window's elements.
func splitPairs[K comparable, T, U, R any](f CoGroupFunction[K, T, U, R]) ProcessWindowFunction[K, either[T, U], R] {
	return func(ctx *WindowContext[K], elements iter.Seq[either[T, U]], out *Collector[R]) error {
		var left []T
		var right []U
		for e := range elements {
			if e.IsRight {
				right = append(right, e.Right)
			} else {
				left = append(left, e.Left)
			}
		}
		return f(ctx, left, right, out)
	}
}
