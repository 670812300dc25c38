package codec

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func becomes[U, T any](t *testing.T, name string, from T, want U) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		got, err := reread[U](t, from)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
	})
}

func TestEvolution(t *testing.T) {
	type v1 struct {
		ID    int32
		Name  string
		Gone  map[string][]tree
		Price float32
		Ptr   *int
	}
	old := v1{7, "n", map[string][]tree{"a": {{Value: 1, Left: &tree{}}}}, 1.5, new(3)}
	type v2 struct {
		Added  string
		Title  string `avro:"title,alias=label,alias=Name"`
		ID     int64
		Price  float64
		Level  int8    `avro:"level,default=-3"`
		Factor float64 `avro:",default=0.5"`
		Text   string  `avro:"text,default=a,b"`
		Ptr    int
	}
	becomes(t, "record", old, v2{Title: "n", ID: 7, Price: 1.5, Level: -3, Factor: 0.5, Text: "a,b", Ptr: 3})
	becomes(t, "in a slice", []v1{old, {}}[:1], []v2{{Title: "n", ID: 7, Price: 1.5, Level: -3, Factor: 0.5, Text: "a,b", Ptr: 3}})
	becomes(t, "all gone", old, struct{}{})
	becomes(t, "from nothing", struct{}{}, struct{ N *int }{})

	becomes(t, "int to int64", int8(-3), int64(-3))
	becomes(t, "int32 to float", int32(-3), float32(-3))
	becomes(t, "uint64 to float", uint64(1<<63), float64(1<<63))
	becomes(t, "int to double", -3, float64(-3))
	becomes(t, "float to double", float32(0.5), 0.5)
	becomes(t, "uint32 to uint64", uint32(math.MaxUint32), uint64(math.MaxUint32))
	becomes(t, "uint64 to int64", uint64(math.MaxInt64), int64(math.MaxInt64))
	becomes(t, "int to uint64", 5, uint64(5))
	becomes(t, "int64 to duration", int64(5), time.Duration(5))
	becomes(t, "within its width", int32(200), uint8(200))
	becomes(t, "string to bytes", "ab", []byte("ab"))
	becomes(t, "bytes to string", []byte("ab"), "ab")
	becomes(t, "value to pointer", 5, new(int64(5)))
	becomes(t, "pointer to value", new(5), 5)
	becomes(t, "pointer to slice", []int{1}, new([]int{1}))
	becomes(t, "array to slice", [2]int{1, 2}, []int{1, 2})
	becomes(t, "slice to array", []int8{1, 2}, [2]int{1, 2})
	becomes(t, "map values", map[string]int8{"a": 1}, map[label]float64{"a": 1})
	becomes(t, "map keys", map[int8]int8{1: 1}, map[int64]int{1: 1})

	type chain1 struct {
		V    int
		Next *chain1
	}
	type chain2 struct {
		Next *chain2
		V    float64
	}
	becomes(t, "recursive", chain1{1, &chain1{2, nil}}, chain2{&chain2{nil, 2}, 1})
	becomes(t, "recursive skipped", struct {
		C chain1
		N int
	}{chain1{1, &chain1{2, nil}}, 9}, struct{ N int }{9})
}

// TestValuesThatDoNotFit: what the type has room for is known when a value is read.
func TestValuesThatDoNotFit(t *testing.T) {
	fails := func(_ any, err error) func(want string) {
		return func(want string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	fails(reread[int8](t, int32(200)))("200 does not fit into int8")
	fails(reread[uint8](t, int8(-1)))("-1 does not fit into uint8")
	fails(reread[uint64](t, int64(-1)))("-1 does not fit into uint64")
	fails(reread[uint32](t, int64(math.MaxUint32+1)))("4294967296 does not fit into uint32")
	fails(reread[int64](t, uint64(math.MaxUint64)))("18446744073709551615 is too large for int64")
	fails(reread[int](t, (*int)(nil)))("nil is stored, and the type has no nil: int")
	fails(reread[[2]int](t, []int{1}))("length of [2]int cannot change")
	fails(reread[[2]int](t, []int{1, 2, 3}))("length of [2]int cannot change")
	fails(reread[struct{ A struct{ B uint8 } }](t, struct{ A struct{ B int8 } }{struct{ B int8 }{-1}}))("A: B: the stored number -1")
}

func TestIncompatible(t *testing.T) {
	type stored struct {
		ID   string
		Tags []int64
	}
	schema, _ := encoded(t, stored{})
	type wanted struct {
		ID   string
		Tags []int32
	}
	c, err := For[wanted]()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Decoder(schema)
	for _, want := range []string{"codec.wanted.Tags: element: long is stored, and int32 is wanted", "stored schema " + schema, "wanted schema " + c.Schema()} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	for name, decoder := range map[string]func() error{
		"long to int":       incompatible[int64, int32](t),
		"uint64 to int":     incompatible[uint64, int32](t),
		"double to float":   incompatible[float64, float32](t),
		"float to int":      incompatible[float32, int64](t),
		"string to int":     incompatible[string, int](t),
		"int to string":     incompatible[int, string](t),
		"int to bool":       incompatible[int, bool](t),
		"map to pairs":      incompatible[map[string]int, map[int]int](t),
		"pairs to map":      incompatible[map[int]int, map[string]int](t),
		"slice to map":      incompatible[[]int, map[int]int](t),
		"struct to int":     incompatible[struct{}, int](t),
		"int to struct":     incompatible[int, struct{}](t),
		"fixed to fixed":    incompatible[[3]byte, [4]byte](t),
		"fixed to bytes":    incompatible[[3]byte, []byte](t),
		"long to time":      incompatible[int64, time.Time](t),
		"struct to time":    incompatible[position, time.Time](t),
		"string to marshal": incompatible[string, failing](t),
	} {
		if err := decoder(); err == nil || !strings.Contains(err.Error(), "is stored, and") {
			t.Errorf("%s: %v", name, err)
		}
	}

	ints, err := For[int]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ints.Decoder(`{"type":"nonsense"}`); err == nil {
		t.Error("a stored schema that is none is accepted")
	}
}

func incompatible[T, U any](t *testing.T) func() error {
	return func() error {
		from, err := For[T]()
		if err != nil {
			t.Fatal(err)
		}
		to, err := For[U]()
		if err != nil {
			t.Fatal(err)
		}
		_, err = to.Decoder(from.Schema())
		return err
	}
}

// TestSeveralFieldsForOne: an alias that also meets the field's own name is ambiguous.
func TestSeveralFieldsForOne(t *testing.T) {
	type renamed struct {
		B int `avro:"B,alias=A"`
	}
	if _, err := reread[renamed](t, ambiguous{1, 2}); err == nil || !strings.Contains(err.Error(), "renamed.B: the stored record ambiguous has several fields for it") {
		t.Errorf("got %v", err)
	}
}
