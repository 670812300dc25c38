package json

import (
	stdjson "encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRandomTypes decodes random documents into random structs and encodes the
// results, and compares with encoding/json.
func TestRandomTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// rapid picks the seed and prints it with a failure; the generators draw
		// far too much for its bit stream.
		seed := rapid.Uint64().Draw(t, "seed")
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		typ := g.structType(0)
		decoder, err := compileDecoder(typ)
		if err != nil {
			t.Fatalf("compileDecoder(%v): %v", typ, err)
		}
		encoder, err := compileEncoder(typ)
		if err != nil {
			t.Fatalf("compileEncoder(%v): %v", typ, err)
		}
		for range 8 {
			doc := g.document(typ)
			want, got := reflect.New(typ), reflect.New(typ)
			wantErr := stdjson.Unmarshal(doc, want.Interface())
			gotErr := decodeInto(decoder, doc, slotIn(got))
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%s into %v\n  error: %v\n  encoding/json: %v", doc, typ, gotErr, wantErr)
			}
			if wantErr != nil {
				continue
			}
			if !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Fatalf("%s into %v\n  got  %+v\n  want %+v", doc, typ, got.Elem(), want.Elem())
			}
			compareEncoding(t, encoder, got)
		}
	})
}

func compareEncoding(t *rapid.T, encoder *form, ptr reflect.Value) {
	want, wantErr := stdEncode(ptr.Interface())
	got, err := encoder.encode(nil, slotIn(ptr), 0)
	if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
		t.Fatalf("encoding %v %+v\n  got  %s, error %v\n  want %s, error %v", ptr.Elem().Type(), ptr.Elem(), got, err, want, wantErr)
	}
}

// generator makes random types, and documents for them.
type generator struct{ *rand.Rand }

// leafTypes are the types a generated field may have apart from structs and
// containers of other types.
var leafTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[named](), reflect.TypeFor[bool](),
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[float64](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[any](), reflect.TypeFor[stdjson.RawMessage](),
	reflect.TypeFor[stdjson.Number](), reflect.TypeFor[upper](), reflect.TypeFor[lower](), reflect.TypeFor[Inner](),
	reflect.TypeFor[map[string]string](), reflect.TypeFor[map[int8]string](), reflect.TypeFor[map[lower]any](), reflect.TypeFor[fmt.Stringer](),
	reflect.TypeFor[[]named](), reflect.TypeFor[[0]int](), reflect.TypeFor[struct{}](), reflect.TypeFor[Base](), reflect.TypeFor[*Other](),
}

// memberNames are few, so that fields clash and documents match them.
var memberNames = []string{"a", "A", "b", "B", "id", "ID", "Id", "kind", "extra", "Clashes", "clashes", "ключ", "КЛЮЧ", "k", "s",
	"a_long_member_name", "A_long_member_name", "a_long_member_nbme", "exactly8", "EXACTLY8", "exactly16_bytes_", "a.b", "x y", "<&>"}

func (g generator) pick(n int) bool { return g.IntN(n) == 0 }

func oneOf[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

func (g generator) structType(depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range g.IntN(7) {
		f := reflect.StructField{Name: "F" + strconv.Itoa(i), Type: g.typ(depth + 1)}
		var options string
		for _, o := range []string{",omitempty", ",omitzero", ",string"} {
			if g.pick(5) {
				options += o
			}
		}
		switch {
		case g.pick(30):
			f.Tag = `json:"-"`
		case g.pick(5):
			f.Tag = reflect.StructTag(fmt.Sprintf("json:%q", options))
		default:
			f.Tag = reflect.StructTag(fmt.Sprintf("json:%q", oneOf(g, memberNames)+options))
		}
		fields = append(fields, f)
	}
	// reflect can embed structs without methods only.
	if g.pick(3) {
		fields = append(fields, reflect.StructField{Name: "Base", Type: reflect.TypeFor[Base](), Anonymous: true})
	}
	if g.pick(3) {
		fields = append(fields, reflect.StructField{Name: "Other", Type: reflect.TypeFor[*Other](), Anonymous: true})
	}
	return reflect.StructOf(fields)
}

func (g generator) typ(depth int) reflect.Type {
	if depth < 4 {
		switch g.IntN(12) {
		case 0:
			return g.structType(depth)
		case 1:
			return reflect.PointerTo(g.typ(depth + 1))
		case 2, 3:
			return reflect.SliceOf(g.typ(depth + 1))
		case 4:
			return reflect.ArrayOf(g.IntN(4), g.typ(depth+1))
		case 5:
			return reflect.MapOf(reflect.TypeFor[string](), g.typ(depth+1))
		}
	}
	return oneOf(g, leafTypes)
}

// document returns JSON that mostly fits typ, sometimes damaged.
func (g generator) document(typ reflect.Type) []byte {
	var b strings.Builder
	g.value(&b, typ, 0)
	doc := []byte(b.String())
	for g.pick(8) && len(doc) > 0 {
		i := g.IntN(len(doc))
		switch g.IntN(3) {
		case 0:
			doc = append(doc[:i:i], doc[i+1:]...)
		case 1:
			doc[i] = "\"\\{}[],:0-.eE nu\x80\x00"[g.IntN(18)]
		default:
			doc = doc[:i]
		}
	}
	return doc
}

func (g generator) space(b *strings.Builder) {
	if g.pick(15) {
		b.WriteString(oneOf(g, []string{" ", "\n", "\t", "\r\n", "   "}))
	}
}

var (
	numberTexts = []string{"0", "-0", "1", "-1", "7", "127", "128", "-128", "-129", "255", "256", "32768", "65535", "65536", "2147483647",
		"2147483648", "4294967296", "12345678", "123456789012345678", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "99999999999999999999",
		"0.1", "-1.5", "3.14159265358979", "16777217.0", "9007199254740993.0", "1e2", "1E-7", "2.5e+10", "1e-400", "1e400", "3.5e38", "123456.789e-3",
		"0.000001", "0.0000001", "1e21", "1e20", "00", "1.", "-"}
	stringTexts = []string{``, `x`, `hello`, `exactly8`, `nine_byte`, `a string longer than sixteen bytes`, `ünïcödé`, `日本語`, `\n\t\"\\\/\b\f\r`,
		`\u0041`, `\u00e9\u0000`, `\ud83d\ude00`, `\ud800`, `\udc00\ud800`, "\xff", "a\xc3", `<>&`, "\u2028", `\u2028`, `true`, `null`, `12`, `-7`,
		`1.5`, `aGVsbG8=`, `\"quoted\"`, `refuse`, `\x`}
	timeTexts = []string{`"2024-02-29T12:34:56.5Z"`, `"2024-02-29T12:34:56+05:30"`, `"0000-01-01T00:00:00Z"`, `"2024-02-29T12:34:56.123456789Z"`,
		`"2024-02-29T12:34:56\u005a"`, `"2024-02-29T12:34:56,5Z"`, `"2024-13-01T00:00:00Z"`, `"2024-02-30T00:00:00Z"`, `"2024-02-29"`, `"2024-02-29T1:34:56Z"`}
)

// value writes a value that mostly fits typ.
func (g generator) value(b *strings.Builder, typ reflect.Type, depth int) {
	g.space(b)
	defer g.space(b)
	if g.pick(40) || depth > 12 {
		b.WriteString("null")
		return
	}
	if g.pick(200) {
		g.value(b, oneOf(g, leafTypes), depth+1)
		return
	}
	switch typ.Kind() {
	case reflect.Struct:
		switch typ {
		case reflect.TypeFor[time.Time]():
			b.WriteString(oneOf(g, timeTexts))
			return
		case reflect.TypeFor[lower]():
			g.string(b)
			return
		}
		g.object(b, typ, depth)
	case reflect.Map:
		g.object(b, typ, depth)
	case reflect.Pointer:
		g.value(b, typ.Elem(), depth)
	case reflect.Slice, reflect.Array:
		if typ == reflect.TypeFor[[]byte]() && !g.pick(4) {
			b.WriteString(`"aGVsbG8="`)
			return
		}
		g.array(b, typ.Elem(), depth)
	case reflect.String:
		g.string(b)
	case reflect.Bool:
		b.WriteString(oneOf(g, []string{"true", "false"}))
	case reflect.Interface:
		g.value(b, oneOf(g, leafTypes), depth+1)
	default:
		g.number(b, typ)
	}
}

func (g generator) string(b *strings.Builder) {
	text := oneOf(g, stringTexts)
	if g.pick(2) {
		text = strings.Repeat("x", g.IntN(40))
	}
	b.WriteString(`"` + text + `"`)
}

func (g generator) number(b *strings.Builder, typ reflect.Type) {
	quote := ""
	if g.pick(20) {
		quote = `"`
	}
	text := oneOf(g, numberTexts)
	if !g.pick(10) {
		text = strconv.Itoa(g.IntN(100))
	}
	if k := typ.Kind(); !g.pick(3) && (k == reflect.Float32 || k == reflect.Float64) {
		text = strconv.FormatFloat(g.NormFloat64()*1000, 'f', g.IntN(20), 64)
	}
	b.WriteString(quote + text + quote)
}

func (g generator) array(b *strings.Builder, elem reflect.Type, depth int) {
	b.WriteByte('[')
	for i := range g.IntN(1 + g.IntN(12)) {
		if i > 0 {
			b.WriteByte(',')
		}
		g.value(b, elem, depth+1)
	}
	g.space(b)
	b.WriteByte(']')
}

// object writes members for the fields of a struct or the entries of a map, some
// of them twice, and members that nothing was declared for.
func (g generator) object(b *strings.Builder, typ reflect.Type, depth int) {
	b.WriteByte('{')
	for i := range g.IntN(8) {
		if i > 0 {
			b.WriteByte(',')
		}
		g.space(b)
		name, elem := oneOf(g, memberNames), reflect.TypeFor[any]()
		switch {
		case typ.Kind() == reflect.Map:
			elem = typ.Elem()
			if typ.Key().Kind() == reflect.Int8 {
				name = strconv.Itoa(g.IntN(130))
			}
		case typ.NumField() > 0 && !g.pick(4):
			f := typ.Field(g.IntN(typ.NumField()))
			elem = f.Type
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" {
				name = tag
			} else {
				name = f.Name
			}
		}
		switch g.IntN(20) {
		case 0:
			name = strings.ToUpper(name)
		case 1:
			name = fmt.Sprintf(`\u%04x%s`, []rune(name)[0], string([]rune(name)[1:]))
		}
		b.WriteString(`"` + name + `"`)
		g.space(b)
		b.WriteByte(':')
		g.value(b, elem, depth+1)
	}
	g.space(b)
	b.WriteByte('}')
}
