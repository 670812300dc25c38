package windowed

import (
	"bytes"
	"errors"

	"github.com/lowwater/lowwater/internal/spill"
)

// runScans walks the runs of several panes at once, in the order of their keys, and those of
// a key pane by pane. It is a heap: the entry that comes next is that of the first scan.
type runScans []runScan

// runScan is a walk through the runs of one pane.
type runScan struct {
	// part is the place of the pane among those that are walked.
	part  int
	scan  *spill.Scan
	entry spill.Entry
}

// head returns what all runs of the entry's key begin with, behind the number of their pane.
func (s *runScan) head() []byte { return s.entry.Key[diskKeyPane : len(s.entry.Key)-diskKeyTail] }

func (h runScans) before(i, j int) bool {
	order := bytes.Compare(h[i].head(), h[j].head())
	return order < 0 || order == 0 && h[i].part < h[j].part
}

// add adds the runs of a pane whose keys on disk begin with prefix.
func (h *runScans) add(view *spill.View, part int, prefix []byte) error {
	scan, err := view.Scan(prefix)
	if err != nil {
		return err
	}
	*h = append(*h, runScan{part: part, scan: scan})
	i := len(*h) - 1
	if found, err := h.next(i); err != nil || !found {
		return err
	}
	for q := *h; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
	return nil
}

// advance moves on behind the first entry.
func (h *runScans) advance() error {
	if _, err := h.next(0); err != nil {
		return err
	}
	q := *h
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q) {
			return nil
		}
		if child+1 < len(q) && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			return nil
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}

// next moves scan i to its next entry. If there is none, the last scan takes its place.
func (h *runScans) next(i int) (found bool, err error) {
	q := *h
	q[i].entry, found, err = q[i].scan.Next()
	if err != nil || found {
		return found, err
	}
	last := len(q) - 1
	err = q[i].scan.Close()
	q[i], q[last] = q[last], runScan{}
	*h = q[:last]
	return false, err
}

// close ends all walks.
func (h *runScans) close() error {
	var err error
	for _, s := range *h {
		err = errors.Join(err, s.scan.Close())
	}
	clear(*h)
	*h = (*h)[:0]
	return err
}
