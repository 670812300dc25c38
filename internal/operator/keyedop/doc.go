// Package keyedop holds the keyed operators other than windows: process functions
// with state and timers of one or two inputs, broadcast state, interval joins and
// sorting by event time (spec windows 4 to 6).
//
// They share a core that sets the current key before each record and each timer,
// fires timers and flushes what was emitted before a signal goes on. Where states
// and timers live is package keyed's business, windows are package windowed's,
// and the types that a job author sees are the API's.
package keyedop
