package keyedop

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
)

// Function is a process function in one subtask.
type Function[T any] struct {
	Element func(T) error
	Timer   TimerFunction
	// Close may be nil. It is called even if opening ended in an error.
	Close func() error
}

// Open makes the function of one subtask, which uses the context and the emitter until
// it is closed. States are opened here.
type Open[K comparable, R, F any] func(*Context[K], *operator.Emitter[R]) (F, error)

// process runs a process function with state and timers by key (spec windows 4).
type process[K comparable, T, R any] struct {
	core[K, R]
	open     Open[K, R, Function[T]]
	function Function[T]
}

// NewProcess returns the operator of a keyed process function.
func NewProcess[K comparable, T, R any](open Open[K, R, Function[T]]) operator.Operator {
	return &process[K, T, R]{core: newCore[K, R](), open: open}
}

func (o *process[K, T, R]) Open(rt *operator.Runtime, out operator.Output) (err error) {
	if err := o.core.open(rt, out); err != nil {
		return err
	}
	o.function, err = o.open(o.context, o.emitter)
	o.onTimer, o.close = o.function.Timer, o.function.Close
	return o.opened(err)
}

func (o *process[K, T, R]) Process(_ int, p exchange.Payload) error {
	return o.each(p.(*exchange.KeyedBatch[K, T]), o.function.Element)
}

// plain runs a process function without keys: its states are those of the subtask.
type plain[T, R any] struct{ process[struct{}, T, R] }

// NewPlain returns the operator of a process function that has neither state by key nor
// timers.
func NewPlain[T, R any](open Open[struct{}, R, Function[T]]) operator.Operator {
	return &plain[T, R]{process[struct{}, T, R]{core: newCore[struct{}, R](), open: open}}
}

func (o *plain[T, R]) Process(_ int, p exchange.Payload) error {
	return o.eachPlain(p.(*connector.Batch[T]), o.function.Element)
}

// CoFunction is a process function of two inputs in one subtask.
type CoFunction[T, U any] struct {
	First  func(T) error
	Second func(U) error
	Timer  TimerFunction
	// Close may be nil. It is called even if opening ended in an error.
	Close func() error
}

// coProcess runs a function of two inputs that share state and timers by key (spec
// windows 6.3).
type coProcess[K comparable, T, U, R any] struct {
	core[K, R]
	open     Open[K, R, CoFunction[T, U]]
	function CoFunction[T, U]
}

// NewCoProcess returns the operator of a keyed process function of two inputs.
func NewCoProcess[K comparable, T, U, R any](open Open[K, R, CoFunction[T, U]]) operator.Operator {
	return &coProcess[K, T, U, R]{core: newCore[K, R](), open: open}
}

func (o *coProcess[K, T, U, R]) Open(rt *operator.Runtime, out operator.Output) (err error) {
	if err := o.core.open(rt, out); err != nil {
		return err
	}
	o.function, err = o.open(o.context, o.emitter)
	o.onTimer, o.close = o.function.Timer, o.function.Close
	return o.opened(err)
}

func (o *coProcess[K, T, U, R]) Process(input int, p exchange.Payload) error {
	if input == 0 {
		return o.each(p.(*exchange.KeyedBatch[K, T]), o.function.First)
	}
	return o.each(p.(*exchange.KeyedBatch[K, U]), o.function.Second)
}
