package json

import (
	"bytes"
	stdjson "encoding/json"
	"encoding/json/jsontext"
	"math"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tables holds the decoding tables of the types decoded so far, so that their
// guesses grow over all documents of a test as they do in a job.
var tables sync.Map // reflect.Type to *value

// decodeAs decodes data into a new value of type typ as Value does.
func decodeAs(t testing.TB, typ reflect.Type, data []byte) (any, error) {
	t.Helper()
	root, ok := tables.Load(typ)
	if !ok {
		compiled, err := compileDecoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		root, _ = tables.LoadOrStore(typ, compiled)
	}
	ptr := reflect.New(typ)
	if err := decodeInto(root.(*value), data, slotIn(ptr)); err != nil {
		return nil, err
	}
	return ptr.Interface(), nil
}

// checkDecode compares decoding with encoding/json, twice, because the first
// time teaches the decoder what to guess the second time.
func checkDecode(t testing.TB, typ reflect.Type, data []byte) {
	t.Helper()
	want := reflect.New(typ)
	wantErr := stdjson.Unmarshal(data, want.Interface())
	clearNaN(want.Interface())
	for range 2 {
		input := bytes.Clone(data)
		got, err := decodeAs(t, typ, input)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q into %v\n  error: %v\n  encoding/json: %v", data, typ, err, wantErr)
		}
		if !bytes.Equal(input, data) {
			t.Fatalf("decoding changed its input %q to %q", data, input)
		}
		if err != nil {
			continue
		}
		// A connector reuses the bytes: nothing may still point into them.
		for i := range input {
			input[i] = 'X'
		}
		clearNaN(got)
		if !reflect.DeepEqual(got, want.Interface()) {
			t.Fatalf("%q into %v:\n%s", data, typ, cmp.Diff(want.Interface(), got,
				cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
}

// clearNaN replaces the one kind of value that is not equal to itself. It can
// only come from a quoted number.
func clearNaN(ptr any) {
	if e, ok := ptr.(*everything); ok && math.IsNaN(e.QF) {
		e.QF = math.MaxFloat64
	}
}

// stdEncode encodes the value that ptr points to with encoding/json, as Encode
// says that it encodes.
func stdEncode(ptr any) ([]byte, error) {
	var b bytes.Buffer
	enc := stdjson.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(ptr)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// checkEncode compares encoding with encoding/json.
func checkEncode(t testing.TB, ptr reflect.Value) {
	t.Helper()
	root, err := compileEncoder(ptr.Type().Elem())
	if err != nil {
		t.Fatal(err)
	}
	want, wantErr := stdEncode(ptr.Interface())
	got, gotErr := root.encode([]byte("before:"), slotIn(ptr), 0)
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("%+v\n  error: %v\n  encoding/json: %v", ptr.Elem(), gotErr, wantErr)
	}
	if gotErr == nil && string(got) != "before:"+string(want) {
		t.Fatalf("%+v\n  got  %s\n  want %s", ptr.Elem(), got, want)
	}
}

// upper decodes itself from JSON, doubled from text.
type upper struct{ s string }

func (u *upper) UnmarshalJSON(b []byte) error {
	if bytes.Contains(b, []byte("refuse")) {
		return errRefused
	}
	u.s = "json:" + string(bytes.ToUpper(b))
	return nil
}

func (u upper) MarshalJSON() ([]byte, error) { return stdjson.Marshal(u.s) }

// lower decodes and encodes itself from text.
type lower struct{ s string }

func (l *lower) UnmarshalText(b []byte) error {
	if bytes.Contains(b, []byte("refuse")) {
		return errRefused
	}
	l.s = string(bytes.ToLower(b))
	return nil
}

func (l lower) MarshalText() ([]byte, error) { return []byte(l.s), nil }

// streamed decodes and encodes itself by the interfaces of encoding/json/v2.
type streamed struct{ raw string }

func (s *streamed) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	s.raw = string(raw)
	return err
}

func (s streamed) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(s.raw))
}

type refused struct{}

func (refused) Error() string { return "refused" }

var errRefused = refused{}

type Inner struct {
	X int
	Y string `json:"y"`
	Z *Inner `json:"z,omitempty"`
}

type Base struct {
	ID      int64  `json:"id"`
	Kind    string `json:"kind"`
	Clashes string
}

type Other struct {
	Clashes string
	Extra   string `json:"extra"`
}

type named string

// everything has a field for each way a value is decoded.
type everything struct {
	Base
	*Other
	S      string             `json:"s"`
	N      named              `json:"n,omitempty"`
	I      int                `json:"i"`
	I8     int8               `json:"i8"`
	I16    int16              `json:"i16"`
	I32    int32              `json:"i32"`
	I64    int64              `json:"i64,omitzero"`
	U      uint               `json:"u"`
	U8     uint8              `json:"u8"`
	U16    uint16             `json:"u16"`
	U32    uint32             `json:"u32"`
	U64    uint64             `json:"u64"`
	F32    float32            `json:"f32"`
	F64    float64            `json:"f64,omitempty"`
	B      bool               `json:"b"`
	By     []byte             `json:"by"`
	T      time.Time          `json:"t,omitzero"`
	D      time.Duration      `json:"d"`
	P      *int               `json:"p"`
	PP     **string           `json:"pp"`
	St     Inner              `json:"st"`
	PSt    *Inner             `json:"pst"`
	Sl     []int              `json:"sl"`
	SS     []string           `json:"ss,omitempty"`
	SSt    []Inner            `json:"sst"`
	SP     []*Inner           `json:"sp"`
	Ar     [2]int             `json:"ar"`
	ArB    [3]byte            `json:"arb"`
	M      map[string]string  `json:"m"`
	MI     map[string]int     `json:"mi,omitempty"`
	MN     map[named]Inner    `json:"mn"`
	MK     map[int]bool       `json:"mk"`
	A      any                `json:"a"`
	R      stdjson.RawMessage `json:"r"`
	Nu     stdjson.Number     `json:"nu"`
	QI     int64              `json:"qi,string"`
	QU     uint8              `json:"qu,string"`
	QF     float64            `json:"qf,string"`
	QB     bool               `json:"qb,string"`
	QS     string             `json:"qs,string"`
	QP     *int32             `json:"qp,string"`
	QSl    []int              `json:"qsl,string"`
	QT     time.Time          `json:"qt,string"`
	Up     upper              `json:"up"`
	Lo     lower              `json:"lo"`
	PUp    *upper             `json:"pup"`
	FD     streamed           `json:"fd"`
	MFD    map[named]streamed `json:"mfd"`
	PLo    *lower             `json:"plo"`
	MLo    map[lower]int      `json:"mlo"`
	IP     netip.Addr         `json:"ip"`
	In     string             `json:"in" lowwater:"intern"`
	Skip   string             `json:"-"`
	Dash   string             `json:"-,"`
	Uni    string             `json:"größe"`
	Kel    string             `json:"key"`
	HTML   string             `json:"a<b&c"`
	Long   string             `json:"a_name_that_is_longer_than_sixteen_bytes"`
	Lon2   string             `json:"a_name_that_is_longer_then_sixteen_bytes"`
	Case   string             `json:"CaSe"`
	Cas2   string             `json:"case"`
	hidden int
}
