package json

import (
	stdjson "encoding/json"
	jsonv2 "encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/format"
)

// benchOrders are records of 150 to 200 bytes with six members: few currencies,
// a thousand customers, everything else different in each.
var benchOrders = func() (records [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4096 {
		records = append(records, fmt.Appendf(nil,
			`{"order_id":"ord-2024-%09d","customer":"c-%05d","amount":%.2f,"currency":%q,"created_at":%d,"comment":"leave at door %d%s"}`,
			184000+i, 77000+r.IntN(1000), r.Float64()*5000, []string{"EUR", "USD", "GBP", "SEK"}[r.IntN(4)],
			1719504000123+r.IntN(1e9), r.IntN(1e4), ", ring twice please, thanks"[:r.IntN(28)]))
	}
	return records
}()

// wideOrders are records of about a kilobyte with 24 members, some of them
// nested, among them those of threeOfSix.
var wideOrders = func() (records [][]byte) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 1024 {
		var b strings.Builder
		fmt.Fprintf(&b, `{"order_id":"ord-%09d","customer":"c-%05d","channel":"web","region":"eu-north-%d"`, i, r.IntN(1000), r.IntN(3))
		fmt.Fprintf(&b, `,"address":{"street":"Long Street %d","city":"Stockholm","zip":"%05d","geo":[%.5f,%.5f]}`,
			r.IntN(200), r.IntN(1e5), 59+r.Float64(), 18+r.Float64())
		b.WriteString(`,"items":[`)
		for range 3 {
			fmt.Fprintf(&b, `{"sku":"sku-%d","qty":%d,"price":%.2f,"gift":false},`, r.IntN(1e6), 1+r.IntN(9), r.Float64()*100)
		}
		fmt.Fprintf(&b, `null],"amount":%.2f,"currency":"SEK","created_at":%d`, r.Float64()*5000, 1719504000123+r.IntN(1e9))
		for k := range 15 {
			fmt.Fprintf(&b, `,"attribute_%d":"value %d of this attribute"`, k, r.IntN(1e6))
		}
		records = append(records, []byte(b.String()+"}"))
	}
	return records
}()

// threeOfSix is what a keyed window needs of it.
type threeOfSix struct {
	Customer  string  `json:"customer"`
	Amount    float64 `json:"amount"`
	CreatedAt int64   `json:"created_at"`
}

type allSix struct {
	OrderID   string  `json:"order_id"`
	Customer  string  `json:"customer"`
	Amount    float64 `json:"amount"`
	Currency  string  `json:"currency"`
	CreatedAt int64   `json:"created_at"`
	Comment   string  `json:"comment"`
}

// allSixInterned is allSix with the fields of few values interned.
type allSixInterned struct {
	OrderID   string  `json:"order_id"`
	Customer  string  `json:"customer"`
	Amount    float64 `json:"amount"`
	Currency  string  `json:"currency" lowwater:"intern"`
	CreatedAt int64   `json:"created_at"`
	Comment   string  `json:"comment"`
}

func BenchmarkDecode(b *testing.B) {
	benchDecoders[threeOfSix](b, "fields=3of6", benchOrders)
	benchDecoders[allSix](b, "fields=6of6", benchOrders)
	benchDecoders[allSixInterned](b, "fields=6of6-intern", benchOrders)
	benchDecoders[threeOfSix](b, "fields=3of24", wideOrders)
}

func benchDecoders[T any](b *testing.B, name string, records [][]byte) {
	b.Run(name+"/impl=lowwater", func(b *testing.B) { benchDecode(b, Value[T](), records) })
	b.Run(name+"/impl=std", func(b *testing.B) { benchDecode(b, stdDecoder[T]{}, records) })
	b.Run(name+"/impl=stdv2", func(b *testing.B) { benchDecode(b, stdV2Decoder[T]{}, records) })
}

type stdDecoder[T any] struct{}

func (stdDecoder[T]) Decode(data []byte, into *T) error { return stdjson.Unmarshal(data, into) }

type stdV2Decoder[T any] struct{}

func (stdV2Decoder[T]) Decode(data []byte, into *T) error { return jsonv2.Unmarshal(data, into) }

func benchDecode[T any](b *testing.B, dec format.Decoder[T], records [][]byte) {
	b.ReportAllocs()
	values := make([]T, 1024)
	for i := 0; b.Loop(); i++ {
		into := &values[i%len(values)]
		*into = *new(T)
		if err := dec.Decode(records[i%len(records)], into); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	b.Run("impl=lowwater", func(b *testing.B) { benchEncode(b, Encode[allSix]()) })
	b.Run("impl=std", func(b *testing.B) { benchEncode(b, stdEncoder[allSix]{}) })
	b.Run("impl=stdv2", func(b *testing.B) { benchEncode(b, stdV2Encoder[allSix]{}) })
}

type stdEncoder[T any] struct{}

func (stdEncoder[T]) Encode(dst []byte, v T) ([]byte, error) {
	out, err := stdjson.Marshal(v)
	return append(dst, out...), err
}

type stdV2Encoder[T any] struct{}

func (stdV2Encoder[T]) Encode(dst []byte, v T) ([]byte, error) {
	out, err := jsonv2.Marshal(v)
	return append(dst, out...), err
}

func benchEncode[T any](b *testing.B, enc format.Encoder[T]) {
	dec := Value[T]()
	values := make([]T, len(benchOrders))
	for i, record := range benchOrders {
		if err := dec.Decode(record, &values[i]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	var buf []byte
	for i := 0; b.Loop(); i++ {
		var err error
		if buf, err = enc.Encode(buf[:0], values[i%len(values)]); err != nil {
			b.Fatal(err)
		}
	}
}
