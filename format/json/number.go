package json

import (
	"strconv"
)

// integer is an integer of the record: its sign and magnitude.
type integer struct {
	mag  uint64
	neg  bool
	wide bool // the magnitude does not fit uint64
}

// scanInteger reads a number without fraction and exponent.
func scanInteger(d []byte, i int) (integer, int, *DecodeError) {
	var n integer
	start := i
	if at(d, i) == '-' {
		n.neg = true
		i++
	}
	first := i
	n.mag, i = digits(d, i, 0)
	if i == first {
		return n, start, wanted(d, start, "a number")
	}
	if d[first] == '0' && i > first+1 {
		return n, start, wanted(d, start, "a number without leading zeros")
	}
	if c := at(d, i); c == '.' || c|0x20 == 'e' {
		return n, start, wanted(d, start, "a number without fraction and exponent")
	}
	if i-first > maxDigits {
		mag, err := strconv.ParseUint(borrowString(d[first:i]), 10, 64)
		n.mag, n.wide = mag, err != nil
	}
	return n, i, nil
}

// maxDigits is the number of decimal digits that always fit uint64.
const maxDigits = 19

// digits reads digits and appends them to the decimal number n. Beyond
// maxDigits the result is worthless.
func digits(d []byte, i int, n uint64) (uint64, int) {
	for {
		w := load8(d, i)
		if !eightDigits(w) {
			break
		}
		n = n*1e8 + parseEightDigits(w)
		i += 8
	}
	for ; isDigit(at(d, i)); i++ {
		n = n*10 + uint64(d[i]-'0')
	}
	return n, i
}

// eightDigits reports whether all bytes of w are ASCII digits: the high half of
// each is 3, and still is after adding 6 to it.
func eightDigits(w uint64) bool {
	const high = 0xf0 * lowBits
	return w&high == '0'*lowBits && (w+6*lowBits)&high == '0'*lowBits
}

// parseEightDigits returns the number that eight ASCII digits stand for, by
// adding neighbours: digits to pairs, pairs to fours, fours to eight.
func parseEightDigits(w uint64) uint64 {
	w -= '0' * lowBits
	w = w*10 + w>>8
	const pair = 0x000000ff000000ff
	return (w&pair*(100+1000000<<32) + w>>16&pair*(1+10000<<32)) >> 32
}

// int64 returns n if it fits a signed integer of the given width.
func (n integer) int64(bits uint) (int64, bool) {
	limit := uint64(1) << (bits - 1)
	if n.neg {
		return -int64(n.mag), n.mag <= limit && !n.wide
	}
	return int64(n.mag), n.mag < limit && !n.wide
}

// uint64 returns n if it fits an unsigned integer of the given width. As in
// encoding/json a minus sign is refused even before a zero.
func (n integer) uint64(bits uint) (uint64, bool) {
	return n.mag, !n.neg && !n.wide && n.mag <= ^uint64(0)>>(64-bits)
}

// decimal is a number of the record as mant * 10^exp. exact says that no digit
// was lost.
type decimal struct {
	mant  uint64
	exp   int
	neg   bool
	exact bool
}

// scanDecimal reads a number of any form.
func scanDecimal(d []byte, i int) (decimal, int, *DecodeError) {
	var n decimal
	start := i
	if at(d, i) == '-' {
		n.neg = true
		i++
	}
	first := i
	n.mant, i = digits(d, i, 0)
	if i == first {
		return n, start, wanted(d, start, "a number")
	}
	if d[first] == '0' && i > first+1 {
		return n, start, wanted(d, start, "a number without leading zeros")
	}
	count := i - first
	c := at(d, i)
	if c == '.' {
		point := i + 1
		n.mant, i = digits(d, point, n.mant)
		if i == point {
			return n, start, wanted(d, start, `a number with digits after the "."`)
		}
		n.exp = point - i
		count += i - point
		c = at(d, i)
	}
	n.exact = count <= maxDigits
	if c|0x20 == 'e' {
		// Rare enough to leave the value to strconv.
		n.exact = false
		end, err := scanFraction(d, i)
		return n, end, err
	}
	return n, i, nil
}

// Powers of ten that floats hold exactly.
var (
	tens64 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
		1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}
	tens32 = [...]float32{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}
)

// float64 returns the float64 nearest to n, whose bytes are literal. If mant and
// the power of ten are both exact floats then one division rounds correctly;
// else strconv does.
func (n decimal) float64(literal []byte) (float64, bool) {
	if n.exact && n.mant < 1<<53 && -n.exp < len(tens64) {
		f := float64(n.mant) / tens64[-n.exp]
		if n.neg {
			f = -f
		}
		return f, true
	}
	f, err := strconv.ParseFloat(borrowString(literal), 64)
	return f, err == nil
}

// float32 is float64 for the other width.
func (n decimal) float32(literal []byte) (float32, bool) {
	if n.exact && n.mant < 1<<24 && -n.exp < len(tens32) {
		f := float32(n.mant) / tens32[-n.exp]
		if n.neg {
			f = -f
		}
		return f, true
	}
	f, err := strconv.ParseFloat(borrowString(literal), 32)
	return float32(f), err == nil
}
