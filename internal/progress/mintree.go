package progress

import "math/bits"

// minTree keeps the minimum of n values while single values change. Leaves hold
// the values and every inner node the smaller of its two children. A change
// walks up only as far as minima change: about two steps on average where
// values rise in turn, log2(n) at worst. A value that does not take part is
// maxTime; whether any takes part is the owner's to know.
type minTree struct {
	// nodes[1] is the root, nodes[leaves+i] is value i.
	nodes  []int64
	leaves int
}

// newMinTree returns a tree with room for n values, none taking part.
func newMinTree(n int) minTree {
	leaves := 1
	if n > 1 {
		leaves = 1 << bits.Len(uint(n-1))
	}
	t := minTree{nodes: make([]int64, 2*leaves), leaves: leaves}
	for i := range t.nodes {
		t.nodes[i] = maxTime
	}
	return t
}

func (t *minTree) min() int64 { return t.nodes[1] }

func (t *minTree) set(i int, v int64) {
	n := t.leaves + i
	t.nodes[n] = v
	for n > 1 {
		n /= 2
		smaller := min(t.nodes[2*n], t.nodes[2*n+1])
		if t.nodes[n] == smaller {
			return
		}
		t.nodes[n] = smaller
	}
}

// grow makes room for n values.
func (t *minTree) grow(n int) {
	if n <= t.leaves {
		return
	}
	bigger := newMinTree(n)
	copy(bigger.nodes[bigger.leaves:], t.nodes[t.leaves:])
	for i := bigger.leaves - 1; i > 0; i-- {
		bigger.nodes[i] = min(bigger.nodes[2*i], bigger.nodes[2*i+1])
	}
	*t = bigger
}
