package checkpoint

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestStart: where a run began is kept over processes, the last one counts, and numbers stay
// above it although the checkpoints themselves are gone.
func TestStart(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openAgain(t, address)
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
			for range 2 { // the next run is asked before it writes anything down, too
				file := startFile(s.owner.number())
				if err := errors.Join(s.Close(), writeFile(openTestStorage(t, address), file, []byte(`{"after":`))); err != nil {
					t.Fatal(err)
				}
				s = openAgain(t, address)
				if _, err := s.Start(); err == nil || !strings.Contains(err.Error(), s.storage.path(file)) {
					t.Errorf("damaged: %v", err)
				}
			}
			if err := s.SetStart(want); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Start(); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Any bit of what says where a run began that is another makes it damaged.
func TestStartIsChecked(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			s := openAgain(t, address)
			if err := s.SetStart(Start{After: 12}); err != nil {
				t.Fatal(err)
			}
			file := startFile(s.owner.number())
			whole, err := readFile(s.storage, file, startLimit)
			if err != nil {
				t.Fatal(err)
			}
			for bit := range 8 * len(whole) {
				changed := slices.Clone(whole)
				changed[bit/8] ^= 1 << (bit % 8)
				if err := writeFile(s.storage, file, changed); err != nil {
					t.Fatal(err)
				}
				if r, err := readRecord(s.storage, s.owner.number()); err != nil || r.damage == nil {
					t.Errorf("bit %d: %q is read as %+v, %v", bit, changed, r.Start, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
