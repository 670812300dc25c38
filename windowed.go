package lowwater

import (
	"iter"
	"reflect"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/windowed"
	"github.com/lowwater/lowwater/window"
)

// Aggregator folds the records of a window as they arrive; see window.Aggregator.
type Aggregator[T, A, R any] = window.Aggregator[T, A, R]

// Count counts records. The other ready-made aggregators are in package window: Sum, Min,
// Max, Average, Reduce and Fold.
func Count[T any]() Aggregator[T, int64, int64] { return window.Count[T]() }

// WindowedStream is a keyed stream grouped into windows. Its settings return a changed
// copy; Reduce, Aggregate, AggregateProcess and Process make the operator.
//
// The operator fires a window when the watermark reaches its last millisecond, or,
// in processing time, when the clock has passed it; results carry that millisecond as
// their timestamp (spec windows 2.4). At the end of a bounded input event-time windows
// fire and processing-time windows that are still open do not (2.13).
type WindowedStream[K comparable, T any] struct {
	keyed *KeyedStream[K, T]
	windowSettings[K, T]
	// all is set for WindowAll, which has one subtask.
	all bool
}

func newWindowedStream[K comparable, T any](s *KeyedStream[K, T], assigner window.Assigner) *WindowedStream[K, T] {
	return &WindowedStream[K, T]{keyed: s, windowSettings: settingsOf[K, T](assigner)}
}

// AllowedLateness keeps windows for d of event time after they have fired. A late
// record that still finds its window changes it and makes it fire again at once, with all
// its contents (spec windows 2.5). It has no effect on processing-time windows (2.2). d is
// 0 by default, must not be negative and is whole milliseconds.
func (w WindowedStream[K, T]) AllowedLateness(d time.Duration) *WindowedStream[K, T] {
	w.lateness = d
	return &w
}

// SideOutputLate sends records that no window takes any more to a side output of the
// window operator, with their own timestamps: read it with SideOutput on the stream that
// the windows' function returns. Without it they are dropped and counted in
// numLateRecordsDropped (spec windows 2.3). It has no effect on processing-time windows,
// for which nothing is late.
func (w WindowedStream[K, T]) SideOutputLate(tag OutputTag[T]) *WindowedStream[K, T] {
	w.setLateOutput(w.keyed.stream.env, tag)
	return &w
}

// CloseAfterSilence closes all open windows when no record has arrived at a subtask for d
// of wall-clock time: they fire although the watermark has not passed their end, with
// the timing window.BySilence. From then on they are as if the watermark had passed their
// end: a record that still comes for one makes it fire again as long as the allowed
// lateness lasts, and is late after that, which is at once without AllowedLateness. Time
// under back pressure does not count. The watermark itself stays as it is. With it results
// depend on the wall clock, so it is off unless asked for (0 is off), and it is for
// event-time windows without a trigger of their own. Windows that begin later than the
// wall clock stay open. The silence is that of a subtask, so results may depend on the
// parallelism. d must not be negative and is whole milliseconds. Flink has nothing like it.
func (w WindowedStream[K, T]) CloseAfterSilence(d time.Duration) *WindowedStream[K, T] {
	w.silence = d
	return &w
}

// Trigger decides when windows fire, in place of the assigner's default trigger: with
// window.CountTrigger windows no longer fire at their end (spec windows 3). A nil trigger,
// one with wrong parameters, and one that cannot merge with windows that do are build
// errors.
func (w WindowedStream[K, T]) Trigger(t window.Trigger) *WindowedStream[K, T] {
	return w.ElementTrigger(window.ForElements[T](t))
}

// ElementTrigger is Trigger for triggers that look at values. Of both the last one counts.
func (w WindowedStream[K, T]) ElementTrigger(t window.ElementTrigger[T]) *WindowedStream[K, T] {
	w.setTrigger(t)
	return &w
}

// Evictor removes elements from windows when they fire. With one, a window keeps all its
// elements, also for Reduce and Aggregate (spec windows 2.11). A nil evictor is a build
// error.
func (w WindowedStream[K, T]) Evictor(e window.Evictor[T]) *WindowedStream[K, T] {
	w.setEvictor(e)
	return &w
}

// Stateful lets the function of Process or AggregateProcess use WindowState and KeyState
// of its context. It is a build error with Reduce and Aggregate, which have none. clear,
// which may be nil, is called once for each window of a key when it goes, and may write to
// side outputs; its error fails the job (spec windows 2.9).
func (w WindowedStream[K, T]) Stateful(clear func(*WindowContext[K]) error) *WindowedStream[K, T] {
	w.setStateful(clear)
	return &w
}

// Aggregate folds the records of each key and window into one accumulator and emits a
// pane with the result each time the window fires (spec windows 2.10). Flink emits the bare
// value; a pane has the key, the window and why it fired as well.
func (w *WindowedStream[K, T]) Aggregate[A, R any](agg Aggregator[T, A, R]) *DataStream[window.Pane[K, R]] {
	if agg == nil {
		w.fail("Aggregate: the aggregator is nil")
	}
	return addContextless[K, T, window.Pane[K, R]](w, "Aggregate", func(s windowed.Spec[K, T]) operator.Operator {
		return windowed.Aggregate(s, agg)
	})
}

// Reduce combines the records of each key and window two by two, in their order, and
// emits a pane with the result each time the window fires. combine must be associative,
// and on sliding and cumulating windows, whose records are combined slice by slice of
// time, commutative as well; see window.InArrivalOrder for functions that are not.
// V is T: the parameter is inferred, and another type is a build error.
func (w *WindowedStream[K, T]) Reduce[V any](combine func(a, b V) V) *DataStream[window.Pane[K, V]] {
	same, ok := any(combine).(func(a, b T) T)
	switch {
	case !ok:
		w.fail("Reduce: the function combines %v, but the stream's records are %v", reflect.TypeFor[V](), reflect.TypeFor[T]())
	case same == nil:
		w.fail("Reduce: the function is nil")
	}
	return addContextless[K, T, window.Pane[K, V]](w, "Reduce", func(s windowed.Spec[K, T]) operator.Operator {
		return windowed.Aggregate(s, window.Reduce(same))
	})
}

// ProcessWindowFunction sees all elements of a window when it fires and emits any
// results, with the window's last millisecond as timestamp. ctx, elements and out are valid
// during the call only; elements may be ranged over more than once, in the order of their
// arrival unless windows merge (spec windows 2.6). An error fails the job. All subtasks call
// the same function.
type ProcessWindowFunction[K comparable, T, R any] func(ctx *WindowContext[K], elements iter.Seq[T], out *Collector[R]) error

// WindowContext is what a ProcessWindowFunction may ask and do besides emitting.
type WindowContext[K comparable] struct{ context *windowed.Context[K] }

// Key returns the key whose window fires.
func (c *WindowContext[K]) Key() K { return c.context.Key }

// Window returns the window that fires.
func (c *WindowContext[K]) Window() window.TimeWindow { return c.context.Window }

// Timing tells why the window fires.
func (c *WindowContext[K]) Timing() window.Timing { return c.context.Timing }

// CurrentWatermark returns the operator's watermark in milliseconds,
// eventtime.MinTimestamp if there was none yet. If one watermark passes the ends of several
// windows, all of them see that one (spec windows 2.9).
func (c *WindowContext[K]) CurrentWatermark() int64 { return c.context.Watermark }

// CurrentProcessingTime returns the wall clock in milliseconds since the epoch.
func (c *WindowContext[K]) CurrentProcessingTime() int64 { return c.context.Runtime().Timers.Now() }

// WindowState returns the function's state of this key and window, to be used with a
// window.State. It needs Stateful, and is an error for merging windows (spec windows 2.9).
// The state goes with the window.
func (c *WindowContext[K]) WindowState() (*window.Scope, error) { return c.context.WindowState() }

// KeyState returns the function's state of this key, which all its windows share and which
// stays: nothing drops it but a window.State's Clear. It needs Stateful.
func (c *WindowContext[K]) KeyState() (*window.Scope, error) { return c.context.KeyState() }

// Output emits v to a side output, with the window's last millisecond as timestamp.
func (c *WindowContext[K]) Output[X any](tag OutputTag[X], v X) {
	operator.Side[X](c.context.Element, tag.key()).Append(v, c.context.Timestamp, 0)
}

// Process keeps the records of each key and window and calls f with all of them each
// time the window fires. An aggregation that can be folded is cheaper with Aggregate
// or AggregateProcess.
func (w *WindowedStream[K, T]) Process[R any](f ProcessWindowFunction[K, T, R]) *DataStream[R] {
	if f == nil {
		w.fail("Process: the function is nil")
	}
	return addWindow[K, T, R](w, "Process", func(s windowed.Spec[K, T]) operator.Operator {
		return windowed.Process(s, windowFunction(f))
	})
}

// AggregateProcess folds the records of each key and window with agg, and calls f with
// the result as the only element each time the window fires.
func (w *WindowedStream[K, T]) AggregateProcess[A, V, R any](agg Aggregator[T, A, V], f ProcessWindowFunction[K, V, R]) *DataStream[R] {
	if agg == nil || f == nil {
		w.fail("AggregateProcess: the aggregator or the function is nil")
	}
	return addWindow[K, T, R](w, "Aggregate", func(s windowed.Spec[K, T]) operator.Operator {
		return windowed.AggregateProcess(s, agg, windowFunction(f))
	})
}

// windowFunction gives f the public types, made once per subtask.
func windowFunction[K comparable, T, R any](f ProcessWindowFunction[K, T, R]) windowed.Function[K, T, R] {
	return func(c *windowed.Context[K], emitter *operator.Emitter[R]) func(iter.Seq[T]) error {
		ctx := &WindowContext[K]{c}
		out := &Collector[R]{element: c.Element, emitter: emitter}
		return func(elements iter.Seq[T]) error { return f(ctx, elements, out) }
	}
}

func (w *WindowedStream[K, T]) fail(format string, args ...any) {
	w.keyed.stream.env.fail(format, args...)
}

// addContextless is addWindow for the functions that are given no context: they can
// neither use state nor write to side outputs.
func addContextless[K comparable, T, R any](w *WindowedStream[K, T], function string, make func(windowed.Spec[K, T]) operator.Operator) *DataStream[R] {
	if w.spec.State {
		w.fail("%s: Stateful has no effect: the function has no context; use AggregateProcess or Process", function)
	}
	s := addWindow[K, T, R](w, function, make)
	onlyLateSide(s.node)
	return s
}

// addWindow adds a window operator. Wrong settings are reported here, all kinds of them
// in one place: the operator is then never made.
func addWindow[K comparable, T, R any](w *WindowedStream[K, T], function string, make func(windowed.Spec[K, T]) operator.Operator) *DataStream[R] {
	spec, err := w.checked()
	if err != nil {
		w.fail("%s: %w", function, err)
	}
	n := windowNode(spec, function)
	n.NewOperator = func() operator.Operator { return make(spec) }
	n.KeepsState = err == nil && windowed.Spills(n.NewOperator())
	n.Single = w.all
	env := w.keyed.stream.env
	env.addNode(n)
	w.keyed.connect(n, 0)
	return &DataStream[R]{env: env, from: []port{{node: n}}, node: n}
}
