// Package checkpoint stores the snapshots of a job and gives them back: segment files
// with the parts that subtasks write, a manifest that makes them one checkpoint, the
// choice of the newest whole one, retention, and the share of each subtask of a job that
// is restored. The format is in docs/format/checkpoint.md.
//
// When a checkpoint is taken, and what is in a part, is not decided here: package job
// and the operators do.
//
// A checkpoint becomes valid in one step, when its manifest appears, and then never
// changes. Whatever is read is checked; damage is reported with file, offset, operator
// and part, and never skipped in silence.
package checkpoint
