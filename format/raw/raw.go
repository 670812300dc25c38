// Package raw is the format of records that are passed through as they are:
// bytes and strings.
//
// It does not interpret them: no character set, no framing, no numbers.
package raw

import "github.com/lowwater/lowwater/format"

// Bytes decodes a record to a copy of its bytes and encodes bytes unchanged. A
// nil slice stands for a record without a value, an empty one for an empty
// value.
type Bytes struct{}

var (
	_ format.Decoder[[]byte]     = Bytes{}
	_ format.NullDecoder[[]byte] = Bytes{}
	_ format.Encoder[[]byte]     = Bytes{}
)

// Decode sets into to a copy of data. It never fails.
func (Bytes) Decode(data []byte, into *[]byte) error {
	*into = append(make([]byte, 0, len(data)), data...)
	return nil
}

// DecodeNull sets into to nil. It never fails.
func (Bytes) DecodeNull(into *[]byte) error {
	*into = nil
	return nil
}

// Encode appends v, and returns nil for nil. It never fails.
func (Bytes) Encode(dst []byte, v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return append(dst, v...), nil
}

// String decodes a record to a string of its bytes and encodes a string
// unchanged. The bytes need not be valid UTF-8. It has no value for a null
// record.
type String struct{}

var (
	_ format.Decoder[string] = String{}
	_ format.Encoder[string] = String{}
)

// Decode sets into to data. It never fails.
func (String) Decode(data []byte, into *string) error {
	*into = string(data)
	return nil
}

// Encode appends v. It never fails.
func (String) Encode(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
