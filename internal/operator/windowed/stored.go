package windowed

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/window"
)

// contentsCodec turns the contents of a window into bytes and back.
type contentsCodec[A any] interface {
	// role is the name of the schema in a part.
	role() string
	schema() string
	// append appends the encoding of *acc to dst.
	append(dst []byte, acc *A) ([]byte, error)
	// decoder returns a function for what was written under another schema. The
	// function returns the bytes behind the contents.
	decoder(schema string) (func(data []byte, acc *A) (rest []byte, err error), error)

	// memory returns what *acc is known to take besides its own size; unless it is flat, its
	// encoding tells about the rest.
	memory(acc *A) int
	flat() bool
	// outside returns about how many bytes *acc takes besides its own size: all of it or,
	// if perElement, each of its elements. It may encode some of it behind dst.
	outside(dst []byte, acc *A) (bytes float64, encoded []byte, err error)
	perElement() bool
	// elements returns the number of elements, 0 unless perElement.
	elements(acc *A) int
}

// stored is implemented by folds that know how to store what they make.
type stored[A any] interface {
	codec() (contentsCodec[A], error)
}

// codecOf returns the codec of what a fold makes.
func codecOf[T, A any](f fold[T, A]) (contentsCodec[A], error) {
	if s, ok := f.(stored[A]); ok {
		return s.codec()
	}
	c, err := codec.For[A]()
	if err != nil {
		return nil, fmt.Errorf("window accumulator: %w", err)
	}
	return accumulators[A]{c, keyed.IsFlat[A]()}, nil
}

// accumulators stores what an aggregator folds records into.
type accumulators[A any] struct {
	*codec.Codec[A]
	isFlat bool
}

func (accumulators[A]) role() string     { return "accumulator" }
func (c accumulators[A]) schema() string { return c.Schema() }

func (c accumulators[A]) append(dst []byte, acc *A) ([]byte, error) { return c.Append(dst, acc) }

func (c accumulators[A]) decoder(schema string) (func([]byte, *A) ([]byte, error), error) {
	return c.Decoder(schema)
}

func (accumulators[A]) memory(*A) int { return 0 }
func (c accumulators[A]) flat() bool  { return c.isFlat }

func (c accumulators[A]) outside(dst []byte, acc *A) (float64, []byte, error) {
	if c.isFlat {
		return 0, dst, nil
	}
	encoded, err := c.Append(dst, acc)
	return float64(len(encoded) - len(dst)), encoded, err
}

func (accumulators[A]) perElement() bool { return false }
func (accumulators[A]) elements(*A) int  { return 0 }

// elementLists stores a list of elements, each an E with a record of type T in it: how
// many, then one after the other, what the E has besides the record before it.
type elementLists[T, E any] struct {
	records *codec.Codec[T]
	isFlat  bool // a record takes no memory besides its own
	record  func(*E) *T
	// head appends what stands before the record, and parse reads it.
	head  func(dst []byte, e *E) []byte
	parse func(data []byte, e *E) (rest []byte)
}

func newElementLists[T, E any](record func(*E) *T, head func([]byte, *E) []byte, parse func([]byte, *E) []byte) (contentsCodec[[]E], error) {
	c, err := codec.For[T]()
	if err != nil {
		return nil, fmt.Errorf("elements of windows: %w", err)
	}
	return elementLists[T, E]{c, keyed.IsFlat[T](), record, head, parse}, nil
}

func (elementLists[T, E]) role() string     { return "element" }
func (c elementLists[T, E]) schema() string { return c.records.Schema() }

func (c elementLists[T, E]) append(dst []byte, list *[]E) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(len(*list)))
	for i := range *list {
		e := &(*list)[i]
		var err error
		if dst, err = c.records.Append(c.head(dst, e), c.record(e)); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func (elementLists[T, E]) memory(list *[]E) int { return bytesOf(*list) }
func (c elementLists[T, E]) flat() bool         { return c.isFlat }

// outside goes by the list's last record, which arrived last.
func (c elementLists[T, E]) outside(dst []byte, list *[]E) (float64, []byte, error) {
	n := len(*list)
	if n == 0 {
		return 0, dst, nil
	}
	bytes := float64(bytesOf(*list)) / float64(n)
	if c.isFlat {
		return bytes, dst, nil
	}
	encoded, err := c.records.Append(dst, c.record(&(*list)[n-1]))
	return bytes + float64(len(encoded)-len(dst)), encoded, err
}

func (elementLists[T, E]) perElement() bool       { return true }
func (elementLists[T, E]) elements(list *[]E) int { return len(*list) }

var errCutShort = errors.New("an entry is cut short")

func (c elementLists[T, E]) decoder(schema string) (func([]byte, *[]E) ([]byte, error), error) {
	decode, err := c.records.Decoder(schema)
	if err != nil {
		return nil, err
	}
	return func(data []byte, list *[]E) ([]byte, error) {
		count, data := uvarint(data)
		if data == nil {
			return nil, errCutShort
		}
		for range count {
			var e E
			if data = c.parse(data, &e); data == nil {
				return nil, errCutShort
			}
			var err error
			if data, err = decode(data, c.record(&e)); err != nil {
				return nil, err
			}
			*list = append(*list, e)
		}
		return data, nil
	}, nil
}

// uvarint and varint read a number and return the bytes behind it, nil if there is none.

func uvarint(data []byte) (uint64, []byte) {
	v, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil
	}
	return v, data[n:]
}

func varint(data []byte) (int64, []byte) {
	v, n := binary.Varint(data)
	if n <= 0 {
		return 0, nil
	}
	return v, data[n:]
}

func (*lists[T]) codec() (contentsCodec[[]T], error) {
	return newElementLists(func(e *T) *T { return e },
		func(dst []byte, _ *T) []byte { return dst },
		func(data []byte, _ *T) []byte { return data })
}

// codec's decoders see to it that elements that come after a restore are numbered on.
func (l *numberedLists[T]) codec() (contentsCodec[[]numbered[T]], error) {
	return newElementLists(func(e *numbered[T]) *T { return &e.value },
		func(dst []byte, e *numbered[T]) []byte { return binary.AppendUvarint(dst, e.seq) },
		func(data []byte, e *numbered[T]) []byte {
			e.seq, data = uvarint(data)
			l.seq = max(l.seq, e.seq)
			return data
		})
}

func (evictable[T]) codec() (contentsCodec[[]window.Timestamped[T]], error) {
	return newElementLists(func(e *window.Timestamped[T]) *T { return &e.Value },
		func(dst []byte, e *window.Timestamped[T]) []byte { return binary.AppendVarint(dst, e.Timestamp) },
		func(data []byte, e *window.Timestamped[T]) []byte {
			e.Timestamp, data = varint(data)
			return data
		})
}

func (f folded[T, A]) codec() (contentsCodec[A], error) { return codecOf(f.fold) }
