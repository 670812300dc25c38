// Package codec turns keys and values of state into bytes and back, for snapshots
// and for state that is spilled.
//
// The bytes are Avro, and every part of a snapshot carries its schema once. A
// value written by an earlier version of the job is resolved against the type that
// the job has now: fields may be added, removed, renamed by alias and widened.
// Formats for the outside world are package format's.
//
// # What can be stored
//
//   - bool, all integers, floats (every bit of them, so also NaN and -0), strings
//     (any bytes) and named types of these.
//   - Slices and maps. A nil one comes back nil, an empty one empty. Maps are
//     written in no defined order.
//   - Arrays. Their length is part of the type: it cannot change.
//   - Pointers, nil or not. Two pointers to one value come back as pointers to two
//     equal values; a value that contains itself is an error when it is written.
//   - time.Time to the nanosecond, with its location: UTC, Local, a zone of the
//     zone database, or else a fixed zone with the same name and offset. The monotonic
//     clock reading is dropped. time.Duration is an integer.
//   - Types that implement encoding.BinaryMarshaler and BinaryUnmarshaler, or
//     gob.GobEncoder and GobDecoder, as those bytes.
//   - Structs, field by field. An embedded struct is a field with its type's name.
//     An unexported field is refused, since it would be lost without a word.
//
// # Struct tags
//
// A field takes its name from the tag avro:"name", else from Go. Further options:
// avro:"-" leaves the field out of the state, alias=old (repeatable, or
// alias=[a,b]) is a name it had before, and default=value (last, scalars only) is
// what it gets from state written without it; otherwise that is the zero value. The
// options that package github.com/twmb/avro has for formats of the outside are
// accepted and mean nothing here.
//
// # Evolution
//
// Names of types do not matter, only their structure. Integers may be widened, also to
// floats; a value that a type of the same Avro width cannot hold (int32 to int16,
// int64 to uint64) is an error when it is read. T may become *T; *T may become T as
// long as no nil is read. string and []byte may become each other.
package codec

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/twmb/avro"
)

// Codec encodes and decodes values of type T. It is safe for concurrent use.
type Codec[T any] struct {
	shape  *shape
	schema string
	encode encodeFunc
}

// For returns the codec of T, or an error that names the type and field that
// cannot be stored and says what to do about it.
func For[T any]() (*Codec[T], error) {
	t := reflect.TypeFor[T]()
	s, err := shapeOf(t)
	if err != nil {
		return nil, fmt.Errorf("codec: state of type %v cannot be stored: %w", t, err)
	}
	return &Codec[T]{shape: s, schema: schemaOf(s), encode: encoderOf(s)}, nil
}

// Schema returns the Avro schema of what Append writes, as JSON without spaces. Equal
// types give equal schemas.
func (c *Codec[T]) Schema() string { return c.schema }

// LeftOut returns the type and name of a field that is left out of the state by its tag, ""
// if there is none. It does not look behind pointers, nor into slices and maps.
func (c *Codec[T]) LeftOut() string { return c.shape.missed() }

// Append appends the encoding of *v to dst. It does not allocate, except for dst, for
// maps and in MarshalBinary methods. Go must assume that v escapes: callers point into
// what they keep anyway.
//
// Errors are those of MarshalBinary methods, and values that contain themselves. What is
// returned with an error is of no use.
func (c *Codec[T]) Append(dst []byte, v *T) ([]byte, error) {
	dst, err := c.encode(dst, unsafe.Pointer(v), 0)
	if err != nil {
		return dst, fmt.Errorf("codec: encoding %v: %w", c.shape.typ, err)
	}
	return dst, nil
}

// Decoder returns a function that decodes what was written under writerSchema into a
// T and returns the bytes behind it. The function overwrites all of *v, keeps nothing
// of data, takes any bytes without panicking, and is safe for concurrent use. The error,
// for a schema that T cannot take values of, names both schemas.
func (c *Codec[T]) Decoder(writerSchema string) (func(data []byte, v *T) (rest []byte, err error), error) {
	decode, err := c.resolve(writerSchema)
	if err != nil {
		return nil, err
	}
	return func(data []byte, v *T) ([]byte, error) {
		rest, err := decode(data, unsafe.Pointer(v), 0)
		if err != nil {
			return nil, fmt.Errorf("codec: decoding %v: %w", c.shape.typ, err)
		}
		return rest, nil
	}, nil
}

func (c *Codec[T]) resolve(writerSchema string) (decodeFunc, error) {
	stored, err := avro.Parse(writerSchema)
	if err != nil {
		return nil, fmt.Errorf("codec: stored schema %s: %w", writerSchema, err)
	}
	decode, err := newResolver(stored.Root()).decoder(c.shape)
	if err != nil {
		return nil, fmt.Errorf("codec: stored state does not fit %v: %w; stored schema %s; wanted schema %s",
			c.shape.typ, err, writerSchema, c.schema)
	}
	return decode, nil
}
