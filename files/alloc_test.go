//go:build !race

package files_test

import (
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/files"
)

// TestWriteAllocations: writing allocates per file, not per record.
func TestWriteAllocations(t *testing.T) {
	w := openSink(t, files.NewSink(t.TempDir(), files.JSONLines[rec](), files.BucketByTime("2006")), 1)[0]
	b := batchOf(recs(0, connector.BatchSize))
	if n := testing.AllocsPerRun(50, func() {
		if err := w.Write(t.Context(), b); err != nil {
			t.Error(err)
		}
	}); n > 8 {
		t.Errorf("writing %d records allocates %v times", connector.BatchSize, n)
	}
}
