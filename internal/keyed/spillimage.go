package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
)

// An incremental snapshot has what is on disk of states as a StoreImage. The parts of the
// states have only what was in memory, and the schemas.

// diskImage is the disk store of one subtask, and what one needs to find the cells in it.
type diskImage struct {
	Image  StoreImage
	States []diskState
}

var diskImages = NewImagePart(func(m *diskImage) *StoreImage { return &m.Image })

// diskState is a state that has cells in the store.
type diskState struct {
	Name string
	// Number is what the keys of its cells begin with.
	Number int
	// Expired is the latest time of last access that had expired: cells whose values are no
	// younger count as removed. It is math.MinInt64 without TTL.
	Expired int64
}

// snapshotImage adds what is on disk to a snapshot that is incremental.
func (b *Backend[K]) snapshotImage(s *Snapshot) error {
	o := b.overflow
	if o == nil || o.store == nil || !s.w.Incremental() {
		return nil
	}
	m := &diskImage{}
	for _, name := range slices.Sorted(maps.Keys(b.opened)) {
		opened := b.opened[name]
		if opened.state.spilledLen() > 0 {
			m.States = append(m.States, diskState{name, opened.state.diskNumber(), newExpiry(opened.ttl).horizon(b.now)})
		}
	}
	if len(m.States) == 0 {
		return nil
	}
	return diskImages.Write(s.w, o.store, b.storage.Groups, m)
}

// horizon returns the latest time of last access that has expired by now.
func (e expiry) horizon(now int64) int64 {
	if e.none() {
		return math.MinInt64
	}
	return now - e.afterMillis
}

// RestoreSpilled takes up what was on disk of the states that have been opened. It comes after
// all of them have been; see ImagePart.Restore.
func (b *Backend[K]) RestoreSpilled(ctx context.Context) error {
	if b.storage.Restored == nil || len(b.states) == 0 {
		return nil
	}
	var o spill.Options
	if b.overflow != nil {
		o = spill.Options{Dir: b.overflow.Dir, Logger: b.overflow.Logger}
	}
	return diskImages.Restore(ctx, b.storage.Restored, b.storage.Groups, o, func(m *diskImage, from *spill.Restored) error {
		for _, stored := range m.States {
			cells := diskCells{ctx, from, stored.Number, b.storage.Groups}
			if err := b.restoreState(&stored, cells); err != nil {
				return fmt.Errorf("state %q: %w", stored.Name, err)
			}
		}
		return nil
	})
}

// restoreState takes up the cells of a state in the store of one subtask.
func (b *Backend[K]) restoreState(stored *diskState, cells diskCells) error {
	opened, ok := b.opened[stored.Name]
	if !ok {
		return nil // its part is unclaimed, which somebody has allowed
	}
	part, ok := b.storage.Restored.Part(b.storage.part(stored.Name))
	if !ok {
		return errors.New("there is no part with its schemas")
	}
	livesAt := stored.Expired
	if livesAt != math.MinInt64 { // a time at which the TTL of today says the same
		livesAt += newExpiry(opened.ttl).afterMillis
	}
	return opened.state.restoreDisk(&diskPart{part.Part(), cells}, livesAt)
}

// diskPart gives the cells of a state in a store as the entries of its part.
type diskPart struct {
	part  snapshot.Part
	cells diskCells
}

// Part implements snapshot.PartReader.
func (p *diskPart) Part() snapshot.Part { return p.part }

// Entries implements snapshot.PartReader.
func (p *diskPart) Entries() iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		var entry []byte
		for c, err := range p.cells.all() {
			entry = append(append(entry[:0], c.Key...), c.Value...)
			if !yield(snapshot.Entry{Group: c.Group, Data: entry}, err) {
				return
			}
		}
	}
}

// DiskCell is a key on disk, encoded and without its hash, with what there is of it.
type DiskCell struct {
	Group      int
	Key, Value []byte
}

func diskCell(e spill.Entry) DiskCell {
	return DiskCell{int(binary.BigEndian.Uint16(e.Key[2:])), e.Key[diskKeyHead:], e.Value}
}

// DiskCells visits cells. What they consist of is valid until the next one.
type DiskCells = iter.Seq2[DiskCell, error]

// diskCells are the cells of a state, of some key groups, in a store.
type diskCells struct {
	ctx    context.Context
	from   *spill.Restored
	number int
	groups GroupRange
}

func (d *diskCells) all() DiskCells {
	return func(yield func(DiskCell, error) bool) {
		prefix := binary.BigEndian.AppendUint16(nil, uint16(d.number))
		first := binary.BigEndian.AppendUint16(slices.Clone(prefix), uint16(d.groups.First))
		for e, err := range d.from.From(prefix, first) {
			if err == nil && d.ctx.Err() != nil {
				err = context.Cause(d.ctx)
			}
			if err != nil {
				yield(DiskCell{}, err)
				return
			}
			c := diskCell(e)
			if c.Group > d.groups.Last || !yield(c, nil) {
				return
			}
		}
	}
}
