package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/state"
)

// countingWriter is a snapshot.Writer that counts bytes, and writes later in a goroutine.
type countingWriter struct {
	bytes int64
	done  chan error
}

func (w *countingWriter) Checkpoint() int64 { return 1 }
func (w *countingWriter) Incremental() bool { return false }
func (w *countingWriter) Share(string, int64, func() (io.ReadCloser, error)) error {
	return errors.ErrUnsupported
}
func (w *countingWriter) Part(snapshot.Part) (snapshot.PartWriter, error) { return w, nil }
func (w *countingWriter) Later(f func(context.Context) error) {
	go func() { w.done <- f(context.Background()) }()
}
func (w *countingWriter) Append(_ int, entry []byte) error { w.bytes += int64(len(entry)); return nil }
func (w *countingWriter) Close() error                     { return nil }

// profile is what one user has: about 100 bytes of state.
type profile struct {
	Visits, First, Last int64
	Spent               float64
	Country             string
	Recent              [4]int32
}

// BenchmarkSnapshot takes snapshots of a state of a gigabyte while records keep coming, as
// fast as they can, to random keys. It reports how long a snapshot stops the subtask, what
// records take while one is written and otherwise, and how fast state is encoded.
func BenchmarkSnapshot(b *testing.B) {
	const keys = 8 << 20 // with 128 bytes an entry, key and value
	h := hasherOf[int64](b)
	backend := NewBackend[int64]()
	if err := backend.Store(Storage{Prefix: "state/", MaxParallelism: 128}); err != nil {
		b.Fatal(err)
	}
	users, err := backend.Value(state.Value[profile]("users"))
	if err != nil {
		b.Fatal(err)
	}
	record := func(k int64) {
		backend.SetCurrentKey(h(k), k)
		p, _ := users.Get()
		p.Visits++
		p.Last = p.Visits
		users.Set(p)
	}
	for k := range int64(keys) {
		backend.SetCurrentKey(h(k), k)
		users.Set(profile{Visits: k, First: k << 20, Last: k << 21, Spent: float64(k), Country: "Iceland"})
	}
	r := rand.New(rand.NewPCG(1, 2))
	var stops, all, usual []time.Duration
	var bytes, during, before int64
	var writing, running time.Duration
	for b.Loop() {
		began := time.Now()
		for time.Since(began) < 300*time.Millisecond {
			last := time.Now()
			for range benchBatch {
				record(r.Int64N(keys))
				now := time.Now()
				usual = append(usual, now.Sub(last))
				last = now
			}
			before += benchBatch
		}
		running += time.Since(began)
		backend.ClearCurrentKey()

		w := &countingWriter{done: make(chan error)}
		began = time.Now()
		s := NewSnapshot(w)
		if err := backend.Snapshot(s); err != nil {
			b.Fatal(err)
		}
		stops = append(stops, time.Since(began))
		s.Start()
		began = time.Now()
		for done := false; !done; {
			last := time.Now()
			for range benchBatch {
				record(r.Int64N(keys))
				now := time.Now()
				all = append(all, now.Sub(last))
				last = now
			}
			during += benchBatch
			select {
			case err := <-w.done:
				if err != nil {
					b.Fatal(err)
				}
				done = true
			default:
			}
		}
		writing += time.Since(began)
		bytes += w.bytes
	}
	slices.Sort(stops)
	n := len(stops)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(stops[(n*99)/100].Microseconds()), "stop-p99-µs")
	b.ReportMetric(float64(stops[n-1].Microseconds()), "stop-max-µs")
	slices.Sort(all)
	slices.Sort(usual)
	for _, p := range []struct {
		name string
		of   float64
	}{{"median", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"slowest", 1}} {
		at := func(all []time.Duration) float64 {
			return float64(all[min(int(p.of*float64(len(all))), len(all)-1)].Nanoseconds()) / 1000
		}
		b.ReportMetric(at(all), "record-"+p.name+"-µs")
		b.ReportMetric(at(usual), "record-"+p.name+"-without-µs")
	}
	b.ReportMetric(float64(bytes)/1e6/writing.Seconds(), "MB/s")
	b.ReportMetric(float64(bytes)/float64(n)/(1<<20), "MiB/snapshot")
	b.ReportMetric(float64(running.Nanoseconds())/float64(before), "record-ns")
	b.ReportMetric(float64(writing.Nanoseconds())/float64(during), "record-during-ns")
}

// BenchmarkTimersSnapshot takes snapshots of ten million timers: how long the subtask
// stops, and how fast they are restored.
func BenchmarkTimersSnapshot(b *testing.B) {
	const timers = 10_000_000
	h := hasherOf[int64](b)
	r := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []int64{1, 10_000, 3_600_000} {
		b.Run(fmt.Sprintf("spread=%dms", spread), func(b *testing.B) {
			q := NewTimerQueue[int64, struct{}]()
			for k := range int64(timers) {
				q.Register(Timer[int64, struct{}]{At: r.Int64N(spread), Hash: h(k), Key: k})
			}
			var stop, write, restore time.Duration
			for b.Loop() {
				w := &countingWriter{done: make(chan error, 1)}
				s := NewSnapshot(w)
				part, err := s.Part(snapshot.Part{})
				if err != nil {
					b.Fatal(err)
				}
				restored := NewTimerQueue[int64, struct{}]()
				began := time.Now()
				s.Timers(q, func(to *Encoder, t *Timer[int64, struct{}]) error {
					to.End(part, 0)
					return nil
				})
				stop = max(stop, time.Since(began))
				began = time.Now()
				s.Start()
				if err := <-w.done; err != nil {
					b.Fatal(err)
				}
				write += time.Since(began)
				began = time.Now()
				for t := range q.All() {
					restored.Register(t)
				}
				restore += time.Since(began)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(stop.Microseconds()), "stop-max-µs")
			b.ReportMetric(float64(write.Nanoseconds())/float64(b.N)/timers, "write-ns/timer")
			b.ReportMetric(float64(restore.Nanoseconds())/float64(b.N)/timers, "register-ns/timer")
		})
	}
}
