package keyed

import (
	"fmt"
	"unsafe"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// KeyCodec stores keys at the head of the entries of keyed parts, and reads them back.
type KeyCodec[K comparable] struct {
	codec          *codec.Codec[K]
	hash           func(K) uint64
	maxParallelism int
}

// NewKeyCodec returns the codec of a key type, or an error that says why its values cannot
// be stored.
func NewKeyCodec[K comparable](maxParallelism int) (*KeyCodec[K], error) {
	c, err := codec.For[K]()
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	var key K
	if unsafe.Sizeof(key) == 0 { // the only key there is
		return &KeyCodec[K]{c, func(K) uint64 { return 0 }, maxParallelism}, nil
	}
	hash, err := HasherFor[K]()
	return &KeyCodec[K]{c, hash, maxParallelism}, err
}

// Schema returns the schema of keys.
func (c *KeyCodec[K]) Schema() string { return c.codec.Schema() }

// Append appends the encoding of a key.
func (c *KeyCodec[K]) Append(dst []byte, key *K) ([]byte, error) { return c.codec.Append(dst, key) }

// Group returns the key group of a key with that hash.
func (c *KeyCodec[K]) Group(hash uint64) int { return KeyGroup(hash, c.maxParallelism) }

// KeyDecoder reads the key at the head of an entry, and returns what is behind it.
type KeyDecoder[K comparable] func(e snapshot.Entry) (hash uint64, key K, rest []byte, err error)

// Decoder returns the decoder for keys that were stored under a schema. A key that does not
// belong to the entry's key group is an error of it.
func (c *KeyCodec[K]) Decoder(schema string) (KeyDecoder[K], error) {
	decode, err := c.codec.Decoder(schema)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return func(e snapshot.Entry) (hash uint64, key K, rest []byte, err error) {
		if rest, err = decode(e.Data, &key); err != nil {
			return 0, key, nil, fmt.Errorf("key: %w", err)
		}
		hash = c.hash(key)
		if group := c.Group(hash); group != e.Group {
			return 0, key, nil, fmt.Errorf("key %v was stored in key group %d and belongs to %d: "+
				"its type has another hash now, so records would not meet their state; keep the key's type", key, e.Group, group)
		}
		return hash, key, rest, nil
	}, nil
}
