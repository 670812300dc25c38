package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

// Start is where the newest run that did not go on from the latest checkpoint began, or the
// savepoint that it ended with or went on from since. Until there is a checkpoint after that,
// the latest in the directory is not the one to go on from.
type Start struct {
	// After is the number of the last checkpoint before.
	After int64 `json:"after"`
	// From is the checkpoint or savepoint to go on from, empty if none. The options
	// of a URL, which may hold secrets, are left out.
	From string `json:"from,omitempty"`
}

// record is what a run writes down when it comes. In a directory with a lock that is only
// where it starts.
type record struct {
	Start
	// Run names the run, and is empty in a directory with a lock, in records of earlier
	// versions, and if there is none.
	Run string `json:"run,omitempty"`
	// Found has the checkpoints that counted when the run came: for each folder the run that
	// wrote it.
	Found map[string]string `json:"found,omitempty"`

	// damage is what is wrong with the record of the run before.
	damage error
}

const (
	startName   = "start"
	startSuffix = ".start"
	startLimit  = 16 << 20
)

// startFile returns the name of the record of a run.
func startFile(number int64) string {
	if number == 0 {
		return startName
	}
	return ownerDir + "/" + strconv.FormatInt(number, 10) + startSuffix
}

// ErrLate is the error of a checkpoint whose run had been taken over before it appeared. That
// run counts it as failed, and later ones have not gone on from it.
var ErrLate = errors.New("it does not count")

// late returns an error if a checkpoint does not count.
func (r *record) late(path, dir string, m *Manifest) error {
	if r.Run == "" || m.Run == "" || m.Run == r.Run {
		return nil
	}
	if by, ok := r.Found[dir]; ok && by == m.Run {
		return nil
	}
	return fmt.Errorf("checkpoint: %s: %w: it appeared when run %s, which wrote it, had been taken over, and run %s did not find it when it came; "+
		"if it has been copied here, name it with ResumeFrom", path, ErrLate, m.Run, r.Run)
}

// arrive looks at what earlier runs have left and writes down what of it counts. Nothing may
// depend on it before that has been written, and the storage was still this run's then.
func (s *Store) arrive() error {
	locked := s.owner.number() == 0
	before, err := newestRecord(s.storage, locked)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.record = before
	infos, err := s.List()
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, info := range infos {
		if errors.Is(info.Err, errUnreachable) {
			return info.Err // without its references, Retain would remove them
		}
		if info.Manifest == nil || errors.Is(info.Err, ErrLate) {
			continue
		}
		found[info.dir] = info.Manifest.Run
		if info.Kind == KindSavepoint {
			continue // it has its own shared files
		}
		s.refs[info.dir] = info.Manifest.sharedRefs()
		if info.Err == nil {
			s.shared.know(s.refs[info.dir])
		}
	}
	if locked {
		return nil
	}
	s.record = record{Start: before.Start, Run: s.owner.run(), Found: found, damage: before.damage}
	if before.damage != nil {
		return nil // whoever starts here has to decide first
	}
	if err := s.write(s.record); err != nil {
		return err
	}
	s.removeOlder(before)
	return nil
}

// removeOlder removes the claims and records of earlier runs. What it leaves does no harm, and
// the next run tries again.
func (s *Store) removeOlder(before record) {
	files, err := s.storage.list(ownerDir)
	if err != nil {
		return
	}
	var older []string
	for _, f := range files {
		if n := claimNumber(f.name); n > 0 && n < s.owner.number() {
			older = append(older, f.name)
		}
	}
	if before.Run == "" && before.Start != (Start{}) {
		older = append(older, startName)
	}
	_ = s.storage.remove(older...)
}

// newestRecord returns the record that matters, an empty one if there is none. One that is
// damaged has no content.
func newestRecord(s storage, locked bool) (record, error) {
	if locked {
		if r, err := readRecord(s, 0); !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	for range claimAttempts {
		files, err := s.list(ownerDir)
		if err != nil {
			return record{}, err
		}
		newest := int64(0)
		for _, f := range files {
			if strings.HasSuffix(f.name, startSuffix) {
				newest = max(newest, claimNumber(f.name))
			}
		}
		r, err := readRecord(s, newest)
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return r, err
		case newest == 0:
			return record{}, nil
		}
		// A later run, which has a record of its own, has removed it.
	}
	return record{}, fmt.Errorf("%s: %d other runs came at the same time: give each job a directory of its own", s.path(""), claimAttempts)
}

func readRecord(s storage, number int64) (r record, err error) {
	name := startFile(number)
	data, err := readFile(s, name, startLimit)
	if err != nil {
		return record{}, err
	}
	content, err := unsummed(data)
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil || r.After < 0 {
		return record{damage: fmt.Errorf("checkpoint: %s, which says where the newest run began, is damaged (%w): remove it if the newest checkpoint in the directory is the one to go on from",
			s.path(name), errors.Join(err, errors.New(string(data))))}, nil
	}
	return r, nil
}

// summed returns a line of text with its checksum in a line of its own.
func summed(line []byte) []byte { return fmt.Appendf(nil, "%s\n%016x\n", line, xxh3.Hash(line)) }

// unsummed returns the line. Earlier versions wrote it without a checksum.
func unsummed(data []byte) ([]byte, error) {
	line, sum, _ := bytes.Cut(data, []byte("\n"))
	if len(sum) > 0 && !bytes.Equal(summed(line), data) {
		return nil, errors.New("its checksum is another")
	}
	return line, nil
}

// noted returns the record that says what counts: the run's own, and in a view the newest.
func (s *Store) noted() (record, error) {
	if s.owner == nil {
		r, err := newestRecord(s.storage, false)
		if err != nil {
			err = fmt.Errorf("checkpoint: %w", err)
		}
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record, nil
}

// Start returns where the newest run began when this one came, or what SetStart was given
// since; the zero Start if none said so.
func (s *Store) Start() (Start, error) {
	r, err := s.noted()
	return r.Start, errors.Join(err, r.damage)
}

// SetStart stores where a run begins. When it returns without an error, that survives a crash
// of the machine, and the directory was still this run's.
func (s *Store) SetStart(start Start) error {
	if err := s.CheckOwner(); err != nil {
		return err
	}
	r, err := s.noted()
	if err != nil {
		return err
	}
	start.From = shown(start.From)
	r.Start, r.damage = start, nil
	if err := s.write(r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = r
	return nil
}

// write stores the record of this run.
func (s *Store) write(r record) error {
	name := startFile(s.owner.number())
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := errors.Join(writeFile(s.storage, name, summed(data)), s.storage.sync("")); err != nil {
		return fmt.Errorf("checkpoint: writing %s: %w", s.storage.path(name), withFree(s.storage, err))
	}
	return s.CheckOwner()
}
