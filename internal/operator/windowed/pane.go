package windowed

import (
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/window"
)

// pane is the contents of one window, of one slice of time or of a sum of
// slices, by key.
type pane[K comparable, A any] struct {
	keys *keyed.Table[K, A]
	// window and max, its MaxTimestamp, are set if it is a window's.
	window window.TimeWindow
	max    int64
	// peak is the largest number of keys that the table had room for.
	peak int
	// spilled is used if there is a budget for memory.
	spilled spilledPane
}

// panePool keeps panes with their tables for reuse, so that windows that follow
// each other need no new memory.
type panePool[K comparable, A any] struct {
	// releaser is the fold if its accumulators can be used again, else nil.
	releaser releaser[A]
	free     []*pane[K, A]
	// kept is the sum of the peaks of the free panes.
	kept int
}

// What is kept for reuse is bounded in number and size. One pane may be of any size, so
// that large windows can follow each other, but not if its contents are now much smaller
// than its table.
const (
	maxFreePanes = 16
	maxFreeKeys  = 1 << 18
	smallPane    = 1 << 10
)

// get returns an empty pane.
func (p *panePool[K, A]) get() *pane[K, A] {
	if n := len(p.free); n > 0 {
		pane := p.free[n-1]
		p.free = p.free[:n-1]
		p.kept -= pane.peak
		return pane
	}
	return &pane[K, A]{keys: keyed.NewTable[K, A]()}
}

// put takes a pane that nobody uses any more.
func (p *panePool[K, A]) put(pane *pane[K, A]) {
	if p.releaser != nil {
		for e := range pane.keys.All() {
			p.releaser.release(e.Value)
		}
	}
	n := pane.keys.Len()
	pane.peak = max(pane.peak, n)
	switch {
	case len(p.free) == maxFreePanes,
		len(p.free) > 0 && p.kept+pane.peak > maxFreeKeys,
		pane.peak > smallPane && pane.peak > 4*n:
		return
	}
	pane.keys.Reset()
	pane.spilled = spilledPane{}
	p.free = append(p.free, pane)
	p.kept += pane.peak
}

// release takes an accumulator that nobody uses any more.
func (p *panePool[K, A]) release(acc A) {
	if p.releaser != nil {
		p.releaser.release(acc)
	}
}
