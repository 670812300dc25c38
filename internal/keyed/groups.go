package keyed

import "math/bits"

// UpperBoundMaxParallelism is the largest max parallelism a job may have.
const UpperBoundMaxParallelism = 1 << 15

// KeyGroup returns the key group, in [0, maxParallelism), of a key with the
// given hash (spec windows 5.1).
func KeyGroup(hash uint64, maxParallelism int) int {
	return int(uint32(hash>>32) % uint32(maxParallelism))
}

// SubtaskOf returns the subtask that owns a key group (spec windows 5.1).
func SubtaskOf(group, parallelism, maxParallelism int) int {
	return group * parallelism / maxParallelism
}

// GroupRange is a range of key groups, both ends included.
type GroupRange struct{ First, Last int }

// RangeOf returns the key groups that a subtask owns (spec windows 5.1).
func RangeOf(subtask, parallelism, maxParallelism int) GroupRange {
	return GroupRange{
		First: (subtask*maxParallelism + parallelism - 1) / parallelism,
		Last:  ((subtask+1)*maxParallelism - 1) / parallelism,
	}
}

// Contains reports whether the range holds the group.
func (r GroupRange) Contains(group int) bool { return r.First <= group && group <= r.Last }

// Len returns the number of groups in the range.
func (r GroupRange) Len() int { return r.Last - r.First + 1 }

// DefaultMaxParallelism returns the max parallelism of an operator that was
// given none (spec windows 5.1): a power of two with room to grow by half.
func DefaultMaxParallelism(parallelism int) int {
	room := uint(parallelism + parallelism/2)
	return min(max(1<<bits.Len(room-1), 128), UpperBoundMaxParallelism)
}

// Assignment maps hashes to the subtasks that own them, for writers that look
// up one record after the other.
type Assignment struct {
	owner []int32
	// mask is len(owner)-1 if that is a power of two, else 0.
	mask uint32
}

// NewAssignment returns the assignment of maxParallelism key groups to
// parallelism subtasks.
func NewAssignment(parallelism, maxParallelism int) Assignment {
	a := Assignment{owner: make([]int32, maxParallelism)}
	for g := range a.owner {
		a.owner[g] = int32(SubtaskOf(g, parallelism, maxParallelism))
	}
	if bits.OnesCount(uint(maxParallelism)) == 1 {
		a.mask = uint32(maxParallelism - 1)
	}
	return a
}

// Subtask returns the owner of the key with the given hash. It equals
// SubtaskOf(KeyGroup(hash, maxParallelism), ...) without the divisions.
func (a *Assignment) Subtask(hash uint64) int {
	murmur := uint32(hash >> 32)
	if a.mask != 0 {
		return int(a.owner[murmur&a.mask])
	}
	return int(a.owner[murmur%uint32(len(a.owner))])
}
