package json

import (
	"fmt"
	"strconv"
	"strings"
)

// DecodeError says why the bytes of a record are not a value of the decoder's
// type. Decoding again gives the same error.
type DecodeError struct {
	// Offset is the byte of the record, counted from 0, at which decoding
	// stopped.
	Offset int
	// Path leads to the value at fault by the names used in the record, as in
	// order.items[3].price. It is empty at the top.
	Path string
	// Want says what was expected there, as in "a number that fits int32".
	Want string
	// Found says what was there, as in `string "12"` or "the end of the record".
	Found string
	// Err is what an UnmarshalJSON or UnmarshalText method, encoding/json or
	// package time said, nil if none of them was asked.
	Err error
}

// Error says what was wrong, and where in the record.
func (e *DecodeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "json: offset %d", e.Offset)
	if e.Path != "" {
		b.WriteString(", at " + e.Path)
	}
	b.WriteString(": want " + e.Want)
	if e.Found != "" {
		b.WriteString(", found " + e.Found)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns Err.
func (e *DecodeError) Unwrap() error { return e.Err }

// wanted reports that the bytes at i are not what the grammar or the Go type
// asks for.
func wanted(d []byte, i int, want string) *DecodeError {
	return &DecodeError{Offset: i, Want: want, Found: describe(d, i)}
}

// inField adds the name of the member that the error happened in.
func (e *DecodeError) inField(name string) *DecodeError {
	e.Path = joinPath(name, e.Path)
	return e
}

// joinPath returns the path with the member or index name in front. Only the
// innermost part of a very long path is kept.
func joinPath(name, path string) string {
	switch {
	case len(path) > maxPath:
		return "..." + strings.TrimPrefix(path, "...")
	case path == "":
		return name
	case path[0] == '[':
		return name + path
	default:
		return name + "." + path
	}
}

// inElement adds the index of the element that the error happened in.
func (e *DecodeError) inElement(i int) *DecodeError {
	return e.inField("[" + strconv.Itoa(i) + "]")
}

const (
	maxExcerpt = 32  // bytes of a value quoted in an error
	maxPath    = 256 // bytes of a path after which it is cut
)

// describe names what is at byte i for a person.
func describe(d []byte, i int) string {
	if i >= len(d) {
		return "the end of the record"
	}
	for _, word := range []string{"null", "true", "false"} {
		if hasPrefix(d, i, word) {
			return word
		}
	}
	switch c := d[i]; {
	case c == '"':
		return "string " + excerpt(d[i:])
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '-' || isDigit(c):
		end := i + 1
		for end < len(d) && strings.IndexByte("+-.eE0123456789", d[end]) >= 0 {
			end++
		}
		return "number " + string(d[i:min(end, i+maxExcerpt)])
	default:
		return fmt.Sprintf("%q", d[i:i+1])
	}
}

// excerpt returns the start of the JSON string at the start of d.
func excerpt(d []byte) string {
	end := 1
	for end < len(d) && end < maxExcerpt && d[end] != '"' {
		if d[end] == '\\' {
			end++
		}
		end++
	}
	if end < len(d) && d[end] == '"' {
		return strconv.Quote(string(d[1:end]))
	}
	return strconv.Quote(string(d[1:min(end, len(d))])) + "..."
}
