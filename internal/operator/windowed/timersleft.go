package windowed

// WithTimers is implemented by the general operator, for those who look at operators from
// the outside.
type WithTimers interface {
	// TimersLeft returns the number of pending timers.
	TimersLeft() (event, clock int)
}

// TimersLeft implements WithTimers.
func (o *general[K, T, A]) TimersLeft() (event, clock int) {
	return o.service.Event.Len(), o.service.Processing.Len()
}
