package keyedop

import (
	"errors"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// TimerFunction handles a timer of the context's current key.
type TimerFunction func(at int64, d Domain) error

// core is what operators with a function, state and timers by key share.
type core[K comparable, R any] struct {
	context *Context[K]
	emitter *operator.Emitter[R]
	onTimer TimerFunction
	// close ends the function; nil if it needs no end.
	close func() error
	rt    *operator.Runtime
	out   operator.Output
	alarm operator.Alarm
}

func newCore[K comparable, R any]() core[K, R] {
	x := &Context[K]{
		backend: keyed.NewBackend[K](),
		timers:  keyed.NewTimerService[K, struct{}](),
	}
	x.Operator = &OperatorStates{failed: x.backend.Fail}
	return core[K, R]{context: x}
}

// open comes before the function is opened.
func (c *core[K, R]) open(rt *operator.Runtime, out operator.Output) error {
	c.rt, c.out = rt, out
	x := c.context
	x.Element = operator.NewElement(rt, out)
	x.Operator.rt = rt
	c.emitter = operator.NewEmitter[R](out, "")
	c.alarm = operator.NewAlarm(rt.Timers, c.onClock)
	if !isStored(rt) && rt.StateMemory == 0 {
		return nil
	}
	x.backend.SetTime(rt.Timers.Now())
	err := x.backend.Store(keyed.Storage{
		Kind: snapshot.Keyed, Prefix: "state/", Restored: rt.Restored,
		MaxParallelism: rt.MaxParallelism, Groups: keyed.RangeOf(rt.Subtask, rt.Parallelism, rt.MaxParallelism),
	})
	if err == nil && rt.StateMemory > 0 {
		x.backend.Limit(keyed.Budget{Bytes: rt.StateMemory, Dir: rt.StateDir, Context: rt.Context, Logger: rt.Logger, Numbers: &rt.Metrics.State})
	}
	return err
}

// opened comes after the function was opened, with its error.
func (c *core[K, R]) opened(err error) error {
	if failed := c.context.backend.Err(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	if err := c.context.backend.RestoreSpilled(c.rt.Context); err != nil {
		return err
	}
	if err := restoreTimers(c.rt.Restored, c.context.backend.Keys(), c.context.timers); err != nil {
		return err
	}
	c.setAlarm()
	return nil
}

// Snapshot implements operator.Stateful.
func (c *core[K, R]) Snapshot(w snapshot.Writer) error {
	s := keyed.NewSnapshot(w)
	defer s.Start()
	return c.snapshot(s)
}

// snapshot adds states and timers.
func (c *core[K, R]) snapshot(s *keyed.Snapshot) error {
	x := c.context
	x.backend.SetTime(c.rt.Timers.Now()) // what has expired by now is not stored
	if err := x.backend.Snapshot(s); err != nil {
		return err
	}
	if err := x.Operator.snapshot(s); err != nil {
		return err
	}
	return snapshotTimers(s, x.backend.Keys(), x.timers)
}

// each calls f for every record of a keyed batch, with its key as the current one, and
// releases the batch.
func (c *core[K, R]) each[T any](b *exchange.KeyedBatch[K, T], f func(T) error) error {
	x := c.context
	x.backend.SetTime(c.rt.Timers.Now())
	x.backend.Touch(b.Hashes, b.Keys)
	for i, v := range b.Values {
		x.backend.SetCurrentKey(b.Hashes[i], b.Keys[i])
		x.at(b.Timestamps[i], b.Timestamps[i], b.Origins[i])
		if err := x.backend.Err(); err != nil { // the call before was wrong, or the disk failed
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	x.backend.ClearCurrentKey()
	n := b.Len()
	b.Release()
	return c.done(n)
}

// eachPlain calls f for every record of a batch without keys, and releases the batch.
func (c *core[K, R]) eachPlain[T any](b *connector.Batch[T], f func(T) error) error {
	x := c.context
	x.backend.SetTime(c.rt.Timers.Now())
	for i, v := range b.Values {
		x.at(b.Timestamps[i], b.Timestamps[i], b.Origins[i])
		if err := x.backend.Err(); err != nil { // the call before was wrong, or the disk failed
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	n := b.Len()
	b.Release()
	return c.done(n)
}

// at sets the times of what the function is called for.
func (c *Context[K]) at(at, timestamp int64, origin connector.Origin) {
	c.At, c.Timestamp, c.Origin = at, timestamp, origin
}

// done ends a call of the operator that handled n records or timers: it cleans up a little,
// looks at what may have gone wrong, and sends what was emitted.
func (c *core[K, R]) done(n int) error {
	c.context.backend.CleanUp(cleanUpMin + cleanUpPerRecord*n)
	if err := c.context.backend.Err(); err != nil {
		return err
	}
	c.setAlarm()
	return c.flush()
}

// At each call so many values of each state with TTL are looked at: more than come in,
// so that the walk gets through them.
const (
	cleanUpMin       = 16
	cleanUpPerRecord = 2
)

func (c *core[K, R]) flush() error {
	if err := c.emitter.Flush(); err != nil {
		return err
	}
	return c.context.Flush()
}

// setAlarm makes the clock call for the next processing-time timer, and tells what the next
// one of event time waits for.
func (c *core[K, R]) setAlarm() {
	c.rt.Metrics.EventTimers.Tell(c.context.timers.Event.Next())
	if at, ok := c.context.timers.Processing.Next(); ok {
		c.alarm.SetAfter(at)
	}
}

// Watermark fires event-time timers, then forwards t. They see t as the watermark, not
// their own time.
func (c *core[K, R]) Watermark(t int64) error {
	x := c.context
	x.Watermark = t
	if c.rt.Resuming {
		x.timers.Resume(t)
		return c.out.Watermark(t)
	}
	x.backend.SetTime(c.rt.Timers.Now())
	n := 0
	err := x.timers.AdvanceWatermark(t, func(timer keyed.Timer[K, struct{}]) error {
		n++
		return c.fire(timer, EventTime, timer.At)
	})
	if err != nil {
		return err
	}
	x.backend.ClearCurrentKey()
	if err := c.done(n); err != nil {
		return err
	}
	return c.out.Watermark(t)
}

// onClock fires processing-time timers before now: a timer's own millisecond must be
// over.
func (c *core[K, R]) onClock(now int64) error {
	x := c.context
	x.backend.SetTime(c.rt.Timers.Now())
	n := 0
	err := x.timers.AdvanceProcessingTime(now-1, func(timer keyed.Timer[K, struct{}]) error {
		n++
		return c.fire(timer, ProcessingTime, eventtime.MinTimestamp)
	})
	if err != nil {
		return err
	}
	x.backend.ClearCurrentKey()
	return c.done(n)
}

// fire calls the function for one timer; what it emits gets timestamp.
func (c *core[K, R]) fire(t keyed.Timer[K, struct{}], d Domain, timestamp int64) error {
	c.context.backend.SetCurrentKey(t.Hash, t.Key)
	c.context.at(t.At, timestamp, 0)
	if err := c.context.backend.Err(); err != nil {
		return err
	}
	return c.onTimer(t.At, d)
}

func (c *core[K, R]) Status(idle bool) error { return c.out.Status(idle) }

// Finish tells of processing-time timers that the end of input leaves unfired (spec
// windows 4).
func (c *core[K, R]) Finish() error {
	if n := c.context.timers.Processing.Len(); n > 0 {
		c.rt.Logger.Warn("input ended before the clock reached these processing-time timers: they do not fire",
			"operator", c.rt.Name, "subtask", c.rt.Subtask, "timers", n)
	}
	return nil
}

func (c *core[K, R]) Close() error {
	c.alarm.Stop()
	var err error
	if c.close != nil {
		err = c.close()
	}
	return errors.Join(err, c.context.backend.Close())
}
