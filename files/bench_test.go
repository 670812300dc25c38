package files_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/files"
)

// discard counts what a reader passes on, as the engine's pool would take it.
type discard struct {
	output[rec]
	batch connector.Batch[rec]
	n     int
}

func (d *discard) Batch() *connector.Batch[rec] { d.batch.Truncate(0); return &d.batch }
func (d *discard) Emit(_ string, b *connector.Batch[rec], _ []int64, _ connector.TimestampType) error {
	d.n += b.Len()
	return nil
}

// BenchmarkRead reads one file again and again; a record has one string.
func BenchmarkRead(b *testing.B) {
	const records = 200_000
	for name, f := range formats() {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			w, err := files.NewSink(dir, f).NewWriter(b.Context(), connector.WriterRuntime{Parallelism: 1})
			if err != nil {
				b.Fatal(err)
			}
			if err := w.Write(b.Context(), batchOf(recs(0, records))); err != nil {
				b.Fatal(err)
			}
			if err := w.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				source := files.NewSource(dir, f)
				e, err := source.NewEnumerator(b.Context(), connector.SourceRuntime{})
				if err != nil {
					b.Fatal(err)
				}
				splits, err := e.Discover(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				r, err := source.NewReader(b.Context(), connector.ReaderRuntime{Parallelism: 1})
				if err != nil {
					b.Fatal(err)
				}
				if err := r.AddSplits(splits); err != nil {
					b.Fatal(err)
				}
				r.NoMoreSplits()
				out := &discard{}
				for status := connector.MoreAvailable; status != connector.EndOfInput; {
					if status, err = r.Poll(out); err != nil {
						b.Fatal(err)
					}
					if status == connector.NothingAvailable {
						<-r.Available()
					}
				}
				if err := r.Close(); err != nil || out.n != records {
					b.Fatal(out.n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		})
	}
}

// BenchmarkWrite writes batches; files are ended when they are large.
func BenchmarkWrite(b *testing.B) {
	for name, f := range formats() {
		for _, codec := range []files.Codec{files.NoCompression, files.Zstd} {
			if codec != files.NoCompression && !f.Compressible() {
				continue
			}
			b.Run(fmt.Sprint(name, codec), func(b *testing.B) {
				w, err := files.NewSink(b.TempDir(), f, files.Compression(codec)).NewWriter(b.Context(), connector.WriterRuntime{Parallelism: 1})
				if err != nil {
					b.Fatal(err)
				}
				batch := batchOf(recs(0, connector.BatchSize))
				b.ReportAllocs()
				for b.Loop() {
					if err := w.Write(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/connector.BatchSize, "ns/record")
			})
		}
	}
}
