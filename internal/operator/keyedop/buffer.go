package keyedop

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/lowwater/lowwater/internal/codec"
)

// buffer is records in the order of their timestamps, and of arrival where these are
// equal. Records come mostly in order and go from the front.
type buffer[T any] struct {
	times  []int64
	values []T
	// start is the number of places at the front that are free.
	start int
}

// shrinkFrom is the number of free places up to which they are left alone.
const shrinkFrom = 16

func (b *buffer[T]) len() int { return len(b.times) - b.start }

// first returns the earliest timestamp. The buffer must not be empty.
func (b *buffer[T]) first() int64 { return b.times[b.start] }

func (b *buffer[T]) add(t int64, v T) {
	i := len(b.times)
	if i > b.start && t < b.times[i-1] {
		i = b.after(t)
	}
	b.times = slices.Insert(b.times, i, t)
	b.values = slices.Insert(b.values, i, v)
}

// after returns the place of the first record later than t.
func (b *buffer[T]) after(t int64) int {
	return b.start + sort.Search(b.len(), func(i int) bool { return b.times[b.start+i] > t })
}

// within returns the places of the records from one timestamp to another, both included.
func (b *buffer[T]) within(from, to int64) (i, j int) {
	i = b.start + sort.Search(b.len(), func(i int) bool { return b.times[b.start+i] >= from })
	return i, max(i, b.after(to))
}

// dropBefore removes the records before place i.
func (b *buffer[T]) dropBefore(i int) {
	clear(b.values[b.start:i])
	b.start = i
	if b.start > shrinkFrom && b.start > len(b.times)/2 || b.len() == 0 {
		b.times = slices.Delete(b.times, 0, b.start)
		b.values = slices.Delete(b.values, 0, b.start)
		b.start = 0
	}
}

// dropExpired removes the records that were to be kept until keep after their timestamps,
// and that time has come.
func (b *buffer[T]) dropExpired(keep, watermark int64) {
	n := sort.Search(b.len(), func(i int) bool { return later(b.times[b.start+i], keep) > watermark })
	b.dropBefore(b.start + n)
}

// buffersCodec stores buffers: the number of records, then the timestamp and the value of
// each, in their order.
type buffersCodec[T any] struct{ values *codec.Codec[T] }

// appendBuffer appends a buffer of E with a value in each.
func appendBuffer[T, E any](c buffersCodec[T], dst []byte, b *buffer[E], value func(*E) *T) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(b.len()))
	for i := b.start; i < len(b.times); i++ {
		dst = binary.AppendVarint(dst, b.times[i])
		var err error
		if dst, err = c.values.Append(dst, value(&b.values[i])); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// decoder returns a function that calls add for each record of a buffer that was stored
// under a schema.
func (c buffersCodec[T]) decoder(schema string) (func(data []byte, add func(t int64, v T)) error, error) {
	decode, err := c.values.Decoder(schema)
	if err != nil {
		return nil, err
	}
	return func(data []byte, add func(t int64, v T)) error {
		count, n := binary.Uvarint(data)
		if n <= 0 {
			return errCutShort
		}
		for range count {
			data = data[n:]
			var t int64
			if t, n = binary.Varint(data); n <= 0 {
				return errCutShort
			}
			var v T
			rest, err := decode(data[n:], &v)
			if err != nil {
				return err
			}
			data, n = rest, 0
			add(t, v)
		}
		return nil
	}, nil
}

var errCutShort = errors.New("the entry is cut short")

// later returns t + d, which stops at the ends of the 64-bit range.
func later(t, d int64) int64 {
	sum := t + d
	switch {
	case d > 0 && sum < t:
		return math.MaxInt64
	case d < 0 && sum > t:
		return math.MinInt64
	}
	return sum
}
