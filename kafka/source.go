package kafka

import (
	"context"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format"
)

// Source reads Kafka topics. It describes what to read and holds no
// connection.
type Source[T any] struct {
	cfg    *sourceConfig
	dec    format.Decoder[T] // nil if decode is a function of the user's
	decode decodeFunc[T]     // nil if none was given
}

// NewSource returns a source whose values are the records' values, decoded.
//
// A record with a null value (a tombstone) is passed on only if the decoder has
// a value for it (format.NullDecoder); otherwise it is left out and counted as
// dropped, under "tombstone", and each subtask logs its first one. A decoder sees
// bytes that it must not keep.
func NewSource[T any](dec format.Decoder[T], opts ...SourceOption) *Source[T] {
	return &Source[T]{cfg: newSourceConfig(opts), dec: dec, decode: decodeValue(dec)}
}

// NewRecordSource returns a source whose values are made from whole records,
// with key, headers and place. Tombstones are passed on with a nil Value.
//
// decode is called by all subtasks of the source at once. The bytes and headers
// of the record are valid only during the call. An error is treated by the
// policy of OnDecodeError.
func NewRecordSource[T any](decode func(rec Record) (T, error), opts ...SourceOption) *Source[T] {
	return &Source[T]{cfg: newSourceConfig(opts), decode: decodeRecord(decode)}
}

// Validate reports all wrong options at once, and what the decoder says about itself
// (format.Validator).
func (s *Source[T]) Validate() error {
	p := &problems{of: "kafka source"}
	if s.decode == nil {
		p.add("decoder", "nil; want one for NewSource, or a function for NewRecordSource")
	}
	p.codec("decoder", s.dec)
	s.cfg.validate(p)
	return p.err()
}

// Boundedness is connector.Bounded with the option Bounded.
func (s *Source[T]) Boundedness() connector.Boundedness {
	return connector.Boundedness(s.cfg.bounded)
}

// EmitsDeadLetters reports whether records that cannot be decoded go to the source's
// dead-letter output (ToDeadLetters).
func (s *Source[T]) EmitsDeadLetters() bool { return s.cfg.onDecodeError == ToDeadLetters }

// NewEnumerator returns what finds the source's partitions. It connects when it
// is first asked.
func (s *Source[T]) NewEnumerator(_ context.Context, rt connector.SourceRuntime) (connector.Enumerator, error) {
	return newEnumerator(s.cfg, rt)
}

// NewReader returns the reader of one subtask.
func (s *Source[T]) NewReader(_ context.Context, rt connector.ReaderRuntime) (connector.Reader[T], error) {
	return newReader(s.cfg, s.decode, rt)
}

// String describes the source, without secrets.
func (s *Source[T]) String() string { return s.cfg.String() }

// GoString keeps secrets out of %#v, too.
func (s *Source[T]) GoString() string { return s.cfg.String() }
