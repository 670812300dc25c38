package codec

import (
	"math/rand/v2"
	"testing"
)

type flat struct {
	ID    int64
	Count uint32
	Sum   float64
	Open  bool
	Name  string
}

func random[T any](value func(r *rand.Rand) T) []T {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]T, 1024)
	for i := range values {
		values[i] = value(r)
	}
	return values
}

func bench[T any](b *testing.B, name string, values []T) {
	c, err := For[T]()
	if err != nil {
		b.Fatal(err)
	}
	decode, err := c.Decoder(c.Schema())
	if err != nil {
		b.Fatal(err)
	}
	var data []byte
	for i := range values {
		if data, err = c.Append(data, &values[i]); err != nil {
			b.Fatal(err)
		}
	}
	perEntry := int64(len(data) / len(values))
	b.Run("append/"+name, func(b *testing.B) {
		b.SetBytes(perEntry)
		b.ReportAllocs()
		buf := data[:0]
		for i := range b.N {
			if i%len(values) == 0 {
				buf = buf[:0]
			}
			buf, _ = c.Append(buf, &values[i%len(values)])
		}
	})
	b.Run("decode/"+name, func(b *testing.B) {
		b.SetBytes(perEntry)
		b.ReportAllocs()
		var rest []byte
		for i := range b.N {
			if i%len(values) == 0 {
				rest = data
			}
			if rest, err = decode(rest, &values[i%len(values)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	bench(b, "int64", random(func(r *rand.Rand) int64 { return int64(r.Uint64()) }))
	bench(b, "small", random(func(r *rand.Rand) int64 { return r.Int64N(1000) }))
	bench(b, "float64", random(func(r *rand.Rand) float64 { return r.Float64() }))
	bench(b, "string", random(func(r *rand.Rand) string { return "customer-0001234" }))
	bench(b, "empty", random(func(r *rand.Rand) struct{} { return struct{}{} }))
	bench(b, "flat", random(func(r *rand.Rand) flat { return flat{r.Int64N(1 << 40), r.Uint32N(100), r.Float64(), true, "name"} }))
	bench(b, "slice", random(func(r *rand.Rand) []int64 { return make([]int64, 8) }))
}

func TestAppendDoesNotAllocate(t *testing.T) {
	c, err := For[flat]()
	if err != nil {
		t.Fatal(err)
	}
	v := &flat{1, 2, 3, true, "name"}
	buf := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Append(buf, v) }); n > 0 {
		t.Errorf("%v allocations for each Append", n)
	}
}
