package windowed

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/window"
)

// nowhere is a snapshot that is not kept.
type nowhere struct {
	later []func(context.Context) error
	bytes int64
}

func (n *nowhere) Checkpoint() int64 { return 1 }
func (n *nowhere) Incremental() bool { return false }
func (n *nowhere) Share(string, int64, func() (io.ReadCloser, error)) error {
	return errors.ErrUnsupported
}
func (n *nowhere) Part(snapshot.Part) (snapshot.PartWriter, error) { return n, nil }
func (n *nowhere) Later(f func(context.Context) error)             { n.later = append(n.later, f) }
func (n *nowhere) Append(_ int, entry []byte) error                { n.bytes += int64(len(entry)); return nil }
func (n *nowhere) Close() error                                    { return nil }

// large is an accumulator of a kilobyte.
type large struct {
	Count int64
	Rest  [1000]byte
}

var largeCount = window.Fold(func() large { return large{} },
	func(acc large, _ int64) large { acc.Count++; return acc },
	func(a, b large) large { a.Count += b.Count; return a })

// BenchmarkSnapshot tells how long a subtask stands still for a snapshot of windows with
// 1 GiB of contents (pause-ms), and what a gigabyte costs to encode in the background.
func BenchmarkSnapshot(b *testing.B) {
	if testing.Short() {
		b.Skip("takes more than 1 GiB of memory")
	}
	const windows, keys = 20, 50_000
	op := Aggregate[string](specOf[int64](Options{Assigner: window.Tumbling(time.Second)}), largeCount)
	h := openHarness(b, op)
	h.adjust = func(rt *operator.Runtime) { rt.Checkpointing = true }
	if err := op.Open(h.runtime(), &discard{}); err != nil {
		b.Fatal(err)
	}
	f := newFeed(b, keys, 0, 0)
	for w := range windows {
		for from := 0; from < keys; from += 500 {
			batch := f.pool.Get()
			for k := range 500 {
				batch.Append(1, int64(w)*1000, 0)
				batch.Keys, batch.Hashes = append(batch.Keys, f.keys[from+k]), append(batch.Hashes, f.hashes[from+k])
			}
			if err := op.Process(0, batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	var pause, writing time.Duration
	var written int64
	for b.Loop() {
		w := &nowhere{}
		began := time.Now()
		err := op.(operator.Stateful).Snapshot(w)
		paused := time.Now()
		for _, f := range w.later {
			if err == nil {
				err = f(context.Background())
			}
		}
		pause += paused.Sub(began)
		writing += time.Since(paused)
		written += w.bytes
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(pause.Microseconds())/1000/float64(b.N), "pause-ms")
	b.ReportMetric(float64(written)/float64(b.N)/(1<<20), "MiB")
	b.ReportMetric(float64(written)/writing.Seconds()/(1<<20), "MiB/s")
}
