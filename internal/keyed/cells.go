package keyed

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// cells stores the cells of one state. An entry is a key and what its cell holds, or a part
// of that: large maps and lists have several entries, which are read one after the other
// into the same cell.
//
//	value, reducing, aggregating   key, value
//	list                           key, count, values
//	map                            key, count, pairs of map key and value
//
// With TTL, the time of last access stands before every value, in milliseconds. Keys and
// values are Avro, counts and times varints.
type cells[K comparable, C any] struct {
	layout  layoutOf
	schemas map[string]string
	// write writes a cell, or sees to it that it will be.
	write func(w *cellWriter[K], to *Encoder, e *Entry[K, C]) error
	// decoder returns a function that reads what is behind the key into a cell.
	decoder func(p snapshot.Part, now int64) (func(data []byte, c *C) error, error)

	// append appends all that a cell holds, also what has expired, as decoder reads it.
	append func(dst []byte, c *C) ([]byte, error)
	// lives reports whether something in a cell has not expired.
	lives func(c *C, now int64) bool
	// outside returns about what a cell with that many bytes of encoding takes in memory
	// besides its own size.
	outside func(c *C, encoded int) int
}

// layoutOf is the layout of the entries of a state, as the version of its part.
type layoutOf int

const (
	valueLayout layoutOf = 1 + iota
	listLayout
	mapLayout
	reducingLayout
	aggregatingLayout

	// datedLayout is added if times stand before the values.
	datedLayout layoutOf = 16
)

func (l layoutOf) kind() layoutOf { return l &^ datedLayout }
func (l layoutOf) isDated() bool  { return l&datedLayout != 0 }

func (l layoutOf) String() string {
	switch l.kind() {
	case valueLayout:
		return "value"
	case listLayout:
		return "list"
	case mapLayout:
		return "map"
	case reducingLayout:
		return "reducing"
	case aggregatingLayout:
		return "aggregating"
	default:
		return fmt.Sprintf("unknown (%d)", int(l))
	}
}

// withTTL returns the layout of a state whose values are stored with times or without.
func (l layoutOf) withTTL(dated bool) layoutOf {
	if dated {
		return l | datedLayout
	}
	return l
}

// cellWriter writes the cells of one state.
type cellWriter[K comparable] struct {
	*KeyedPart[K]
	now int64
}

// singleCells stores one value per key.
func singleCells[K comparable, E any](kind layoutOf, el *element[E]) *cells[K, E] {
	return &cells[K, E]{
		layout:  kind.withTTL(el.dated),
		schemas: map[string]string{"value": el.schema},
		write: func(w *cellWriter[K], to *Encoder, e *Entry[K, E]) (err error) {
			if !el.lives(&e.Value, w.now) {
				return nil
			}
			if err = w.Begin(to, &e.Key); err != nil {
				return err
			}
			if to.Data, err = el.append(to.Data, &e.Value); err != nil {
				return err
			}
			w.End(to, e.Hash)
			return nil
		},
		decoder: func(p snapshot.Part, now int64) (func([]byte, *E) error, error) {
			decode, err := el.decoder(p.Schemas["value"], layoutOf(p.Version).isDated(), now)
			return func(data []byte, e *E) error {
				_, err := decode(data, e)
				return err
			}, err
		},
		append:  el.append,
		lives:   el.lives,
		outside: func(_ *E, encoded int) int { return el.outside(encoded) },
	}
}

// listElements is how the elements of a list are reached.
type listElements[C, E any] struct {
	len func(*C) int
	// at returns element i, which it may put into scratch.
	at  func(c *C, i int, scratch *E) *E
	add func(*C, E)
	// lives reports whether element i has not expired.
	lives func(c *C, i int, now int64) bool
	// fixed says that what is in a copy of a cell stays as it is while a snapshot is
	// being written.
	fixed bool
}

// elementsPerEntry is how many elements of a list are written at a time, if the list
// can wait.
const elementsPerEntry = 256

// listCells stores lists.
func listCells[K comparable, C, E any](el *element[E], l listElements[C, E]) *cells[K, C] {
	s := &listStorage[K, C, E]{el: el, listElements: l}
	return &cells[K, C]{
		layout:  listLayout.withTTL(el.dated),
		schemas: map[string]string{"value": el.schema},
		write: func(w *cellWriter[K], to *Encoder, e *Entry[K, C]) error {
			if n := l.len(&e.Value); !l.fixed || n <= elementsPerEntry {
				return s.writeSome(w, to, e, 0, n)
			}
			list, from := *e, 0
			to.Add(func(to *Encoder) (bool, error) {
				next := min(from+elementsPerEntry, l.len(&list.Value))
				err := s.writeSome(w, to, &list, from, next)
				from = next
				return from < l.len(&list.Value), err
			})
			return nil
		},
		decoder: func(p snapshot.Part, now int64) (func([]byte, *C) error, error) {
			decode, err := el.decoder(p.Schemas["value"], layoutOf(p.Version).isDated(), now)
			return func(data []byte, c *C) error {
				return decodeCounted(data, func(data []byte) ([]byte, error) {
					var v E
					data, err := decode(data, &v)
					l.add(c, v)
					return data, err
				})
			}, err
		},
		append: func(dst []byte, c *C) (_ []byte, err error) {
			n := l.len(c)
			dst = binary.AppendUvarint(dst, uint64(n))
			for i := 0; i < n && err == nil; i++ {
				dst, err = el.append(dst, l.at(c, i, &s.appended))
			}
			return dst, err
		},
		lives: func(c *C, now int64) bool {
			for i := range l.len(c) {
				if l.lives(c, i, now) {
					return true
				}
			}
			return false
		},
		outside: func(c *C, encoded int) int {
			var e E
			return l.len(c)*int(unsafe.Sizeof(e)) + el.outside(encoded)
		},
	}
}

// listStorage writes lists.
type listStorage[K comparable, C, E any] struct {
	el *element[E]
	listElements[C, E]
	// scratch is for the two sides of a snapshot, appended for the subtask otherwise.
	scratch  [2]E
	appended E
}

// writeSome writes an entry with those of some elements of a list that have not expired.
func (s *listStorage[K, C, E]) writeSome(w *cellWriter[K], to *Encoder, e *Entry[K, C], from, end int) (err error) {
	live := uint64(0)
	for i := from; i < end; i++ {
		if s.lives(&e.Value, i, w.now) {
			live++
		}
	}
	if live == 0 {
		return nil
	}
	if err = w.Begin(to, &e.Key); err != nil {
		return err
	}
	to.Data = binary.AppendUvarint(to.Data, live)
	for i := from; i < end; i++ {
		if !s.lives(&e.Value, i, w.now) {
			continue
		}
		if to.Data, err = s.el.append(to.Data, s.at(&e.Value, i, &s.scratch[to.Side()])); err != nil {
			return err
		}
	}
	w.End(to, e.Hash)
	return nil
}

// decodeCounted calls decode as often as the number at the head of data says.
func decodeCounted(data []byte, decode func(data []byte) (rest []byte, err error)) error {
	n, data := uvarint(data)
	if data == nil {
		return errCutShort
	}
	for range n {
		var err error
		if data, err = decode(data); err != nil {
			return err
		}
	}
	return nil
}

// mapCells stores maps. Large ones are written pair by pair, so that changing one of the
// pairs is not held up by all others.
func mapCells[K, MK comparable, E any](keys *mapKeys[MK], el *element[E]) (*cells[K, entries[MK, E]], error) {
	mapKey, err := codec.For[MK]()
	if err != nil {
		return nil, fmt.Errorf("key of the map: %w", err)
	}
	m := pairs[K, MK, E]{mapKey, el}
	isFlat := IsFlat[MK]() && el.isFlat
	return &cells[K, entries[MK, E]]{
		layout:  mapLayout.withTTL(el.dated),
		schemas: map[string]string{"mapKey": mapKey.Schema(), "value": el.schema},
		write:   m.write,
		decoder: func(p snapshot.Part, now int64) (func([]byte, *entries[MK, E]) error, error) {
			decodeKey, err := mapKey.Decoder(p.Schemas["mapKey"])
			if err != nil {
				return nil, fmt.Errorf("key of the map: %w", err)
			}
			decode, err := el.decoder(p.Schemas["value"], layoutOf(p.Version).isDated(), now)
			return func(data []byte, c *entries[MK, E]) error {
				return decodeCounted(data, func(data []byte) ([]byte, error) {
					var key MK
					data, err := decodeKey(data, &key)
					if err != nil {
						return nil, err
					}
					return decode(data, c.put(keys, key))
				})
			}, err
		},
		append: m.append,
		lives: func(c *entries[MK, E], now int64) bool {
			for i := range c.len() {
				if el.lives(&c.peek(i).Value, now) {
					return true
				}
			}
			return false
		},
		outside: func(c *entries[MK, E], encoded int) int {
			n := c.len() * int(unsafe.Sizeof(Entry[MK, E]{}))
			if c.many != nil {
				n += c.len() * entryOverhead
			}
			if isFlat {
				return n
			}
			return n + encoded
		},
	}, nil
}

// pairs writes maps.
type pairs[K, MK comparable, E any] struct {
	mapKey *codec.Codec[MK]
	el     *element[E]
}

func (m pairs[K, MK, E]) write(w *cellWriter[K], to *Encoder, e *Entry[K, entries[MK, E]]) error {
	if many := e.Value.many; many != nil {
		hash, key := e.Hash, e.Key
		to.Table(many, func(to *Encoder, p *Entry[MK, E]) error {
			return m.writeSome(w, to, hash, &key, 1, func(int) *Entry[MK, E] { return p })
		})
		return nil
	}
	few := e.Value.few
	return m.writeSome(w, to, e.Hash, &e.Key, len(few), func(i int) *Entry[MK, E] { return &few[i] })
}

// append appends all pairs of a map.
func (m pairs[K, MK, E]) append(dst []byte, c *entries[MK, E]) (_ []byte, err error) {
	dst = binary.AppendUvarint(dst, uint64(c.len()))
	for i := range c.len() {
		p := c.peek(i)
		if dst, err = m.mapKey.Append(dst, &p.Key); err != nil {
			return dst, err
		}
		if dst, err = m.el.append(dst, &p.Value); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// writeSome writes those of n pairs that have not expired.
func (m pairs[K, MK, E]) writeSome(w *cellWriter[K], to *Encoder, hash uint64, key *K, n int, at func(i int) *Entry[MK, E]) (err error) {
	live := uint64(0)
	for i := range n {
		if m.el.lives(&at(i).Value, w.now) {
			live++
		}
	}
	if live == 0 {
		return nil
	}
	if err = w.Begin(to, key); err != nil {
		return err
	}
	to.Data = binary.AppendUvarint(to.Data, live)
	for i := range n {
		p := at(i)
		if !m.el.lives(&p.Value, w.now) {
			continue
		}
		if to.Data, err = m.mapKey.Append(to.Data, &p.Key); err != nil {
			return err
		}
		if to.Data, err = m.el.append(to.Data, &p.Value); err != nil {
			return err
		}
	}
	w.End(to, hash)
	return nil
}
