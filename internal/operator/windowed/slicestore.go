package windowed

import (
	"math"
	"math/bits"
	"sort"

	"github.com/lowwater/lowwater/internal/keyed"
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

	live []slice[K, A]
	sums map[sumID]*pane[K, A]
	// summed is the number of the first slice that is in no sum.
	summed int64
	top    uint8 // the highest level with a sum

	parts []*pane[K, A] // scratch space
	merge merger[K, T, A]
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

func (s *sliceStore[K, T, A]) open(f fold[T, A]) {
	s.fold = f
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

// sum returns the contents of the slices from lo up to (not including) hi, at
// least one of which is live. If temporary, the caller recycles the pane.
func (s *sliceStore[K, T, A]) sum(lo, hi int64) (p *pane[K, A], temporary bool) {
	parts := s.collect(lo, hi)
	if len(parts) == 1 {
		return parts[0], false
	}
	p = s.pool.get()
	for _, part := range parts {
		s.merge.into(p.keys, part.keys)
	}
	return p, true
}

// sumOf returns the contents for one key.
func (s *sliceStore[K, T, A]) sumOf(lo, hi int64, hash uint64, key K) A {
	acc := s.fold.New()
	for _, part := range s.collect(lo, hi) {
		if v := part.keys.Get(hash, key); v != nil {
			acc = s.fold.Merge(acc, *v)
		}
	}
	return acc
}

// collect returns slices and sums that make up the slices from lo to hi. The
// result is valid until the next call.
func (s *sliceStore[K, T, A]) collect(lo, hi int64) []*pane[K, A] {
	s.parts = s.parts[:0]
	if s.ordered {
		for i := s.position(lo); i < len(s.live) && s.live[i].number < hi; i++ {
			s.parts = append(s.parts, s.live[i].pane)
		}
		return s.parts
	}
	for lo < hi {
		level := bits.Len64(uint64(hi-lo)) - 1
		if lo != 0 {
			level = min(level, bits.TrailingZeros64(uint64(lo)))
		}
		if p := s.node(uint8(level), lo>>level); p != nil {
			s.parts = append(s.parts, p)
		}
		lo += 1 << level
	}
	return s.parts
}

// node returns the pane of the sum with that id, made if need be, or the only
// slice in its range, or nil if there is none.
func (s *sliceStore[K, T, A]) node(level uint8, number int64) *pane[K, A] {
	id := sumID{level, number}
	if p := s.sums[id]; p != nil {
		return p
	}
	from := s.position(number << level)
	to := s.position((number + 1) << level)
	switch to - from {
	case 0:
		return nil
	case 1:
		return s.live[from].pane
	}
	p := s.pool.get()
	for child := range int64(2) {
		if c := s.node(level-1, 2*number+child); c != nil {
			s.merge.into(p.keys, c.keys)
		}
	}
	s.sums[id] = p
	s.summed = max(s.summed, (number+1)<<level)
	s.top = max(s.top, level)
	return p
}

// dropBefore drops the slices before number n and the sums they are in, and
// reports whether there were any.
func (s *sliceStore[K, T, A]) dropBefore(n int64) bool {
	dropped := s.position(n)
	if dropped == 0 {
		return false
	}
	for _, slice := range s.live[:dropped] {
		s.pool.put(slice.pane)
	}
	rest := copy(s.live, s.live[dropped:])
	clear(s.live[rest:])
	s.live = s.live[:rest]
	for id, sum := range s.sums {
		if id.number<<id.level < n {
			delete(s.sums, id)
			s.pool.put(sum)
		}
	}
	return true
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
