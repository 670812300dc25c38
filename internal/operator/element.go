package operator

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
)

// Map applies a function to every record.
type Map[T, R any] struct {
	Pass
	f    func(T) R
	pool *connector.Pool[R]
}

func NewMap[T, R any](f func(T) R) *Map[T, R] {
	return &Map[T, R]{f: f, pool: connector.NewPool[R]()}
}

func (m *Map[T, R]) Process(_ int, p exchange.Payload) error {
	in := p.(*connector.Batch[T])
	out := m.pool.Get()
	for _, v := range in.Values {
		out.Values = append(out.Values, m.f(v))
	}
	out.Timestamps = append(out.Timestamps, in.Timestamps...)
	out.Origins = append(out.Origins, in.Origins...)
	in.Release()
	return m.Out.Emit(out)
}

// Filter keeps the records for which a function is true.
type Filter[T any] struct {
	Pass
	keep func(T) bool
}

func NewFilter[T any](keep func(T) bool) *Filter[T] { return &Filter[T]{keep: keep} }

func (f *Filter[T]) Process(_ int, p exchange.Payload) error {
	b := p.(*connector.Batch[T])
	n := 0
	for i, v := range b.Values {
		if f.keep(v) {
			b.Values[n], b.Timestamps[n], b.Origins[n] = v, b.Timestamps[i], b.Origins[i]
			n++
		}
	}
	if n == 0 {
		b.Release()
		return nil
	}
	b.Truncate(n)
	return f.Out.Emit(b)
}

// FlatMap applies a function that gives any number of results to every record.
type FlatMap[T, R any] struct {
	Pass
	f       func(T, func(R))
	emitter *Emitter[R]
	emit    func(R)

	timestamp int64
	origin    connector.Origin
}

func NewFlatMap[T, R any](f func(T, func(R))) *FlatMap[T, R] { return &FlatMap[T, R]{f: f} }

func (m *FlatMap[T, R]) Open(rt *Runtime, out Output) error {
	m.emitter = NewEmitter[R](out, "")
	m.emit = func(r R) { m.emitter.Append(r, m.timestamp, m.origin) }
	return m.Pass.Open(rt, out)
}

func (m *FlatMap[T, R]) Process(_ int, p exchange.Payload) error {
	in := p.(*connector.Batch[T])
	for i, v := range in.Values {
		m.timestamp, m.origin = in.Timestamps[i], in.Origins[i]
		m.f(v, m.emit)
	}
	in.Release()
	return m.emitter.Flush()
}

// Element is the record that a process function is looking at.
type Element struct {
	rt *Runtime
	// out and sides are where side outputs go; see Side.
	out   Output
	sides map[string]flusher
	// order is the sides in the order of their first use.
	order []flusher

	Timestamp int64
	Origin    connector.Origin
	// Watermark is the operator's current one.
	Watermark int64
}

type flusher interface{ Flush() error }

// NewElement returns the element context of an operator.
func NewElement(rt *Runtime, out Output) *Element {
	return &Element{rt: rt, out: out, sides: map[string]flusher{}, Watermark: eventtime.MinTimestamp}
}

// Runtime returns the operator's.
func (e *Element) Runtime() *Runtime { return e.rt }

// Side returns the emitter of the side output with that id, made on first use. Ids
// and types belong together: the API makes sure of it.
func Side[R any](e *Element, id string) *Emitter[R] {
	if s, ok := e.sides[id]; ok {
		return s.(*Emitter[R])
	}
	s := NewEmitter[R](e.out, id)
	e.sides[id] = s
	e.order = append(e.order, s)
	return s
}

// Flush sends what went to side outputs.
func (e *Element) Flush() error {
	for _, s := range e.order {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Process applies a function that may emit, use side outputs and fail.
type Process[T, R any] struct {
	Pass
	open    func(*Element, *Emitter[R]) func(T) error
	f       func(T) error
	element *Element
	emitter *Emitter[R]
}

// NewProcess takes a function that is called once per subtask and returns the
// function for every record.
func NewProcess[T, R any](open func(*Element, *Emitter[R]) func(T) error) *Process[T, R] {
	return &Process[T, R]{open: open}
}

func (o *Process[T, R]) Open(rt *Runtime, out Output) error {
	o.element = NewElement(rt, out)
	o.emitter = NewEmitter[R](out, "")
	o.f = o.open(o.element, o.emitter)
	return o.Pass.Open(rt, out)
}

func (o *Process[T, R]) Process(_ int, p exchange.Payload) error {
	if err := each(p.(*connector.Batch[T]), o.element, o.f); err != nil {
		return err
	}
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.element.Flush()
}

func (o *Process[T, R]) Watermark(t int64) error {
	o.element.Watermark = t
	return o.Out.Watermark(t)
}
