// Package snapshot is the vocabulary between operators, which hold state, and
// checkpoints, which store it: the parts that one operator in one subtask writes
// at a barrier and reads when the job goes on from there.
//
// How parts are laid out in files, stored and dealt out over another number of
// subtasks is package checkpoint's. When a snapshot is taken is package task's.
package snapshot

import (
	"context"
	"io"
	"iter"

	"github.com/lowwater/lowwater/internal/enum"
)

// Kind says how a part is dealt out when an operator is restored, possibly with
// another parallelism (spec windows 5.1).
type Kind uint8

const (
	// Keyed entries belong to key groups. A subtask gets those of its own groups.
	Keyed Kind = iota
	// List elements are split over the subtasks. What one subtask wrote stays in order
	// and together, unless there are more subtasks than before.
	List
	// Union elements all go to every subtask, those of subtask 0 first.
	Union
	// Broadcast parts are the same in every subtask; each gets what one wrote.
	Broadcast
)

func (k Kind) String() string {
	return enum.Name(k, "keyed", "list", "union", "broadcast")
}

// Part describes one part of an operator's snapshot.
type Part struct {
	// Name is unique within the operator and stable over versions of the job.
	Name string
	Kind Kind
	// Version is the layout of the entries, counted by the operator.
	Version int
	// Schemas are the Avro schemas of what the entries hold, as package codec gives
	// them, by role, such as "key" and "value".
	Schemas map[string]string
}

// EventTimePart is the name of the part with an operator's event time, which every operator
// has. It is no state: an operator without any other part has nothing to lose.
const EventTimePart = "event-time"

// Writer takes the snapshot of one operator in one subtask.
type Writer interface {
	// Checkpoint returns the checkpoint's number.
	Checkpoint() int64
	// Part begins a part.
	Part(p Part) (PartWriter, error)
	// Later has f called in a goroutine of its own as soon as the barrier has been
	// passed on, while the operator goes on. f's error fails the checkpoint, not the
	// job. ctx ends when the checkpoint is given up; f then returns soon.
	//
	// Whatever f reads must not change meanwhile. The operator sees to that, and the
	// subtask's goroutine may write to the same parts under the operator's own lock.
	Later(f func(ctx context.Context) error)
	// Incremental reports whether the snapshot may refer to shared files. One that may not
	// stands alone, as a savepoint does.
	Incremental() bool
	// Share makes a file that never changes part of the snapshot. It is stored once,
	// however many snapshots share it by that name, and read with Reader.Shared. open is
	// called, before Share returns, if it is to be stored, and gives size bytes.
	Share(name string, size int64, open func() (io.ReadCloser, error)) error
}

// PartWriter takes the entries of one part. It is not safe for concurrent use.
type PartWriter interface {
	// Append adds an entry: to a key group, or with group 0 to a part of another
	// kind. It copies entry.
	Append(group int, entry []byte) error
	// Close ends the part. A part that is not closed fails the checkpoint.
	Close() error
}

// Reader holds what an operator in one subtask is restored from.
type Reader interface {
	Checkpoint() int64
	// Part returns a part and marks it as claimed; ok is false if the snapshot has
	// none of that name, such as for a state that the job did not have then. After
	// Open, a part that nobody claimed is an error: its state would be lost.
	Part(name string) (p PartReader, ok bool)
	// Parts visits the parts whose names start with prefix, in the order of their names,
	// and marks them as claimed.
	Parts(prefix string) iter.Seq[PartReader]
	// Shared opens a file that a subtask has shared. Reading ends with an error that names
	// it instead of io.EOF if the content is not what it was. It is safe for concurrent use.
	Shared(name string) (io.ReadCloser, error)
}

// PartReader gives the entries of one part that belong to this subtask.
type PartReader interface {
	// Part is the description as it was written.
	Part() Part
	// Entries visits the entries, key group by key group, within a group and a
	// writing subtask in the order in which they were written. It ends with the first
	// error.
	Entries() iter.Seq2[Entry, error]
}

// Entry is one entry of a part.
type Entry struct {
	Group int
	// Data is valid until the next entry is read.
	Data []byte
}
