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

// JoinedWindows is two keyed streams in common windows. Its settings return a changed copy,
// as those of WindowedStream do, and mean the same; what the windows hold are records of
// both streams.
type JoinedWindows[K comparable, T, U any] struct{ pair[K, T, U] }

// CoGroupedWindows is two keyed streams in common windows; see JoinedWindows.
type CoGroupedWindows[K comparable, T, U any] struct{ pair[K, T, U] }

// Either is a record of one of two streams that share windows: Left or Right, as IsRight
// says; the other field is zero.
type Either[T, U any] struct {
	Left    T
	Right   U
	IsRight bool
}

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
	j.lateness = d
	return &j
}

// SideOutputLate sends records of both streams that no window takes any more to a side
// output, with their own timestamps: read it with SideOutput on the stream that Apply
// returns. Without it they are dropped and counted in numLateRecordsDropped. In Flink,
// joined windows always drop them.
func (j JoinedWindows[K, T, U]) SideOutputLate(tag OutputTag[Either[T, U]]) *JoinedWindows[K, T, U] {
	j.setLateOutput(j.env, tag)
	return &j
}

// CloseAfterSilence is as for WindowedStream. Records of either stream break the silence.
func (j JoinedWindows[K, T, U]) CloseAfterSilence(d time.Duration) *JoinedWindows[K, T, U] {
	j.silence = d
	return &j
}

// Trigger is as for WindowedStream. Records of both streams count: window.CountTrigger(2)
// fires after two of one stream, too.
func (j JoinedWindows[K, T, U]) Trigger(t window.Trigger) *JoinedWindows[K, T, U] {
	return j.ElementTrigger(window.ForElements[Either[T, U]](t))
}

// ElementTrigger is as for WindowedStream.
func (j JoinedWindows[K, T, U]) ElementTrigger(t window.ElementTrigger[Either[T, U]]) *JoinedWindows[K, T, U] {
	j.setTrigger(t)
	return &j
}

// Evictor is as for WindowedStream. It chooses among the records of both streams, in the
// order of their arrival.
func (j JoinedWindows[K, T, U]) Evictor(e window.Evictor[Either[T, U]]) *JoinedWindows[K, T, U] {
	j.setEvictor(e)
	return &j
}

// AllowedLateness is as for WindowedStream.
func (c CoGroupedWindows[K, T, U]) AllowedLateness(d time.Duration) *CoGroupedWindows[K, T, U] {
	c.lateness = d
	return &c
}

// SideOutputLate is as for JoinedWindows.
func (c CoGroupedWindows[K, T, U]) SideOutputLate(tag OutputTag[Either[T, U]]) *CoGroupedWindows[K, T, U] {
	c.setLateOutput(c.env, tag)
	return &c
}

// CloseAfterSilence is as for JoinedWindows.
func (c CoGroupedWindows[K, T, U]) CloseAfterSilence(d time.Duration) *CoGroupedWindows[K, T, U] {
	c.silence = d
	return &c
}

// Trigger is as for JoinedWindows.
func (c CoGroupedWindows[K, T, U]) Trigger(t window.Trigger) *CoGroupedWindows[K, T, U] {
	return c.ElementTrigger(window.ForElements[Either[T, U]](t))
}

// ElementTrigger is as for WindowedStream.
func (c CoGroupedWindows[K, T, U]) ElementTrigger(t window.ElementTrigger[Either[T, U]]) *CoGroupedWindows[K, T, U] {
	c.setTrigger(t)
	return &c
}

// Evictor is as for JoinedWindows.
func (c CoGroupedWindows[K, T, U]) Evictor(e window.Evictor[Either[T, U]]) *CoGroupedWindows[K, T, U] {
	c.setEvictor(e)
	return &c
}

// Stateful lets the function use WindowState and KeyState of its context; see
// WindowedStream.
func (c CoGroupedWindows[K, T, U]) Stateful(clear func(*WindowContext[K]) error) *CoGroupedWindows[K, T, U] {
	c.setStateful(clear)
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
		onlyLateSide(results.node)
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
// Either. It holds no streams of those: such a stream of a stream's own
// type parameters would be an instantiation cycle.
type pair[K comparable, T, U any] struct {
	env   *Environment
	left  *KeyedStream[K, T]
	right *KeyedStream[K, U]
	windowSettings[K, Either[T, U]]
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
	p.windowSettings = settingsOf[K, Either[T, U]](assigner)
	return p
}

func addPairs[K comparable, T, U, R any](p pair[K, T, U], name string, f CoGroupFunction[K, T, U, R]) *DataStream[R] {
	spec, err := p.checked()
	if err != nil {
		p.env.fail("%s: %w", name, err)
	}
	n := windowNode(spec, name)
	n.NewOperator = func() operator.Operator { return windowed.Process(spec, windowFunction(splitPairs(f))) }
	n.KeepsState = err == nil && windowed.Spills(n.NewOperator())
	if p.right == nil {
		return &DataStream[R]{env: p.env}
	}
	left := tag(p.left.stream, "left", func(v T) Either[T, U] { return Either[T, U]{Left: v} })
	right := tag(p.right.stream, "right", func(v U) Either[T, U] { return Either[T, U]{Right: v, IsRight: true} })
	p.env.addNode(n)
	key := func(e Either[T, U]) K {
		if e.IsRight {
			return p.right.key(e.Right)
		}
		return p.left.key(e.Left)
	}
	for _, from := range append(left, right...) {
		p.env.graph.Connect(keyedEdge(from, n, 0, key, p.left.hash))
	}
	return &DataStream[R]{env: p.env, from: []port{{node: n}}, node: n}
}

// tag adds maps to tagged records behind s. There is one in each subtask of each sender, so
// that the records of a sender stay in order.
func tag[T, E any](s *DataStream[T], side string, f func(T) E) (tagged []port) {
	for _, from := range s.from {
		n := s.env.addNode(&graph.Node{
			Name:          "Tag " + side,
			WantsConsumer: true,
			NewOperator:   func() operator.Operator { return operator.NewMap(f) },
		})
		s.env.graph.Connect(plainEdge[T](from, n, 0, graph.Forward))
		tagged = append(tagged, port{node: n})
	}
	return tagged
}

// splitPairs gives f the two sides of a window's elements.
func splitPairs[K comparable, T, U, R any](f CoGroupFunction[K, T, U, R]) ProcessWindowFunction[K, Either[T, U], R] {
	return func(ctx *WindowContext[K], elements iter.Seq[Either[T, U]], out *Collector[R]) error {
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
