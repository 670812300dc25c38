package operator

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
)

// CoProcess applies one function to the records of its first input and another to those
// of its second. Its watermark is the combined one of both inputs.
type CoProcess[T, U, R any] struct {
	Pass
	open    func(*Element, *Emitter[R]) (func(T) error, func(U) error)
	first   func(T) error
	second  func(U) error
	element *Element
	emitter *Emitter[R]
}

// NewCoProcess takes a function that is called once per subtask and returns the functions
// for every record of the two inputs.
func NewCoProcess[T, U, R any](open func(*Element, *Emitter[R]) (func(T) error, func(U) error)) *CoProcess[T, U, R] {
	return &CoProcess[T, U, R]{open: open}
}

func (o *CoProcess[T, U, R]) Open(rt *Runtime, out Output) error {
	o.element = NewElement(rt, out)
	o.emitter = NewEmitter[R](out, "")
	o.first, o.second = o.open(o.element, o.emitter)
	return o.Pass.Open(rt, out)
}

func (o *CoProcess[T, U, R]) Process(input int, p exchange.Payload) error {
	var err error
	if input == 0 {
		err = each(p.(*connector.Batch[T]), o.element, o.first)
	} else {
		err = each(p.(*connector.Batch[U]), o.element, o.second)
	}
	if err != nil {
		return err
	}
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.element.Flush()
}

// each calls f for every record of in, which it releases.
func each[T any](in *connector.Batch[T], e *Element, f func(T) error) error {
	for i, v := range in.Values {
		e.Timestamp, e.Origin = in.Timestamps[i], in.Origins[i]
		if err := f(v); err != nil {
			return err
		}
	}
	in.Release()
	return nil
}

func (o *CoProcess[T, U, R]) Watermark(t int64) error {
	o.element.Watermark = t
	return o.Out.Watermark(t)
}
