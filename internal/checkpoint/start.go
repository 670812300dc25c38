package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Start is where the newest run that did not go on from the latest checkpoint began. Until
// it has a checkpoint of its own, the latest in the directory is not one of its.
type Start struct {
	// After is the number of the last checkpoint of the runs before.
	After int64 `json:"after"`
	// From is the checkpoint or savepoint that it went on from, empty if none. The options
	// of a URL, which may hold secrets, are left out.
	From string `json:"from,omitempty"`
}

const (
	startName  = "start"
	startLimit = 1 << 20
)

// Start returns what SetStart was given last, the zero Start if it never was.
func (s *Store) Start() (start Start, err error) {
	data, err := readFile(s.storage, startName, startLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return Start{}, nil
	}
	if err != nil {
		return Start{}, fmt.Errorf("checkpoint: %w", err)
	}
	if err := json.Unmarshal(data, &start); err != nil || start.After < 0 {
		return Start{}, fmt.Errorf("checkpoint: %s, which says where the newest run began, is damaged (%w): remove it if the newest checkpoint in the directory is the one to go on from",
			s.storage.path(startName), errors.Join(err, errors.New(string(data))))
	}
	return start, nil
}

// SetStart stores where a run begins. When it returns without an error, that survives a crash
// of the machine.
func (s *Store) SetStart(start Start) error {
	if err := s.owner.check(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	start.From = shown(start.From)
	data, err := json.Marshal(start)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := errors.Join(writeFile(s.storage, startName, append(data, '\n')), s.storage.sync("")); err != nil {
		return fmt.Errorf("checkpoint: writing %s: %w", s.storage.path(startName), withFree(s.storage, err))
	}
	return nil
}
