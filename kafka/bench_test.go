package kafka

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// sizeOf decodes a record to its size, which costs nothing.
type sizeOf struct{}

func (sizeOf) Decode(data []byte, into *int) error {
	*into = len(data)
	return nil
}

// discard is an output that counts.
type discard[T any] struct {
	pool    *connector.Pool[T]
	records int
}

func (d *discard[T]) Batch() *connector.Batch[T] { return d.pool.Get() }
func (d *discard[T]) Emit(_ string, b *connector.Batch[T], _ []int64, _ connector.TimestampType) error {
	d.records += b.Len()
	b.Release()
	return nil
}
func (*discard[T]) EmitSide(connector.DeadLetter) error { return nil }
func (*discard[T]) FinishSplit(string) error            { return nil }
func (*discard[T]) EmitWatermark(string, int64) error   { return nil }
func (*discard[T]) MarkIdle(string) error               { return nil }
func (*discard[T]) MarkActive(string) error             { return nil }

// BenchmarkPoll measures a record's way from a fetched answer into a batch.
func BenchmarkPoll(b *testing.B) {
	b.Run("size", func(b *testing.B) { benchmarkPoll[int](b, sizeOf{}) })
	b.Run("string", func(b *testing.B) { benchmarkPoll[string](b, raw.String{}) })
}

func benchmarkPoll[T any](b *testing.B, dec format.Decoder[T]) {
	const n = 8 * connector.BatchSize
	c := kafkatest.Start(b)
	s := newSubtask(b, NewSource(dec, at(c), Topics("orders")))
	if err := s.reader.AddSplits([]connector.Split{Split{Topic: "orders"}}); err != nil {
		b.Fatal(err)
	}
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: "orders", Offset: int64(i), Value: make([]byte, 100)}
	}
	out := &discard[T]{pool: connector.NewPool[T]()}
	handed := make([]*kgo.Record, n)
	fetches := kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: make([]kgo.FetchPartition, 1)}}}}
	b.ReportAllocs()
	for b.Loop() {
		fetches[0].Topics[0].Partitions[0].Records = append(handed[:0], records...)
		s.reader.distribute(fetches)
		for out.records = 0; out.records < n; {
			if _, err := s.reader.Poll(out); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}

// BenchmarkRead measures reading from a broker in the same process, whose own
// cost is included.
func BenchmarkRead(b *testing.B) {
	for name, codec := range map[string]kgo.CompressionCodec{"plain": kgo.NoCompression(), "lz4": kgo.Lz4Compression()} {
		b.Run(name, func(b *testing.B) {
			c := kafkatest.Start(b, kfake.SeedTopics(1, "orders"),
				kfake.SyntheticFetch(kfake.SyntheticBatch{Records: 5000, RecordBytes: 100, RandomFrac: 0.5, Compression: codec}))
			s := start(b, NewSource(sizeOf{}, at(c), Topics("orders")))
			out := &discard[int]{pool: connector.NewPool[int]()}
			const n = 100_000
			b.ReportAllocs()
			for b.Loop() {
				for out.records = 0; out.records < n; {
					status, err := s.reader.Poll(out)
					if err != nil {
						b.Fatal(err)
					}
					if status == connector.NothingAvailable {
						<-s.reader.Available()
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}

// BenchmarkWrite measures writing to a broker in the same process, whose own
// cost is included.
func BenchmarkWrite(b *testing.B) {
	c := kafkatest.Start(b, kfake.SeedTopics(3, "out"), kfake.BlackholeProduce())
	w := openWriter(b, NewSink(raw.String{}, sinkAt(c), Topic("out")).WithKey(func(v string) []byte { return []byte(v[:8]) }))
	value := string(slices.Repeat([]byte("payload-"), 12))
	batch := batchOf(slices.Repeat([]string{value}, connector.BatchSize)...)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/connector.BatchSize, "ns/record")
}
