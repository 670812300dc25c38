package observe

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// NewID returns a random id: 32 hexadecimal digits, as Flink's.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// OperatorID returns the id that Flink gives to an operator with this uid: its murmur3
// hash of 128 bits, so that ids agree between a job here and the same job there.
func OperatorID(uid string) string {
	h1, h2 := murmur3([]byte(uid))
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], h1)
	binary.LittleEndian.PutUint64(b[8:], h2)
	return hex.EncodeToString(b[:])
}

const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
)

// murmur3 is MurmurHash3_x64_128 with seed 0.
func murmur3(data []byte) (h1, h2 uint64) {
	length := uint64(len(data))
	for len(data) >= 16 {
		h1 ^= mixK1(binary.LittleEndian.Uint64(data))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mixK2(binary.LittleEndian.Uint64(data[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
		data = data[16:]
	}
	var tail [16]byte
	copy(tail[:], data)
	h1 ^= mixK1(binary.LittleEndian.Uint64(tail[:]))
	h2 ^= mixK2(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= length
	h2 ^= length
	h1 += h2
	h2 += h1
	h1, h2 = murmurFinal(h1), murmurFinal(h2)
	h1 += h2
	h2 += h1
	return h1, h2
}

func mixK1(k uint64) uint64 { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }
func mixK2(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func murmurFinal(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
