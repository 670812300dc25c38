package windowed

import "github.com/lowwater/lowwater/internal/operator"

// WithTimers is implemented by the general operator, for those who look at operators from
// the outside.
type WithTimers interface {
	// TimersLeft returns the number of pending timers.
	TimersLeft() (event, clock int)
	// Adopt takes over the keys, windows and timers, but not the watermark, of an operator
	// of the same description that was closed. Call it before Open. It is what restoring
	// comes to where the state never left the process.
	Adopt(old operator.Operator)
}

// TimersLeft implements WithTimers.
func (o *general[K, T, A]) TimersLeft() (event, clock int) {
	return o.service.Event.Len(), o.service.Processing.Len()
}

// Adopt implements WithTimers.
func (o *general[K, T, A]) Adopt(old operator.Operator) {
	from := old.(*general[K, T, A])
	o.keys, o.service = from.keys, from.service
}
