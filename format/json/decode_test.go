package json

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/format"
)

type item struct {
	SKU   string  `json:"sku"`
	Price float32 `json:"price"`
	Count int8    `json:"count"`
}

type order struct {
	ID     int64             `json:"id"`
	Items  []item            `json:"items"`
	Note   *string           `json:"note"`
	Paid   bool              `json:"paid"`
	At     time.Time         `json:"at"`
	Labels map[string]string `json:"labels"`
	Ref    int               `json:"ref,string"`
	Raw    []byte            `json:"raw"`
	Who    upper             `json:"who"`
}

func TestDecode(t *testing.T) {
	const record = ` {"id": 7, "unknown": {"id": [8, {"id": 9}]}, "items": [{"sku": "a\u00e9", "price": 1.25, "count": -3}, {}],
		"note": "n", "paid": true, "at": "2024-05-06T07:08:09Z", "labels": {"k": "v"}, "ref": "42", "raw": "aGk=", "who": [1]} `
	var got order
	if err := Value[order]().Decode([]byte(record), &got); err != nil {
		t.Fatal(err)
	}
	want := order{
		ID: 7, Items: []item{{"aé", 1.25, -3}, {}}, Note: new("n"), Paid: true, At: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC),
		Labels: map[string]string{"k": "v"}, Ref: 42, Raw: []byte("hi"), Who: upper{"json:[1]"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(upper{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeError(t *testing.T) {
	tests := []struct{ record, want string }{
		{``, `json: offset 0: want an object for json.order, found the end of the record`},
		{`[]`, `json: offset 0: want an object for json.order, found an array`},
		{`{"id":1}}`, `json: offset 8: want the end of the record after its value, found "}"`},
		{`{id:1}`, `json: offset 1: want a member name in quotes or "}", found "i"`},
		{`{"id" 1}`, `json: offset 6: want ":" after a member name, found number 1`},
		{`{"id":1,}`, `json: offset 8: want a member name in quotes, found "}"`},
		{`{"id":1;`, `json: offset 7: want "," or "}" after a member, found ";"`},
		{`{"id":1.5}`, `json: offset 6, at id: want a number without fraction and exponent, found number 1.5`},
		{`{"id":01}`, `json: offset 6, at id: want a number without leading zeros, found number 01`},
		{`{"id":9223372036854775808}`, `json: offset 6, at id: want a number that fits int64, found number 9223372036854775808`},
		{`{"ID":"x"}`, `json: offset 6, at ID: want a number that fits int64, found string "x"`},
		{`{"items":[{},{"count":128}]}`, `json: offset 22, at items[1].count: want a number that fits int8, found number 128`},
		{`{"items":[{"price":1e39}]}`, `json: offset 19, at items[0].price: want a number that fits float32, found number 1e39`},
		{`{"items":[{}`, `json: offset 12, at items: want "," or "]" after an element, found the end of the record`},
		{`{"paid":null,"paid":"yes"}`, `json: offset 20, at paid: want true or false, found string "yes"`},
		{`{"at":"yesterday"}`, `json: offset 6, at at: want an RFC 3339 time in quotes, found string "yesterday": ` +
			`parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`},
		{`{"labels":{"k":{}}}`, `json: offset 15, at labels.k: want a string, found an object`},
		{`{"ref":"x"}`, `json: offset 7, at ref: want in quotes, a number that fits int, found string "x"`},
		{`{"raw":"?"}`, `json: offset 7, at raw: want base64 in quotes, found string "?": illegal base64 data at input byte 0`},
		{`{"who":"refuse"}`, `json: offset 7, at who: want a value for json.upper, found string "refuse": refused`},
		{`{"x":[0,{"y":nul}]}`, `json: offset 13, at x[1].y: want null, found "n"`},
		{`{"x":"\q"}`, `json: offset 6, at x: want an escape: one of \" \\ \/ \b \f \n \r \t \uXXXX, found "\\"`},
		{"{\"x\":\"a\tb\"}", `json: offset 7, at x: want the rest of a string, control characters escaped, found "\t"`},
		{`{"x":"abc`, `json: offset 9, at x: want the rest of a string, control characters escaped, found the end of the record`},
		{`{"id":"a text that is longer than what an error may quote"}`,
			`json: offset 6, at id: want a number that fits int64, found string "a text that is longer than what"...`},
	}
	for _, tt := range tests {
		var into order
		err := Value[order]().Decode([]byte(tt.record), &into)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s\n  got  %v\n  want %s", tt.record, err, tt.want)
		}
	}
}

func TestDecodeErrorUnwraps(t *testing.T) {
	var into order
	err := Value[order]().Decode([]byte(`{"who":"refuse"}`), &into)
	var decodeErr *DecodeError
	if !errors.Is(err, errRefused) || !errors.As(err, &decodeErr) || decodeErr.Offset != 7 || decodeErr.Path != "who" {
		t.Errorf("got %#v", err)
	}
}

func TestLongPathIsCut(t *testing.T) {
	depth := 2000
	record := strings.Repeat(`{"z":`, depth) + `1` + strings.Repeat(`}`, depth)
	var into Inner
	var decodeErr *DecodeError
	if err := Value[Inner]().Decode([]byte(record), &into); !errors.As(err, &decodeErr) || decodeErr.Offset != 5*depth {
		t.Fatalf("got %v", err)
	}
	if n := len(decodeErr.Path); n > maxPath+10 || !strings.HasPrefix(decodeErr.Path, "...z.z.") {
		t.Errorf("path of %d bytes: %s", n, decodeErr.Path)
	}
}

// TestDepth nests up to and beyond the limit through each recursive reader.
func TestDepth(t *testing.T) {
	type skipper struct{ A int }
	type list struct {
		L []list          `json:"l"`
		M map[string]list `json:"m"`
	}
	nest := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	tests := []struct {
		name string
		typ  reflect.Type
		step int // by how much the documents can grow
		doc  func(n int) string
	}{
		{"skip arrays", reflect.TypeFor[skipper](), 1, func(n int) string { return `{"x":` + nest("[", "]", n-1) + `}` }},
		{"skip objects", reflect.TypeFor[skipper](), 1, func(n int) string { return nest(`{"x":`, "}", n) }},
		{"any", reflect.TypeFor[any](), 1, func(n int) string { return nest("[", "]", n) }},
		{"any objects", reflect.TypeFor[map[string]any](), 1, func(n int) string { return nest(`{"x":`, "}", n) }},
		{"raw", reflect.TypeFor[stdjson.RawMessage](), 1, func(n int) string { return nest("[", "]", n) }},
		{"std", reflect.TypeFor[map[int]any](), 1, func(n int) string { return `{"1":` + nest("[", "]", n-1) + `}` }},
		{"struct", reflect.TypeFor[Inner](), 1, func(n int) string { return strings.Repeat(`{"z":`, n-1) + `{}` + strings.Repeat("}", n-1) }},
		{"slice", reflect.TypeFor[list](), 2, func(n int) string { return strings.Repeat(`{"l":[`, n/2) + strings.Repeat("]}", n/2) }},
		{"map", reflect.TypeFor[list](), 2, func(n int) string { return strings.Repeat(`{"m":{"k":`, n/2) + `null` + strings.Repeat("}}", n/2) }},
	}
	for _, tt := range tests {
		for _, n := range []int{10, maxDepth, maxDepth + tt.step} {
			_, err := decodeAs(t, tt.typ, []byte(tt.doc(n)))
			if tooDeep := n > maxDepth; (err != nil) != tooDeep {
				t.Errorf("%s, %d deep: error %v", tt.name, n, err)
			}
			if n <= maxDepth {
				checkDecode(t, tt.typ, []byte(tt.doc(n)))
			}
		}
	}
}

// TestNothingAliasesTheRecord overwrites the record after decoding it.
func TestNothingAliasesTheRecord(t *testing.T) {
	type holder struct {
		S, Esc, Uni string
		In          string `lowwater:"intern"`
		Any         any
		Raw         stdjson.RawMessage
		Num         stdjson.Number
		Bytes       []byte
		Map         map[string]string
	}
	record := []byte(`{"S":"plain","Esc":"a\nb","Uni":"é","In":"EUR","Any":["x",{"k":"v"}],"Raw":{"r":1},"Num":12.5,"Bytes":"aGk=","Map":{"k":"v"}}`)
	var got holder
	if err := Value[holder]().Decode(record, &got); err != nil {
		t.Fatal(err)
	}
	for i := range record {
		record[i] = '!'
	}
	want := holder{"plain", "a\nb", "é", "EUR", []any{"x", map[string]any{"k": "v"}}, stdjson.RawMessage(`{"r":1}`), "12.5", []byte("hi"),
		map[string]string{"k": "v"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// appender appends to what it is given to decode.
type appender struct{ n int }

func (a *appender) UnmarshalJSON(b []byte) error {
	a.n = len(append(b, "!!!"...))
	return nil
}

type textAppender struct{ n int }

func (a *textAppender) UnmarshalText(b []byte) error {
	a.n = len(append(b, "!!!"...))
	return nil
}

func TestMethodsCannotWriteIntoTheRecord(t *testing.T) {
	type holder struct {
		A textAppender
		B appender
	}
	const want = `{"A":"x","B":"y","more":"room to append"}`
	record := []byte(want)
	var got holder
	if err := Value[holder]().Decode(record, &got); err != nil {
		t.Fatal(err)
	}
	if string(record) != want {
		t.Errorf("the record is now %s", record)
	}
}

// TestFloats decodes decimals of all lengths, near where one division no longer
// rounds correctly.
func TestFloats(t *testing.T) {
	type floats struct {
		F32 float32
		F64 float64
	}
	dec := Value[floats]()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		digits := strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
		point := r.IntN(len(digits) + 1)
		text := strings.TrimLeft(digits[:point], "0")
		if text == "" {
			text = "0"
		}
		if point < len(digits) {
			text += "." + strings.Repeat("0", r.IntN(12)) + digits[point:]
		}
		doc := fmt.Appendf(nil, `{"f32":%s,"f64":-%s}`, text, text)
		var got, want floats
		if err := stdjson.Unmarshal(doc, &want); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := dec.Decode(doc, &got); err != nil || got != want {
			t.Fatalf("seed %d: %s: got %v, error %v, want %v", seed, doc, got, err, want)
		}
	}
}

type scanned struct{ n int }

func (s *scanned) ScanJSON(data []byte) error {
	if s.n = len(data); s.n == 0 {
		return errRefused
	}
	return nil
}

func TestScanner(t *testing.T) {
	var got scanned
	dec := Value[scanned]()
	if err := dec.Decode([]byte("not JSON"), &got); err != nil || got.n != 8 {
		t.Errorf("got %+v, error %v", got, err)
	}
	if err := dec.Decode(nil, &got); err != errRefused {
		t.Errorf("got error %v", err)
	}
}

type hiddenBase struct{ Y int }

func TestValidate(t *testing.T) {
	type self struct {
		P *self `lowwater:"intern"`
	}
	type loop *loop
	tests := []struct {
		codec any
		want  []string // parts of the error; none for a good type
	}{
		{Value[order](), nil},
		{Value[everything](), nil},
		{Value[map[string][]any](), nil},
		{Value[struct {
			C chan int `json:"-"`
			c chan int
		}](), nil},
		{Value[struct{ C chan int }](), []string{"field C: JSON has no value for chan int", `json:"-"`}},
		{Value[struct{ A []struct{ F func() } }](), []string{"field A.F: JSON has no value for func()"}},
		{Value[struct{ A, B complex64 }](), []string{"field A:", "field B:"}},
		{Value[chan int](), []string{"cannot decode into chan int"}},
		{Value[loop](), []string{"cannot decode into json.loop"}},
		{Value[struct{ *hiddenBase }](), []string{"field Y: it is in an embedded pointer to an unexported struct"}},
		{Value[struct {
			N int `lowwater:"intern"`
		}](), []string{`field N: tag lowwater:"intern" is for strings, not for int`}},
		{Value[*self](), []string{`field P: tag lowwater:"intern" is for strings`}},
		{Value[struct {
			N int `lowwater:"what"`
		}](), []string{`field N: tag lowwater:"what" is unknown`}},
		{Encode[order](), nil},
		{Encode[struct{ *hiddenBase }](), nil},
		{Encode[struct{ C chan int }](), []string{"cannot encode", "field C: JSON has no value for chan int"}},
		{Encode[map[string]func()](), []string{"cannot encode map[string]func()"}},
		{Encode[loop](), []string{"cannot encode json.loop"}},
	}
	for _, tt := range tests {
		err := tt.codec.(format.Validator).Validate()
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%T: error %v", tt.codec, err)
		}
		for _, part := range tt.want {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%T: error %v does not say %q", tt.codec, err, part)
			}
		}
	}
	var into struct{ C chan int }
	if err := Value[struct{ C chan int }]().Decode([]byte(`{}`), &into); err == nil {
		t.Error("Decode of an invalid type succeeded")
	}
	if _, err := Encode[struct{ C chan int }]().Encode(nil, into); err == nil {
		t.Error("Encode of an invalid type succeeded")
	}
}

// TestGuesses decodes records whose members come and go, all with one decoder.
func TestGuesses(t *testing.T) {
	type three struct{ A, B, C int }
	typ := reflect.TypeFor[three]()
	records := []string{
		`{"A":1,"x":0,"B":2,"y":0,"C":3}`, `{"A":1,"x":0,"B":2,"y":0,"C":3}`, `{"C":1,"B":2,"A":3}`, `{"x":0,"A":1,"A":2}`,
		`{"a":1,"b":2}`, `{ "A" : 1 , "x" : 0 , "B" : 2 }`, `{"x":0,"x":0,"x":0,"A":4}`, `{"A":1,"z":0,"B":2}`, `{"A":1,"x`, `{"A":1,"x"`,
		`{"A":1,"x":`, `{"A":1,"x":}`, `{"A":1,"x":0`, `{"A":1,"x":0,"B":2,"y":0,"C":3}`,
	}
	for _, r := range records {
		checkDecode(t, typ, []byte(r))
	}
}

func TestUnknownNamesAreNotRememberedWithoutBound(t *testing.T) {
	root, err := compileDecoder(reflect.TypeFor[threeOfSix]())
	if err != nil {
		t.Fatal(err)
	}
	// Each record goes one member further than the one before.
	doc := `{"m":0`
	for i := range 2 * maxStrays {
		doc += fmt.Sprintf(`,"m%d":%d`, i, i)
		var into threeOfSix
		if err := decodeInto(root, []byte(doc+`}`), slotOf(&into)); err != nil {
			t.Fatal(err)
		}
	}
	if n := root.names.strays.Load(); n != maxStrays {
		t.Errorf("%d unknown names remembered, want %d", n, maxStrays)
	}
}

func TestConcurrentUse(t *testing.T) {
	dec, enc := Value[allSixInterned](), Encode[allSixInterned]()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				record := benchOrders[(i*7+g)%len(benchOrders)]
				var got, want allSixInterned
				if err := dec.Decode(record, &got); err != nil {
					t.Error(err)
				}
				if err := stdjson.Unmarshal(record, &want); err != nil || got != want {
					t.Errorf("%s: got %+v, want %+v", record, got, want)
				}
				if out, err := enc.Encode(nil, got); err != nil || len(out) == 0 {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestIntern(t *testing.T) {
	type rec struct {
		S string `lowwater:"intern"`
	}
	dec := Value[rec]()
	decode := func(s string) string {
		t.Helper()
		var got rec
		record := []byte(`{"S":"` + s + `"}`)
		if err := dec.Decode(record, &got); err != nil {
			t.Fatal(err)
		}
		if got.S != s {
			t.Fatalf("got %q, want %q", got.S, s)
		}
		return got.S
	}
	for _, s := range []string{"EUR", "größe", "a text longer than sixteen bytes"} {
		if a, b := decode(s), decode(s); unsafe.StringData(a) != unsafe.StringData(b) {
			t.Errorf("%q was allocated twice", s)
		}
	}
	decode(strings.Repeat("long ", 100))
	for i := range 100_000 {
		decode(fmt.Sprint("value ", i)) // far more than fit
	}
}
