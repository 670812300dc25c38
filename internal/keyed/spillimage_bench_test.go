package keyed

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/state"
)

// sizeWriter is a snapshot.Writer that counts bytes. What is left for later is done in its
// order by finish.
type sizeWriter struct {
	incremental bool
	stored      map[string]bool
	written     int64
	later       []func(context.Context) error
}

func (w *sizeWriter) Checkpoint() int64                               { return 1 }
func (w *sizeWriter) Part(snapshot.Part) (snapshot.PartWriter, error) { return w, nil }
func (w *sizeWriter) Later(f func(context.Context) error)             { w.later = append(w.later, f) }
func (w *sizeWriter) Incremental() bool                               { return w.incremental }
func (w *sizeWriter) Append(_ int, entry []byte) error                { w.written += int64(len(entry)); return nil }
func (w *sizeWriter) Close() error                                    { return nil }

func (w *sizeWriter) Share(name string, size int64, open func() (io.ReadCloser, error)) error {
	if w.stored[name] {
		return nil
	}
	w.stored[name] = true
	w.written += size
	r, err := open()
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	return r.Close()
}

// BenchmarkIncremental changes a hundredth of the keys of a state that is on disk, 256 MiB of
// values that do not compress, and takes a snapshot. It tells the bytes that the
// snapshot writes, how long the subtask stands still for it and how long the background takes.
func BenchmarkIncremental(b *testing.B) {
	const keys, size = 1 << 18, 1 << 10
	hash := hasherOf[string](b)
	for _, incremental := range []bool{true, false} {
		b.Run(fmt.Sprintf("incremental=%v", incremental), func(b *testing.B) {
			backend, _ := limited(b, 8<<20, nil)
			values, err := backend.Value(state.Value[[]byte]("values"))
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			change := func(i int) {
				value := make([]byte, size)
				for at := range value {
					value[at] = byte(r.Uint32())
				}
				key := fmt.Sprintf("user%07d", i)
				backend.SetCurrentKey(hash(key), key)
				values.Set(value)
			}
			for i := range keys {
				change(i)
			}
			w := &sizeWriter{incremental: incremental, stored: map[string]bool{}}
			take := func() (sync, async time.Duration) {
				backend.ClearCurrentKey()
				w.written, w.later = 0, nil
				began := time.Now()
				s := NewSnapshot(w)
				if err := backend.Snapshot(s); err != nil {
					b.Fatal(err)
				}
				s.Start()
				sync = time.Since(began)
				for _, f := range w.later {
					if err := f(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				return sync, time.Since(began) - sync
			}
			take()
			first := w.written
			var written, syncs, asyncs int64
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				for range keys / 100 {
					change(r.IntN(keys))
				}
				b.StartTimer()
				sync, async := take()
				written, syncs, asyncs = written+w.written, syncs+int64(sync), asyncs+int64(async)
			}
			n := float64(b.N)
			b.ReportMetric(float64(first)/(1<<20), "first-MiB")
			b.ReportMetric(float64(written)/n/(1<<20), "MiB/op")
			b.ReportMetric(float64(syncs)/n/1e3, "sync-µs/op")
			b.ReportMetric(float64(asyncs)/n/1e6, "async-ms/op")
			if err := backend.Err(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
