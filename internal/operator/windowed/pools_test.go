package windowed

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// specOf is the Spec of windows with nothing but options.
func specOf[T any](o Options) Spec[string, T] { return Spec[string, T]{Options: o} }

// TestFreeListsAreBoundedBySize: lists of windows that were once large do not stay.
func TestFreeListsAreBoundedBySize(t *testing.T) {
	var l lists[[1 << 10]byte]
	const perList = 64 // 64 KiB
	var used [][][1 << 10]byte
	for range 1000 {
		list := l.New()
		for range perList {
			list = l.Add(list, [1 << 10]byte{})
		}
		used = append(used, list)
	}
	for _, list := range used {
		l.release(list)
	}
	size := 0
	for _, list := range l.free {
		size += cap(list) << 10
	}
	if size == 0 || size > maxFreeBytes || size != l.kept {
		t.Errorf("%d bytes kept, of which it knows %d; want some and at most %d", size, l.kept, maxFreeBytes)
	}
	for range len(l.free) {
		l.New()
	}
	if l.kept != 0 {
		t.Errorf("%d bytes kept when nothing is", l.kept)
	}
}

// filled takes a pane and puts n keys into it.
func filled(p *panePool[int, int64], n int) *pane[int, int64] {
	pane := p.get()
	for i := range n {
		pane.keys.Upsert(uint64(i)<<32|uint64(i), i)
	}
	return pane
}

// TestFreePanesAreBoundedBySize: one large table stays as long as windows are large.
func TestFreePanesAreBoundedBySize(t *testing.T) {
	var p panePool[int, int64]
	var used []*pane[int, int64]
	for range 4 {
		used = append(used, filled(&p, maxFreeKeys+1))
	}
	for _, pane := range used {
		p.put(pane)
	}
	if len(p.free) != 1 {
		t.Fatalf("%d panes of more keys than are kept are free, want 1", len(p.free))
	}
	large := p.free[0]
	p.put(filled(&p, maxFreeKeys/2))
	if len(p.free) != 1 || p.free[0] != large {
		t.Errorf("a table of which half was used is gone")
	}
	p.put(filled(&p, 10))
	if len(p.free) != 0 || p.kept != 0 {
		t.Errorf("%d panes with room for %d keys are free after a window of 10, want none", len(p.free), p.kept)
	}
	used = used[:0]
	for range 2 * maxFreePanes {
		used = append(used, filled(&p, 100))
	}
	for _, pane := range used {
		p.put(pane)
	}
	if len(p.free) != maxFreePanes {
		t.Errorf("%d small panes are free, want %d", len(p.free), maxFreePanes)
	}
}

// TestFunctionMayRangeAgain: also over the elements of sliced windows, which are put in
// order for it, and over part of them.
func TestFunctionMayRangeAgain(t *testing.T) {
	for _, a := range []window.Assigner{window.Tumbling(ms(10)), window.Sliding(ms(10), ms(5)), window.Session(ms(10))} {
		h := openHarness(t, Process(specOf[element](Options{Assigner: a}), twice))
		h.mustProcess(t, timed{element{"k", 1}, 8, 0}, timed{element{"k", 2}, 6, 0}, timed{element{"k", 3}, 2, 0})
		h.mustAdvance(t, 100)
		const want = "[1 2 3] 1 [1 2 3]"
		out := h.take().main
		if !slices.ContainsFunc(out, func(r record) bool { return r.Value == want }) {
			t.Errorf("%v: got %v, want %q", a, out, want)
		}
	}
}

// twice shows what it finds in three goes over the elements.
func twice(_ *Context[string], out *operator.Emitter[string]) func(iter.Seq[element]) error {
	return func(elements iter.Seq[element]) error {
		values := func() (list []int32) {
			for e := range elements {
				list = append(list, e.Value)
			}
			return list
		}
		all, first := values(), int32(0)
		for e := range elements {
			first = e.Value
			break
		}
		out.Append(fmt.Sprint(all, first, values()), 0, 0)
		return nil
	}
}
