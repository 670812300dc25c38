package keyed

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unsafe"

	"pgregory.net/rapid"
)

func hasherOf[K comparable](t testing.TB) func(K) uint64 {
	t.Helper()
	h, err := HasherFor[K]()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// javaOf returns the Java hash code that a key's hash is made of.
func javaOf[K comparable](t testing.TB, k K) uint32 {
	t.Helper()
	c, err := compile(reflect.TypeFor[K]())
	if err != nil {
		t.Fatal(err)
	}
	code := c.java(unsafe.Pointer(&k))
	if got, want := uint32(hasherOf[K](t)(k)>>32), murmur(code); got != want {
		t.Errorf("%v: upper half %d is not the murmur of hash code %d, which is %d", k, got, code, want)
	}
	return code
}

func TestJavaStringAsUTF16(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, s string) {
		var want uint32
		for _, u := range utf16.Encode([]rune(s)) {
			want = want*31 + uint32(u)
		}
		if got := javaString(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	for n := range 40 {
		ascii := strings.Repeat("\x00a\x7fZ~!", 7)[:n]
		check(t, ascii)
		for at := range n {
			for _, r := range []string{"é", "日", "\U0001F600", "\x80", "\xff", "\xed\xa0\x80"} {
				check(t, ascii[:at]+r+ascii[at:])
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "text")) })
	rapid.Check(t, func(t *rapid.T) {
		check(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
	})
}

type inner struct {
	A int16
	B string
}

type composite struct {
	In    inner
	_     int32
	Flags [2]bool
	Wide  uint64
}

// tuple restates Flink's rule, to be checked against.
func tuple(fields ...uint32) uint32 {
	var h uint32
	for _, f := range fields {
		h = 31*h + f
	}
	return h
}

func TestHashCodes(t *testing.T) {
	type (
		userID string
		count  int64
	)
	negativeZero := math.Copysign(0, -1)
	neg7 := -7
	tests := []struct {
		name string
		got  uint32
		want uint32
	}{
		{"int is Long", javaOf(t, -1), 0},
		{"int64 is Long", javaOf(t, int64(1)<<32|5), 4},
		{"uint64 is Long", javaOf(t, uint64(math.MaxUint64)), 0},
		{"uintptr is Long", javaOf(t, uintptr(9)), 9},
		{"named int64", javaOf(t, count(1)<<40), 256},
		{"int32 is Integer", javaOf(t, int32(-7)), uint32(neg7)},
		{"int8 keeps its sign", javaOf(t, int8(-7)), uint32(neg7)},
		{"int16 keeps its sign", javaOf(t, int16(-7)), uint32(neg7)},
		{"uint8 has none", javaOf(t, uint8(249)), 249},
		{"uint16 has none", javaOf(t, uint16(65535)), 65535},
		{"uint32 wraps", javaOf(t, uint32(math.MaxUint32)), math.MaxUint32},
		{"named string", javaOf(t, userID("user-42")), javaString("user-42")},
		{"float32", javaOf(t, float32(1.5)), 0x3fc00000},
		{"float32 NaN", javaOf(t, math.Float32frombits(0xffc00001)), 0x7fc00000},
		{"float32 -0 is +0", javaOf(t, float32(negativeZero)), 0},
		{"float64 NaN", javaOf(t, math.Float64frombits(0xfff8000000000009)), 0x7ff80000},
		{"float64 -0 is +0", javaOf(t, negativeZero), 0},
		{"empty struct", javaOf(t, struct{}{}), 0},
		{"empty array", javaOf(t, [0]string{}), 0},
		{"array", javaOf(t, [3]int32{1, 2, 3}), tuple(1, 2, 3)},
		{
			"nested",
			javaOf(t, composite{In: inner{-3, "x"}, Flags: [2]bool{true, false}, Wide: 1<<32 | 2}),
			tuple(tuple(^uint32(2), 'x'), tuple(1231, 1237), 3),
		},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, int32(tt.got), int32(tt.want))
		}
	}
}

func TestMurmurIsNotNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.Uint32().Draw(t, "code")
		if m := murmur(code); int32(m) < 0 {
			t.Fatalf("murmur(%d) = %d", code, int32(m))
		}
	})
}

// Keys that a table takes for the same have the same hash, whatever bits their
// blank fields, padding, zeros and NaNs have.
func TestSameKeysHaveTheSameHash(t *testing.T) {
	type measure struct {
		Name  string
		Value float64
		Small float32
	}
	h := hasherOf[measure](t)
	nan := math.Float64frombits(0x7ff8000000000001)
	negativeZero := math.Copysign(0, -1)
	same := [][2]measure{
		{{"a", 0, 0}, {"a", negativeZero, float32(negativeZero)}},
		{{"a", nan, 1}, {"a", math.NaN(), 1}},
		{{strings.Repeat("a", 3), 1, 2}, {"aaa", 1, 2}},
	}
	for _, pair := range same {
		if h(pair[0]) != h(pair[1]) {
			t.Errorf("%v and %v have different hashes", pair[0], pair[1])
		}
	}
	different := []measure{{"a", 0, 0}, {"a", 0, 1}, {"a", 1, 0}, {"b", 0, 0}, {"", 0, 0}, {"a", nan, 0}}
	for i, a := range different {
		for _, b := range different[i+1:] {
			if h(a) == h(b) {
				t.Errorf("%v and %v have the same hash", a, b)
			}
		}
	}

	c := hasherOf[composite](t)
	x := composite{Wide: 7}
	y := x
	*(*int32)(unsafe.Add(unsafe.Pointer(&y), unsafe.Offsetof(y.Flags)-4)) = 99 // the blank field
	if x != y || c(x) != c(y) {
		t.Errorf("blank fields take part: equal %v, hashes %#x and %#x", x == y, c(x), c(y))
	}
}

// Java's hash codes of strings are easy to make collide; those of the table
// half must not follow.
func TestTableHalfIsIndependent(t *testing.T) {
	h := hasherOf[string](t)
	tables := map[uint32]bool{}
	const n = 1 << 10
	for i := range n {
		var b strings.Builder
		for bit := range 10 {
			b.WriteString([]string{"Aa", "BB"}[i>>bit&1])
		}
		hash := h(b.String())
		if javaString(b.String()) != javaString(strings.Repeat("Aa", 10)) {
			t.Fatalf("%s does not collide", b.String())
		}
		tables[uint32(hash)] = true
	}
	if len(tables) < n-2 {
		t.Errorf("%d keys with one hash code have only %d table hashes", n, len(tables))
	}
}

func TestRefusedKeyTypes(t *testing.T) {
	type node struct{ Next *int }
	tests := []struct {
		build func() error
		want  []string
	}{
		{refusal[*int], []string{"*int", "address"}},
		{refusal[any], []string{"interface", "concrete"}},
		{refusal[chan int], []string{"chan int", "address"}},
		{refusal[complex128], []string{"complex128"}},
		{refusal[node], []string{"keyed.node", "in .Next", "*int"}},
		{refusal[[2]struct{ E error }], []string{"in [1].E", "error"}},
		{refusal[time.Time], []string{"time.Time", "UnixMilli"}},
		{refusal[struct{ At time.Time }], []string{"in .At", "UnixMilli"}},
	}
	for _, tt := range tests {
		err := tt.build()
		if err == nil {
			t.Errorf("want an error that contains %q", tt.want)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q lacks %q", err, part)
			}
		}
	}
}

func refusal[K comparable]() error {
	_, err := HasherFor[K]()
	return err
}

func TestHashersDoNotAllocate(t *testing.T) {
	checkAllocs(t, "user-000042")
	checkAllocs(t, int64(42))
	checkAllocs(t, int32(42))
	checkAllocs(t, 4.2)
	checkAllocs(t, composite{In: inner{1, "abc"}})
	checkAllocs(t, struct {
		Name string
		X    float64
	}{"a", 1})
}

func checkAllocs[K comparable](t *testing.T, k K) {
	t.Helper()
	h := hasherOf[K](t)
	if n := testing.AllocsPerRun(100, func() { sink += h(k) }); n != 0 {
		t.Errorf("%T: %v allocations a key", k, n)
	}
}

var sink uint64

func benchmarkHash[K comparable](b *testing.B, name string, key func(i int) K) {
	keys := make([]K, 1024)
	for i := range keys {
		keys[i] = key(i)
	}
	b.Run(name, func(b *testing.B) {
		h := hasherOf[K](b)
		var sum uint64
		for i := range b.N {
			sum += h(keys[i%len(keys)])
		}
		sink += sum
	})
}

func BenchmarkHash(b *testing.B) {
	benchmarkHash(b, "string=5", func(i int) string { return fmt.Sprintf("%05d", i) })
	benchmarkHash(b, "string=10", func(i int) string { return fmt.Sprintf("user%06d", i) })
	benchmarkHash(b, "string=36", func(i int) string { return fmt.Sprintf("123e4567-e89b-12d3-a456-%012d", i) })
	benchmarkHash(b, "string=10/utf8", func(i int) string { return fmt.Sprintf("usér%05d", i) })
	benchmarkHash(b, "int64", func(i int) int64 { return int64(i) })
	benchmarkHash(b, "int32", func(i int) int32 { return int32(i) })
	benchmarkHash(b, "float64", func(i int) float64 { return float64(i) })
	benchmarkHash(b, "struct=string,int64", func(i int) struct {
		A string
		B int64
	} {
		return struct {
			A string
			B int64
		}{fmt.Sprintf("user%06d", i), int64(i)}
	})
	benchmarkHash(b, "uuid", func(i int) [16]byte { return [16]byte{0: byte(i), 15: byte(i >> 8)} })
}
