package keyed

import "github.com/lowwater/lowwater/internal/snapshot"

// Encoder takes the entries that one of the two goroutines encodes for a Snapshot. It is
// valid in the function that it is given to.
type Encoder struct {
	encoded
	snapshot *Snapshot
	side     int
	// added is what is to be written besides.
	added []blocks
}

// encoded is entries one behind the other.
type encoded struct {
	// Data is what has been encoded: an entry is what is appended to it before End.
	Data []byte
	ends []entryEnd
}

// entryEnd is where an entry ends, and where it belongs.
type entryEnd struct {
	part       PartNumber
	group, end int
}

// End ends an entry, which belongs to a key group, or to group 0 in a part of another kind.
func (e *Encoder) End(part PartNumber, group int) {
	e.ends = append(e.ends, entryEnd{part, group, len(e.Data)})
}

// Side tells the two Encoders of a Snapshot apart, as 0 and 1.
func (e *Encoder) Side() int { return e.side }

// Add adds something that is written by calls of next, each for a block, until it reports
// that there is no more. Only the goroutine calls it. What it reads must not change until
// the snapshot is over.
func (e *Encoder) Add(next func(*Encoder) (more bool, err error)) {
	e.added = append(e.added, blocksFunc(next))
}

// blocksFunc is blocks of one function.
type blocksFunc func(*Encoder) (bool, error)

func (f blocksFunc) next(to *Encoder) (bool, error) { return f(to) }
func (f blocksFunc) place() uint64                  { return unnamedPlace }

// unnamedPlace is where nothing is that the subtask waits for.
const unnamedPlace = 1

// putInto empties e.
func (e *encoded) putInto(parts []snapshot.PartWriter) error {
	from := 0
	for _, entry := range e.ends {
		if err := parts[entry.part].Append(entry.group, e.Data[from:entry.end]); err != nil {
			return err
		}
		from = entry.end
	}
	e.Data, e.ends = e.Data[:0], e.ends[:0]
	return nil
}
