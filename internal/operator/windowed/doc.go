// Package windowed holds the window operators: they collect the records of each
// key into windows and fire the windows when the watermark, or the clock,
// passes their end (spec windows 2).
//
// Which operator runs follows from the assigner and the function:
//
//	panes     windows that do not overlap: a table of keys per window
//	slices    sliding and cumulating windows: a table of keys per slice of
//	          time, put together when a window fires
//	sessions  merging windows: a short list of sessions per key
//	general   everything else: triggers, evictors, assigners that look at
//	          values, functions with state
//
// The first three keep no timer per key and window. Windows are ordered by their
// end, and a watermark walks from the last one fired to the new end, so a
// record costs one table access and never a timer. The general operator has what
// Flink's has: a list of windows per key, with timers, asked one by one.
//
// The rules of assigners are in package window. How results travel is package
// exchange's business, and when to call an operator package task's.
package windowed
