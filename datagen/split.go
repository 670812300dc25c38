package datagen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/connector"
)

// split is one of the splits of a source, and how far it is.
type split struct {
	number int
	// made is how many records of the split were made.
	made int64
}

// ID implements connector.Split.
func (s split) ID() string { return fmt.Sprintf("split-%d", s.number) }

// splitJSON is how a split is stored. Of is the number of splits of the source.
type splitJSON struct {
	Split int   `json:"split"`
	Of    int   `json:"of"`
	Made  int64 `json:"made"`
}

func encodeSplit(s connector.Split, of int) ([]byte, error) {
	sp, ok := s.(split)
	if !ok {
		return nil, fmt.Errorf("datagen: split %q is a %T", s.ID(), s)
	}
	return json.Marshal(splitJSON{sp.number, of, sp.made})
}

// decodeSplit refuses splits of a source with another number of them: they would make
// other records.
func decodeSplit(data []byte, of int) (split, error) {
	var stored splitJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return split{}, err
	}
	if stored.Of != of {
		return split{}, otherSplits(stored.Of, of)
	}
	if stored.Split < 0 || stored.Split >= of || stored.Made < 0 {
		return split{}, errors.New("datagen: there is no such split")
	}
	return split{stored.Split, stored.Made}, nil
}

func otherSplits(before, now int) error {
	return fmt.Errorf("datagen: the checkpoint is of a source with %d splits, which now has %d: leave the option Splits as it was, "+
		"or begin anew by giving the source another UID", before, now)
}

// EncodeSplit implements connector.SplitCodec.
func (s *Source[T]) EncodeSplit(sp connector.Split) ([]byte, error) { return encodeSplit(sp, s.splits) }

// DecodeSplit implements connector.SplitCodec.
func (s *Source[T]) DecodeSplit(data []byte) (connector.Split, error) {
	return decodeSplit(data, s.splits)
}

// enumerator gives out all splits at once.
type enumerator struct {
	splits     []connector.Split
	discovered bool
}

func (e *enumerator) Discover(context.Context) ([]connector.Split, error) {
	if e.discovered {
		return nil, nil
	}
	e.discovered = true
	return e.splits, nil
}

func (e *enumerator) Owner(s connector.Split, parallelism int) int {
	return s.(split).number % parallelism
}

// SnapshotEnumerator implements connector.RestorableEnumerator.
func (e *enumerator) SnapshotEnumerator() ([]byte, error) {
	return json.Marshal(enumeratorJSON{len(e.splits)})
}

// RestoreEnumerator implements connector.RestorableEnumerator. There are no new splits.
func (e *enumerator) RestoreEnumerator(data []byte) error {
	var stored enumeratorJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return fmt.Errorf("datagen: the splits in the checkpoint are unreadable: %w", err)
	}
	if stored.Splits != len(e.splits) {
		return otherSplits(stored.Splits, len(e.splits))
	}
	e.discovered = true
	return nil
}

func (e *enumerator) Close() error { return nil }

// enumeratorJSON is how an enumerator is stored.
type enumeratorJSON struct {
	Splits int `json:"splits"`
}

var (
	_ connector.SplitCodec           = (*Source[int])(nil)
	_ connector.SplitCodec           = sliceSource[int]{}
	_ connector.SplitSnapshotter     = (*reader[int])(nil)
	_ connector.SplitSnapshotter     = (*sliceReader[int])(nil)
	_ connector.RestorableEnumerator = (*enumerator)(nil)
)
