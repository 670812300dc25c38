// Package files reads files into a job and writes a job's records to files, in a directory
// that all subtasks see.
//
// What a file holds is a format.File: JSONLines and Lines of this package, and those of the
// packages format/csv and format/parquet.
//
// A source has one split per file, and goes on after a restart behind the last record that
// the checkpoint covers. A sink writes hidden files and makes them visible by renaming: in
// exactly-once mode when the checkpoint that covers them has completed, so that a reader of
// the directory sees each record once, whatever fails. docs/files.md says what is promised and how
// the directory is laid out.
//
// The package needs a file system in which a rename is atomic. It does not read object
// stores, lock anything, compact small files or remove old ones, and it does not know about
// timestamp assigners or watermarks.
package files
