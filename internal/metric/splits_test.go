package metric

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/status"
)

// TestFinishedSplitsAreForgotten: a source that watches a directory for years does not keep a
// trace of each file, and the one that it is still reading stays.
func TestFinishedSplitsAreForgotten(t *testing.T) {
	var splits SplitSet
	splits.Add(NewSplit("slow"))
	const files = 10 * keptFinished
	for i := range files {
		s := NewSplit(fmt.Sprint(i))
		splits.Add(s)
		s.Enter(status.SplitFinished, status.NotIdle)
		if all := splits.All(); len(all) > 1+2*keptFinished || all[0].ID != "slow" || all[len(all)-1] != s {
			t.Fatalf("%d splits after %d files, from %s to %s", len(all), i+1, all[0].ID, all[len(all)-1].ID)
		}
	}
	if n := len(splits.All()); n < keptFinished {
		t.Errorf("%d splits are left, want at least %d", n, keptFinished)
	}
}
