package spill

// Filter tells for a hash that it was not added, or that it may have been: a set of 32 bits
// of each hash. It never misses one. A wrong answer, which costs a read in vain, comes
// about once in 400 questions with ten million hashes.
//
// It is cut into shards that grow one by one, so that no insertion is held up long, and
// takes 5 to 11 bytes for each hash.
type Filter struct {
	shards [256]shard
	len    int
}

// shard is open-addressed with linear probing; 0 is empty. What is there several times has
// several slots.
type shard struct {
	slots []uint32
	used  int
}

const minShard = 8

// printOf returns the bits of a hash that are kept, which are not 0. The upper 8 choose the
// shard, those behind them the home slot.
func printOf(hash uint64) uint32 {
	mixed := (hash ^ hash>>32) * 0x9e3779b97f4a7c15
	mixed = (mixed ^ mixed>>29) * 0xbf58476d1ce4e5b9
	return max(uint32(mixed>>32), 1)
}

// home returns the slot where the search for p begins.
func (s *shard) home(p uint32) int {
	return int(uint64(p<<8) * uint64(len(s.slots)) >> 32)
}

// find returns the slot of p, or the empty one where it would be.
func (s *shard) find(p uint32) (at int, found bool) {
	mask := len(s.slots) - 1
	for at = s.home(p); s.slots[at] != 0; at = (at + 1) & mask {
		if s.slots[at] == p {
			return at, true
		}
	}
	return at, false
}

// add adds p, however often it is there.
func (s *shard) add(p uint32) {
	mask, at := len(s.slots)-1, s.home(p)
	for s.slots[at] != 0 {
		at = (at + 1) & mask
	}
	s.slots[at] = p
	s.used++
}

// Len returns how many hashes have been added and not removed.
func (f *Filter) Len() int { return f.len }

// Bytes returns how much memory it takes.
func (f *Filter) Bytes() (n int) {
	for i := range f.shards {
		n += 4 * len(f.shards[i].slots)
	}
	return n
}

// Has reports whether a hash may have been added.
func (f *Filter) Has(hash uint64) bool {
	if f.len == 0 {
		return false
	}
	p := printOf(hash)
	s := &f.shards[p>>24]
	if s.used == 0 {
		return false
	}
	_, found := s.find(p)
	return found
}

// Add adds a hash, once more if it was added before.
func (f *Filter) Add(hash uint64) {
	p := printOf(hash)
	s := &f.shards[p>>24]
	if s.used+1 > len(s.slots)-len(s.slots)/4 {
		old := s.slots
		*s = shard{slots: make([]uint32, max(2*len(old), minShard))}
		for _, p := range old {
			if p != 0 {
				s.add(p)
			}
		}
	}
	s.add(p)
	f.len++
}

// Remove removes a hash, once if it was added several times.
func (f *Filter) Remove(hash uint64) {
	p := printOf(hash)
	s := &f.shards[p>>24]
	if s.used == 0 {
		return
	}
	gap, found := s.find(p)
	if !found {
		return
	}
	mask := len(s.slots) - 1
	for at := (gap + 1) & mask; s.slots[at] != 0; at = (at + 1) & mask {
		if (at-s.home(s.slots[at]))&mask >= (at-gap)&mask {
			s.slots[gap] = s.slots[at]
			gap = at
		}
	}
	s.slots[gap] = 0
	s.used--
	f.len--
}
