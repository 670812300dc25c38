package keyed

import (
	"fmt"
	"maps"
	"unsafe"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// KeyCodec stores keys, such as at the head of the entries of keyed parts, and reads them
// back. Keys that are the same to a Table are stored alike: -0 as +0, and every NaN as one.
// No stored key is the beginning of another. It is safe for concurrent use.
type KeyCodec[K comparable] struct {
	codec          *codec.Codec[K]
	hash           func(K) uint64
	maxParallelism int
	equality[K]
}

// NewKeyCodec returns the codec of a key type, or an error that says why its values cannot
// be stored.
func NewKeyCodec[K comparable](maxParallelism int) (*KeyCodec[K], error) {
	c, err := codec.For[K]()
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if field := c.LeftOut(); field != "" {
		return nil, fmt.Errorf("key: %s is part of the key, but its tag avro:\"-\" leaves it out of state, where keys that differ in it would be one: "+
			"remove the tag, or the field", field)
	}
	var key K
	if unsafe.Sizeof(key) == 0 { // the only key there is
		return &KeyCodec[K]{codec: c, hash: func(K) uint64 { return 0 }, maxParallelism: maxParallelism}, nil
	}
	hash, err := HasherFor[K]()
	return &KeyCodec[K]{c, hash, maxParallelism, equalityOf[K]()}, err
}

// Schema returns the schema of keys.
func (c *KeyCodec[K]) Schema() string { return c.codec.Schema() }

// Append appends the encoding of a key.
func (c *KeyCodec[K]) Append(dst []byte, key *K) ([]byte, error) {
	if c.floats != nil {
		key = c.canonical(*key)
	}
	return c.codec.Append(dst, key)
}

// Decoder returns how keys are read that were stored under a schema.
func (c *KeyCodec[K]) Decoder(schema string) (func(data []byte, key *K) (rest []byte, err error), error) {
	return c.codec.Decoder(schema)
}

// Hash returns the hash of a key.
func (c *KeyCodec[K]) Hash(key K) uint64 { return c.hash(key) }

// Group returns the key group of a key with that hash.
func (c *KeyCodec[K]) Group(hash uint64) int { return KeyGroup(hash, c.maxParallelism) }

// KeyedPart writes a part of entries with a key at their head.
type KeyedPart[K comparable] struct {
	keys *KeyCodec[K]
	part PartNumber
}

// Part begins a part of s. The schema of keys is added to those of p.
func (c *KeyCodec[K]) Part(s *Snapshot, p snapshot.Part) (*KeyedPart[K], error) {
	schemas := map[string]string{"key": c.Schema()}
	maps.Copy(schemas, p.Schemas)
	p.Schemas = schemas
	part, err := s.Part(p)
	return &KeyedPart[K]{keys: c, part: part}, err
}

// Begin begins an entry: what follows the key is appended to the Data of to.
func (p *KeyedPart[K]) Begin(to *Encoder, key *K) (err error) {
	to.Data, err = p.keys.Append(to.Data, key)
	return err
}

// End ends the entry, in the key group of the key's hash.
func (p *KeyedPart[K]) End(to *Encoder, hash uint64) { to.End(p.part, p.keys.Group(hash)) }

// Read calls f for each entry of a part that was written by a KeyedPart, with what follows
// the key, which is valid during the call. A key that does not belong to the key group of
// its entry is an error.
func (c *KeyCodec[K]) Read(p snapshot.PartReader, f func(hash uint64, key K, rest []byte) error) error {
	decode, err := c.codec.Decoder(p.Part().Schemas["key"])
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	for e, err := range p.Entries() {
		if err != nil {
			return err
		}
		var key K
		rest, err := decode(e.Data, &key)
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		hash := c.hash(key)
		if group := c.Group(hash); group != e.Group {
			return fmt.Errorf("key %v was stored in key group %d and belongs to %d: "+
				"its type has another hash now, so records would not meet their state; keep the key's type", key, e.Group, group)
		}
		if err := f(hash, key, rest); err != nil {
			return fmt.Errorf("key %v: %w", key, err)
		}
	}
	return nil
}
