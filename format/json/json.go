package json

import (
	"reflect"
	"sync"

	"github.com/lowwater/lowwater/format"
)

// Value returns a decoder of records that each hold one JSON value for a T.
//
// A type with fields that JSON has no value for, such as channels, is an error
// of the decoder: it is a format.Validator, by which sources learn of the error when
// the job is built, and every Decode returns it.
func Value[T any]() format.Decoder[T] {
	if _, ok := any(new(T)).(Scanner); ok {
		return scanner[T]{}
	}
	root, err := compileDecoder(reflect.TypeFor[T]())
	return &decoder[T]{root: root, err: err}
}

// Scanner is implemented by types that decode themselves, usually by generated
// code. If *T is a Scanner, Value[T] calls ScanJSON and does nothing else.
type Scanner interface {
	// ScanJSON decodes the record data into the receiver, which holds the zero
	// value. It must refuse bytes after the value and must not keep data, which
	// is valid only during the call.
	ScanJSON(data []byte) error
}

type scanner[T any] struct{}

func (scanner[T]) Decode(data []byte, into *T) error { return any(into).(Scanner).ScanJSON(data) }

var (
	_ format.Validator = (*decoder[int])(nil)
	_ format.Validator = (*encoder[int])(nil)
)

// decoder decodes by a table. It holds no state of a record, so it may be used
// by many goroutines at once.
type decoder[T any] struct {
	root *value
	err  error
}

// Validate reports the fields of T that cannot be decoded.
func (dec *decoder[T]) Validate() error { return dec.err }

// Decode implements format.Decoder. An error about the data is a *DecodeError.
func (dec *decoder[T]) Decode(data []byte, into *T) error {
	if dec.err != nil {
		return dec.err
	}
	if err := decodeInto(dec.root, data, slotOf(into)); err != nil {
		return err
	}
	return nil
}

// decodeInto reads a record that holds one value into s.
func decodeInto(root *value, data []byte, s slot) *DecodeError {
	i, err := root.decode(data, skipSpace(data, 0), s, 0)
	if err != nil {
		return err
	}
	if i = skipSpace(data, i); i != len(data) {
		return wanted(data, i, "the end of the record after its value")
	}
	return nil
}

// Encode returns an encoder of records that each hold one T as JSON.
//
// A type with fields that JSON has no value for is an error of the encoder, as
// for Value.
func Encode[T any]() format.Encoder[T] {
	root, err := compileEncoder(reflect.TypeFor[T]())
	return &encoder[T]{root: root, err: err, values: sync.Pool{New: func() any { return new(T) }}}
}

type encoder[T any] struct {
	root *form
	err  error
	// values are zero *T. A table reads values through pointers, and one to the
	// argument of Encode would cost an allocation for each record.
	values sync.Pool
}

// Validate reports the fields of T that cannot be encoded.
func (enc *encoder[T]) Validate() error { return enc.err }

// Encode implements format.Encoder. An error about the value is an *EncodeError.
func (enc *encoder[T]) Encode(dst []byte, v T) ([]byte, error) {
	if enc.err != nil {
		return dst, enc.err
	}
	value := enc.values.Get().(*T)
	*value = v
	dst, err := enc.root.encode(dst, slotOf(value), 0)
	*value = *new(T)
	enc.values.Put(value)
	if err != nil {
		return dst, err
	}
	return dst, nil
}
