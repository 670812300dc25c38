package json

import "unicode/utf8"

// appendQuoted appends s as a JSON string. It escapes what JSON requires, and
// U+2028 and U+2029 as encoding/json does, but none of <, > and &. A byte that is
// not UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	b := borrowBytes(s)
	dst = append(dst, '"')
	for i := 0; ; {
		run := plainRun(b, i)
		dst = append(dst, b[i:run]...)
		if i = run; i == len(b) {
			return append(dst, '"')
		}
		if b[i] < utf8.RuneSelf {
			dst = appendEscape(dst, b[i])
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == '\u2028' || r == '\u2029' {
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		i += n
	}
}

// plainRun returns the first byte at or after i that has to be looked at, or the
// length of b.
func plainRun(b []byte, i int) int {
	for i < len(b) {
		marks := special(load8(b, i))
		if marks != 0 {
			return min(i+firstMark(marks), len(b))
		}
		i += 8
	}
	return len(b)
}

const hexDigits = "0123456789abcdef"

// appendEscape appends the escape of a quote, backslash or control character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}
