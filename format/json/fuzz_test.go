package json

import (
	stdjson "encoding/json"
	"reflect"
	"testing"
)

// fuzzTypes are decoded from every fuzzed document.
var fuzzTypes = []reflect.Type{
	reflect.TypeFor[everything](),
	reflect.TypeFor[threeOfSix](),
	reflect.TypeFor[Inner](),
	reflect.TypeFor[[]Inner](),
	reflect.TypeFor[map[string]any](),
	reflect.TypeFor[any](),
	reflect.TypeFor[float64](),
	reflect.TypeFor[*string](),
}

// seeds are documents that reach every branch of the decoder.
var seeds = []string{
	`{}`, `[]`, `null`, ` true `, `"x"`, `-12.5e3`, ``, ` `, `{`, `{"s"`, `{"s":`, `{"s":"a"`, `{"s":"a",`, `{"s":"a",}`,
	`{"s":"a"} x`, `{"s":"a"}{}`, `{"i":01}`, `{"i":-}`, `{"i":1.0}`, `{"i":1e2}`, `{"i8":128}`, `{"i8":-128}`, `{"u8":256}`,
	`{"u8":-0}`, `{"i":-0}`, `{"u64":18446744073709551615}`, `{"u64":18446744073709551616}`, `{"i64":-9223372036854775808}`,
	`{"i64":9223372036854775808}`, `{"i64":99999999999999999999999999}`, `{"f64":1e308}`, `{"f64":1e309}`, `{"f64":-0.0}`,
	`{"f64":0.1}`, `{"f64":123456789012345678901234567890.5}`, `{"f32":3.4e39}`, `{"f32":16777217}`, `{"f32":0.3}`,
	`{"f64":1.}`, `{"f64":.5}`, `{"f64":1e}`, `{"f64":+1}`, `{"b":true}`, `{"b":tru}`, `{"b":truex}`, `{"b":"true"}`,
	`{"s":"é\u00e9\ud83d\ude00\ud800x\udc00\n\/\"\\"}`, `{"s":"\x"}`, `{"s":"\u12g4"}`, `{"s":"\u12"}`,
	"{\"s\":\"a\xffb\xc3\"}", "{\"s\":\"a\nb\"}", "{\"gr\xc3\xb6\xc3\x9fe\":\"u\"}", `{"GRÖßE":"u"}`, "{\"\u212aey\":\"kelvin\"}",
	`{"\u0073":"escaped name"}`, `{"case":"1","CaSe":"2","CASE":"3","cASE":"4"}`, `{"A<B&C":"x"}`,
	`{"a_name_that_is_longer_than_sixteen_bytes":"1","a_name_that_is_longer_then_sixteen_bytes":"2"}`,
	`{"by":"aGVsbG8="}`, `{"by":"aGVsbG8"}`, `{"by":"aGVs\nbG8="}`, `{"by":[1,2,3]}`, `{"by":""}`, `{"by":null}`,
	`{"t":"2024-02-29T12:34:56.789Z"}`, `{"t":"2024-02-30T12:34:56Z"}`, `{"t":"2024-02-29T12:34:56+02:00"}`, `{"t":5}`,
	`{"p":1,"p":null,"pp":"x","pst":{"X":1},"pst":{"y":"a"},"st":{"X":1},"st":{"y":"b"}}`,
	`{"sl":[1,2,3],"sl":[4]}`, `{"sl":[]}`, `{"sl":null}`, `{"sl":[1,]}`, `{"sl":[,1]}`, `{"sl":[1 2]}`, `{"sl":[null,1]}`,
	`{"sst":[{"X":1},{"X":2,"y":"b"}],"sst":[{"y":"a"}],"sst":[{"y":"c"},{"X":9},{"X":3}]}`,
	`{"sp":[null,{"X":1}]}`, `{"ar":[1]}`, `{"ar":[1,2,3]}`, `{"ar":[1,2,"x"]}`, `{"ar":[1,2,{"x":]}]}`, `{"arb":[1,2,3]}`,
	`{"m":{"a":"b","a":"c"}}`, `{"m":{"a":1}}`, `{"m":{"a":"b"},"m":null}`, `{"m":{"a":"b"},"m":{}}`, `{"mi":{"a":1,"b":null}}`, `{"mn":{"k":{"X":1},"k":{"y":"z"}}}`, `{"mk":{"1":true}}`,
	`{"a":{"b":[1,"x",null,true,{"c":1.5e10}]},"a":[]}`, `{"a":1e999}`, `{"r": {"x" : [ 1 ] } }`, `{"r":null}`, `{"nu":1.50}`,
	`{"nu":"1"}`, `{"nu":"x"}`, `{"nu":null}`,
	`{"qi":"12"}`, `{"qi":12}`, `{"qi":"+12"}`, `{"qi":"012"}`, `{"qi":" 1"}`, `{"qi":"null"}`, `{"qi":null}`, `{"qi":"\u0031"}`,
	`{"qu":"255"}`, `{"qu":"256"}`, `{"qf":"1.5"}`, `{"qf":"0x1p4"}`, `{"qf":"NaN"}`, `{"qb":"true"}`, `{"qb":true}`,
	`{"qs":"\"x\""}`, `{"qs":"x"}`, `{"qp":"5"}`, `{"qp":"null"}`, `{"qsl":[1]}`, `{"qsl":["1"]}`, `{"qt":"2024-02-29T12:34:56Z"}`,
	`{"up":{"a":1},"lo":"ABC","pup":null,"plo":null,"mlo":{"A":1}}`, `{"up":"refuse"}`, `{"lo":"refuse"}`, `{"lo":5}`, `{"lo":null}`,
	`{"ip":"10.0.0.1"}`, `{"ip":"x"}`, `{"in":"EUR"}`, `{"in":"é"}`, `{"id":1,"KIND":"k","Clashes":"c","extra":"e"}`,
	`{"-":"dash","Skip":"s","hidden":1}`, "\ufeff{}", "{\"s\" :\t\"a\" ,\r\n\"i\" : 1 }", "{\"s\":\"a\"\v}", "{\x00}", "{\"\x00\":1}",
	`{"unknown":{"a":[{},[],"\u0041",1.5E+3,false,null]},"s":"after"}`, `{"unknown":{"a":[{},[],"\u004",1.5E+3,false,nul]},"s":"after"}`,
	`{"unknown":01}`, `{"unknown":{"a" "b"}}`, `{"unknown":[1,}`, `{"customer":"c","amount":1.5,"created_at":1719504000123}`,
	`{"in":1}`, `{"in":"\q"}`, `{"in":"a\nb"}`, `{"in":null}`, "{\"in\":\"\xff\"}", `{"f32":"x"}`, `{"f32":1.}`, `{"nu":-}`, `{"nu":[}`, `{"by":[1`,
	`{"t":"\q"}`, `{"sl":[[}`, `{"ar":[[}`, `{"s":"\u00G0"}`, `{"GR\u00d6SSE":1,"grÖße":"x"}`, `{"fd":[1,"x"],"mfd":{"a":2}}`, `{"fd":x}`,
	`[[[[[[[[[[]]]]]]]]]]`, `[{"X":1,"z":{"X":2,"z":{"X":3}}}]`,
}

func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, typ := range fuzzTypes {
			checkDecode(t, typ, data)
		}
	})
}

// FuzzEncode compares encoders on the values that fuzzed documents decode to.
func FuzzEncode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, typ := range fuzzTypes {
			ptr := reflect.New(typ)
			if stdjson.Unmarshal(data, ptr.Interface()) == nil {
				checkEncode(t, ptr)
			}
		}
	})
}
