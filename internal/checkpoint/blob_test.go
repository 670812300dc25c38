//go:build lowwater_s3 || lowwater_gcs || lowwater_azure

package checkpoint

import (
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"
)

// bucketStorage returns an object store in memory. Objects are below dir.
func bucketStorage(t *testing.T) *bucket {
	t.Helper()
	b := memblob.OpenBucket(nil)
	return &bucket{ctx: t.Context(), bucket: b, address: "mem://bucket/dir", dir: "dir"}
}

func TestBucket(t *testing.T) {
	b := bucketStorage(t)
	s, err := openStore(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(3) {
		if _, err := take(s, id, KindCheckpoint, ""); err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.Begin(3, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSegment(p, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Segment("2", 1); err != nil {
		t.Fatal(err)
	}
	if err := p.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(2); err != nil {
		t.Fatal(err)
	}
	c, skipped, err := s.Latest(0)
	if len(skipped) > 0 {
		t.Error(skipped)
	}
	checkWhole(t, 2, KindCheckpoint)(c, err)
	checkWhole(t, 1, KindCheckpoint)(s.Load("mem://bucket/dir/chk-1"))
	files, err := b.list("")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	want := "chk-1/2-0.seg chk-1/2-1.seg chk-1/manifest chk-2/2-0.seg chk-2/2-1.seg chk-2/manifest shared/sst-1 shared/sst-2 shared/sst-old"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("there are %s", got)
	}
	if err := b.remove("chk-2/2-0.seg", "nothing"); err != nil {
		t.Fatal(err)
	}
	c, skipped, err = s.Latest(0)
	checkWhole(t, 1, KindCheckpoint)(c, err)
	if len(skipped) != 1 || !strings.Contains(skipped[0].Err.Error(), "mem://bucket/dir/chk-2/2-0.seg is missing") {
		t.Errorf("skipped %v", skipped)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
