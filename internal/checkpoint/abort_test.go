package checkpoint

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A checkpoint may be given up while a subtask makes its segment safe: nothing is left of
// it, whoever comes first.
func TestAbortWhileFinishing(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, address)
			before := listed(t, s.storage, "")
			for id := range int64(100) {
				p, err := s.Begin(id+1, KindCheckpoint, "")
				if err != nil {
					t.Fatal(err)
				}
				segment, err := p.Segment("v", 0)
				if err != nil {
					t.Fatal(err)
				}
				var finishing sync.WaitGroup
				finishing.Go(func() { _, _ = segment.Finish() }) // either is right
				if err := p.Abort(); err != nil {
					t.Error(err)
				}
				finishing.Wait()
			}
			if diff := cmp.Diff(before, listed(t, s.storage, "")); diff != "" {
				t.Errorf("left behind:\n%s", diff)
			}
		})
	}
}
