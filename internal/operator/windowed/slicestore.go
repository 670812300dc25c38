package windowed

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/window"
)

// sliceStore holds slices by number and puts them together.
//
// A window of many slices is not summed slice by slice: sums of 2, 4, 8, ...
// neighbouring slices are kept as well, each made when a window first needs it
// and used by all windows after it until its first slice goes.
//
//	level 2    [0..3]          [4..7]
//	level 1    [0 1]   [2 3]   [4 5]   [6 7]
//	slices      0   1   2   3   4   5   6   7
//	            window [1..6] = 1 + [2 3] + [4 5] + 6
//
// So a firing merges some log2 of the number of slices per key.
type sliceStore[K comparable, T, A any] struct {
	fold fold[T, A]
	pool panePool[K, A]
	// ordered says that contents depend on the order in which records are
	// added, across slices too. There are no sums then.
	ordered bool

	layout *layout
	live   []slice[K, A]
	sums   map[sumID]*pane[K, A]
	// ids are those of the sums, in the order in which they were made.
	ids []sumID
	// summed is the number of the first slice that is in no sum.
	summed int64
	top    uint8 // the highest level with a sum

	// Scratch space.
	parts, children, panes []*pane[K, A]
	merge                  merger[K, T, A]

	// spilled is nil unless there is a budget for memory.
	spilled *sliceSpilling[K, T, A]
}

// slice is a slice with contents.
type slice[K comparable, A any] struct {
	number int64
	pane   *pane[K, A]
}

// sumID names the sum of slices number<<level up to (number+1)<<level.
type sumID struct {
	level  uint8
	number int64
}

func (s *sliceStore[K, T, A]) open(f fold[T, A], l *layout) {
	s.fold, s.layout = f, l
	s.pool.releaser, _ = f.(releaser[A])
	s.sums = map[sumID]*pane[K, A]{}
	s.summed = math.MinInt64
	s.merge.fold = f
}

// position returns how many live slices have a smaller number than n.
func (s *sliceStore[K, T, A]) position(n int64) int {
	return sort.Search(len(s.live), func(i int) bool { return s.live[i].number >= n })
}

// at returns slice n and makes it if need be.
func (s *sliceStore[K, T, A]) at(n int64) *pane[K, A] {
	i := s.position(n)
	if i < len(s.live) && s.live[i].number == n {
		return s.live[i].pane
	}
	p := s.pool.get()
	p.window = s.layout.span(n)
	s.live = append(s.live, slice[K, A]{})
	copy(s.live[i+1:], s.live[i:])
	s.live[i] = slice[K, A]{n, p}
	return p
}

// holding appends slice n, made if need be, and all sums that it is in.
func (s *sliceStore[K, T, A]) holding(dst []*pane[K, A], n int64) []*pane[K, A] {
	dst = append(dst, s.at(n))
	if n >= s.summed {
		return dst
	}
	for level := uint8(1); level <= s.top; level++ {
		if sum := s.sums[sumID{level, n >> level}]; sum != nil {
			dst = append(dst, sum)
		}
	}
	return dst
}

// sum returns the contents of the parts of a window. If temporary, the caller recycles the
// pane.
func (s *sliceStore[K, T, A]) sum(parts []*pane[K, A]) (p *pane[K, A], temporary bool) {
	if len(parts) == 1 {
		return parts[0], false
	}
	p = s.pool.get()
	for _, part := range parts {
		s.merge.into(p.keys, part.keys)
	}
	return p, true
}

// sumOf returns the contents of the slices from lo up to (not including) hi for one key.
func (s *sliceStore[K, T, A]) sumOf(lo, hi int64, hash uint64, key K) (A, error) {
	if s.spilled != nil {
		return s.spilledSumOf(lo, hi, hash, key)
	}
	acc := s.fold.New()
	parts, err := s.collect(lo, hi)
	for _, part := range parts {
		if v := part.keys.Get(hash, key); v != nil {
			acc = s.fold.Merge(acc, *v)
		}
	}
	return acc, err
}

// collect returns slices and sums that make up the slices from lo to hi. The
// result is valid until the next call.
func (s *sliceStore[K, T, A]) collect(lo, hi int64) ([]*pane[K, A], error) {
	s.parts = s.parts[:0]
	if s.ordered {
		s.parts = s.between(s.parts, lo, hi)
		return s.parts, nil
	}
	for lo < hi {
		level := levelOf(lo, hi)
		p, err := s.node(level, lo>>level)
		if err != nil {
			return nil, err
		}
		if p != nil {
			s.parts = append(s.parts, p)
		}
		lo += 1 << level
	}
	return s.parts, nil
}

// between appends the live slices from lo to hi.
func (s *sliceStore[K, T, A]) between(dst []*pane[K, A], lo, hi int64) []*pane[K, A] {
	for i := s.position(lo); i < len(s.live) && s.live[i].number < hi; i++ {
		dst = append(dst, s.live[i].pane)
	}
	return dst
}

// levelOf returns that of the largest sum that begins with slice lo and ends by slice hi.
func levelOf(lo, hi int64) uint8 {
	level := bits.Len64(uint64(hi-lo)) - 1
	if lo != 0 {
		level = min(level, bits.TrailingZeros64(uint64(lo)))
	}
	return uint8(level)
}

// node returns the pane of the sum with that id, made if need be, or the only
// slice in its range, or nil if there is none.
func (s *sliceStore[K, T, A]) node(level uint8, number int64) (*pane[K, A], error) {
	id := sumID{level, number}
	if p := s.sums[id]; p != nil {
		return p, nil
	}
	first, last := number<<level, (number+1)<<level-1
	from, to := s.position(first), s.position(last+1)
	switch to - from {
	case 0:
		return nil, nil
	case 1:
		return s.live[from].pane, nil
	}
	left, err := s.node(level-1, 2*number)
	if err != nil {
		return nil, err
	}
	right, err := s.node(level-1, 2*number+1)
	if err != nil {
		return nil, err
	}
	p := s.pool.get()
	p.window = window.TimeWindow{Start: s.layout.span(first).Start, End: s.layout.span(last).End}
	s.children = s.children[:0]
	for _, c := range [2]*pane[K, A]{left, right} {
		if c != nil {
			s.children = append(s.children, c)
		}
	}
	if s.spilled.fits(s.children) {
		for _, c := range s.children {
			s.merge.into(p.keys, c.keys)
		}
		err = s.spilled.made(p)
	} else {
		err = s.spilled.sum(p, s.children)
	}
	s.sums[id] = p
	s.ids = append(s.ids, id)
	s.summed = max(s.summed, last+1)
	s.top = max(s.top, level)
	return p, err
}

// dropBefore drops the slices before number n and the sums they are in, and
// reports whether there were any.
func (s *sliceStore[K, T, A]) dropBefore(n int64) (bool, error) {
	dropped := s.position(n)
	if dropped == 0 {
		return false, nil
	}
	var err error
	for _, slice := range s.live[:dropped] {
		err = errors.Join(err, s.drop(slice.pane))
	}
	rest := copy(s.live, s.live[dropped:])
	clear(s.live[rest:])
	s.live = s.live[:rest]
	s.ids = slices.DeleteFunc(s.ids, func(id sumID) bool {
		if id.number<<id.level >= n {
			return false
		}
		err = errors.Join(err, s.drop(s.sums[id]))
		delete(s.sums, id)
		return true
	})
	return true, err
}

// drop takes a pane that nobody uses any more.
func (s *sliceStore[K, T, A]) drop(p *pane[K, A]) error {
	err := s.spilled.dropped(p)
	s.pool.put(p)
	return err
}

// merger adds the contents of tables to others.
type merger[K comparable, T, A any] struct {
	fold    fold[T, A]
	entries [mergeChunk]int32
	hashes  [mergeChunk]uint64
	keys    [mergeChunk]K
}

// mergeChunk is how many keys are looked up together.
const mergeChunk = 64

// into merges each accumulator of src into the one of its key in dst.
func (m *merger[K, T, A]) into(dst, src *keyed.Table[K, A]) {
	for from := 0; from < src.Len(); from += mergeChunk {
		n := min(mergeChunk, src.Len()-from)
		for i := range n {
			e := src.At(from + i)
			m.hashes[i], m.keys[i] = e.Hash, e.Key
		}
		created := int32(dst.Len())
		dst.UpsertBatch(m.hashes[:n], m.keys[:n], m.entries[:n])
		for i, entry := range m.entries[:n] {
			acc := &dst.At(int(entry)).Value
			if entry == created {
				*acc = m.fold.New()
				created++
			}
			*acc = m.fold.Merge(*acc, src.At(from+i).Value)
		}
	}
}
