// Package scenarios reads files of the format eventtime-scenario/1: one kind of
// event-time trouble each, as topics with records, a job, what an observer sees,
// and what must come out. testdata/README.md describes the format.
//
// The package decodes, checks and patches files and expands their records. It
// runs nothing: its tests replay the files through the engine, and a diagnosis
// is tested with the snapshots and verdicts.
package scenarios
