package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// smallCheckpoint writes a checkpoint to memory and returns its store and files.
func smallCheckpoint(t testing.TB, name string) (*Store, map[string][]byte) {
	t.Helper()
	s := openTest(t, "mem://"+name)
	if _, err := take(s, 1, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	return s, s.storage.(*mem).files
}

// checkAll loads a checkpoint, reads what operators read, and verifies. It fails the
// test if what operators read is wrong and there is no error.
func checkAll(t *testing.T, s *Store, what string) error {
	t.Helper()
	c, err := s.Load("chk-1")
	if err != nil {
		return err
	}
	got, readErr := readAll(c)
	verifyErr := c.Verify()
	if readErr == nil && got != wholeText(1, KindCheckpoint) {
		t.Errorf("%s: wrong state is restored without an error", what)
	}
	if readErr != nil && verifyErr == nil {
		t.Errorf("%s: reading says %v, verifying nothing", what, readErr)
	}
	return errors.Join(verifyErr, c.Close())
}

// TestEveryByteIsChecked changes a bit in every byte of every file.
func TestEveryByteIsChecked(t *testing.T) {
	s, files := smallCheckpoint(t, "flips")
	if err := checkAll(t, s, "whole"); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, whole := range files {
		if claimNumber(name) > 0 {
			continue // it says who writes here
		}
		for i := range whole {
			flip := byte(1) << (i % 8)
			broken := bytes.Clone(whole)
			broken[i] ^= flip
			files[name] = broken
			if err := checkAll(t, s, name); err == nil {
				t.Errorf("%s: byte %d of %d changed by %x is not noticed", name, i, len(whole), flip)
			} else if !strings.Contains(err.Error(), "mem://flips/"+name) {
				t.Errorf("%s: byte %d changed: the error does not name the file: %v", name, i, err)
			}
			checked++
		}
		files[name] = whole
	}
	if checked < 1000 {
		t.Errorf("there are only %d bytes", checked)
	}
}

// TestEveryLengthIsChecked cuts every file at every length, and lets it grow.
func TestEveryLengthIsChecked(t *testing.T) {
	s, files := smallCheckpoint(t, "cuts")
	for name, whole := range files {
		if claimNumber(name) > 0 {
			continue // it says who writes here
		}
		for n := range whole {
			files[name] = whole[:n]
			if err := checkAll(t, s, name); err == nil {
				t.Errorf("%s cut to %d of %d bytes is not noticed", name, n, len(whole))
			}
		}
		files[name] = append(bytes.Clone(whole), 0)
		if err := checkAll(t, s, name); err == nil {
			t.Errorf("%s with one byte more is not noticed", name)
		}
		delete(files, name)
		if err := checkAll(t, s, name); err == nil {
			t.Errorf("%s is gone, which is not noticed", name)
		}
		files[name] = whole
	}
}

// TestForeignFiles puts files of another checkpoint, whole ones, where they do not
// belong.
func TestForeignFiles(t *testing.T) {
	s, files := smallCheckpoint(t, "foreign")
	if _, err := take(s, 2, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{
		"chk-1/2-0-run1.seg": "chk-2/2-0-run1.seg",
		"chk-1/2-1-run1.seg": "chk-1/2-0-run1.seg",
		"chk-1/manifest":     "chk-2/manifest",
		"shared/sst-1":       "shared/sst-2",
	} {
		own := files[name]
		files[name] = files[other]
		if err := checkAll(t, s, name); err == nil {
			t.Errorf("%s in place of %s is not noticed", other, name)
		}
		files[name] = own
	}
}

func TestDamageIsLocated(t *testing.T) {
	s, files := smallCheckpoint(t, "located")
	name := "chk-1/2-1-run1.seg"
	broken := bytes.Clone(files[name])
	broken[headerSize+10]++
	files[name] = broken
	c, err := s.Load("chk-1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	state, _ := c.Operator(counting.ID)
	r, err := state.Reader(1, 2, ranges)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range part(t, r, "state/sum").Entries() {
		if err != nil {
			break
		}
	}
	want := `checkpoint: mem://located/chk-1/2-1-run1.seg at offset 16: operator "Count" (uid count), part "state/sum": the checksum is wrong`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// TestNewestIsDamaged: the one before is taken, and the damage is told.
func TestNewestIsDamaged(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	for id := range int64(4) {
		if _, err := take(s, id+1, KindCheckpoint, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "chk-4/2-0.seg"), 100); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chk-3/manifest"), []byte("nonsense that is long enough to be one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "chk-5"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chk-5/2-0.seg.part"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	latest, skipped, err := s.Latest(0)
	checkWhole(t, 2, KindCheckpoint)(latest, err)
	wants := []string{"chk-5: it was not completed", "chk-4/2-0.seg has 100 bytes instead of", "chk-3/manifest: it is not a lowwater manifest"}
	if len(skipped) != len(wants) {
		t.Fatalf("skipped %v", skipped)
	}
	for i, want := range wants {
		if !strings.Contains(skipped[i].Err.Error(), want) {
			t.Errorf("got %v, want %q", skipped[i].Err, want)
		}
	}
	infos, err := s.List()
	if err != nil || len(infos) != 5 || infos[0].ID != 5 || !errors.Is(infos[0].Err, ErrUnfinished) || infos[1].Manifest == nil || infos[3].Err != nil {
		t.Errorf("list: %v, %v", infos, err)
	}
	// What is damaged and newer than what is kept stays for whoever wants to look.
	if err := s.Retain(1); err != nil {
		t.Fatal(err)
	}
	if infos, _ = s.List(); len(infos) != 3 || infos[0].ID != 4 || infos[1].ID != 3 || infos[2].ID != 2 {
		t.Errorf("retained: %v", infos)
	}
	if _, err := take(s, 6, KindCheckpoint, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(1); err != nil {
		t.Fatal(err)
	}
	if infos, _ = s.List(); len(infos) != 1 || infos[0].ID != 6 {
		t.Errorf("retained: %v", infos)
	}
}

func TestNewerFormat(t *testing.T) {
	s, files := smallCheckpoint(t, "newer")
	newer := func(name string, from int) {
		t.Helper()
		whole := files[name]
		changed := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(changed[8:], 2)
		if from > 0 {
			binary.LittleEndian.PutUint64(changed[from:], xxh3.Hash(changed[:from]))
		}
		files[name] = changed
		if err := checkAll(t, s, name); err == nil || !strings.Contains(err.Error(), "version 2, this lowwater knows version 1") {
			t.Errorf("%s: got %v", name, err)
		}
		files[name] = whole
	}
	newer("chk-1/manifest", len(files["chk-1/manifest"])-8)
	newer("chk-1/2-0-run1.seg", 0)
}

func FuzzManifest(f *testing.F) {
	_, files := smallCheckpoint(f, "fuzz manifest")
	f.Add(files["chk-1/manifest"])
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 28 {
			return
		}
		// With a right checksum, so that what is behind it is reached.
		data = bytes.Clone(data)
		binary.LittleEndian.PutUint64(data[len(data)-8:], xxh3.Hash(data[:len(data)-8]))
		m, err := decodeManifest(data)
		if err == nil {
			_ = m.validate() // it must not panic
		}
	})
}

// FuzzSegment has the payloads of index and block: what is around them is small and
// tested byte by byte.
func FuzzSegment(f *testing.F) {
	_, files := smallCheckpoint(f, "fuzz segment")
	data := files["chk-1/2-0-run1.seg"]
	index := int64(binary.LittleEndian.Uint64(data[len(data)-trailerSize:]))
	r := blockReader{decompress: newDecompressor(), frame: new([]byte)}
	sum := func(end int64) uint64 { return binary.LittleEndian.Uint64(data[end-8:]) }
	end := int64(len(data) - trailerSize)
	raw, err := r.read(bytes.NewReader(data), index, end-index, sum(end))
	if err != nil {
		f.Fatal(err)
	}
	parsed, err := decodeIndex(raw)
	if err != nil {
		f.Fatal(err)
	}
	rawIndex := bytes.Clone(raw)
	block := parsed.Operators[0].Parts[0].Runs[0].Blocks[0]
	raw, err = r.read(bytes.NewReader(data), block.Offset, block.Length, block.Checksum)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rawIndex, raw, 3, 7, 40)
	f.Fuzz(func(t *testing.T, index, block []byte, first, last, entries int) {
		s := &openSegment{checkpoint: 1, info: SegmentInfo{Vertex: "2", Size: 1 << 20}}
		if i, err := decodeIndex(index); err == nil {
			_ = i.validate(s, 1<<19) // it must not panic
		}
		fuzzBlock(t, block, first, last, entries)
	})
}

func fuzzBlock(t *testing.T, raw []byte, first, last, entries int) {
	if entries < 1 || entries > 1<<20 || first < 0 || last < first || last > 1<<15 {
		return // refused with the index
	}
	framed, checksum, err := newCompressor().appendBlock(nil, raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := blockIndex{Length: int64(len(framed)), First: first, Last: last, Entries: int64(entries), Checksum: checksum}
	s := &openSegment{decompress: newDecompressor(), storage: &mem{name: "mem://fuzz"}, file: memReader{bytes.NewReader(framed)}}
	p := &storedPart{segment: s, index: &partIndex{Part: snapshot.Part{Name: "p"}, Entries: b.Entries, Runs: []runIndex{{[]blockIndex{b}}}}}
	verified := p.verify(b)
	var groups []int
	var failed error
	for e, err := range p.Groups(0, 1<<15) {
		if failed = err; err == nil {
			groups = append(groups, e.Group)
		}
	}
	if (verified == nil) != (failed == nil) {
		t.Fatalf("verifying says %v, reading %v", verified, failed)
	}
	if failed == nil && (len(groups) != entries || !slices.IsSorted(groups) || groups[0] < first || groups[len(groups)-1] > last) {
		t.Fatalf("read groups %v of %d to %d", groups, first, last)
	}
}
