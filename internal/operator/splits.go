package operator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/status"
)

// SplitsPart names the part of a source's snapshot that holds its splits. The job reads
// it, with DecodeSplits, for all subtasks of the earlier run together: which subtask gets
// a split is the enumerator's to say. A source only claims it.
const SplitsPart = "splits"

const splitsVersion = 1

// RestoredSplit is a split of an earlier run. A source's AddSplits gives the reader the
// Split in it; an enumerator's Owner is to be asked about that one, too.
type RestoredSplit struct {
	connector.Split
	// Watermark is what the split had reached, in milliseconds, MinTimestamp if nothing.
	// The split's event time goes on from there.
	Watermark int64
}

// splitEntry is how a split is stored: JSON, for people to read.
type splitEntry struct {
	Split opaque `json:"split"`
	// Watermark is left out if there is none.
	Watermark *int64 `json:"watermark,omitempty"`
	// Idle is for people only. A restored split is active until it is found idle again:
	// what was appended meanwhile would otherwise be late.
	Idle bool `json:"idle,omitempty"`
}

// DecodeSplits returns the splits in a part of name SplitsPart. codec is the source's.
func DecodeSplits(codec connector.SplitCodec, part snapshot.PartReader) ([]RestoredSplit, error) {
	if v := part.Part().Version; v != splitsVersion {
		return nil, fmt.Errorf("the checkpoint's splits have layout %d, this version of the program reads %d: use the one that wrote them", v, splitsVersion)
	}
	var splits []RestoredSplit
	for stored, err := range part.Entries() {
		if err != nil {
			return nil, err
		}
		var e splitEntry
		if err := json.Unmarshal(stored.Data, &e); err != nil {
			return nil, fmt.Errorf("the checkpoint's split %q is unreadable: %w", stored.Data, err)
		}
		split, err := codec.DecodeSplit(e.Split)
		if err != nil {
			return nil, fmt.Errorf("the source cannot restore the checkpoint's split %s: %w", e.Split, err)
		}
		restored := RestoredSplit{Split: split, Watermark: eventtime.MinTimestamp}
		if e.Watermark != nil {
			restored.Watermark = *e.Watermark
		}
		splits = append(splits, restored)
	}
	return splits, nil
}

// unwrapSplits returns the splits as the reader knows them, and those that are restored.
func unwrapSplits(splits []connector.Split) (bare []connector.Split, restored []RestoredSplit) {
	for _, split := range splits {
		if r, ok := split.(RestoredSplit); ok {
			restored = append(restored, r)
			split = r.Split
		}
		bare = append(bare, split)
	}
	return bare, restored
}

// openState checks that the source can do what checkpoints ask of it.
func (s *sourceOperator[T]) openState() error {
	if s.rt.Restored != nil {
		s.rt.Restored.Part(SplitsPart) // the job deals them out
	}
	if !s.rt.Checkpointing {
		return nil
	}
	var canEncode, canSnapshot bool
	s.codec, canEncode = s.source.(connector.SplitCodec)
	s.snapshotter, canSnapshot = s.reader.(connector.SplitSnapshotter)
	if !canEncode || !canSnapshot {
		return fmt.Errorf("checkpoints are on, but this source cannot store its position: "+
			"implement connector.SplitCodec on %T and connector.SplitSnapshotter on %T", s.source, s.reader)
	}
	return nil
}

// PrepareBarrier implements BeforeBarrier. What the generators know is emitted, so that
// the watermarks in the snapshot cover the records before it: a generator's own memory
// is not kept.
func (s *sourceOperator[T]) PrepareBarrier(int64) error {
	if s.rt.WatermarkInterval == 0 {
		return nil
	}
	return s.progress.Periodic(s.rt.Timers.Now())
}

// Snapshot implements Stateful.
func (s *sourceOperator[T]) Snapshot(w snapshot.Writer) error {
	splits, err := s.snapshotter.SnapshotSplits()
	if err != nil {
		return err
	}
	if err := s.checkComplete(splits); err != nil {
		return err
	}
	part, err := w.Part(snapshot.Part{
		Name: SplitsPart, Kind: snapshot.List, Version: splitsVersion,
		Schemas: map[string]string{"text": "json"},
	})
	if err != nil {
		return err
	}
	for _, split := range splits {
		entry, err := s.encode(split)
		if err != nil {
			return err
		}
		if err := part.Append(0, entry); err != nil {
			return err
		}
	}
	if l, ok := s.reader.(connector.CheckpointListener); ok {
		l.SnapshotTaken(w.Checkpoint())
	}
	return part.Close()
}

// checkComplete catches connectors that would lose or double records: what is assigned
// and not finished is in every snapshot.
func (s *sourceOperator[T]) checkComplete(splits []connector.Split) error {
	missing := map[string]bool{}
	for id := range s.splits {
		missing[id] = true
	}
	for _, split := range splits {
		if id := split.ID(); !missing[id] {
			return fmt.Errorf("the reader's snapshot has split %q, which it was not assigned, has finished, or has there twice", id)
		} else {
			delete(missing, id)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the reader's snapshot leaves out splits that are not finished: %q", slices.Sorted(maps.Keys(missing)))
	}
	return nil
}

func (s *sourceOperator[T]) encode(split connector.Split) ([]byte, error) {
	data, err := s.codec.EncodeSplit(split)
	if err != nil {
		return nil, fmt.Errorf("encoding split %q: %w", split.ID(), err)
	}
	sp := s.splits[split.ID()]
	e := splitEntry{Split: data, Idle: sp.State() == status.SplitIdle}
	if t := sp.Watermark(); t != eventtime.MinTimestamp {
		e.Watermark = &t
	}
	return json.Marshal(e)
}

// CheckpointCompleted implements CheckpointListener.
func (s *sourceOperator[T]) CheckpointCompleted(checkpoint int64) error {
	if l, ok := s.reader.(connector.CheckpointListener); ok {
		l.CheckpointCompleted(checkpoint)
	}
	return nil
}
