package window

// GlobalAssigner puts all records of a key into one window that never ends. It
// is neither event nor processing time: nothing is ever late (spec windows
// 1.8). Build it with Global or GlobalEndOfStream.
type GlobalAssigner struct{ endOfStream bool }

// Global returns the global window. By default it never fires; it is made for
// streams with a trigger of their own.
func Global() GlobalAssigner { return GlobalAssigner{} }

// GlobalEndOfStream returns the global window with a default trigger that fires
// once, when a bounded input has ended. Until then all records, or their accumulators,
// are kept.
func GlobalEndOfStream() GlobalAssigner { return GlobalAssigner{endOfStream: true} }

// FiresAtEndOfStream reports whether the default trigger fires at the end of
// input.
func (a GlobalAssigner) FiresAtEndOfStream() bool { return a.endOfStream }

// Assign implements Assigner.
func (a GlobalAssigner) Assign(dst []TimeWindow, _, _ int64) ([]TimeWindow, error) {
	return append(dst, GlobalWindow), nil
}

// Span implements Assigner.
func (a GlobalAssigner) Span(int64) TimeWindow { return GlobalWindow }

// IsEventTime implements Assigner.
func (a GlobalAssigner) IsEventTime() bool { return false }

// Merging implements Assigner.
func (a GlobalAssigner) Merging() bool { return false }

// Validate implements Assigner.
func (a GlobalAssigner) Validate() error { return nil }

// String implements Assigner.
func (a GlobalAssigner) String() string {
	if a.endOfStream {
		return "window.GlobalEndOfStream()"
	}
	return "window.Global()"
}
