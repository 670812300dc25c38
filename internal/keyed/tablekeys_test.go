package keyed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpsertBatchKinds counts keys of many kinds by batch, in tables of all sizes, and
// compares with keys looked up one by one. It has keys of one table half that differ in
// little, so that every comparison counts.
func TestUpsertBatchKinds(t *testing.T) {
	type name string
	type pair struct {
		Shop string
		Item int32
	}
	type small struct{ A, B uint8 }
	t.Run("text", func(t *testing.T) { testUpsertBatch(t, textKey) })
	t.Run("named text", func(t *testing.T) { testUpsertBatch(t, func(n int) name { return name(textKey(n)) }) })
	t.Run("int64", func(t *testing.T) { testUpsertBatch(t, func(n int) int64 { return int64(n-500) << 33 }) })
	t.Run("int8", func(t *testing.T) { testUpsertBatch(t, func(n int) int8 { return int8(n) }) })
	t.Run("struct with text", func(t *testing.T) {
		testUpsertBatch(t, func(n int) pair { return pair{textKey(n / 3), int32(n % 3)} })
	})
	t.Run("struct", func(t *testing.T) { testUpsertBatch(t, func(n int) small { return small{uint8(n), uint8(n >> 8)} }) })
	t.Run("empty struct", func(t *testing.T) { testUpsertBatch(t, func(int) struct{} { return struct{}{} }) })
	t.Run("float64", func(t *testing.T) { testUpsertBatch(t, floatKey) })
	t.Run("struct with float", func(t *testing.T) {
		testUpsertBatch(t, func(n int) struct{ X float64 } { return struct{ X float64 }{floatKey(n)} })
	})
}

// textKey returns text n: the first 2000 of 0 to 20 bytes or of 40, alike but for one byte
// anywhere, then numbers of 5 to 19 digits.
func textKey(n int) string {
	if n >= 2000 {
		return fmt.Sprintf("%0*d", 5+n%15, n)
	}
	length := n % 22
	if length == 21 {
		length = 40
	}
	if length == 0 {
		return ""
	}
	b := []byte(strings.Repeat("a", length))
	b[n/22%length] = "abc\x00"[n/22/length%4]
	return strings.Clone(string(b))
}

// floatKey has NaNs that differ in their bits, and both zeros, among others.
func floatKey(n int) float64 {
	switch n % 7 {
	case 0:
		return math.Float64frombits(math.Float64bits(math.NaN()) ^ uint64(n))
	case 1:
		return 0
	case 2:
		return math.Copysign(0, -1)
	default:
		return float64(n) / 2
	}
}

func testUpsertBatch[K comparable](t *testing.T, key func(n int) K) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := hasherOf[K](t)
	same := equalityOf[K]()
	// With few bits of hash unequal keys meet, the more the fewer.
	for _, mask := range []uint64{1<<64 - 1, 1<<63 | 0xff, 0} {
		distinct, batches := 3*farLen, 100
		if mask != 1<<64-1 {
			distinct, batches = 1500, 20
		}
		batch, one := NewTable[K, int](), NewTable[K, int]()
		for range batches {
			n := r.IntN(2 * chunk)
			keys, hashes, at := make([]K, n), make([]uint64, n), make([]int32, n)
			for i := range keys {
				keys[i] = key(r.IntN(distinct))
				hashes[i] = h(keys[i]) & mask
			}
			batch.Touch(hashes)
			batch.UpsertBatch(hashes, keys, at)
			for i, k := range keys {
				if e := batch.At(int(at[i])); !same.same(e.Key, k) || e.Hash != hashes[i] {
					t.Fatalf("mask %x: key %q is number %d, which is %q", mask, fmt.Sprint(k), at[i], fmt.Sprint(e.Key))
				}
				batch.At(int(at[i])).Value++
				*first(one.Upsert(hashes[i], k))++
			}
		}
		contents := func(table *Table[K, int]) (lines []string) {
			for e := range table.All() {
				lines = append(lines, fmt.Sprintf("%#v %x %d", e.Key, e.Hash, e.Value))
			}
			return lines
		}
		if diff := cmp.Diff(contents(one), contents(batch)); diff != "" {
			t.Errorf("mask %x: one by one and by batch differ (-one +batch):\n%s", mask, diff)
		}
	}
}

func TestEqualText(t *testing.T) {
	for _, a := range []string{"", "a", "1234567", "12345678", "123456789", "123456789012345", "1234567890123456", "12345678901234567"} {
		for i := range len(a) {
			b := a[:i] + "x" + a[i+1:]
			if equalText(a, b) || equalText(a, a[:i]) || equalText(a[:i], a) {
				t.Errorf("%q equals %q or its first %d bytes", a, b, i)
			}
		}
		if !equalText(a, strings.Clone(a)) {
			t.Errorf("%q does not equal itself", a)
		}
	}
}
