package json

import (
	stdjson "encoding/json"
	jsonv2 "encoding/json/v2"
	"fmt"
	"math/rand/v2"
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
	b.Run("fields=3of6/impl=lowwater", func(b *testing.B) { benchDecode(b, Value[threeOfSix]()) })
	b.Run("fields=3of6/impl=std", func(b *testing.B) { benchDecode(b, stdDecoder[threeOfSix]{}) })
	b.Run("fields=3of6/impl=stdv2", func(b *testing.B) { benchDecode(b, stdV2Decoder[threeOfSix]{}) })
	b.Run("fields=6of6/impl=lowwater", func(b *testing.B) { benchDecode(b, Value[allSix]()) })
	b.Run("fields=6of6/impl=lowwater-intern", func(b *testing.B) { benchDecode(b, Value[allSixInterned]()) })
	b.Run("fields=6of6/impl=std", func(b *testing.B) { benchDecode(b, stdDecoder[allSix]{}) })
	b.Run("fields=6of6/impl=stdv2", func(b *testing.B) { benchDecode(b, stdV2Decoder[allSix]{}) })
}

type stdDecoder[T any] struct{}

func (stdDecoder[T]) Decode(data []byte, into *T) error { return stdjson.Unmarshal(data, into) }

type stdV2Decoder[T any] struct{}

func (stdV2Decoder[T]) Decode(data []byte, into *T) error { return jsonv2.Unmarshal(data, into) }

func benchDecode[T any](b *testing.B, dec format.Decoder[T]) {
	b.ReportAllocs()
	values := make([]T, 1024)
	for i := 0; b.Loop(); i++ {
		into := &values[i%len(values)]
		*into = *new(T)
		if err := dec.Decode(benchOrders[i%len(benchOrders)], into); err != nil {
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
