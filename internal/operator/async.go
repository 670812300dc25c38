package operator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/exchange"
)

// async applies a function that waits for the outside to many records at a time, each in
// a goroutine of its own. These goroutines are the only ones of any operator. They end
// before Close does, touch nothing of the operator, and hand their results over in a
// channel that has room for all of them.
//
// What is under way is a queue of segments. A segment is records whose results may come
// out in any order, then perhaps a signal, which follows all of them. Where the order of
// the records is kept every record is a segment.
type async[T, R any] struct {
	AsyncOptions
	f       func(context.Context, T) (R, error)
	rt      *Runtime
	out     Output
	emitter *Emitter[R]

	// ctx ends with the operator.
	ctx    context.Context
	cancel context.CancelFunc
	// running is the goroutines, done their results; posted is set while the subtask is
	// going to look at done.
	running sync.WaitGroup
	done    chan completion[R]
	posted  atomic.Bool

	queue []*segment[R]
	// underWay is the number of records that were not emitted yet.
	underWay int

	// records encodes records, nil without checkpoints.
	records *codec.Codec[T]
	// restored is what was under way in an earlier run, until it is begun anew.
	restored []asyncStep[T]
	// cancelRetry takes back the call that begins it.
	cancelRetry func()
}

// AsyncOptions is how an asynchronous operator works.
type AsyncOptions struct {
	// Capacity is the number of records that may be under way in one subtask.
	Capacity int
	// Unordered lets results overtake each other, but no watermark.
	Unordered bool
}

// segment is a part of the queue.
type segment[R any] struct {
	// pending is the number of records without a result.
	pending int
	ready   []completion[R]
	// closed says that no more records join the segment.
	closed bool
	signal signal
	// kept are the records, if there are checkpoints, some that were emitted among them.
	kept []*keptRecord
}

// signal is what follows a segment.
type signal struct {
	kind exchange.Kind // Watermark or Status; Records for none
	time int64
	idle bool
}

// completion is the result of one record.
type completion[R any] struct {
	segment   *segment[R]
	value     R
	timestamp int64
	origin    connector.Origin
	err       error
	// kept is nil without checkpoints.
	kept *keptRecord
}

// NewAsync returns an operator that calls f for many records at a time. f must return
// soon after its context has ended.
func NewAsync[T, R any](f func(context.Context, T) (R, error), options AsyncOptions) Operator {
	return &async[T, R]{AsyncOptions: options, f: f}
}

func (o *async[T, R]) Open(rt *Runtime, out Output) error {
	o.rt, o.out = rt, out
	o.emitter = NewEmitter[R](out, "")
	o.ctx, o.cancel = context.WithCancel(rt.Context)
	o.done = make(chan completion[R], o.Capacity)
	return o.openSnapshots()
}

func (o *async[T, R]) Process(_ int, p exchange.Payload) error {
	b := p.(*connector.Batch[T])
	if err := o.retry(); err != nil {
		return err
	}
	for i, v := range b.Values {
		if err := o.begin(v, b.Timestamps[i], b.Origins[i]); err != nil {
			return err
		}
	}
	b.Release()
	return o.collect()
}

// begin takes in one record, when there is room.
func (o *async[T, R]) begin(v T, timestamp int64, origin connector.Origin) error {
	if err := o.waitUntil(o.Capacity - 1); err != nil {
		return err
	}
	kept, err := o.keep(&v, timestamp)
	if err != nil {
		return fmt.Errorf("%s: %w", o.rt.Describe(origin), err)
	}
	s := o.last()
	if kept != nil {
		s.kept = append(s.kept, kept)
	}
	s.pending++
	s.closed = !o.Unordered
	o.underWay++
	o.start(v, completion[R]{segment: s, timestamp: timestamp, origin: origin, kept: kept})
	return nil
}

// last returns the segment that records join.
func (o *async[T, R]) last() *segment[R] {
	if n := len(o.queue); n > 0 && !o.queue[n-1].closed {
		return o.queue[n-1]
	}
	s := &segment[R]{}
	o.queue = append(o.queue, s)
	return s
}

// start calls the function for one record in the background.
func (o *async[T, R]) start(v T, c completion[R]) {
	o.running.Add(1)
	go func() {
		defer o.running.Done()
		defer func() {
			o.done <- c
			if o.posted.CompareAndSwap(false, true) {
				o.rt.Post(o.ctx, o.woken)
			}
		}()
		c.err = errExited // unless call returns
		c.value, c.err = call(o.ctx, o.f, v)
	}()
}

var errExited = errors.New("the function ended its goroutine with runtime.Goexit: return an error instead")

// call makes an error of a panic.
func call[T, R any](ctx context.Context, f func(context.Context, T) (R, error), v T) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: debug.Stack()}
		}
	}()
	return f(ctx, v)
}

// waitUntil waits until at most n records are under way.
func (o *async[T, R]) waitUntil(n int) error {
	for o.underWay > n {
		if err := o.collect(); err != nil || o.underWay <= n {
			return err
		}
		select {
		case c := <-o.done:
			if err := o.complete(c); err != nil {
				return err
			}
		case <-o.ctx.Done():
			return exchange.ErrCancelled
		}
	}
	return nil
}

// woken is what a goroutine with a result posts.
func (o *async[T, R]) woken() error {
	o.posted.Store(false)
	return o.collect()
}

// collect takes the results that are there, and sends on what they allow.
func (o *async[T, R]) collect() error {
	for {
		select {
		case c := <-o.done:
			if err := o.complete(c); err != nil {
				return err
			}
		default:
			return o.emitter.Flush()
		}
	}
}

// complete notes one result and emits what it allows.
func (o *async[T, R]) complete(c completion[R]) error {
	if c.err != nil {
		if o.ctx.Err() != nil {
			return exchange.ErrCancelled // the function was told to stop
		}
		if _, ok := c.err.(*Panic); ok {
			return c.err
		}
		return fmt.Errorf("%s: %w", o.rt.Describe(c.origin), c.err)
	}
	c.segment.pending--
	c.segment.ready = append(c.segment.ready, c)
	return o.advance()
}

// advance emits results and signals from the front of the queue.
func (o *async[T, R]) advance() error {
	for len(o.queue) > 0 {
		s := o.queue[0]
		for _, c := range s.ready {
			o.emitter.Append(c.value, c.timestamp, c.origin)
			if c.kept != nil {
				c.kept.emitted = true
			}
		}
		s.forget(o.Capacity)
		o.underWay -= len(s.ready)
		s.ready = s.ready[:0]
		if s.pending > 0 || !s.closed {
			return nil
		}
		o.queue[0] = nil
		o.queue = o.queue[1:]
		if err := o.send(s.signal); err != nil {
			return err
		}
	}
	return nil
}

// send sends a signal behind everything emitted.
func (o *async[T, R]) send(s signal) error {
	if s.kind == exchange.Records {
		return nil
	}
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	if s.kind == exchange.Watermark {
		return o.out.Watermark(s.time)
	}
	return o.out.Status(s.idle)
}

// follow puts a signal behind all records that are under way.
func (o *async[T, R]) follow(s signal) error {
	n := len(o.queue)
	switch {
	case n > 0 && o.queue[n-1].signal.kind == exchange.Records:
		o.queue[n-1].signal, o.queue[n-1].closed = s, true
	case n > 0 && o.queue[n-1].signal.kind == exchange.Watermark && s.kind == exchange.Watermark:
		o.queue[n-1].signal = s // with no record between, the later one says it all
	default:
		o.queue = append(o.queue, &segment[R]{closed: true, signal: s})
	}
	return o.collectAll()
}

// collectAll is collect, and advance even if there were no results.
func (o *async[T, R]) collectAll() error {
	if err := o.collect(); err != nil {
		return err
	}
	return o.advance()
}

func (o *async[T, R]) Watermark(t int64) error {
	if err := o.retry(); err != nil {
		return err
	}
	return o.follow(signal{kind: exchange.Watermark, time: t})
}

func (o *async[T, R]) Status(idle bool) error {
	if err := o.retry(); err != nil {
		return err
	}
	return o.follow(signal{kind: exchange.Status, idle: idle})
}

// Finish waits for everything that is under way.
func (o *async[T, R]) Finish() error { return o.Flush() }

// Flush implements Flusher.
func (o *async[T, R]) Flush() error {
	if err := o.retry(); err != nil {
		return err
	}
	if err := o.waitUntil(0); err != nil {
		return err
	}
	return o.collectAll()
}

// Close tells the goroutines to end and waits until they have.
func (o *async[T, R]) Close() error {
	if o.cancel != nil {
		o.cancel()
	}
	if o.cancelRetry != nil {
		o.cancelRetry()
	}
	o.running.Wait()
	return nil
}
