package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// BenchmarkGibibyte writes and reads 1 GiB of entries of 64 bytes, half of them random,
// over 128 key groups in no order, from memory to a disk.
func BenchmarkGibibyte(b *testing.B) {
	const size, total, groups = 64, 1 << 30, 128
	random := rand.New(rand.NewPCG(1, 2))
	entries := make([][]byte, 1<<14)
	for i := range entries {
		entries[i] = fmt.Appendf(nil, "customer-%012d-of-some-shop:", i)[:size/2]
		for range size / 2 {
			entries[i] = append(entries[i], byte(random.Uint32()))
		}
	}
	s := openTest(b, b.TempDir())
	id := int64(0)
	var path string
	b.Run("write", func(b *testing.B) {
		b.SetBytes(total)
		b.ReportAllocs()
		for b.Loop() {
			id++
			p, err := s.Begin(id, KindCheckpoint, "")
			if err != nil {
				b.Fatal(err)
			}
			segment, err := p.Segment("v", 0)
			if err != nil {
				b.Fatal(err)
			}
			w := segment.Operator(OperatorInfo{ID: "op", Parallelism: 1, MaxParallelism: groups}, nil)
			part, err := w.Part(snapshot.Part{Name: "p", Kind: snapshot.Keyed})
			if err != nil {
				b.Fatal(err)
			}
			for i := range total / size {
				if err := part.Append(i*31%groups, entries[i%len(entries)]); err != nil {
					b.Fatal(err)
				}
			}
			if err := part.Close(); err != nil {
				b.Fatal(err)
			}
			info, err := segment.Finish()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(total)/float64(info.Size), "ratio")
			if path, err = p.Complete(Manifest{Operators: []Operator{{ID: "op", Parallelism: 1, MaxParallelism: groups}}}); err != nil {
				b.Fatal(err)
			}
			if err := s.Retain(1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(total)
		b.ReportAllocs()
		c, err := s.Load(path)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		state, _ := c.Operator("op")
		for b.Loop() {
			r, err := state.Reader(0, 1, ranges)
			if err != nil {
				b.Fatal(err)
			}
			p, _ := r.Part("p")
			n := 0
			for e, err := range p.Entries() {
				if err != nil {
					b.Fatal(err)
				}
				n += len(e.Data)
			}
			if n != total {
				b.Fatal(n)
			}
		}
	})
}
