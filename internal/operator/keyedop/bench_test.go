package keyedop

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/state"
)

// discard is an output that only releases.
type discard struct{}

func (discard) Emit(p exchange.Payload) error               { p.Release(); return nil }
func (discard) EmitSide(_ string, p exchange.Payload) error { p.Release(); return nil }
func (discard) Watermark(int64) error                       { return nil }
func (discard) Status(bool) error                           { return nil }

// BenchmarkProcess counts by key and moves a timer per record, over 10,000 keys. ns/op is per
// record.
func BenchmarkProcess(b *testing.B) {
	h := newHarness(b)
	op := NewProcess(func(x *Context[string], out *operator.Emitter[int64]) (Function[row], error) {
		count := x.Value(state.Value[int64]("count"))
		return Function[row]{
			Element: func(row) error {
				n, _ := count.Get()
				count.Set(n + 1)
				x.RegisterEventTimer(x.At + 1000)
				return nil
			},
			Timer: func(at int64, _ Domain) error {
				n, _ := count.Get()
				out.Append(n, x.Timestamp, 0)
				return nil
			},
		}, nil
	})
	h.op = op
	if err := op.Open(h.runtime(), discard{}); err != nil {
		b.Fatal(err)
	}
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	pool := exchange.NewKeyedPool[string, row]()
	now := int64(0)
	send := func() {
		batch := pool.Get()
		for range connector.BatchSize {
			key := keys[now*7919%int64(len(keys))]
			batch.Append(row{Key: key}, now, 0)
			batch.Keys, batch.Hashes = append(batch.Keys, key), append(batch.Hashes, h.hash(key))
			now++
		}
		must(b, op.Process(0, batch))
		must(b, op.Watermark(now-1))
	}
	for range 100 {
		send()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += connector.BatchSize {
		send()
	}
}
