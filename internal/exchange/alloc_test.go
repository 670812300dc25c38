//go:build !race

package exchange

import (
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/keyed"
)

// Not under the race detector, where sync.Pool drops items at random.
func TestWritersDoNotAllocatePerRecord(t *testing.T) {
	hasher, err := keyed.HasherFor[int]()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(2, 64)
	w := Hash(func(v int) int { return v }, hasher, 128)(r.out, r.channels, 0)
	pool := connector.NewPool[int]()
	round := func() {
		b := pool.Get()
		for i := range connector.BatchSize {
			b.Append(i, 0, 0)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		for i, in := range r.inboxes {
			select {
			case m := <-in.C():
				m.Payload.Release()
				r.inboxes[i].Done(m.Channel)
			default:
			}
		}
	}
	for range 10 {
		round()
	}
	if perBatch := testing.AllocsPerRun(200, round); perBatch > 1 {
		t.Errorf("%.2f allocations a batch of %d records", perBatch, connector.BatchSize)
	}
}
