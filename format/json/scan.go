package json

import "math/bits"

// The functions of this file read the JSON grammar and know nothing of Go
// types. Each takes the record and the byte to start at, and returns the byte
// after what it read. They accept what encoding/json accepts: RFC 8259, with
// invalid UTF-8 allowed inside strings and nesting up to maxDepth.

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// below keeps the first n bytes of w, n < 8.
func below(w uint64, n int) uint64 { return w & (1<<(8*uint(n)&63) - 1) }

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// load8 returns the eight bytes at i, the first in the lowest byte. Bytes after
// the end of d read as zero, which is no legal byte of JSON.
func load8(d []byte, i int) uint64 {
	if i+8 <= len(d) {
		return loadWord(d, i)
	}
	return loadTail(d, i)
}

func loadTail(d []byte, i int) uint64 {
	if i >= len(d) {
		return 0
	}
	if len(d) >= 8 {
		return loadWord(d, len(d)-8) >> (8 * uint(i+8-len(d)))
	}
	var w uint64
	for k, c := range d[i:] {
		w |= uint64(c) << (8 * k)
	}
	return w
}

// special marks, in its high bit, each byte of w that is a quote, a backslash, a
// control character or not ASCII. Only the lowest mark is exact: a borrow can
// set false marks above it.
func special(w uint64) uint64 {
	quote := (w ^ '"'*lowBits) - lowBits
	backslash := (w ^ '\\'*lowBits) - lowBits
	control := w - ' '*lowBits
	return (quote | backslash | control | w) & highBits
}

// firstMark returns the index of the byte that the lowest mark stands for.
func firstMark(marks uint64) int { return bits.TrailingZeros64(marks) / 8 }

// text says what the bytes between a string's quotes need to become a Go string.
type text uint8

const (
	textASCII   text = 0      // nothing
	textUnicode text = 1 << 0 // holds bytes above ASCII: check that they are UTF-8
	textEscaped text = 1 << 1 // holds escapes
)

// scanString reads a string from the byte after its opening quote and returns
// the index of its closing quote.
func scanString(d []byte, i int) (int, text, *DecodeError) {
	for {
		marks := special(load8(d, i))
		if marks == 0 {
			i += 8
			continue
		}
		if i += firstMark(marks); at(d, i) == '"' {
			return i, textASCII, nil
		}
		return scanRichString(d, i)
	}
}

// scanRichString is scanString from the first byte on that is not plain ASCII.
func scanRichString(d []byte, i int) (int, text, *DecodeError) {
	kind := textASCII
	for {
		// Only a byte above ASCII has its high bit in both words, so the marks of
		// those bytes are dropped here.
		w := load8(d, i)
		marks := special(w) &^ w
		if w&highBits != 0 {
			kind |= textUnicode
		}
		if marks == 0 {
			i += 8
			continue
		}
		i += firstMark(marks)
		switch at(d, i) {
		case '"':
			return i, kind, nil
		case '\\':
			next, err := scanEscape(d, i)
			if err != nil {
				return i, 0, err
			}
			kind |= textEscaped
			i = next
		default:
			return i, 0, wanted(d, i, "the rest of a string, control characters escaped")
		}
	}
}

// scanEscape reads the escape that starts with the backslash at i.
func scanEscape(d []byte, i int) (int, *DecodeError) {
	if i+1 < len(d) {
		switch d[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return i + 2, nil
		case 'u':
			if _, ok := hex4(d, i+2); ok {
				return i + 6, nil
			}
		}
	}
	return i, wanted(d, i, `an escape: one of \" \\ \/ \b \f \n \r \t \uXXXX`)
}

// hex4 reads four hexadecimal digits at i.
func hex4(d []byte, i int) (rune, bool) {
	if i+4 > len(d) {
		return 0, false
	}
	var r rune
	for _, c := range d[i : i+4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = (c | 0x20) - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func isDigit(c byte) bool { return c-'0' < 10 }

// skipSpace returns the first byte at or after i that is not white space.
func skipSpace(d []byte, i int) int {
	for i < len(d) && (d[i] == ' ' || d[i] == '\n' || d[i] == '\t' || d[i] == '\r') {
		i++
	}
	return i
}

// at returns the byte at i, or 0, which is no legal byte of JSON, at the end.
func at(d []byte, i int) byte {
	if uint(i) < uint(len(d)) {
		return d[i]
	}
	return 0
}

func hasPrefix(d []byte, i int, word string) bool {
	return len(d)-i >= len(word) && string(d[i:i+len(word)]) == word
}

// scanWord reads null, true or false.
func scanWord(d []byte, i int, word string) (int, *DecodeError) {
	if !hasPrefix(d, i, word) {
		return i, wanted(d, i, word)
	}
	return i + len(word), nil
}

// scanDigits reads digits, at least one.
func scanDigits(d []byte, i int) (int, *DecodeError) {
	if !isDigit(at(d, i)) {
		return i, wanted(d, i, "a digit")
	}
	for i++; isDigit(at(d, i)); i++ {
	}
	return i, nil
}

// scanNumber reads a number of any form.
func scanNumber(d []byte, i int) (int, *DecodeError) {
	if at(d, i) == '-' {
		i++
	}
	var err *DecodeError
	if at(d, i) == '0' {
		i++
	} else if i, err = scanDigits(d, i); err != nil {
		return i, err
	}
	return scanFraction(d, i)
}

// scanFraction reads the optional fraction and exponent after the integer part
// of a number.
func scanFraction(d []byte, i int) (int, *DecodeError) {
	var err *DecodeError
	if at(d, i) == '.' {
		if i, err = scanDigits(d, i+1); err != nil {
			return i, err
		}
	}
	if c := at(d, i); c|0x20 == 'e' {
		i++
		if c := at(d, i); c == '+' || c == '-' {
			i++
		}
		return scanDigits(d, i)
	}
	return i, nil
}

// skipValue reads any value. depth is the number of arrays and objects around it.
func skipValue(d []byte, i, depth int) (int, *DecodeError) {
	switch at(d, i) {
	case '"':
		i, _, err := scanString(d, i+1)
		return i + 1, err
	case '{':
		return skipObject(d, i, depth+1)
	case '[':
		return skipArray(d, i, depth+1)
	case 't':
		return scanWord(d, i, "true")
	case 'f':
		return scanWord(d, i, "false")
	case 'n':
		return scanWord(d, i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return scanNumber(d, i)
	default:
		return i, wanted(d, i, "a value")
	}
}

func skipObject(d []byte, i, depth int) (int, *DecodeError) {
	i, done, err := openObject(d, i, depth)
	for !done && err == nil {
		var end int
		if end, _, err = scanString(d, i+1); err != nil {
			return i, err
		}
		name := d[i+1 : end]
		if i, err = scanColon(d, end+1); err != nil {
			return i, err
		}
		if i, err = skipValue(d, i, depth); err != nil {
			return i, err.inField(string(name[:min(len(name), maxExcerpt)]))
		}
		i, done, err = nextMember(d, i)
	}
	return i, err
}

func skipArray(d []byte, i, depth int) (int, *DecodeError) {
	i, done, err := openArray(d, i, depth)
	for n := 0; !done && err == nil; n++ {
		if i, err = skipValue(d, i, depth); err != nil {
			return i, err.inElement(n)
		}
		i, done, err = nextElement(d, i)
	}
	return i, err
}

// openObject reads the brace at i and stops at the quote of the first name, or
// after the closing brace of an empty object, which is then done. depth counts
// the object itself.
func openObject(d []byte, i, depth int) (next int, done bool, err *DecodeError) {
	if depth > maxDepth {
		return i, false, tooDeep(i)
	}
	i = skipSpace(d, i+1)
	switch at(d, i) {
	case '"':
		return i, false, nil
	case '}':
		return i + 1, true, nil
	default:
		return i, false, wanted(d, i, `a member name in quotes or "}"`)
	}
}

// scanColon reads the colon after a name and the space around it.
func scanColon(d []byte, i int) (int, *DecodeError) {
	if at(d, i) != ':' {
		if i = skipSpace(d, i); at(d, i) != ':' {
			return i, wanted(d, i, `":" after a member name`)
		}
	}
	if i++; at(d, i) <= ' ' {
		i = skipSpace(d, i)
	}
	return i, nil
}

// nextMember reads the comma after a member and stops at the quote of the next
// name, or after the closing brace.
func nextMember(d []byte, i int) (next int, done bool, err *DecodeError) {
	c := at(d, i)
	if c <= ' ' {
		i = skipSpace(d, i)
		c = at(d, i)
	}
	if c == ',' {
		i++
		if at(d, i) == '"' {
			return i, false, nil
		}
		if i = skipSpace(d, i); at(d, i) == '"' {
			return i, false, nil
		}
		return i, false, wanted(d, i, "a member name in quotes")
	}
	if c == '}' {
		return i + 1, true, nil
	}
	return i, false, wanted(d, i, `"," or "}" after a member`)
}

// openArray reads the bracket at i and stops at the first element, or after the
// closing bracket of an empty array, which is then done. depth counts the array
// itself.
func openArray(d []byte, i, depth int) (next int, done bool, err *DecodeError) {
	if depth > maxDepth {
		return i, false, tooDeep(i)
	}
	if i = skipSpace(d, i+1); at(d, i) == ']' {
		return i + 1, true, nil
	}
	return i, false, nil
}

// nextElement reads the comma after an element and stops at the next element,
// or after the closing bracket.
func nextElement(d []byte, i int) (next int, done bool, err *DecodeError) {
	i = skipSpace(d, i)
	switch at(d, i) {
	case ',':
		return skipSpace(d, i+1), false, nil
	case ']':
		return i + 1, true, nil
	default:
		return i, false, wanted(d, i, `"," or "]" after an element`)
	}
}

func tooDeep(i int) *DecodeError {
	return &DecodeError{Offset: i, Want: "at most 10000 arrays and objects inside each other", Found: "one more"}
}
