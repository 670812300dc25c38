package windowed

import (
	"context"
	"encoding/binary"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/window"
)

// An incremental snapshot has what is on disk of windows as the files it is in, a
// keyed.StoreImage; the part with the contents has only what was in memory, and the schemas.
// Files with nothing but windows that have fired, or sums of slices, are left out.

// paneImage is the disk store of one subtask, and what one needs to find the runs of panes
// in it.
type paneImage struct {
	Image keyed.StoreImage
	Panes []storedPane
}

var paneImages = keyed.NewImagePart(func(m *paneImage) *keyed.StoreImage { return &m.Image })

// storedPane is the window, or slice, of a pane, and the number of it that the keys of its
// runs begin with.
type storedPane struct {
	Number     int
	Start, End int64
}

// snapshotImage adds what is on disk of panes to a snapshot that is incremental.
func (s *spilling[K, T, A]) snapshotImage(w snapshot.Writer, live []*pane[K, A]) error {
	m := &paneImage{}
	var prefixes [][]byte
	for _, p := range live {
		if p.spilled.onDisk > 0 {
			m.Panes = append(m.Panes, storedPane{int(p.spilled.number), p.window.Start, p.window.End})
			prefixes = append(prefixes, p.spilled.prefix(nil))
		}
	}
	return paneImages.Write(w, s.store, s.groups, m, prefixes...)
}

// restoreRuns hands the runs in images to visit, those of a key and window in their order.
func (c *core[K, T, A]) restoreRuns(visit visitor[K, A]) error {
	p, err := c.contentsReader()
	if p == nil {
		return err
	}
	return paneImages.Restore(c.rt.Context, c.rt.Restored, c.groups(), c.imageOptions(), func(m *paneImage, from *spill.Restored) error {
		for _, stored := range m.Panes {
			if err := c.restorePane(&stored, from, p, visit); err != nil {
				return err
			}
		}
		return nil
	})
}

// restorePane hands the runs of a pane in an image to visit, of the keys that are the subtask's.
func (c *core[K, T, A]) restorePane(stored *storedPane, from *spill.Restored, p *partReader[K, A], visit visitor[K, A]) error {
	own, w := c.groups(), window.TimeWindow{Start: stored.Start, End: stored.End}
	prefix := binary.BigEndian.AppendUint32(nil, uint32(stored.Number))
	var entry []byte
	n := 0
	for e, err := range from.From(prefix, prefix) {
		if err != nil {
			return err
		}
		if n%runsPerLook == 0 && c.rt.Context.Err() != nil {
			return context.Cause(c.rt.Context)
		}
		n++
		group := c.storage.keys.Group(hashOnDisk(e.Key))
		if group < own.First || group > own.Last {
			continue
		}
		entry = appendRun(entry[:0], w, e)
		if err := visit(p, group, entry); err != nil {
			return unreadable(c.rt.Restored, windowsPart, err)
		}
	}
	return nil
}

// restoreCells hands the entries of the cells in images to visit.
func (c *core[K, T, A]) restoreCells(entries func(cell keyed.DiskCell, add func(entry []byte) error) error, visit visitor[K, A]) error {
	p, err := c.contentsReader()
	if p == nil {
		return err
	}
	return keyed.RestoreSpillTable(c.rt.Context, c.rt.Restored, c.groups(), c.imageOptions(), func(cells keyed.DiskCells) error {
		for cell, err := range cells {
			if err != nil {
				return err
			}
			err := entries(cell, func(entry []byte) error { return visit(p, cell.Group, entry) })
			if err != nil {
				return unreadable(c.rt.Restored, windowsPart, err)
			}
		}
		return nil
	})
}

// contentsReader returns a reader for entries of the part with the contents, nil if there is
// no such part.
func (c *core[K, T, A]) contentsReader() (*partReader[K, A], error) {
	part, ok := c.rt.Restored.Part(windowsPart)
	if !ok {
		return nil, nil
	}
	p, err := c.storage.reader(part.Part())
	if err != nil {
		return nil, unreadable(c.rt.Restored, windowsPart, err)
	}
	return p, nil
}

// imageOptions says where the files of an image are put while it is read.
func (c *core[K, T, A]) imageOptions() spill.Options {
	return spill.Options{Dir: c.rt.StateDir, Logger: c.rt.Logger}
}

// groups are the key groups of the subtask.
func (c *core[K, T, A]) groups() keyed.GroupRange {
	return keyed.RangeOf(c.rt.Subtask, c.rt.Parallelism, c.rt.MaxParallelism)
}
