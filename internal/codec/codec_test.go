package codec

import (
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"pgregory.net/rapid"
)

// encoded returns the encoding of v, which must be whole: decoding it leaves nothing.
func encoded[T any](t testing.TB, v T) (schema string, data []byte) {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	data, err = c.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	return c.Schema(), data
}

// reread returns v after a way through bytes, read as a U.
func reread[U, T any](t testing.TB, v T) (U, error) {
	t.Helper()
	schema, data := encoded(t, v)
	return readAs[U](t, schema, data)
}

func readAs[U any](t testing.TB, schema string, data []byte) (u U, err error) {
	t.Helper()
	c, err := For[U]()
	if err != nil {
		t.Fatal(err)
	}
	decode, err := c.Decoder(schema)
	if err != nil {
		return u, err
	}
	rest, err := decode(data, &u)
	if err == nil && len(rest) > 0 {
		t.Fatalf("%d bytes are left", len(rest))
	}
	return u, err
}

func same[T any](t *testing.T, name string, v T) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		got, err := reread[T](t, v)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("got %#v, want %#v", got, v)
		}
		schema, data := encoded(t, v)
		parsed, err := avro.Parse(schema)
		if err != nil {
			t.Fatalf("the schema %s is not Avro: %v", schema, err)
		}
		var generic any
		if rest, err := parsed.Decode(data, &generic); err != nil || len(rest) > 0 {
			t.Errorf("the bytes are not Avro of schema %s: %v, %d bytes left", schema, err, len(rest))
		}
	})
}

type (
	userID   int64
	label    string
	flags    [4]byte
	nothing  struct{}
	position struct{ X, Y float64 }
	base     struct{ Created time.Time }
	order    struct {
		base
		nothing
		ID       userID
		Label    label
		Total    float64
		Tags     []string
		Raw      []byte
		Codes    flags
		Lines    []line
		ByName   map[string]line
		ByID     map[userID]*line
		At       *position
		Waited   time.Duration
		Left     chan int `avro:"-"`
		Fraction [3]float32
		_        int
	}
	line struct {
		SKU   string `avro:"sku"`
		Count uint16
	}
	tree struct {
		Value    int
		Children []*tree
		Left     *tree
	}
)

func TestRoundTrip(t *testing.T) {
	same(t, "false", false)
	same(t, "true", true)
	same(t, "int8", int8(math.MinInt8))
	same(t, "int16", int16(math.MinInt16))
	same(t, "int32", int32(math.MinInt32))
	same(t, "int64 min", int64(math.MinInt64))
	same(t, "int64 max", int64(math.MaxInt64))
	same(t, "int", -7)
	same(t, "uint8", uint8(math.MaxUint8))
	same(t, "uint16", uint16(math.MaxUint16))
	same(t, "uint32", uint32(math.MaxUint32))
	same(t, "uint64", uint64(math.MaxUint64))
	same(t, "uint", uint(1)<<63)
	same(t, "float32", float32(math.SmallestNonzeroFloat32))
	same(t, "infinity", math.Inf(-1))
	same(t, "string", "Grüße")
	same(t, "string that is no UTF-8", "\xff\x00")
	same(t, "named", label("x"))
	same(t, "struct{}", struct{}{})
	same(t, "bytes", []byte{1, 2})
	same(t, "no bytes", []byte{})
	same(t, "nil bytes", []byte(nil))
	same(t, "slice", []int{1, 2, 3})
	same(t, "empty slice", []int{})
	same(t, "nil slice", []int(nil))
	same(t, "slice of slices", [][]string{{"a"}, nil, {}})
	same(t, "slice of nothing", make([]struct{}, 5))
	same(t, "array", [2]string{"a", "b"})
	same(t, "empty array", [0]byte{})
	same(t, "byte array", [3]byte{1, 2, 3})
	same(t, "map", map[string]int{"a": 1, "b": 2})
	same(t, "empty map", map[string]int{})
	same(t, "nil map", map[string]int(nil))
	same(t, "map of ids", map[userID]string{1: "a", -2: "b"})
	same(t, "map of structs", map[position]bool{{1, 2}: true})
	same(t, "set", map[uint64]struct{}{math.MaxUint64: {}})
	same(t, "nil pointer", (*int)(nil))
	same(t, "pointer", new(5))
	same(t, "pointer to nil pointer", new((*int)(nil)))
	same(t, "pointer to pointer", new(new(5)))
	same(t, "pointer to slice", new([]int(nil)))
	same(t, "pointers to slices", [2]*[]int{{1}, {}})
	same(t, "duration", time.Duration(math.MinInt64))
	same(t, "time zero", time.Time{})
	same(t, "time UTC", time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC))
	same(t, "times far away", []time.Time{time.Unix(-1<<40, 1).UTC(), time.Unix(1<<40, 999_999_999).UTC()})
	same(t, "fixed zone", time.Date(2026, 2, 3, 4, 5, 6, 7, time.FixedZone("here", 3601)))
	same(t, "zone without name", time.Date(2026, 2, 3, 4, 5, 6, 7, time.FixedZone("", -3600)))
	same(t, "local", time.Date(2026, 2, 3, 4, 5, 6, 7, time.Local))
	same(t, "marshaler", netip.MustParseAddr("fe80::1%eth0"))
	same(t, "gob", *new(big.Int).Lsh(big.NewInt(-3), 200))
	same(t, "pointer to gob", big.NewInt(12))
	same(t, "tree", tree{1, []*tree{{2, nil, nil}, nil}, &tree{Left: &tree{Value: 3}}})
	same(t, "embedded", struct {
		position
		N int
	}{position{1, 2}, 3})
	same(t, "embedded pointer", struct {
		*position
		N int
	}{nil, 3})
	same(t, "embedded marshaler", struct {
		netip.Addr
		N int
	}{netip.MustParseAddr("::1"), 3})
	same(t, "order", order{
		base: base{Created: time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC)},
		ID:   1, Label: "l", Total: 1.5, Tags: []string{}, Codes: flags{1}, Lines: []line{{"a", 1}, {"b", 2}},
		ByName: map[string]line{"a": {}}, ByID: map[userID]*line{1: nil, 2: {"x", 3}}, At: &position{1, 2},
		Waited: time.Second, Fraction: [3]float32{1, 2, 3},
	})
	same(t, "order zero", order{})
}

// TestZoneOfTheDatabase: a location is known by its name, so that adding days goes over
// changes of its offset.
func TestZoneOfTheDatabase(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no zone database:", err)
	}
	winter := time.Date(2026, 1, 1, 12, 0, 0, 5, berlin)
	got, err := reread[time.Time](t, winter)
	if err != nil {
		t.Fatal(err)
	}
	if want := "2026-07-01T12:00:00.000000005+02:00"; got.AddDate(0, 6, 0).Format(time.RFC3339Nano) != want {
		t.Errorf("half a year later it is %v, want %s", got.AddDate(0, 6, 0), want)
	}
	elsewhere := time.FixedZone("Europe/Berlin", 5)
	got, err = reread[time.Time](t, winter.In(elsewhere))
	if err != nil || !got.Equal(winter) || got.Format(time.RFC3339) != winter.In(elsewhere).Format(time.RFC3339) {
		t.Errorf("got %v, %v, want %v", got, err, winter.In(elsewhere))
	}
}

func TestFloatBits(t *testing.T) {
	for _, bits := range []uint64{math.Float64bits(math.NaN()), 0x7ff8dead_beef0001, 0x7ff00000_00000001, 1 << 63} {
		got, err := reread[float64](t, math.Float64frombits(bits))
		if err != nil || math.Float64bits(got) != bits {
			t.Errorf("got %x, %v, want %x", math.Float64bits(got), err, bits)
		}
	}
	for _, bits := range []uint32{0x7fc00001, 0x7f800001, 1 << 31} {
		got, err := reread[[1]float32](t, [1]float32{math.Float32frombits(bits)})
		if err != nil || math.Float32bits(got[0]) != bits {
			t.Errorf("got %x, %v, want %x", math.Float32bits(got[0]), err, bits)
		}
	}
}

func TestMonotonicClockIsDropped(t *testing.T) {
	now := time.Now()
	got, err := reread[time.Time](t, now)
	if err != nil || got != now.Round(0) {
		t.Errorf("got %#v, %v, want %#v", got, err, now.Round(0))
	}
}

func TestSchema(t *testing.T) {
	schema, _ := encoded(t, order{})
	want := `{"name":"order","type":"record","fields":[` +
		`{"name":"base","type":{"name":"base","type":"record","fields":[{"name":"Created","type":` +
		`{"name":"Time","type":"record","fields":[{"name":"seconds","type":"long"},{"name":"nanoseconds","type":"int"},` +
		`{"name":"zone","type":"string"},{"name":"offset","type":"int"}]}}]}},` +
		`{"name":"nothing","type":{"name":"nothing","type":"record","fields":[]}},` +
		`{"name":"ID","type":"long"},{"name":"Label","type":"string"},{"name":"Total","type":"double"},` +
		`{"name":"Tags","type":["null",{"type":"array","items":"string"}]},{"name":"Raw","type":["null","bytes"]},` +
		`{"name":"Codes","type":{"name":"fixed_4","type":"fixed","size":4}},` +
		`{"name":"Lines","type":["null",{"type":"array","items":{"name":"line","type":"record","fields":[` +
		`{"name":"sku","type":"string"},{"name":"Count","type":"int"}]}}]},` +
		`{"name":"ByName","type":["null",{"type":"map","values":"line"}]},` +
		`{"name":"ByID","type":["null",{"type":"array","items":{"name":"Pair","type":"record","fields":[` +
		`{"name":"key","type":"long"},{"name":"value","type":["null","line"]}]}}]},` +
		`{"name":"At","type":["null",{"name":"position","type":"record","fields":[{"name":"X","type":"double"},{"name":"Y","type":"double"}]}]},` +
		`{"name":"Waited","type":"long"},{"name":"Fraction","type":{"type":"array","items":"float"}}]}`
	if schema != want {
		t.Error(cmp.Diff(want, schema))
	}
}

type (
	hidden    struct{ secret int }
	holder    struct{ Inner []hidden }
	listener  struct{ On func() }
	mixed     struct{ Any any }
	endless   []endless
	locked    struct{ Mu sync.Mutex }
	ambiguous struct{ A, B int }
	mistyped  struct {
		A int `avro:"a,allias=b"`
	}
	wrongDefault struct {
		A int8 `avro:"a,default=300"`
	}
	noName struct{ Größe int }
	twins  struct {
		A int `avro:"x"`
		B int `avro:"y,alias=x"`
	}
	embedsMarshaler struct {
		netip.Addr
		more int
	}
)

func TestRefused(t *testing.T) {
	refused[hidden](t, "codec.hidden has the unexported field secret", "avro:\"-\"", "MarshalBinary")
	refused[holder](t, "codec.holder.Inner: codec.hidden has the unexported field secret")
	refused[locked](t, "codec.locked.Mu: sync.Mutex has the unexported field")
	refused[embedsMarshaler](t, "codec.embedsMarshaler has the unexported field more")
	refused[listener](t, "codec.listener.On", "func()")
	refused[mixed](t, "codec.mixed.Any", "interface")
	refused[map[string]chan int](t, "chan int")
	refused[error](t, "interface")
	refused[complex128](t, "two floats")
	refused[uintptr](t, "uintptr")
	refused[endless](t, "contains itself")
	refused[mistyped](t, "codec.mistyped.A", "allias")
	refused[wrongDefault](t, "codec.wrongDefault.A", "300")
	refused[noName](t, "codec.noName.Größe", "avro:\"name\"")
	refused[twins](t, "codec.twins.B", "A")
}

func refused[T any](t *testing.T, want ...string) {
	t.Helper()
	_, err := For[T]()
	if err == nil {
		t.Errorf("%v is accepted", reflect.TypeFor[T]())
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestCycle(t *testing.T) {
	c, err := For[tree]()
	if err != nil {
		t.Fatal(err)
	}
	loop := tree{}
	loop.Left = &loop
	if _, err := c.Append(nil, &loop); !errors.Is(err, errTooDeep) {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) MarshalBinary() ([]byte, error) { return nil, errors.New("no ink") }
func (*failing) UnmarshalBinary([]byte) error  { return errors.New("no eyes") }

func TestMarshalerErrors(t *testing.T) {
	c, err := For[failing]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(nil, new(failing)); err == nil || !strings.Contains(err.Error(), "codec.failing: no ink") {
		t.Errorf("got %v", err)
	}
	decode, err := c.Decoder(c.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode([]byte{0}, new(failing)); err == nil || !strings.Contains(err.Error(), "codec.failing: no eyes") {
		t.Errorf("got %v", err)
	}
}

// everything has each kind of field once, for random values.
type everything struct {
	B   bool
	I   int
	I8  int8
	I16 int16
	I32 int32
	I64 int64
	U   uint
	U8  uint8
	U16 uint16
	U32 uint32
	U64 uint64
	F32 float32
	F64 float64
	S   string
	Bs  []byte
	A   [2]int16
	Fix [2]uint8
	L   []inner
	M   map[string]inner
	P   map[int8][]string
	Ptr *inner
	PP  **[]int
}

type inner struct {
	N    *int64
	Self *inner
	T    []time.Duration
}

func TestRandomValues(t *testing.T) {
	c, err := For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	decode, err := c.Decoder(c.Schema())
	if err != nil {
		t.Fatal(err)
	}
	values := rapid.Make[everything]()
	rapid.Check(t, func(t *rapid.T) {
		want, got := values.Draw(t, "value"), values.Draw(t, "before")
		data, err := c.Append([]byte("head"), &want)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := decode(append(data[4:], "tail"...), &got)
		if err != nil || string(rest) != "tail" {
			t.Fatalf("got %v, rest %q", err, rest)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
		for cut := range len(data) - 4 {
			if _, err := decode(data[4:4+cut], &got); err == nil {
				t.Fatalf("%d of %d bytes are taken for the whole", cut, len(data)-4)
			}
		}
	})
}

// TestElementsWithoutBytes: their number is stored, and nothing else tells that it is
// true.
func TestElementsWithoutBytes(t *testing.T) {
	type before struct{}
	type after struct{ Added [100]int }
	schema, data := encoded(t, make([]before, 3))
	if got, err := readAs[[]after](t, schema, data); err != nil || len(got) != 3 {
		t.Errorf("got %d elements, %v", len(got), err)
	}
	many := append(appendLong([]byte{present}, 1<<22), 0)
	if got, err := readAs[[]before](t, schema, many); err != nil || len(got) != 1<<22 {
		t.Errorf("got %d elements, %v", len(got), err)
	}
	if _, err := readAs[[]after](t, schema, many); !errors.Is(err, errLength) {
		t.Errorf("got %v", err)
	}
	one := map[before]before{{}: {}}
	if got, err := reread[map[before]before](t, one); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	c, err := For[everything]()
	if err != nil {
		f.Fatal(err)
	}
	decode, err := c.Decoder(c.Schema())
	if err != nil {
		f.Fatal(err)
	}
	skipping, err := For[struct{ L []struct{} }]()
	if err != nil {
		f.Fatal(err)
	}
	skip, err := skipping.Decoder(c.Schema())
	if err != nil {
		f.Fatal(err)
	}
	_, data := encoded(f, everything{S: "s", L: []inner{{}}, M: map[string]inner{"a": {}}})
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var v everything
		_, whole := decode(data, &v)
		_, skipped := skip(data, new(struct{ L []struct{} }))
		if whole == nil && skipped != nil {
			t.Errorf("decoding takes it, skipping says %v", skipped)
		}
	})
}
