package exchange

import (
	"sync"

	"github.com/lowwater/lowwater/connector"
)

// KeyedBatch is what travels behind a KeyBy: records with their keys and the
// keys' hashes, computed once by the partitioner. A hash holds Flink's key hash
// (after murmur, non-negative) in its upper 32 bits, which decides the key
// group, and an independent table hash in its lower 32; see package keyed.
type KeyedBatch[K comparable, T any] struct {
	connector.Batch[T]
	Keys   []K
	Hashes []uint64

	pool *KeyedPool[K, T]
}

// Release gives the batch back to its pool.
func (b *KeyedBatch[K, T]) Release() {
	b.Truncate(0)
	b.Keys, b.Hashes = b.Keys[:0], b.Hashes[:0]
	if b.pool != nil {
		b.pool.pool.Put(b)
	}
}

// KeyedPool recycles keyed batches. It is safe for concurrent use.
type KeyedPool[K comparable, T any] struct{ pool sync.Pool }

// NewKeyedPool returns an empty pool.
func NewKeyedPool[K comparable, T any]() *KeyedPool[K, T] { return &KeyedPool[K, T]{} }

// Get returns an empty batch owned by the caller.
func (p *KeyedPool[K, T]) Get() *KeyedBatch[K, T] {
	if b, ok := p.pool.Get().(*KeyedBatch[K, T]); ok {
		return b
	}
	return &KeyedBatch[K, T]{pool: p}
}
