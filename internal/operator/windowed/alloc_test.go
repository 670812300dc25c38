//go:build !race

package windowed

import (
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/window"
)

// In the steady state a record costs no allocation, whatever the windows.
func TestNoAllocations(t *testing.T) {
	for _, a := range []window.Assigner{
		window.Tumbling(20 * time.Millisecond),
		window.Sliding(40*time.Millisecond, 10*time.Millisecond),
		window.Cumulating(40*time.Millisecond, 10*time.Millisecond),
		window.Session(5 * time.Millisecond),
	} {
		op := Aggregate[string](specOf[element](Options{Assigner: a}), window.Count[element]())
		h := openHarness(t, op)
		out := &discard{}
		if err := op.Open(h.runtime(), out); err != nil {
			t.Fatal(err)
		}
		keys := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
		at, rounds := int64(0), 0
		round := func() {
			at += 7
			rounds += 5
			b := h.pool.Get()
			for i := range 100 {
				key := keys[(rounds+i%5)%len(keys)]
				b.Append(element{}, at+int64(i%9), 0)
				b.Keys = append(b.Keys, key)
				b.Hashes = append(b.Hashes, h.hash(key))
			}
			if err := op.Process(0, b); err != nil {
				t.Fatal(err)
			}
			if err := op.Watermark(at - 3); err != nil {
				t.Fatal(err)
			}
		}
		for range 500 {
			round()
		}
		if got := testing.AllocsPerRun(500, round); got > 0.5 {
			t.Errorf("%v: %v allocations per 100 records", a, got)
		}
		if out.records == 0 {
			t.Errorf("%v: nothing fired", a)
		}
	}
}
