package windowed

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

type keyedBatch[K comparable, T any] = exchange.KeyedBatch[K, T]

// core is what all window operators share. A is the accumulator of one pane or
// slice.
type core[K comparable, T, A any] struct {
	Options
	fold    fold[T, A]
	results results[K, A]

	rt      *operator.Runtime
	out     operator.Output
	context *Context[K]

	// eventTime and processingTime say what ends a window; for the global
	// window neither does.
	eventTime      bool
	processingTime bool
	// watermark is the time up to which windows have ended: the operator's watermark,
	// or what silence has closed beyond it.
	watermark int64
	closed    int64
	alarm     operator.Alarm
	silence   silence
	// bySilence is set while windows fire because of silence.
	bySilence bool

	// pinned says that the assigner has been pinned, by what pinnedBy holds.
	pinned   bool
	pinnedBy pin
	// windows is the scratch space of the assigner.
	windows []window.TimeWindow

	// description is the assigner's before it was pinned. storage is nil unless there are
	// checkpoints or a budget for memory.
	description string
	storage     *storage[K, A]

	lateRecords lateRecords[T]
}

// open prepares c; fire is called by the clock for processing-time windows, onSilence
// when the input has been silent for long enough.
func (c *core[K, T, A]) open(rt *operator.Runtime, out operator.Output, fire func(now int64) error, onSilence func() error) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c.rt, c.out = rt, out
	_, global := c.Assigner.(window.GlobalAssigner)
	c.eventTime = c.Assigner.IsEventTime()
	c.processingTime = !c.eventTime && !global
	c.context = &Context[K]{Element: operator.NewElement(rt, out)}
	c.results.openResults(c.context, out)
	c.openLate()
	c.alarm = operator.NewAlarm(rt.Timers, fire)
	c.closed = math.MinInt64
	c.silence = silence{after: c.CloseAfterSilence, close: onSilence, timers: rt.Timers}
	return nil
}

// pin is what an assigner is pinned by at a subtask's first record: the clock, and a random
// number.
type pin struct{ now, random int64 }

// pinAt fixes what an assigner decides at a subtask's first record, at clock now.
func (c *core[K, T, A]) pinAt(now int64) { c.pin(pin{now, int64(rand.Uint64())}) }

func (c *core[K, T, A]) pin(by pin) {
	c.pinned, c.pinnedBy = true, by
	if tumbling, ok := c.Assigner.(window.TumblingAssigner); ok {
		c.Assigner = tumbling.Pin(by.now, uint64(by.random))
	}
}

// assign puts the windows of record i into c.windows.
func (c *core[K, T, A]) assign(b *keyedBatch[K, T], i int, now int64) error {
	var err error
	c.windows, err = c.Assigner.Assign(c.windows[:0], b.Timestamps[i], now)
	if err != nil {
		return fmt.Errorf("%v: %s, key %v: %w", c.Assigner, c.rt.Describe(b.Origins[i]), b.Keys[i], err)
	}
	return nil
}

// cleanupTime returns when the contents of a window are dropped (spec windows
// 2.2).
func (c *core[K, T, A]) cleanupTime(maxTimestamp int64) int64 {
	if !c.eventTime {
		return maxTimestamp
	}
	t := maxTimestamp + c.AllowedLateness
	if t < maxTimestamp {
		return math.MaxInt64
	}
	return t
}

// expired reports whether a window's contents are gone, and with them its
// chance to take another record.
func (c *core[K, T, A]) expired(maxTimestamp int64) bool {
	return c.eventTime && c.cleanupTime(maxTimestamp) <= c.watermark
}

// onTime is the timing of windows that end now.
func (c *core[K, T, A]) onTime() window.Timing {
	if c.bySilence {
		return window.BySilence
	}
	return window.OnTime
}

// emit fires one pane of one key.
func (c *core[K, T, A]) emit(key K, w window.TimeWindow, timing window.Timing, acc *A) error {
	x := c.context
	x.Key, x.Window, x.Timing = key, w, timing
	x.Timestamp = w.MaxTimestamp()
	return c.results.emit(acc)
}

// flush sends everything emitted. Operators call it before they return, so that
// no signal overtakes a result.
func (c *core[K, T, A]) flush() error {
	c.lateRecords.MoveTo(c.rt.Metrics)
	if err := c.results.flush(); err != nil {
		return err
	}
	if err := c.context.Flush(); err != nil {
		return err
	}
	if c.lateRecords.emitter != nil {
		return c.lateRecords.emitter.Flush()
	}
	return nil
}

// setWatermark makes t the current watermark; callbacks see it, and not the
// one before, while windows fire (spec windows 2.9).
func (c *core[K, T, A]) setWatermark(t int64) {
	c.watermark = max(t, c.closed)
	c.context.Watermark = t
}

// forward sends everything emitted and then watermark t.
func (c *core[K, T, A]) forward(t int64) error {
	if err := c.flush(); err != nil {
		return err
	}
	return c.out.Watermark(t)
}

func (c *core[K, T, A]) Status(idle bool) error { return c.out.Status(idle) }

// lost tells of processing-time windows that the end of input leaves unfired
// (spec windows 2.13).
func (c *core[K, T, A]) lost(windows int) error {
	if c.processingTime && windows > 0 {
		c.rt.Logger.Warn("input ended before the clock reached the end of these processing-time windows: they do not fire",
			"windows", windows)
	}
	return nil
}

func (c *core[K, T, A]) Close() error {
	c.alarm.Stop()
	c.silence.stop()
	c.tellTotal()
	return nil
}
