// Package codec turns keys and values of state into bytes and back, for snapshots
// and for state that is spilled.
//
// The bytes are Avro, and every part of a snapshot carries its schema once. A
// value written by an earlier version of the job is resolved against the type that
// the job has now: fields may be added, removed, renamed by alias and widened.
// Formats for the outside world are package format's.
package codec
