package keyed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/state"
)

// touchAtRandom says that some keys come next, a few of them several times.
func touchAtRandom(r *rand.Rand, s *allStates, keys []string) {
	hash := s.Keys().hash
	var batch []string
	var hashes []uint64
	for range r.IntN(8) {
		key := keys[r.IntN(len(keys))]
		for range 1 + r.IntN(2) {
			batch, hashes = append(batch, key), append(hashes, hash(key))
		}
	}
	s.Touch(hashes, batch)
}

// prefetching is a backend of which most keys are on disk: key i has the values i.
type prefetching struct {
	*allStates
	numbers *metric.State
	keys    []string
	hashes  []uint64
}

func newPrefetching(t *testing.T, keys int, budget int64) *prefetching {
	t.Helper()
	b, numbers := limited(t, budget, nil)
	p := &prefetching{allStates: openAllIn(t, b, state.TTL{}), numbers: numbers}
	hash := hasherOf[string](t)
	for i := range keys {
		key := fmt.Sprint("key", i)
		p.keys, p.hashes = append(p.keys, key), append(p.hashes, hash(key))
		p.SetCurrentKey(p.hashes[i], key)
		p.value.Set(i)
		p.list.Set([]int{i, i + 1})
	}
	p.ClearCurrentKey()
	return p
}

// read reads the values of keys as a batch, and returns how many cells were read from disk
// together and how many one by one.
func (p *prefetching) read(t *testing.T, from, to int, lists bool) (together, single int64) {
	t.Helper()
	before := p.numbers.SpillReads.Value()
	p.Touch(p.hashes[from:to], p.keys[from:to])
	touched := p.numbers.SpillReads.Value()
	for i := from; i < to; i++ {
		p.SetCurrentKey(p.hashes[i], p.keys[i])
		if v, ok := p.value.Get(); v != i || !ok {
			t.Fatalf("key %d has value %d, %v", i, v, ok)
		}
		if !lists {
			continue
		}
		if l := p.list.Get(); len(l) != 2 || l[0] != i {
			t.Fatalf("key %d has list %v", i, l)
		}
	}
	p.ClearCurrentKey()
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return touched - before, p.numbers.SpillReads.Value() - touched
}

// What a batch uses comes from disk together, once for each key, and only of states that
// records use.
func TestPrefetch(t *testing.T) {
	const keys, budget, batch = 20_000, 400 << 10, 100
	p := newPrefetching(t, keys, budget)
	if n := p.numbers.SpilledEntries.Value(); n < keys {
		t.Fatalf("only %d cells are on disk", n)
	}
	for i, step := range []struct {
		lists            bool
		together, single int64
	}{
		{true, 2 * batch, 0},
		{true, 2 * batch, 0},
		{false, 2 * batch, 0}, // no one knows yet that lists are not used
		{false, batch, 0},
		{true, batch, batch},
		{true, 2 * batch, 0},
	} {
		together, single := p.read(t, i*batch, (i+1)*batch, step.lists)
		if together != step.together || single != step.single {
			t.Errorf("batch %d: %d cells were read together and %d one by one, want %d and %d",
				i, together, single, step.together, step.single)
		}
	}
	again := []int{7000, 7001, 7000, 7000}
	var batchKeys []string
	var hashes []uint64
	for _, i := range again {
		batchKeys, hashes = append(batchKeys, p.keys[i]), append(hashes, p.hashes[i])
	}
	reads := p.numbers.SpillReads.Value()
	p.Touch(hashes, batchKeys)
	if n := p.numbers.SpillReads.Value() - reads; n != 4 {
		t.Errorf("%d reads for two states of two keys, one of which comes three times", n)
	}
}

// A batch that needs more than a part of the budget gets the rest one by one.
func TestPrefetchKeepsToItsRoom(t *testing.T) {
	const keys, budget = 20_000, 64 << 10
	p := newPrefetching(t, keys, budget)
	const most = budget/prefetchPart/(8+8+16+entryOverhead) + 1 // hash, value, key
	together, single := p.read(t, 0, 1000, false)
	if together == 0 || together > most || together+single < 1000 {
		t.Errorf("%d cells were read together and %d one by one, want at most %d together and all in all 1000", together, single, most)
	}
	if bytes := p.numbers.MemoryBytes.Value(); bytes > budget+2*11*keys {
		t.Errorf("%d bytes in memory with a budget of %d", bytes, budget)
	}
}

// What cannot be read is an error that says of which state and key.
func TestPrefetchFails(t *testing.T) {
	p := newPrefetching(t, 5000, 100<<10)
	s := p.value.(*valueState[string, int])
	const broken = 17
	key, err := s.diskKey(p.hashes[broken], &p.keys[broken])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.overflow.batch.Set(key, nil), p.overflow.batch.Commit()); err != nil {
		t.Fatal(err)
	}
	p.Touch(p.hashes[:100], p.keys[:100])
	for _, part := range []string{`state "value"`, p.keys[broken]} {
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}
