package task

import (
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
)

// link is one operator of a chain with its outputs. The head's op is nil if the
// head is a source.
type link struct {
	op     operator.Operator
	rt     *operator.Runtime
	output output
}

// chain is the operators of one subtask. It remembers which operator is running,
// so that a panic is blamed on the right one without a recover per call.
type chain struct {
	links   []*link
	running *link
}

func (c *chain) process(l *link, input int, p exchange.Payload) error {
	l.rt.Metrics.NumRecordsIn.Add(int64(p.Len()))
	caller := c.running
	c.running = l
	err := l.op.Process(input, p)
	c.running = caller
	return l.rt.WithName(err)
}

func (c *chain) watermark(l *link, t int64) error {
	l.rt.Metrics.CurrentInputWatermark.Set(t)
	caller := c.running
	c.running = l
	err := l.op.Watermark(t)
	c.running = caller
	return l.rt.WithName(err)
}

func (c *chain) status(l *link, idle bool) error {
	caller := c.running
	c.running = l
	err := l.op.Status(idle)
	c.running = caller
	return l.rt.WithName(err)
}

// call runs what an operator has asked for, outside of the chain's calls.
func (c *chain) call(l *link, f func() error) error {
	caller := c.running
	c.running = l
	err := f()
	c.running = caller
	return l.rt.WithName(err)
}

// output is an operator's way out: every edge behind it, chained or not.
type output struct {
	owner *link
	main  []*edge
	sides map[string][]*edge
	all   []*edge
	// watermark is the last one emitted; lower ones than floor are not: a restored source
	// may have to find its way back to where it was.
	watermark, floor int64
}

// edge is one consumer of an output, behind its gate. Exactly one of to and writer
// is set.
type edge struct {
	chain  *chain
	gate   *progress.Gate
	copy   func(exchange.Payload) exchange.Payload
	to     *link
	writer exchange.Writer
	// floor is as output's, for a link that had event time of its own.
	floor int64
}

// edgeTo returns the edge into a link that is not the head.
func (c *chain) edgeTo(to *link) *edge {
	for _, l := range c.links {
		for _, e := range l.output.all {
			if e.to == to {
				return e
			}
		}
	}
	return nil
}

func (e *edge) send(p exchange.Payload) error {
	if e.writer != nil {
		return e.writer.Write(p)
	}
	return e.chain.process(e.to, 0, p)
}

// Watermark implements progress.Output for what passes the gate.
func (e *edge) Watermark(t int64) error {
	if t < e.floor {
		return nil
	}
	if e.writer != nil {
		return e.writer.Broadcast(exchange.Message{Kind: exchange.Watermark, Time: t})
	}
	return e.chain.watermark(e.to, t)
}

// Status implements progress.Output for what passes the gate.
func (e *edge) Status(idle bool) error {
	if e.writer != nil {
		return e.writer.Broadcast(exchange.Message{Kind: exchange.Status, Idle: idle})
	}
	return e.chain.status(e.to, idle)
}

func (o *output) Emit(p exchange.Payload) error { return o.emit(o.main, p) }

// EmitSide implements operator.Output. What nobody consumes is counted as dropped.
func (o *output) EmitSide(id string, p exchange.Payload) error {
	edges := o.sides[id]
	if len(edges) == 0 && p.Len() > 0 {
		o.owner.rt.Metrics.DropN("no consumer of side output "+id, int64(p.Len()))
	}
	return o.emit(edges, p)
}

// HasSide answers operator.HasSide.
func (o *output) HasSide(id string) bool { return len(o.sides[id]) > 0 }

// emit gives p to the last consumer and copies to the others.
func (o *output) emit(edges []*edge, p exchange.Payload) error {
	o.owner.rt.Metrics.NumRecordsOut.Add(int64(p.Len()))
	if len(edges) == 0 {
		p.Release()
		return nil
	}
	last := len(edges) - 1
	for _, e := range edges[:last] {
		if err := e.send(e.copy(p)); err != nil {
			return err
		}
	}
	return edges[last].send(p)
}

func (o *output) Watermark(t int64) error {
	if t < o.floor {
		return nil
	}
	o.watermark = t
	for _, e := range o.all {
		if err := e.gate.Watermark(t); err != nil {
			return err
		}
	}
	// Flink's gauge: behind several consumers it also counts what their gates
	// dropped (spec watermarks 9).
	if len(o.all) == 1 {
		t = o.all[0].gate.LastWatermark()
	}
	o.owner.rt.Metrics.CurrentOutputWatermark.Set(t)
	return nil
}

func (o *output) Status(idle bool) error {
	var announced int64
	if idle {
		announced = 1
	}
	o.owner.rt.Metrics.OutputIdle.Set(announced)
	for _, e := range o.all {
		if err := e.gate.Status(idle); err != nil {
			return err
		}
	}
	return nil
}
