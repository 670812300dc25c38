package lowwater

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
	"github.com/lowwater/lowwater/state"
)

// ProcessFunction handles one record: it emits results to out and may use side
// outputs through ctx. ctx and out are valid during the call only. An error fails the
// job. It has no state: see StatefulFunction and KeyedProcessFunction.
type ProcessFunction[T, R any] func(ctx *ProcessContext, value T, out *Collector[R]) error

// ProcessContext is what a ProcessFunction may ask and do besides emitting.
type ProcessContext struct{ element *operator.Element }

// Timestamp returns the record's event time in milliseconds,
// eventtime.MinTimestamp if it has none.
func (c *ProcessContext) Timestamp() int64 { return c.element.Timestamp }

// CurrentWatermark returns the operator's watermark in milliseconds,
// eventtime.MinTimestamp if there was none yet.
func (c *ProcessContext) CurrentWatermark() int64 { return c.element.Watermark }

// CurrentProcessingTime returns the wall clock in milliseconds since the epoch.
func (c *ProcessContext) CurrentProcessingTime() int64 { return c.element.Runtime().Timers.Now() }

// Subtask returns the number of the subtask, from 0.
func (c *ProcessContext) Subtask() int { return c.element.Runtime().Subtask }

// Output emits v to a side output, with the record's timestamp. Without a consumer
// (DataStream.SideOutput) it goes nowhere.
func (c *ProcessContext) Output[X any](tag OutputTag[X], v X) {
	operator.Side[X](c.element, tag.key()).Append(v, c.element.Timestamp, c.element.Origin)
}

// StatefulFunction handles the records of a stream without keys one by one, and has lists
// that belong to the subtask and survive a restart (Flink's operator state). One value
// serves one subtask; its methods are called by one goroutine. An error fails the job. If
// it is an io.Closer, it is closed at the end, also after an error.
type StatefulFunction[T, R any] interface {
	// Open is called once, before everything else. It opens the function's states.
	Open(ctx *OperatorOpenContext) error
	// ProcessElement handles a record. What it emits has the record's timestamp.
	ProcessElement(ctx *ProcessContext, value T, out *Collector[R]) error
}

// OperatorOpenContext opens the states of a StatefulFunction.
type OperatorOpenContext struct {
	element *operator.Element
	states  *keyedop.OperatorStates
}

// Subtask returns the number of the subtask, from 0.
func (c *OperatorOpenContext) Subtask() int { return c.element.Runtime().Subtask }

// Parallelism returns the number of subtasks of the operator.
func (c *OperatorOpenContext) Parallelism() int { return c.element.Runtime().Parallelism }

// OperatorList opens a list of the subtask; see OpenContext.OperatorList.
func (c *OperatorOpenContext) OperatorList[V any](d state.OperatorListDescriptor[V]) state.ListState[V] {
	return c.states.List(d)
}

// ProcessStateful is Process with functions that have state. factory makes one for each
// subtask, and again after a restart.
func (s *DataStream[T]) ProcessStateful[R any, F StatefulFunction[T, R]](factory func() F) *DataStream[R] {
	if factory == nil {
		s.env.fail("ProcessStateful: the factory is nil")
	}
	return addOperator[T, R](s, "Stateful Process", func() operator.Operator {
		return keyedop.NewPlain(func(x *keyedop.Context[struct{}], emitter *operator.Emitter[R]) (keyedop.Function[T], error) {
			f := factory()
			ctx, out := &ProcessContext{element: x.Element}, &Collector[R]{element: x.Element, emitter: emitter}
			return keyedop.Function[T]{
				Element: func(v T) error { return f.ProcessElement(ctx, v, out) },
				Close:   closeFunction(f),
			}, f.Open(&OperatorOpenContext{x.Element, x.Operator})
		})
	})
}

// Collector takes the results of a function. It is valid during the call only, and for its
// goroutine.
type Collector[R any] struct {
	element *operator.Element
	emitter *operator.Emitter[R]
}

// Emit adds a result with the timestamp of the record being processed; of the timer, none
// for a processing-time timer; or of the window, its last millisecond.
func (c *Collector[R]) Emit(v R) {
	c.emitter.Append(v, c.element.Timestamp, c.element.Origin)
}

// EmitAt adds a result with a timestamp of its own, in milliseconds since the epoch. One at
// or below the current watermark is late for what follows.
func (c *Collector[R]) EmitAt(v R, timestamp int64) {
	c.emitter.Append(v, timestamp, c.element.Origin)
}

// OutputTag names a side output and its type. Tags with the same id and type are
// equal.
type OutputTag[X any] struct{ id string }

// NewOutputTag returns the tag with that id. With an empty one, the call that the tag is
// given to is a build error.
func NewOutputTag[X any](id string) OutputTag[X] { return OutputTag[X]{id} }

// String returns the id and the type.
func (t OutputTag[X]) String() string {
	return fmt.Sprintf("%s (%s)", t.id, reflect.TypeFor[X]())
}

func (t OutputTag[X]) validate() error {
	if t.id == "" {
		return errors.New("the output tag has no id: make it with NewOutputTag")
	}
	return nil
}

// key is the tag's id within an operator. The type is part of it, so that two tags
// with one id and different types are two outputs.
func (t OutputTag[X]) key() string {
	if n := typeNumber(reflect.TypeFor[X]()); n > 0 {
		return fmt.Sprintf("%s (%d)", t, n)
	}
	return t.String()
}

// typeNumbers tells types apart that print alike, such as those of two functions or of
// two packages of one name.
var typeNumbers struct {
	sync.Mutex
	byName map[string][]reflect.Type
}

// typeNumber returns 0 for the first type of a name, 1 for the second, and so on.
func typeNumber(typ reflect.Type) int {
	typeNumbers.Lock()
	defer typeNumbers.Unlock()
	if typeNumbers.byName == nil {
		typeNumbers.byName = map[string][]reflect.Type{}
	}
	name := typ.String()
	known := typeNumbers.byName[name]
	if i := slices.Index(known, typ); i >= 0 {
		return i
	}
	typeNumbers.byName[name] = append(known, typ)
	return len(known)
}

// DeadLetters is the side output of a source for records that could not be decoded, if the
// source is told to put them there (kafka.ToDeadLetters). Read it with SideOutput on the
// stream of the source.
var DeadLetters = NewOutputTag[connector.DeadLetter]("dead-letters")
