package exchange

import (
	"encoding/binary"
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// Store turns the records of one edge into entries of a snapshot and back, for those
// that a barrier overtakes. It serves one receiving subtask.
type Store interface {
	// Part describes the entries.
	Part(name string) snapshot.Part
	// Append writes the records of p, which stays the caller's.
	Append(w snapshot.PartWriter, p Payload) error
	// Read calls yield with batches, which yield owns, of the records in a part.
	Read(r snapshot.PartReader, yield func(Payload) error) error
}

// storeVersion is the layout of an entry: timestamp (8 bytes), value. Origins are not kept:
// the next run numbers its splits anew.
const storeVersion = 1

// plainStore is for unkeyed edges. Its elements are dealt out by the writing subtask.
type plainStore[T any] struct {
	codec *codec.Codec[T]
	pool  *connector.Pool[T]
	entry []byte
}

// NewStore returns the store of an unkeyed edge, or an error that says why records of its
// type cannot be stored.
func NewStore[T any]() (Store, error) {
	c, err := codec.For[T]()
	if err != nil {
		return nil, err
	}
	return &plainStore[T]{codec: c, pool: connector.NewPool[T]()}, nil
}

func (s *plainStore[T]) Part(name string) snapshot.Part {
	return snapshot.Part{Name: name, Kind: snapshot.List, Version: storeVersion, Schemas: map[string]string{"value": s.codec.Schema()}}
}

func (s *plainStore[T]) Append(w snapshot.PartWriter, p Payload) error {
	b := p.(*connector.Batch[T])
	for i := range b.Values {
		if err := s.append(w, 0, b, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *plainStore[T]) append(w snapshot.PartWriter, group int, b *connector.Batch[T], i int) (err error) {
	s.entry = binary.LittleEndian.AppendUint64(s.entry[:0], uint64(b.Timestamps[i]))
	if s.entry, err = s.codec.Append(s.entry, &b.Values[i]); err != nil {
		return err
	}
	return w.Append(group, s.entry)
}

func (s *plainStore[T]) Read(r snapshot.PartReader, yield func(Payload) error) error {
	b := s.pool.Get()
	err := s.each(r, func(value T, timestamp int64) error {
		if b.Append(value, timestamp, 0); !b.Full() {
			return nil
		}
		full := b
		b = s.pool.Get()
		return yield(full)
	})
	if err != nil || b.Len() == 0 {
		b.Release()
		return err
	}
	return yield(b)
}

// each decodes the entries of a part.
func (s *plainStore[T]) each(r snapshot.PartReader, yield func(value T, timestamp int64) error) error {
	part := r.Part()
	if part.Version != storeVersion {
		return fmt.Errorf("part %q has layout %d, this version of the program reads %d", part.Name, part.Version, storeVersion)
	}
	decode, err := s.codec.Decoder(part.Schemas["value"])
	if err != nil {
		return fmt.Errorf("part %q: %w", part.Name, err)
	}
	for e, err := range r.Entries() {
		if err != nil {
			return err
		}
		if len(e.Data) < 8 {
			return fmt.Errorf("part %q has an entry of %d bytes", part.Name, len(e.Data))
		}
		var value T
		if _, err := decode(e.Data[8:], &value); err != nil {
			return fmt.Errorf("part %q: %w", part.Name, err)
		}
		if err := yield(value, int64(binary.LittleEndian.Uint64(e.Data))); err != nil {
			return err
		}
	}
	return nil
}

// keyedStore is for keyed edges. Records belong to key groups, so that they find their
// key's new owner.
type keyedStore[K comparable, T any] struct {
	plainStore[T]
	key            func(T) K
	hash           func(K) uint64
	maxParallelism int
	keyed          *KeyedPool[K, T]
}

// NewKeyedStore is NewStore for an edge of Hash with the same arguments.
func NewKeyedStore[K comparable, T any](key func(T) K, hasher func(K) uint64, maxParallelism int) (Store, error) {
	c, err := codec.For[T]()
	if err != nil {
		return nil, err
	}
	return &keyedStore[K, T]{plainStore[T]{codec: c}, key, hasher, maxParallelism, NewKeyedPool[K, T]()}, nil
}

func (s *keyedStore[K, T]) Part(name string) snapshot.Part {
	p := s.plainStore.Part(name)
	p.Kind = snapshot.Keyed
	return p
}

func (s *keyedStore[K, T]) Append(w snapshot.PartWriter, p Payload) error {
	b := p.(*KeyedBatch[K, T])
	for i, h := range b.Hashes {
		if err := s.append(w, keyed.KeyGroup(h, s.maxParallelism), &b.Batch, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *keyedStore[K, T]) Read(r snapshot.PartReader, yield func(Payload) error) error {
	b := s.keyed.Get()
	err := s.each(r, func(value T, timestamp int64) error {
		k := s.key(value)
		b.Append(value, timestamp, 0)
		b.Keys, b.Hashes = append(b.Keys, k), append(b.Hashes, s.hash(k))
		if !b.Full() {
			return nil
		}
		full := b
		b = s.keyed.Get()
		return yield(full)
	})
	if err != nil || b.Len() == 0 {
		b.Release()
		return err
	}
	return yield(b)
}
