package keyed

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/state"
)

// spot is a key with floats in it.
type spot struct {
	Name     string
	At       [2]float64
	Altitude float32
}

// sameSpots are one key, each with other bits.
func sameSpots() []spot {
	zero, nan := math.Copysign(0, -1), math.Float64frombits(0xfff8000000000009)
	return []spot{
		{"a", [2]float64{0, math.NaN()}, float32(math.NaN())},
		{"a", [2]float64{zero, nan}, math.Float32frombits(0xffc00001)},
		{"a", [2]float64{zero, math.NaN()}, math.Float32frombits(0x7fc00009)},
	}
}

// Keys that are the same have one cell, also if it is on disk: looked up one by one and in
// batches, and removed.
func TestSpilledFloatKeys(t *testing.T) {
	same, hash := sameSpots(), hasherOf[spot](t)
	for _, batch := range []int{0, 1, len(same)} {
		t.Run(fmt.Sprint("batches of ", batch), func(t *testing.T) {
			b := NewBackend[spot]()
			storeIn(t, b, nil)
			b.Limit(Budget{Bytes: 32 << 10, Dir: t.TempDir()})
			defer func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}()
			counts, err := b.Value(state.Value[int]("counts"))
			if err != nil {
				t.Fatal(err)
			}
			add := func(key spot) {
				b.SetCurrentKey(hash(key), key)
				n, _ := counts.Get()
				counts.Set(n + 1)
			}
			crowdOut := func() {
				for i := range 2000 {
					add(spot{Name: fmt.Sprint(i)})
				}
				b.ClearCurrentKey()
			}
			for i := range same {
				if batch > 0 {
					keys := same[i:min(i+batch, len(same))]
					var hashes []uint64
					for _, k := range keys {
						hashes = append(hashes, hash(k))
					}
					b.Touch(hashes, keys)
				}
				add(same[i])
				crowdOut()
			}
			if b.overflow.Numbers.SpillReads.Value() == 0 {
				t.Error("nothing came back from disk")
			}
			b.SetCurrentKey(hash(same[1]), same[1])
			if n, _ := counts.Get(); n != len(same) {
				t.Errorf("counted %d times, want %d", n, len(same))
			}
			crowdOut()
			b.SetCurrentKey(hash(same[2]), same[2])
			counts.Clear()
			b.SetCurrentKey(hash(same[0]), same[0])
			if n, ok := counts.Get(); ok {
				t.Errorf("%d is left", n)
			}
			if err := b.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Keys that are the same are stored as the same bytes, which are read as one of them.
func TestFloatKeysAreStoredAlike(t *testing.T) {
	keys, err := NewKeyCodec[spot](128)
	if err != nil {
		t.Fatal(err)
	}
	decode, err := keys.Decoder(keys.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for i, k := range sameSpots() {
		before := k
		data, err := keys.Append(nil, &k)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if string(data) != string(first) {
			t.Errorf("%d: %x, want %x", i, data, first)
		}
		if math.Signbit(k.At[0]) != math.Signbit(before.At[0]) {
			t.Error("the key has been changed")
		}
		var read spot
		if _, err := decode(data, &read); err != nil || !keys.same(read, k) {
			t.Errorf("%d: read as %v, %v", i, read, err)
		}
	}
}

// Keys of which something is left out of the state would be one key there.
func TestKeyWithoutAField(t *testing.T) {
	type inner struct {
		A int
		B string `avro:"-"`
	}
	type key struct {
		Of [2]inner
		_  int
	}
	_, err := NewKeyCodec[key](128)
	if err == nil || !strings.Contains(err.Error(), "inner.B is part of the key") {
		t.Errorf("got %v", err)
	}
	if _, err := NewKeyCodec[struct {
		A int
		_ int
	}](128); err != nil {
		t.Error(err)
	}
}
