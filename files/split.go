package files

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/connector"
)

// split is one file.
type split struct {
	path string
	// number counts the files of a source in the order in which they are to be read.
	number int64
	// position is where the next record begins, of a file that had that size and time of
	// modification, in nanoseconds since the epoch, when it was opened. All are 0 before.
	position, size, modified int64
}

func (s split) ID() string { return s.path }

// splitJSON is how a split is stored.
type splitJSON struct {
	Path     string `json:"path"`
	Number   int64  `json:"number"`
	Position int64  `json:"position"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"`
}

// EncodeSplit implements connector.SplitCodec.
func (s *Source[T]) EncodeSplit(sp connector.Split) ([]byte, error) {
	f, ok := sp.(split)
	if !ok {
		return nil, fmt.Errorf("files source: split %q is a %T, not one of this source", sp.ID(), sp)
	}
	return json.Marshal(splitJSON{f.path, f.number, f.position, f.size, f.modified})
}

// DecodeSplit implements connector.SplitCodec.
func (s *Source[T]) DecodeSplit(data []byte) (connector.Split, error) {
	var stored splitJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("files source: %w", err)
	}
	if stored.Path == "" || stored.Number < 0 || stored.Position < 0 || stored.Size < 0 {
		return nil, errors.New("files source: want a path, and a number, position and size that are not negative")
	}
	return split{stored.Path, stored.Number, stored.Position, stored.Size, stored.Modified}, nil
}
