package keyed

import (
	"encoding/binary"
	"errors"

	"github.com/lowwater/lowwater/internal/codec"
)

// element stores what a state holds one or many of: a V, or a V with the time of its last
// access.
type element[E any] struct {
	schema string
	dated  bool
	// isFlat says that it takes no memory besides its own.
	isFlat bool
	append func(dst []byte, e *E) ([]byte, error)
	// lives reports whether it has not expired.
	lives func(e *E, now int64) bool
	// decoder returns the decoder of what was stored under another schema, with or
	// without times. What has none was accessed now.
	decoder func(schema string, dated bool, now int64) (decodeElement[E], error)
}

// outside returns about what n elements take besides their own memory, if their encoding
// has that many bytes.
func (el *element[E]) outside(encoded int) int {
	if el.isFlat {
		return 0
	}
	return encoded
}

type decodeElement[E any] func(data []byte, e *E) (rest []byte, err error)

// plainElement stores a V.
func plainElement[V any]() (*element[V], error) {
	c, err := codec.For[V]()
	if err != nil {
		return nil, err
	}
	return &element[V]{
		schema: c.Schema(),
		isFlat: IsFlat[V](),
		append: c.Append,
		lives:  func(*V, int64) bool { return true },
		decoder: func(schema string, dated bool, _ int64) (decodeElement[V], error) {
			decode, err := c.Decoder(schema)
			if err != nil || !dated {
				return decode, err
			}
			return func(data []byte, v *V) ([]byte, error) {
				if _, data = varint(data); data == nil {
					return nil, errCutShort
				}
				return decode(data, v)
			}, nil
		},
	}, nil
}

// datedElement stores a V with the time of its last access before it.
func datedElement[V any](ttl expiry) (*element[dated[V]], error) {
	c, err := codec.For[V]()
	if err != nil {
		return nil, err
	}
	return &element[dated[V]]{
		schema: c.Schema(),
		dated:  true,
		isFlat: IsFlat[V](),
		append: func(dst []byte, e *dated[V]) ([]byte, error) {
			return c.Append(binary.AppendVarint(dst, e.at), &e.value)
		},
		lives: func(e *dated[V], now int64) bool { return !ttl.expired(e.at, now) },
		decoder: func(schema string, dated_ bool, now int64) (decodeElement[dated[V]], error) {
			decode, err := c.Decoder(schema)
			return func(data []byte, e *dated[V]) ([]byte, error) {
				e.at = now
				if dated_ {
					if e.at, data = varint(data); data == nil {
						return nil, errCutShort
					}
				}
				return decode(data, &e.value)
			}, err
		},
	}, nil
}

var errCutShort = errors.New("the entry is cut short")

// varint and uvarint read a number and return what is behind it, nil if there is none.

func varint(data []byte) (int64, []byte) {
	v, n := binary.Varint(data)
	if n <= 0 {
		return 0, nil
	}
	return v, data[n:]
}

func uvarint(data []byte) (uint64, []byte) {
	v, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil
	}
	return v, data[n:]
}
