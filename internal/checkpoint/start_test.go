package checkpoint

import (
	"strings"
	"testing"
)

// TestStart: where a run began is kept over processes, the last one counts, and numbers stay
// above it although the checkpoints themselves are gone.
func TestStart(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, address)
			if got, err := s.Start(); err != nil || got != (Start{}) {
				t.Errorf("at first it is %+v, %v", got, err)
			}
			for _, start := range []Start{{After: 3}, {After: 7, From: "s3://user:secret@bucket/dir/chk-5?key=secret"}} {
				if err := s.SetStart(start); err != nil {
					t.Fatal(err)
				}
			}
			want := Start{After: 7, From: "s3://bucket/dir/chk-5"}
			if got, err := s.Start(); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
			if next, err := s.NextID(); err != nil || next != 8 {
				t.Errorf("the next number is %d, %v", next, err)
			}
			if err := writeFile(s.storage, startName, []byte(`{"after":`)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Start(); err == nil || !strings.Contains(err.Error(), s.storage.path(startName)) {
				t.Errorf("damaged: %v", err)
			}
		})
	}
}
