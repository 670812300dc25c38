package json

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// newString returns the Go string for the bytes between a string's quotes, as
// scanString found them. It never shares memory with raw.
func newString(raw []byte, kind text) string {
	if kind == textASCII {
		return string(raw)
	}
	return newUnicodeString(raw, kind)
}

func newUnicodeString(raw []byte, kind text) string {
	if kind&textEscaped == 0 && utf8.Valid(raw) {
		return string(raw)
	}
	return ownString(unquote(raw))
}

// unquote returns a copy of the bytes between a string's quotes with escapes
// resolved and each byte that is not UTF-8, and each half of a surrogate pair
// that stands alone, replaced by U+FFFD. The escapes were checked by scanString.
func unquote(raw []byte) []byte {
	dst := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		run := bytes.IndexByte(raw[i:], '\\')
		if run < 0 {
			return appendUTF8(dst, raw[i:])
		}
		dst = appendUTF8(dst, raw[i:i+run])
		i += run
		switch c := raw[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := unquoteRune(raw, i)
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}

// unquoteRune reads the \u escape at i, and the one after it if the two are a
// surrogate pair, and returns the number of bytes read.
func unquoteRune(raw []byte, i int) (rune, int) {
	r, _ := hex4(raw, i+2)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if at(raw, i+6) == '\\' && at(raw, i+7) == 'u' {
		low, ok := hex4(raw, i+8)
		if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// appendUTF8 appends b, each byte that is not UTF-8 replaced by U+FFFD.
func appendUTF8(dst, b []byte) []byte {
	if utf8.Valid(b) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}

// toUTF8 returns b itself if it is UTF-8, else a copy as appendUTF8 makes it.
func toUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return appendUTF8(nil, b)
}
