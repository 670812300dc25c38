// Package json decodes and encodes records that each hold one JSON value.
//
// It is made for projection: of a record with many members a job wants a few.
// A decoder is a table built once from the Go type; decoding is one pass over
// the bytes that stores the wanted members where they belong and checks and
// skips the others. Records share no memory with the strings and slices made
// from them.
//
// It does not read streams of values, know schemas, or keep what it skipped.
//
// # Meaning
//
// Decoding means what encoding/json's Unmarshal means, and errors occur for the
// same records: struct tags with omitempty, omitzero, string and "-", embedded
// structs, exact before case-insensitive names, null, the last of several equal
// names, U+FFFD for what is not UTF-8, Unmarshaler and TextUnmarshaler, nesting
// up to 10000. Bytes after the value are an error, and skipped members must be
// valid JSON too. These are the differences:
//
//   - Decoding stops at the first error. It is a *DecodeError with the offset and
//     the path of the value.
//   - A type that has a field of a channel, function or complex type, or fields
//     behind an embedded pointer to an unexported struct, is refused when the
//     decoder is built, even if no record has the member.
//
// Encoding means what encoding/json's Encoder writes for a pointer to the value,
// with SetEscapeHTML(false) and without the newline: Kafka is not HTML. These are
// the differences:
//
//   - An error is an *EncodeError with the path of the value.
//   - Types with a channel, function or complex field are refused when the encoder
//     is built.
//
// # Cost
//
// Booleans, numbers, strings, []byte, time.Time, structs, pointers, slices,
// arrays, maps with string keys, any, json.Number and fields with the option
// string on integers and float64 are decoded by this package. Everything else is
// found, checked and handed to encoding/json for that value alone: maps with
// other keys, other ",string" fields, interfaces with methods, and structs with
// tag options or quoted names that only encoding/json knows.
//
// A decoded string costs one allocation of its size, so that keeping one does not
// keep others. A field with few values can avoid it:
//
//	Currency string `json:"currency" lowwater:"intern"`
//
// Its values are then taken from a table of the strings seen lately. Strings with
// more than 64 bytes or with escapes are not interned.
package json
