package keyed

import (
	"context"
	"fmt"
	"math"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
)

// SpillTable is a table of values that only its operator knows, with a budget for memory.
// What is more goes to disk: the values of the keys that have not been used for longest,
// each as a whole. It is the store of a state, with the operator in place of a function.
//
// The values are the operator's to store in snapshots and to restore: those in Table, and
// those on disk with SnapshotDisk and RestoreSpillTable.
type SpillTable[K comparable, V any] struct {
	backend *Backend[K]
	store   store[K, V]
}

// Spillable is how the values of a SpillTable go to disk and come back.
type Spillable[K comparable, V any] struct {
	// Append appends the encoding of a value to dst.
	Append func(dst []byte, v *V) ([]byte, error)
	// Decode reads a value. Arrived, unless nil, is called when it is in memory.
	Decode  func(data []byte, v *V) error
	Arrived func(hash uint64, key K, v *V)
	// Left, unless nil, is called with a copy of a value that has gone to disk.
	Left func(v V)
	// Outside returns about what a value with that many bytes of encoding takes in memory
	// besides its own size.
	Outside func(v *V, encoded int) int
}

// NewSpillTable returns an empty table. name is for messages.
func NewSpillTable[K comparable, V any](keys *KeyCodec[K], name string, budget Budget, how Spillable[K, V]) (*SpillTable[K, V], error) {
	b := NewBackend[K]()
	b.keys = keys
	b.Limit(budget)
	t := &SpillTable[K, V]{backend: b}
	var err error
	if t.store, err = newStore(b, name, how.cells); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.store.spilled.arrived, t.store.spilled.left = how.Arrived, how.Left
	b.states = append(b.states, &t.store)
	return t, nil
}

// cells returns what a store asks of its cells but for write, as none of them writes snapshots.
func (h *Spillable[K, V]) cells() (*cells[K, V], error) {
	return &cells[K, V]{
		layout: valueLayout,
		decoder: func(snapshot.Part, int64) (func([]byte, *V) error, error) {
			return h.Decode, nil
		},
		append:  h.Append,
		lives:   func(*V, int64) bool { return true },
		outside: h.Outside,
	}, nil
}

// Table returns the table of what is in memory: for snapshots, and to look at.
func (t *SpillTable[K, V]) Table() *Table[K, V] { return t.store.table }

// Len returns the number of keys, in memory and on disk.
func (t *SpillTable[K, V]) Len() int { return t.store.table.Len() + t.store.spilled.filter.Len() }

// Room returns about how many keys Prepare brings in at most.
func (t *SpillTable[K, V]) Room() int {
	return int(float64(t.store.spilled.shared.Bytes/prefetchPart) / (float64(EntryBytes[K, V]()) + t.store.spilled.average))
}

// Prepare brings values of keys with these hashes into memory together, before they are
// looked up one by one, as far as there is room.
func (t *SpillTable[K, V]) Prepare(hashes []uint64, keys []K) error {
	t.backend.ClearCurrentKey()
	t.backend.Touch(hashes, keys)
	return t.backend.err
}

// Get returns the value of a key, nil if it has none. It comes into memory; others may leave
// before. The pointer, and what the value points to, is valid until the next call of a
// method other than Delete.
func (t *SpillTable[K, V]) Get(hash uint64, key K) (*V, error) {
	t.backend.SetCurrentKey(hash, key)
	v := t.store.get()
	return v, t.backend.err
}

// Upsert is Get with a zero value for a key that has none, which must not stay zero if
// Append does not take it.
func (t *SpillTable[K, V]) Upsert(hash uint64, key K) (*V, error) {
	v, err := t.Get(hash, key)
	if v == nil && err == nil {
		v = t.store.insert(hash, key)
		t.store.cell = v
	}
	return v, err
}

// Delete removes a key.
func (t *SpillTable[K, V]) Delete(hash uint64, key K) error {
	t.store.remove(hash, key)
	t.store.cell, t.store.use = nil, 0
	return t.backend.err
}

// Settle has values leave memory until the others fit into the budget.
func (t *SpillTable[K, V]) Settle() error {
	t.backend.ClearCurrentKey()
	t.backend.settle()
	return t.backend.err
}

// EachOnDisk calls visit with the encodings of the values that are on disk. They are valid
// during the call.
func (t *SpillTable[K, V]) EachOnDisk(visit func(value []byte) error) error {
	return t.store.visitDisk(func(_, value []byte) error { return visit(value) })
}

// SnapshotDisk adds what is on disk to a snapshot that has not been started: to one that is
// incremental the store, for RestoreSpillTable, and to one that stands alone entries of a
// part. write is called for each cell then, and adds them. It runs in the background and must
// not use what belongs to the subtask, whose key groups are groups.
func (t *SpillTable[K, V]) SnapshotDisk(s *Snapshot, groups GroupRange, part PartNumber, write func(c DiskCell, add func(entry []byte) error) error) error {
	sp := t.store.spilled
	if sp.filter.Len() == 0 {
		return nil
	}
	if s.w.Incremental() {
		return diskImages.Write(s.w, sp.shared.store, groups, &diskImage{States: []diskState{{t.store.name, sp.number, math.MinInt64}}})
	}
	view, prefix := sp.shared.store.View(), sp.prefix()
	s.addImmutable(part, func(ctx context.Context, to snapshot.PartWriter) error {
		n, group := 0, 0
		add := func(entry []byte) error { return to.Append(group, entry) }
		for e, err := range view.From(prefix, prefix) {
			if err != nil {
				return err
			}
			if n++; n%entriesPerLook == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			c := diskCell(e)
			group = c.Group
			if err := write(c, add); err != nil {
				return err
			}
		}
		return nil
	}, view.Close)
	return nil
}

// RestoreSpillTable calls restore with the cells that were on disk of a SpillTable, in a
// snapshot that is incremental, for each subtask that had some of these key groups; see
// ImagePart.Restore.
func RestoreSpillTable(ctx context.Context, from snapshot.Reader, groups GroupRange, options spill.Options, restore func(DiskCells) error) error {
	return diskImages.Restore(ctx, from, groups, options, func(m *diskImage, store *spill.Restored) error {
		for _, stored := range m.States {
			cells := diskCells{ctx, store, stored.Number, groups}
			if err := restore(cells.all()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close removes what is on disk.
func (t *SpillTable[K, V]) Close() error {
	if t == nil {
		return nil
	}
	return t.backend.Close()
}
