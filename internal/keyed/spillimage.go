package keyed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
)

// An incremental snapshot has what is on disk as the files it is in: those with entries are
// shared with other snapshots, the small ones are in a part of the backend, with what one
// needs to find the cells in them. The parts of the states have only what was in memory, and
// the schemas.

const (
	spilledPart        = "spilled"
	spilledPartVersion = 1
)

// diskImage is the entry of that part: the disk store of one subtask.
type diskImage struct {
	// Store is what the names of shared files begin with.
	Store string
	// FirstGroup and LastGroup are the key groups that the subtask owned.
	FirstGroup, LastGroup int
	States                []diskState
	// Tables are shared, each as Store-Name.
	Tables []diskTable
	Files  []diskFile
}

// diskImages encodes them. It is made once: that takes a millisecond.
var diskImages = sync.OnceValues(codec.For[diskImage])

// diskState is a state that has cells in the store.
type diskState struct {
	Name string
	// Number is what the keys of its cells begin with.
	Number int
	// Expired is the latest time of last access that had expired: cells whose values are no
	// younger count as removed. It is math.MinInt64 without TTL.
	Expired int64
}

// diskTable is a file that other snapshots may have, too; diskFile is one that none has.
type (
	diskTable struct {
		Name string
		Size int64
	}
	diskFile struct {
		Name    string
		Content []byte
	}
)

// snapshotImage adds what is on disk to a snapshot that is incremental.
func (b *Backend[K]) snapshotImage(s *Snapshot) error {
	o := b.overflow
	if o == nil || o.store == nil || !s.w.Incremental() {
		return nil
	}
	m := &diskImage{Store: o.store.ID(), FirstGroup: b.storage.Groups.First, LastGroup: b.storage.Groups.Last}
	for _, name := range slices.Sorted(maps.Keys(b.opened)) {
		opened := b.opened[name]
		if opened.state.spilledLen() > 0 {
			m.States = append(m.States, diskState{name, opened.state.diskNumber(), newExpiry(opened.ttl).horizon(b.now)})
		}
	}
	if len(m.States) == 0 {
		return nil
	}
	record, err := diskImages()
	if err != nil {
		return err
	}
	part, err := s.w.Part(snapshot.Part{
		Name: spilledPart, Kind: snapshot.Union, Version: spilledPartVersion, Schemas: map[string]string{"value": record.Schema()},
	})
	if err != nil {
		return err
	}
	image, err := o.store.Image()
	if err != nil {
		return err
	}
	w, dir := s.w, o.store.Dir()
	// Before the states, so that writes are not held back for long.
	w.Later(func(ctx context.Context) (err error) {
		defer func() {
			if err = errors.Join(err, image.Close()); err != nil {
				err = fmt.Errorf("state on disk, in %s: %w", dir, err)
			}
		}()
		if err := m.write(ctx, w, image); err != nil {
			return err
		}
		entry, err := record.Append(nil, m)
		if err != nil {
			return err
		}
		return errors.Join(part.Append(0, entry), part.Close())
	})
	return nil
}

// horizon returns the latest time of last access that has expired by now.
func (e expiry) horizon(now int64) int64 {
	if e.none() {
		return math.MinInt64
	}
	return now - e.afterMillis
}

// write stores the files of an image.
func (m *diskImage) write(ctx context.Context, w snapshot.Writer, image *spill.Image) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := image.Take(ctx); err != nil {
		return err
	}
	files, err := image.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		open := func() (io.ReadCloser, error) { return f.OpenUntil(ctx) }
		if f.IsTable() {
			m.Tables = append(m.Tables, diskTable{f.Name, f.Size})
			err = w.Share(m.shared(f.Name), f.Size, open)
		} else {
			var content []byte
			content, err = readAll(open)
			m.Files = append(m.Files, diskFile{f.Name, content})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shared returns the name under which a table is shared.
func (m *diskImage) shared(table string) string { return m.Store + "-" + table }

func readAll(open func() (io.ReadCloser, error)) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// RestoreSpilled takes up what was on disk of the states that have been opened. It comes after
// all of them have been. For one subtask after the other that had something of its key groups,
// it fetches the files into a temporary directory, reads them there, and removes them. It ends
// soon after ctx.
func (b *Backend[K]) RestoreSpilled(ctx context.Context) error {
	from := b.storage.Restored
	if from == nil || len(b.states) == 0 {
		return nil
	}
	part, ok := from.Part(spilledPart)
	if !ok {
		return nil
	}
	if v := part.Part().Version; v != spilledPartVersion {
		return fmt.Errorf("part %q has version %d, this program knows version %d: restore with the program that wrote it, or a later one",
			spilledPart, v, spilledPartVersion)
	}
	record, err := diskImages()
	if err != nil {
		return err
	}
	decode, err := record.Decoder(part.Part().Schemas["value"])
	if err != nil {
		return fmt.Errorf("part %q: %w", spilledPart, err)
	}
	for e, err := range part.Entries() {
		if err != nil {
			return err
		}
		var m diskImage
		if _, err := decode(e.Data, &m); err != nil {
			return fmt.Errorf("part %q: %w", spilledPart, err)
		}
		if m.FirstGroup > b.storage.Groups.Last || m.LastGroup < b.storage.Groups.First {
			continue
		}
		if err := b.restoreImage(ctx, &m); err != nil {
			return fmt.Errorf("what was on disk of key groups %d to %d cannot be restored: %w", m.FirstGroup, m.LastGroup, err)
		}
	}
	return nil
}

// restoreImage takes up the cells in the store of one subtask.
func (b *Backend[K]) restoreImage(ctx context.Context, m *diskImage) (err error) {
	var o spill.Options
	if b.overflow != nil {
		o = spill.Options{Dir: b.overflow.Dir, Logger: b.overflow.Logger}
	}
	from, err := spill.OpenImage(ctx, o, m.files(b.storage.Restored))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for _, stored := range m.States {
		opened, ok := b.opened[stored.Name]
		if !ok {
			continue // its part is unclaimed, which somebody has allowed
		}
		part, ok := b.storage.Restored.Part(b.storage.part(stored.Name))
		if !ok {
			return fmt.Errorf("state %q has no part with its schemas", stored.Name)
		}
		livesAt := stored.Expired
		if livesAt != math.MinInt64 { // a time at which the TTL of today says the same
			livesAt += newExpiry(opened.ttl).afterMillis
		}
		if err := opened.state.restoreDisk(&diskPart{ctx, part.Part(), from, stored.Number, b.storage.Groups}, livesAt); err != nil {
			return fmt.Errorf("state %q: %w", stored.Name, err)
		}
	}
	return nil
}

// files returns the files of the store.
func (m *diskImage) files(from snapshot.Reader) []spill.File {
	var files []spill.File
	for _, t := range m.Tables {
		files = append(files, spill.File{Name: t.Name, Size: t.Size, Open: func() (io.ReadCloser, error) {
			return from.Shared(m.shared(t.Name))
		}})
	}
	for _, f := range m.Files {
		files = append(files, spill.File{Name: f.Name, Size: int64(len(f.Content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(f.Content)), nil
		}})
	}
	return files
}

// diskPart gives the cells of a state in a store as the entries of its part.
type diskPart struct {
	ctx    context.Context
	part   snapshot.Part
	from   *spill.Restored
	number int
	groups GroupRange
}

// Part implements snapshot.PartReader.
func (p *diskPart) Part() snapshot.Part { return p.part }

// Entries implements snapshot.PartReader.
func (p *diskPart) Entries() iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		prefix := binary.BigEndian.AppendUint16(nil, uint16(p.number))
		first := binary.BigEndian.AppendUint16(slices.Clone(prefix), uint16(p.groups.First))
		var entry []byte
		for e, err := range p.from.From(prefix, first) {
			if err == nil && p.ctx.Err() != nil {
				err = context.Cause(p.ctx)
			}
			if err != nil {
				yield(snapshot.Entry{}, err)
				return
			}
			group := int(binary.BigEndian.Uint16(e.Key[2:]))
			if group > p.groups.Last {
				return
			}
			entry = append(append(entry[:0], e.Key[diskKeyHead:]...), e.Value...)
			if !yield(snapshot.Entry{Group: group, Data: entry}, nil) {
				return
			}
		}
	}
}
