package connector

import (
	"fmt"
	"sync"
)

// BatchSize is the number of records after which a batch is full and is sent on.
const BatchSize = 1024

// Origin says which record of which split a value was made from: the split's
// number within the job in the upper 20 bits and the record's offset in the
// lower 44. It travels with every record so that a late or dropped one can be
// named. The zero Origin means unknown.
type Origin uint64

const (
	originOffsetBits = 44
	maxOriginOffset  = 1<<originOffsetBits - 1
	maxOriginSplit   = 1<<(64-originOffsetBits) - 1
)

// MakeOrigin packs a split number (from 1) and an offset. What does not fit is
// reported as unknown rather than as some other record.
func MakeOrigin(split uint32, offset int64) Origin {
	if split == 0 || split > maxOriginSplit || offset < 0 || offset > maxOriginOffset {
		return 0
	}
	return Origin(uint64(split)<<originOffsetBits | uint64(offset))
}

// Split returns the split number, 0 if the origin is unknown.
func (o Origin) Split() uint32 { return uint32(o >> originOffsetBits) }

// Offset returns the record's offset within its split, 0 if the origin is unknown.
func (o Origin) Offset() int64 { return int64(o & maxOriginOffset) }

// String returns split and offset, or "unknown".
func (o Origin) String() string {
	if o == 0 {
		return "unknown"
	}
	return fmt.Sprintf("split#%d@%d", o.Split(), o.Offset())
}

// Batch is a run of records as parallel slices of equal length.
//
// A batch has exactly one owner. Passing it to a function that says it takes
// ownership ends the caller's right to touch it; the last owner calls Release.
// Values may be shared with other consumers of the same stream and must not be
// modified through pointers they hold.
type Batch[T any] struct {
	// Values are the records themselves.
	Values []T
	// Timestamps are event times in milliseconds since the epoch;
	// eventtime.MinTimestamp means the record has none.
	Timestamps []int64
	// Origins say where the records came from.
	Origins []Origin

	pool *Pool[T]
}

// Len returns the number of records.
func (b *Batch[T]) Len() int { return len(b.Values) }

// Full reports whether the batch has reached BatchSize.
func (b *Batch[T]) Full() bool { return len(b.Values) >= BatchSize }

// Append adds one record.
func (b *Batch[T]) Append(value T, timestamp int64, origin Origin) {
	b.Values = append(b.Values, value)
	b.Timestamps = append(b.Timestamps, timestamp)
	b.Origins = append(b.Origins, origin)
}

// AppendRange adds records from up to (not including) to of other.
func (b *Batch[T]) AppendRange(other *Batch[T], from, to int) {
	b.Values = append(b.Values, other.Values[from:to]...)
	b.Timestamps = append(b.Timestamps, other.Timestamps[from:to]...)
	b.Origins = append(b.Origins, other.Origins[from:to]...)
}

// Truncate keeps the first n records.
func (b *Batch[T]) Truncate(n int) {
	b.Values, b.Timestamps, b.Origins = b.Values[:n], b.Timestamps[:n], b.Origins[:n]
}

// Release gives the batch back to the pool it came from. The values stay in
// place until they are overwritten, so a pool holds on to at most the batches
// that were in flight at once.
func (b *Batch[T]) Release() {
	b.Truncate(0)
	if b.pool != nil {
		b.pool.pool.Put(b)
	}
}

// Pool recycles batches of one type. It is safe for concurrent use: batches
// are taken by their producer and released by their consumer.
type Pool[T any] struct{ pool sync.Pool }

// NewPool returns an empty pool.
func NewPool[T any]() *Pool[T] { return &Pool[T]{} }

// Get returns an empty batch owned by the caller.
func (p *Pool[T]) Get() *Batch[T] {
	if b, ok := p.pool.Get().(*Batch[T]); ok {
		return b
	}
	return &Batch[T]{pool: p}
}
