package json

import (
	stdjson "encoding/json"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEncode(t *testing.T) {
	v := order{
		ID: -7, Items: []item{{`a"<é>`, 1.25, 3}, {}}, Note: new("n"), At: time.Date(2024, 5, 6, 7, 8, 9, 500, time.UTC),
		Labels: map[string]string{"k": "v", "a": "b"}, Ref: 42, Raw: []byte("hi"), Who: upper{"me"},
	}
	const want = `kept{"id":-7,"items":[{"sku":"a\"<é>","price":1.25,"count":3},{"sku":"","price":0,"count":0}],"note":"n","paid":false,` +
		`"at":"2024-05-06T07:08:09.0000005Z","labels":{"a":"b","k":"v"},"ref":"42","raw":"aGk=","who":"me"}`
	got, err := Encode[order]().Encode([]byte("kept"), v)
	if err != nil || string(got) != want {
		t.Errorf("got  %s, error %v\nwant %s", got, err, want)
	}
}

type zeroer struct{ n int }

func (z zeroer) IsZero() bool { return z.n == 7 }

type pointerZeroer struct{ N int }

func (z *pointerZeroer) IsZero() bool { return z.N == 7 }

type omits struct {
	S  string                     `json:"s,omitempty"`
	I  int                        `json:"i,omitempty"`
	U  uint8                      `json:"u,omitempty"`
	F  float64                    `json:"f,omitempty"`
	F3 float32                    `json:"f3,omitempty"`
	B  bool                       `json:"b,omitempty"`
	P  *int                       `json:"p,omitempty"`
	A  any                        `json:"a,omitempty"`
	L  []int                      `json:"l,omitempty"`
	M  map[string]int             `json:"m,omitempty"`
	A0 [0]int                     `json:"a0,omitempty"`
	A1 [1]int                     `json:"a1,omitempty"`
	St struct{ X int }            `json:"st,omitempty"`
	T  time.Time                  `json:"t,omitzero"`
	Z  zeroer                     `json:"z,omitzero"`
	PZ *pointerZeroer             `json:"pz,omitzero"`
	VZ pointerZeroer              `json:"vz,omitzero"`
	IZ interface{ IsZero() bool } `json:"iz,omitzero"`
	FZ float64                    `json:"fz,omitzero"`
	LZ []int                      `json:"lz,omitzero"`
	EZ []int                      `json:"ez,omitempty,omitzero"`
}

// TestEncodeAsStd compares with encoding/json where its rules are intricate. The
// random types and FuzzEncode do it for the rest.
func TestEncodeAsStd(t *testing.T) {
	negZero := math.Copysign(0, -1)
	values := []any{
		&omits{}, &omits{S: "s", I: 1, U: 1, F: 1, F3: 1, B: true, P: new(int), A: 0, L: []int{0}, M: map[string]int{"a": 1}},
		&omits{F: negZero, F3: float32(negZero), FZ: negZero, Z: zeroer{7}, PZ: &pointerZeroer{7}, VZ: pointerZeroer{7}, IZ: zeroer{7}},
		&omits{L: []int{}, LZ: []int{}, EZ: []int{}, M: map[string]int{}, Z: zeroer{1}, PZ: &pointerZeroer{1}, IZ: (*pointerZeroer)(nil)},
		&everything{}, &everything{Other: &Other{Extra: "e"}, A: map[string]any{"<": []any{1.5, nil}}, Nu: "1.5", R: stdjson.RawMessage(`{ "a" : "<" }`)},
		&everything{Nu: "x"}, &everything{R: stdjson.RawMessage(`{`)}, &everything{IP: netip.MustParseAddr("::1"), QP: new(int32), QS: "a\"b"},
		&struct{ F []float64 }{[]float64{0, negZero, 1, 0.1, 1e20, 1e21, 1e-6, 1e-7, 123456789.125, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-10, 1e100}},
		&struct{ F []float32 }{[]float32{0, 0.1, 1e20, 1e21, 1e-6, 1e-7, 9.999999e-7, 16777216, math.MaxFloat32, math.SmallestNonzeroFloat32}},
		&struct{ F float64 }{math.NaN()}, &struct{ F float32 }{float32(math.Inf(-1))},
		&[]string{"", "\x00\x1f\x7f\b\f\n\r\t\"\\/", "<>&", "\u2028\u2029\u2027", "a\xffb\xc3", "日本語", "exactly8", "twenty bytes of text", "x\"y"},
		&[]time.Time{{}, time.Date(2024, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)},
		&[]time.Time{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, &[]time.Time{time.Date(2024, 1, 1, 0, 0, 0, 0, time.FixedZone("", 24*3600))},
		&[][]byte{nil, {}, []byte("x")}, &[2]bool{true}, &[]any{nil, 1, "x"}, &map[named]named{"b": "1", "a": "<"}, &map[string]string{},
		new(map[string]string), new([]int), new(*int), new(any), new(string), &[]*lower{nil, {"x"}}, &map[lower]lower{{"k"}: {"v"}},
		&[]struct{}{{}, {}}, &[]named8{1, 2}, &struct{ E [3]byte }{},
	}
	for _, v := range values {
		checkEncode(t, reflect.ValueOf(v))
	}
}

// named8 makes a []named8, which encoding/json writes as base64.
type named8 uint8

func TestEncodeError(t *testing.T) {
	type point struct{ X, Y float64 }
	type track struct {
		Points []point `json:"points"`
		Extra  map[int]any
	}
	cycle := &Inner{}
	cycle.Z = cycle
	type list []list
	ring := list{nil}
	ring[0] = ring
	tests := []struct {
		ptr  any
		want string
	}{
		{&track{Points: []point{{}, {Y: math.NaN()}}}, "json: at points[1].Y: JSON has no number for NaN"},
		{&track{Extra: map[int]any{1: make(chan int)}}, "json: at Extra: json: unsupported type: chan int"},
		{cycle, "more than 10000 arrays and objects inside each other; does the value contain itself?"},
		{&ring, "more than 10000 arrays and objects inside each other; does the value contain itself?"},
	}
	for _, tt := range tests {
		ptr := reflect.ValueOf(tt.ptr)
		root, err := compileEncoder(ptr.Type().Elem())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := root.encode(nil, slotIn(ptr), 0); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	_, err := Encode[point]().Encode(nil, point{X: math.Inf(1)})
	var encodeErr *EncodeError
	if !errors.As(err, &encodeErr) || encodeErr.Path != "X" || errors.Unwrap(encodeErr) == nil {
		t.Errorf("got %v", err)
	}
}

// TestEncodeKeepsNoValue checks that the pooled copy of a value is cleared.
func TestEncodeKeepsNoValue(t *testing.T) {
	enc := Encode[Inner]().(*encoder[Inner])
	if _, err := enc.Encode(nil, Inner{X: 1, Y: "y", Z: &Inner{}}); err != nil {
		t.Fatal(err)
	}
	if v := enc.values.Get().(*Inner); *v != (Inner{}) {
		t.Errorf("the pool holds %+v", v)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, record := range benchOrders {
		var v allSix
		if err := Value[allSix]().Decode(record, &v); err != nil {
			t.Fatal(err)
		}
		got, err := Encode[allSix]().Encode(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		var again allSix
		if err := Value[allSix]().Decode(got, &again); err != nil || again != v {
			t.Fatalf("%s encoded as %s decodes to %+v, error %v", record, got, again, err)
		}
	}
}
