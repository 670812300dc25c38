package operator

import "github.com/lowwater/lowwater/connector"

// Emitter collects the results of an operator into batches. It belongs to one
// operator in one subtask. Append never fails: the first error of the output is
// kept, further records are discarded, and Flush returns it.
type Emitter[R any] struct {
	out   Output
	side  string
	pool  *connector.Pool[R]
	batch *connector.Batch[R]
	err   error
}

// NewEmitter returns an emitter into the main output, or into a side output if side
// is not empty.
func NewEmitter[R any](out Output, side string) *Emitter[R] {
	return &Emitter[R]{out: out, side: side, pool: connector.NewPool[R]()}
}

// Append adds one record, and sends the batch on when it is full.
func (e *Emitter[R]) Append(value R, timestamp int64, origin connector.Origin) {
	if e.err != nil {
		return
	}
	if e.batch == nil {
		e.batch = e.pool.Get()
	}
	e.batch.Append(value, timestamp, origin)
	if e.batch.Full() {
		e.err = e.send()
	}
}

// Flush sends what was collected. An operator flushes at the end of each call,
// so that a signal never overtakes a record.
func (e *Emitter[R]) Flush() error {
	if e.err != nil {
		return e.err
	}
	return e.send()
}

func (e *Emitter[R]) send() error {
	b := e.batch
	if b == nil {
		return nil
	}
	e.batch = nil
	if e.side != "" {
		return e.out.EmitSide(e.side, b)
	}
	return e.out.Emit(b)
}
