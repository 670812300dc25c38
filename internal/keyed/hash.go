package keyed

import (
	"hash/maphash"
	"reflect"
	"unsafe"
)

// seed keys the table half of every hash in this process, so that nobody can
// choose keys that collide in a table.
var seed = maphash.MakeSeed()

// HasherFor returns the hash function of a key type. Build it once an edge: it
// looks at the type by reflection here and not again.
//
// The upper 32 bits of a hash are Flink's key hash: murmur of the Java hashCode
// of the corresponding Java key, never negative (spec windows 5.1). These
// correspond:
//
//   - string: String. Bytes that are not valid UTF-8 count as U+FFFD each.
//   - int, int64, uint, uint64, uintptr: Long
//   - the narrower integers: Integer, sign- or zero-extended
//   - bool: Boolean
//   - float32, float64: Float, Double. All NaNs are one key, as in Java. -0 and
//     +0 are one key, as in Go, and have the hash of +0; in Java they are two.
//     A key that has been stored or spilled comes back as +0 and as one NaN.
//   - a struct: a Flink tuple of its fields, an array: one of its elements.
//     Blank fields take no part.
//
// Named types are what they are made of. Types that hold a pointer, an
// interface, a channel or a complex number are refused.
//
// The lower 32 bits are independent of the upper, differ from one process to
// the next, and resist crafted keys.
func HasherFor[K comparable]() (func(K) uint64, error) {
	t := reflect.TypeFor[K]()
	c, err := compile(t)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Kind() == reflect.String:
		return func(k K) uint64 {
			s := *(*string)(unsafe.Pointer(&k))
			return join(javaString(s), maphash.String(seed, s))
		}, nil
	case len(c.parts) == 1 && c.parts[0].isLong():
		return func(k K) uint64 {
			v := *(*uint64)(unsafe.Pointer(&k))
			return join(uint32(v)^uint32(v>>32), maphash.Comparable(seed, v))
		}, nil
	case c.hasFloat:
		return func(k K) uint64 {
			return join(c.java(unsafe.Pointer(&k)), c.table(unsafe.Pointer(&k)))
		}, nil
	default:
		return func(k K) uint64 {
			return join(c.java(unsafe.Pointer(&k)), maphash.Comparable(seed, k))
		}, nil
	}
}

// join makes a key's hash of its Java hash code and a hash for tables.
func join(hashCode uint32, table uint64) uint64 {
	return uint64(murmur(hashCode))<<32 | table&(1<<32-1)
}

// murmur spreads a Java hash code as Flink does (spec windows 5.1). The result
// is not negative as an int32.
func murmur(code uint32) uint32 {
	code *= 0xcc9e2d51
	code = code<<15 | code>>17
	code *= 0x1b873593
	h := code<<13 | code>>19
	h = h*5 + 0xe6546b64
	h ^= 4
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	// The absolute value, without a branch on what is a coin toss; that of
	// MIN32, which has none, becomes 0.
	sign := uint32(int32(h) >> 31)
	return ((h ^ sign) - sign) &^ (1 << 31)
}

const (
	highBits = 0x8080808080808080
	// evenBytes and evenPairs pick every other lane of 8 and of 16 bits.
	evenBytes = 0x00ff00ff00ff00ff
	evenPairs = 0x0000ffff0000ffff
)

// pow31 holds the powers of 31, modulo 2^32.
var pow31 = [9]uint32{1, 31, 961, 29791, 923521, 28629151, 887503681, 1742810335, 2487512833}

// javaString returns what String.hashCode returns in Java. Up to the first byte
// that is not ASCII it works on eight at a time.
func javaString(s string) uint32 {
	var h uint32
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := load8(s[i : i+8])
		if w&highBits != 0 {
			return javaRunes(h, s[i:])
		}
		h = h*pow31[8] + poly31(w)
	}
	n := len(s) - i
	if n == 0 {
		return h
	}
	var w uint64
	if i > 0 {
		// The last eight bytes, less those that are done.
		w = load8(s[len(s)-8:]) >> (8 * (8 - n)) << (8 * (8 - n))
	} else {
		for j := range n {
			w = w>>8 | uint64(s[j])<<56
		}
	}
	if w&highBits != 0 {
		return javaRunes(h, s[i:])
	}
	return h*pow31[n] + poly31(w)
}

// load8 returns the first eight bytes of s, the first in the lowest place.
func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// poly31 returns the Java hash of eight ASCII bytes, the first in the lowest
// place: neighbours are joined to pairs, pairs to fours, fours to the result,
// all lanes at once. Leading zero bytes do not change it.
func poly31(w uint64) uint32 {
	w = (w&evenBytes)*31 + w>>8&evenBytes
	w = (w&evenPairs)*961 + w>>16&evenPairs
	return uint32(w)*923521 + uint32(w>>32)
}

// javaRunes continues a Java hash over the UTF-16 form of s.
func javaRunes(h uint32, s string) uint32 {
	for _, r := range s {
		if r < 0x10000 {
			h = h*31 + uint32(r)
			continue
		}
		r -= 0x10000
		h = h*31 + 0xd800 + uint32(r>>10)
		h = h*31 + 0xdc00 + uint32(r&0x3ff)
	}
	return h
}
