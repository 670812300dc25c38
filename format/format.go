// Package format is the vocabulary between connectors, which move bytes, and
// formats, which turn bytes into values and back.
//
// It holds interfaces only. Formats live in the packages below it (format/raw,
// format/json and others); nothing here knows about topics or directories.
package format

// Decoder turns the bytes of one record into a value. A decoder is used by all
// subtasks of a source at once and must be safe for concurrent use.
type Decoder[T any] interface {
	// Decode decodes data into *into, which holds the zero value of T.
	//
	// data is valid only during the call: a decoder that keeps bytes of it
	// copies them. After an error the contents of *into are not used. The
	// error says what is wrong with the bytes; the connector adds where the
	// record came from.
	Decode(data []byte, into *T) error
}

// Encoder turns a value into the bytes of one record. An encoder is used by all
// subtasks of a sink at once and must be safe for concurrent use.
type Encoder[T any] interface {
	// Encode appends the encoding of v to dst, which is not nil, and returns
	// the extended slice, as append does. It keeps neither. Returning nil
	// means that v stands for no value: in Kafka a null value, which deletes
	// its key from a compacted topic. After an error the returned slice is not
	// used.
	Encode(dst []byte, v T) ([]byte, error)
}

// Validator is implemented by decoders and encoders that can tell before the first
// record that they will not work, for example because a type has a field that the
// format has no value for. Connectors call Validate when the job is built.
type Validator interface {
	Validate() error
}

// NullDecoder is implemented by decoders that have a value for a record without
// one: in Kafka a null value, which a compacted topic reads as the deletion of
// its key. Connectors pass such records on only to decoders that implement it.
type NullDecoder[T any] interface {
	// DecodeNull sets *into, which holds the zero value of T, to the value
	// that stands for no value.
	DecodeNull(into *T) error
}
