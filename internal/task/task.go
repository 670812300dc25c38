// Package task runs one subtask: the loop that takes messages from the inbox (or
// polls a source), drives a chain of operators, serves the mailbox and timers
// between batches, and measures what it spends its time on.
//
// A task is one goroutine. Nothing else calls its operators; whoever wants
// something of them posts a function to the mailbox. Which tasks there are and
// how they are connected is package job's.
package task

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
)

// Node is one operator of a task's chain. Exactly one of Source and Operator is
// set; Source only on the first.
type Node struct {
	Source   operator.Source
	Operator operator.Operator
	// Runtime describes the operator; the task adds its clock and context.
	Runtime operator.Runtime
	Outputs []Output
	// Restored is the edge into a node that is not the head: when the checkpoint was
	// taken it may have been one between tasks.
	Restored InputEdge
}

// Output is one edge behind a node.
type Output struct {
	// Side is the id of a side output, empty for the main output.
	Side string
	Copy func(exchange.Payload) exchange.Payload
	// Node is the chained consumer's place in Config.Nodes, if Writer is nil.
	Node   int
	Writer exchange.Writer
}

// Config describes a task.
type Config struct {
	// Nodes are in topological order; the first is the head.
	Nodes []Node
	// Inbox and Logical are set unless the head is a source: Logical names the
	// logical input that each channel of the inbox belongs to.
	Inbox   *exchange.Inbox
	Logical []int
	// Edges are the network edges into the head; EdgeOf names that of each channel.
	Edges  []InputEdge
	EdgeOf []int
	// Splits are what a source reads from the start; NoMoreSplits says that there
	// will never be others.
	Splits       []connector.Split
	NoMoreSplits bool
	// Checkpoints is nil if the job takes none.
	Checkpoints Checkpoints
	// Opened, if not nil, is called once all operators are open.
	Opened func() error
	// GoneOn, if not nil, is called once nothing more is read of what the operators are
	// restored from.
	GoneOn func()
}

// Task is one subtask.
type Task struct {
	chain   chain
	source  operator.Source
	cfg     Config
	input   *input
	outbox  *exchange.Outbox
	writers []exchange.Writer
	clock   *clock
	meter   *meter
	mail    chan func() error
	ctx     context.Context
	ended   chan struct{}

	// stopped ends the reading of input; silent, behind a barrier that stops the job,
	// also everything else that could emit.
	stopped, silent bool
	// draining ends a source as if its input had ended.
	draining bool
	opened   int

	notices   notices
	completed int64
	released  bool
	// ready is true once all operators are open.
	ready atomic.Bool
	// written is closed when the last snapshot has been written, nil if there is none.
	written chan struct{}
	// writing ends when that snapshot's checkpoint has ended; hangs says that the snapshot was
	// still being written a while after.
	writing context.Context
	hangs   bool
	// recording is under way behind a barrier that has overtaken records, nil if none
	// is. awaited is the barrier that the clock has been set for.
	recording *recording
	awaited   *exchange.Barrier
	// restored is what each link goes on from.
	restored []restoredLink
	// announced delivers when a barrier is in the inbox.
	announced <-chan struct{}
}

// mailboxSize is how many posts may wait. Posts come from coordinators, a few a
// second at most.
const mailboxSize = 16

// New returns a task that ends with exchange.ErrCancelled soon after ctx does.
// wire is called with the task's outbox, which the writers in the config it
// returns must send through.
func New(ctx context.Context, m *metric.Task, wire func(*exchange.Outbox) Config) *Task {
	t := &Task{
		clock: newClock(),
		meter: &meter{metrics: m},
		mail:  make(chan func() error, mailboxSize),
		ctx:   ctx,
		ended: make(chan struct{}),

		notices: newNotices(),
	}
	t.outbox = exchange.NewOutbox(ctx.Done(), t.meter)
	t.cfg = wire(t.outbox)
	t.build()
	return t
}

func (t *Task) build() {
	cfg := &t.cfg
	for i := range cfg.Nodes {
		n := &cfg.Nodes[i]
		l := &link{op: n.Operator, rt: &n.Runtime}
		l.output.owner = l
		l.output.watermark, l.output.floor = eventtime.MinTimestamp, eventtime.MinTimestamp
		l.rt.Context = t.ctx
		l.rt.Timers = &linkClock{clock: t.clock, chain: &t.chain, link: l}
		l.rt.Post = func(ctx context.Context, f func() error) bool {
			return t.Post(ctx, func() error {
				if t.silent {
					return nil
				}
				return t.chain.call(l, f)
			})
		}
		t.chain.links = append(t.chain.links, l)
		if b, ok := n.Operator.(operator.BackPressured); ok {
			t.meter.listeners = append(t.meter.listeners, b)
		}
	}
	for i, n := range cfg.Nodes {
		out := &t.chain.links[i].output
		for _, o := range n.Outputs {
			e := &edge{chain: &t.chain, copy: o.Copy, writer: o.Writer, floor: eventtime.MinTimestamp}
			e.gate = progress.NewGate(e)
			if o.Writer != nil {
				t.writers = append(t.writers, o.Writer)
			} else {
				e.to = t.chain.links[o.Node]
			}
			out.all = append(out.all, e)
			if o.Side == "" {
				out.main = append(out.main, e)
				continue
			}
			if out.sides == nil {
				out.sides = map[string][]*edge{}
			}
			out.sides[o.Side] = append(out.sides[o.Side], e)
		}
	}
	t.chain.running = t.chain.links[0]
	if t.source = cfg.Nodes[0].Source; t.source != nil {
		t.meter.listeners = append(t.meter.listeners, t.source)
		return
	}
	t.input = newInput(cfg.Inbox, cfg.Logical, &head{&t.chain}, cfg.Nodes[0].Runtime.Metrics.InputWatermarks)
	if t.canOvertake() {
		t.announced = cfg.Inbox.Barrier()
	}
}

// head passes what comes out of the valves to the first operator.
type head struct{ chain *chain }

func (h *head) Watermark(w int64) error { return h.chain.watermark(h.chain.links[0], w) }
func (h *head) Status(idle bool) error  { return h.chain.status(h.chain.links[0], idle) }

// Post has f called in the task's goroutine, between batches, unless the task ends
// before that. It reports whether f was accepted.
func (t *Task) Post(ctx context.Context, f func() error) bool {
	select {
	case <-t.ended:
		return false
	default:
	}
	select {
	case t.mail <- f:
		return true
	case <-t.ended:
	case <-ctx.Done():
	}
	return false
}

// TryPost is Post for things that come again soon: it gives up where Post would
// wait.
func (t *Task) TryPost(f func() error) bool {
	select {
	case t.mail <- f:
		return true
	default:
		return false
	}
}

// AddSplits gives a source task further splits.
func (t *Task) AddSplits(ctx context.Context, splits []connector.Split) bool {
	return t.Post(ctx, func() error { return t.chain.links[0].rt.WithName(t.source.AddSplits(splits)) })
}

// MaxAllowed tells a source task the limit of its alignment group.
func (t *Task) MaxAllowed(limit int64) bool {
	return t.TryPost(func() error { return t.chain.links[0].rt.WithName(t.source.MaxAllowed(limit)) })
}

// Stop asks a source task to end in the middle of its input: what is under way is
// processed, but there is no final watermark, so open windows do not fire. It has
// no effect on other tasks, which end with their inputs.
func (t *Task) Stop(ctx context.Context) {
	t.Post(ctx, func() error { t.stopped = true; return nil })
}

// Run runs the task to its end. The error is nil, exchange.ErrCancelled or an
// *operator.Error.
func (t *Task) Run() (err error) {
	defer close(t.ended)
	defer t.clock.stop()
	t.meter.start()
	defer t.meter.stop()
	defer func() { err = t.close(err) }()
	defer t.endWriting()
	defer func() {
		if v := recover(); v != nil {
			err = t.blame(operator.NewPanic(v))
		}
	}()
	if err := t.open(); err != nil {
		return err
	}
	t.claimRestored()
	if t.cfg.Opened != nil {
		if err := t.cfg.Opened(); err != nil {
			return err
		}
	}
	t.ready.Store(true)
	if err := t.goOn(); err != nil {
		return err
	}
	if t.cfg.GoneOn != nil {
		t.cfg.GoneOn()
	}
	run := t.runInput
	if t.source != nil {
		run = t.runSource
	}
	drained, err := run()
	if err != nil {
		return err
	}
	if !t.silent {
		if err := t.finish(drained); err != nil {
			return err
		}
	}
	if t.cfg.Checkpoints == nil {
		return nil
	}
	return t.linger()
}

// Opened reports whether all operators of the task have been opened.
func (t *Task) Opened() bool { return t.ready.Load() }

// Exited returns the error of a task whose Run did not return because user code
// ended the goroutine.
func (t *Task) Exited() error {
	return t.blame(errors.New("user code ended its goroutine with runtime.Goexit, as t.FailNow does: return an error instead"))
}

// blame puts err down to the operator that is running.
func (t *Task) blame(err error) error { return t.chain.running.rt.WithName(err) }

// open opens the operators from the last to the first, so that each can rely on
// what is behind it.
func (t *Task) open() error {
	for i := len(t.chain.links) - 1; i >= 0; i-- {
		l := t.chain.links[i]
		t.chain.running = l
		t.opened++
		var err error
		if l.op != nil {
			err = l.op.Open(l.rt, &l.output)
		} else {
			err = t.source.Open(l.rt, &l.output)
		}
		if err != nil {
			return l.rt.WithName(fmt.Errorf("open: %w", err))
		}
	}
	return nil
}

// close closes the operators and returns the first error: err, which the task ends
// with so far, or that of an operator. Those behind it are logged.
func (t *Task) close(err error) error {
	for i := len(t.chain.links) - t.opened; i < len(t.chain.links); i++ {
		l := t.chain.links[i]
		closeErr := t.closeLink(l)
		switch {
		case closeErr == nil:
		case err == nil:
			err = closeErr
		default:
			l.rt.Logger.Error("failed behind the task's first error", "error", closeErr)
		}
	}
	return err
}

// closeLink closes one operator; a panic in it must not keep the others open.
func (t *Task) closeLink(l *link) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = l.rt.WithName(operator.NewPanic(v))
		}
	}()
	if l.op != nil {
		err = l.op.Close()
	} else {
		err = t.source.Close()
	}
	if err != nil {
		err = l.rt.WithName(fmt.Errorf("close: %w", err))
	}
	return err
}

// runSource polls the source until its input ends (drained) or the job is
// stopped.
func (t *Task) runSource() (drained bool, err error) {
	l := t.chain.links[0]
	if err := t.source.AddSplits(t.cfg.Splits); err != nil {
		return false, l.rt.WithName(err)
	}
	if t.cfg.NoMoreSplits {
		t.source.NoMoreSplits()
	}
	for !t.stopped {
		if err := t.serve(); err != nil {
			return false, err
		}
		if !t.outbox.Available() {
			if err := t.wait(softBackPressured, nil, nil); err != nil {
				return false, err
			}
			continue
		}
		if t.draining {
			return true, l.rt.WithName(t.source.EndOfInput())
		}
		status, err := t.source.Poll()
		switch {
		case err != nil:
			return false, l.rt.WithName(err)
		case status == connector.NothingAvailable:
			err = t.wait(idle, nil, t.source.Available())
		case status == connector.EndOfInput:
			return true, l.rt.WithName(t.source.EndOfInput())
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// runInput processes messages until all channels have ended.
func (t *Task) runInput() (drained bool, err error) {
	in := t.input
	for in.open > 0 && !t.stopped {
		if err := t.serve(); err != nil {
			return false, err
		}
		if b := t.dueBarrier(); b != nil {
			if err := t.overtake(b); err != nil {
				return false, err
			}
			continue
		}
		if !t.outbox.Available() {
			if err := t.wait(softBackPressured, nil, nil); err != nil {
				return false, err
			}
			continue
		}
		if m, ok := in.alignment.next(); ok {
			err = t.receive(m)
		} else {
			select {
			case m := <-in.inbox.C():
				err = t.arrive(m)
			default:
				err = t.wait(idle, in.inbox.C(), nil)
			}
		}
		if err != nil {
			return false, err
		}
	}
	return in.drained, nil
}

// arrive takes a message from the inbox.
func (t *Task) arrive(m exchange.Message) error {
	if t.recording != nil {
		t.recordIfAhead(m)
	}
	return t.receive(m)
}

// receive processes a message from the inbox, or one that was set aside.
func (t *Task) receive(m exchange.Message) error {
	if t.input.alignment.holds(m) {
		return nil
	}
	var err error
	switch m.Kind {
	case exchange.Records:
		err = t.chain.process(t.chain.links[0], t.input.logical[m.Channel], m.Payload)
	case exchange.EndOfData:
		t.input.ended(m)
	case exchange.BarrierKind:
		err = t.barrier(m)
	default:
		err = t.input.signal(m)
	}
	t.input.inbox.Done(m.Channel)
	return err
}

// serve runs what waits in the mailbox and the timers, without blocking.
func (t *Task) serve() error {
	for {
		select {
		case <-t.ctx.Done():
			return exchange.ErrCancelled
		case f := <-t.mail:
			if err := f(); err != nil {
				return err
			}
		case <-t.notices.wake:
			if err := t.heed(); err != nil {
				return err
			}
		case <-t.clock.C():
			if err := t.clock.fire(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// wait sends on what is kept and blocks until there is something to do: input,
// mail, a timer, or a credit.
func (t *Task) wait(why state, in <-chan exchange.Message, available <-chan struct{}) error {
	for _, w := range t.writers {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	t.meter.enter(why)
	defer t.meter.enter(busy)
	select {
	case <-t.ctx.Done():
		return exchange.ErrCancelled
	case f := <-t.mail:
		t.meter.enter(busy)
		return f()
	case <-t.notices.wake:
		t.meter.enter(busy)
		return t.heed()
	case <-t.clock.C():
		t.meter.enter(busy)
		return t.clock.fire()
	case <-t.outbox.Wake():
		return nil
	case <-t.announced:
		return nil
	case m := <-in:
		t.meter.enter(busy)
		return t.arrive(m)
	case <-available:
		return nil
	}
}

// finish ends the operators in order and tells the receivers.
func (t *Task) finish(drained bool) error {
	for _, l := range t.chain.links {
		if l.op == nil {
			continue
		}
		t.chain.running = l
		if drained {
			if err := l.op.Finish(); err != nil {
				return l.rt.WithName(err)
			}
		}
		if f, ok := l.op.(operator.Flusher); ok {
			if err := f.Flush(); err != nil {
				return l.rt.WithName(err)
			}
		}
	}
	for _, w := range t.writers {
		if err := w.Broadcast(exchange.Message{Kind: exchange.EndOfData, Drained: drained}); err != nil {
			return err
		}
	}
	return nil
}

// linkClock is the clock as one operator sees it: its callbacks are blamed on it.
type linkClock struct {
	*clock
	chain *chain
	link  *link
}

// At implements operator.ProcessingTime.
func (c *linkClock) At(at int64, f func(now int64) error) (cancel func()) {
	return c.clock.At(at, func(now int64) error {
		return c.chain.call(c.link, func() error { return f(now) })
	})
}
